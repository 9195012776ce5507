"""What an account has at the start: named containers, queues, tables and shares, and files of a folder.

Each object is created by the REST operation that a client would use, with a condition that leaves what exists as it is. So a
second start changes nothing.
"""

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from urllib.parse import quote, unquote

from verditer.config import Seed
from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant, Scheme
from verditer.rest.http.message import Request, Response
from verditer.rest.http.server import Handler
from verditer.rest.pipeline import Pipeline
from verditer.rest.services import SERVICES
from verditer.services.context import Context

PIECE_BYTES = 1 << 20
_RANGE_BYTES = 4 << 20
_EXISTS = (409, 412)


class SeedError(ValueError):
    """Something in the seed cannot be stored; the text says what and why."""


async def store_seeds(ctx: Context, seeds: Mapping[str, Seed]) -> None:
    """`seeds` is by account."""
    if not seeds:
        return
    grant = Grant(scheme=Scheme.KEY)
    handlers = {
        each.name: Pipeline(ctx, each, observer=lambda *_: None, product_style=False, grant=grant).handle for each in SERVICES
    }
    for account, seed in seeds.items():
        seeder = Seeder(handlers, account)
        for service, names in (("blob", seed.containers), ("queue", seed.queues), ("table", seed.tables), ("file", seed.shares)):
            await seeder.names(service, names)
        if seed.folder:
            await seeder.folder(Path(seed.folder))


class Seeder:
    """`handlers` answer the requests of each service, without credentials."""

    def __init__(self, handlers: Mapping[str, Handler], account: str) -> None:
        self._handlers = handlers
        self._account = account
        self._new: set[tuple[str, str]] = set()  # service and name of what this start has created

    async def names(self, service: str, names: Iterable[str]) -> None:
        for name in names:
            await self._create(service, name)

    async def folder(self, folder: Path) -> None:
        """`blob/<container>/…`, `file/<share>/…`, and `queue/<queue>.json`, `table/<table>.json` with a list of messages or
        entities. Messages are put only into a queue that is new."""
        _check_folder(folder)
        for container in _folders(folder / "blob"):
            await self._create("blob", container.name)
            for file in _files(container):
                await self._blob(container, file)
        for share in _folders(folder / "file"):
            await self._create("file", share.name)
            for file in _files(share):
                await self._file(share, file)
        for file in sorted((folder / "queue").glob("*.json")):
            await self._create("queue", file.stem)
            if ("queue", file.stem) in self._new:
                for message in _list(file):
                    await self._message(file.stem, message if isinstance(message, str) else json.dumps(message))
        for file in sorted((folder / "table").glob("*.json")):
            await self._create("table", file.stem)
            for entity in _list(file):
                await self._send("table", "POST", file.stem, _JSON, _Bytes(json.dumps(entity).encode()))

    async def _create(self, service: str, name: str) -> None:
        query = _CREATION_QUERIES.get(service)
        if query is None:  # Table names what is created in the body
            is_new = await self._send(service, "POST", "Tables", _JSON, _Bytes(json.dumps({"TableName": name}).encode()))
        else:
            is_new = await self._send(service, "PUT", quote(name) + query)
        if is_new:
            self._new.add((service, name))

    async def _blob(self, container: Path, file: Path) -> None:
        headers = {"x-ms-blob-type": "BlockBlob", "if-none-match": "*", "content-type": _type_of(file)}
        target = f"{container.name}/{quote(file.relative_to(container).as_posix())}"
        await self._send("blob", "PUT", target, headers, _FilePart(file, 0, _size_of(file)))

    async def _file(self, share: Path, file: Path) -> None:
        path = file.relative_to(share)
        for parent in reversed(path.parents[:-1]):
            await self._send("file", "PUT", f"{share.name}/{quote(parent.as_posix())}?restype=directory")
        size, target = _size_of(file), f"{share.name}/{quote(path.as_posix())}"
        if await self._exists("file", target):
            return
        headers = {"x-ms-type": "file", "x-ms-content-length": str(size), "x-ms-content-type": _type_of(file)}
        await self._send("file", "PUT", target, headers)
        for start in range(0, size, _RANGE_BYTES):
            end = min(start + _RANGE_BYTES, size)
            part = {"x-ms-write": "update", "x-ms-range": f"bytes={start}-{end - 1}"}
            await self._send("file", "PUT", f"{target}?comp=range", part, _FilePart(file, start, end - start))

    async def _message(self, queue: str, text: str) -> None:
        escaped = text.replace("&", "&amp;").replace("<", "&lt;")
        body = _Bytes(f"<QueueMessage><MessageText>{escaped}</MessageText></QueueMessage>".encode())
        await self._send("queue", "POST", f"{queue}/messages", {}, body)

    async def _exists(self, service: str, target: str) -> bool:
        return (await self._answer(service, "HEAD", target, {}, _Bytes(b""))).status == 200

    async def _send(
        self, service: str, method: str, target: str, headers: Mapping[str, str] | None = None, body: "_Sent | None" = None
    ) -> bool:
        """Whether the object is new."""
        response = await self._answer(service, method, target, headers or {}, body or _Bytes(b""))
        if response.status in _EXISTS:
            return False
        if response.status >= 300:
            raise SeedError(f"seed: {service} {unquote(target.partition('?')[0])!r} cannot be stored: {response.error_code}")
        return response.status == 201

    async def _answer(self, service: str, method: str, target: str, headers: Mapping[str, str], body: "_Sent") -> Response:
        sent = dict(headers) | {"content-length": str(body.length)}
        request = Request(
            method=method,
            target=f"/{self._account}/{target}",
            headers=sent,
            raw_headers=list(sent.items()),
            body=body,
            peer="127.0.0.1",
            secure=False,
        )
        return await self._handlers[service](request)


_CREATION_QUERIES = {"blob": "?restype=container", "file": "?restype=share", "queue": ""}
_JSON = {"content-type": "application/json", "accept": "application/json;odata=nometadata"}


class _Sent:
    """The body of a request that is made here."""

    length: int
    ended = False

    def __init__(self, length: int) -> None:
        self.length = length
        self._pieces = self._read_pieces()

    async def read(self) -> bytes:
        return await anext(self._pieces, b"")

    async def read_all(self, limit: int) -> bytes:
        if self.length > limit:
            raise StorageError(Code.RequestBodyTooLarge)
        return b"".join([piece async for piece in self._pieces])

    def _read_pieces(self) -> AsyncIterator[bytes]:
        raise NotImplementedError


class _Bytes(_Sent):
    def __init__(self, content: bytes) -> None:
        self._content = content
        super().__init__(len(content))

    async def _read_pieces(self) -> AsyncIterator[bytes]:
        self.ended = True
        if self._content:
            yield self._content


class _FilePart(_Sent):
    def __init__(self, path: Path, start: int, length: int) -> None:
        self._path, self._start = path, start
        super().__init__(length)

    async def _read_pieces(self) -> AsyncIterator[bytes]:
        """Read on the event loop: nothing else runs before the seed is stored."""
        left = self.length
        with self._path.open("rb") as file:
            file.seek(self._start)
            while left and (piece := file.read(min(PIECE_BYTES, left))):
                left -= len(piece)
                yield piece
        self.ended = True


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise SeedError(f"seed: there is no folder {folder}")


def _size_of(file: Path) -> int:
    return file.stat().st_size


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir()) if folder.is_dir() else []


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def _list(file: Path) -> list[object]:
    try:
        found = json.loads(file.read_text())
    except ValueError as error:
        raise SeedError(f"seed: {file} is not JSON: {error}") from None
    if not isinstance(found, list):
        raise SeedError(f"seed: {file} has to hold a list")
    return found


def _type_of(file: Path) -> str:
    import mimetypes  # only when there is a folder: it reads the tables of the system

    return mimetypes.guess_type(file.name)[0] or "application/octet-stream"
