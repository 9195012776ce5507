"""An HTTP client with one keep-alive connection, an account SAS in every query, and no retries."""

import asyncio
import base64
import hashlib
import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar
from urllib.parse import quote, urlencode

from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

T = TypeVar("T")
Headers = dict[str, str]


class Gone(Exception):
    """The connection ended before the response was complete: the result is unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Headers  # lower-case names
    body: bytes

    @property
    def code(self) -> str:
        return self.headers.get("x-ms-error-code", "")

    @property
    def etag(self) -> str:
        return self.headers["etag"]

    @property
    def modified(self) -> float:
        return parsedate_to_datetime(self.headers["last-modified"]).timestamp()

    @property
    def outcome(self) -> str:
        """Status and error code as one text, for counting."""
        return f"{self.status} {self.code}".strip()


def order_of(etag: str) -> int:
    """ETags of this server are ticks and therefore ordered; for clients they are opaque."""
    return int(etag.strip('"'), 16)


class Client:
    def __init__(self, port: int) -> None:
        self.port = port
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def call(self, method: str, path: str, *, query: str = "", headers: Headers | None = None, body: bytes = b"") -> Answer:
        """`path` is container[/blob]; `query` is added to the signature."""
        try:
            await self.send(method, path, query=query, headers={"Content-Length": str(len(body)), **(headers or {})}, body=body)
            return await self.receive(method)
        except (OSError, EOFError) as error:
            self.close()
            raise Gone from error

    async def send(self, method: str, path: str, *, query: str = "", headers: Headers, body: bytes = b"") -> None:
        """Send the head and the given part of the body."""
        if self.writer is None or self.writer.is_closing():
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        target = f"/{DEVELOPMENT_ACCOUNT}/{quote(path)}?{query + '&' if query else ''}{SAS}"
        lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *(f"{k}: {v}" for k, v in headers.items())]
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode() + body)
        await self.writer.drain()

    async def receive(self, method: str = "GET") -> Answer:
        status, headers = await self.receive_head()
        if method == "HEAD" or status in (204, 304):
            return Answer(status, headers, b"")
        assert self.reader is not None
        body = b""
        if "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            body = await self._chunks()
        if headers.get("connection", "").lower() == "close":
            self.close()
        return Answer(status, headers, body)

    async def receive_head(self) -> tuple[int, Headers]:
        assert self.reader is not None
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        pairs = [line.split(":", 1) for line in lines[1:] if line]
        return int(lines[0].split()[1]), {name.lower(): value.strip() for name, value in pairs}

    async def _chunks(self) -> bytes:
        assert self.reader is not None
        pieces = []
        while size := int(await self.reader.readline(), 16):
            pieces.append((await self.reader.readexactly(size + 2))[:-2])
        await self.reader.readline()
        return b"".join(pieces)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.reader = self.writer = None

    def reset(self) -> None:
        """Reset the connection immediately."""
        if self.writer is not None:
            self.writer.transport.abort()
            self.reader = self.writer = None

    # Operations by their Azure names.

    async def create_container(self, name: str) -> Answer:
        return await self.call("PUT", name, query="restype=container")

    async def delete_container(self, name: str) -> Answer:
        return await self.call("DELETE", name, query="restype=container")

    async def put_blob(self, path: str, data: bytes, headers: Headers | None = None) -> Answer:
        return await self.call("PUT", path, headers={"x-ms-blob-type": "BlockBlob", **(headers or {})}, body=data)

    async def get_blob(self, path: str, headers: Headers | None = None, *, query: str = "") -> Answer:
        return await self.call("GET", path, headers=headers, query=query)

    async def delete_blob(self, path: str, headers: Headers | None = None, *, query: str = "") -> Answer:
        return await self.call("DELETE", path, headers=headers, query=query)

    async def set_metadata(self, path: str, headers: Headers) -> Answer:
        return await self.call("PUT", path, query="comp=metadata", headers=headers)

    async def snapshot(self, path: str, headers: Headers | None = None) -> Answer:
        return await self.call("PUT", path, query="comp=snapshot", headers=headers)

    async def lease(self, path: str, action: str, headers: Headers | None = None) -> Answer:
        return await self.call("PUT", path, query="comp=lease", headers={"x-ms-lease-action": action, **(headers or {})})

    async def acquire(self, path: str, proposed: str, duration: int = -1) -> Answer:
        return await self.lease(path, "acquire", {"x-ms-lease-duration": str(duration), "x-ms-proposed-lease-id": proposed})

    async def put_block(self, path: str, block: str, data: bytes, headers: Headers | None = None) -> Answer:
        return await self.call("PUT", path, query=f"comp=block&blockid={quote(block, safe='')}", headers=headers, body=data)

    async def put_block_list(self, path: str, blocks: Sequence[str], headers: Headers | None = None) -> Answer:
        items = "".join(f"<Latest>{block}</Latest>" for block in blocks)
        document = f'<?xml version="1.0" encoding="utf-8"?><BlockList>{items}</BlockList>'.encode()
        return await self.call("PUT", path, query="comp=blocklist", headers=headers, body=document)

    async def list_blobs(self, container: str, **query: str) -> Answer:
        return await self.call("GET", container, query=urlencode({"restype": "container", "comp": "list", **query}))


def block_id(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def numbered_bytes(number: int, size: int) -> bytes:
    """Bytes that tell the number of their writer at every position."""
    pattern = b"%08d" % number
    return (pattern * (size // len(pattern) + 1))[:size]


@asynccontextmanager
async def connected(ports: Sequence[int], count: int, *, receive_buffer_bytes: int | None = None) -> AsyncIterator[list[Client]]:
    """Clients distributed over the ports and already connected, so that they can start at the same moment. With a small receive
    buffer the server cannot send ahead much."""
    clients = [Client(ports[number % len(ports)]) for number in range(count)]
    try:
        for client in clients:
            sock = socket.socket()
            if receive_buffer_bytes is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            sock.connect(("127.0.0.1", client.port))
            limit = receive_buffer_bytes or 1 << 20
            client.reader, client.writer = await asyncio.open_connection(sock=sock, limit=limit)
        yield clients
    finally:
        for client in clients:
            client.close()


async def all_at_once(calls: Sequence[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*calls))


async def together(clients: Sequence[Client], work: Callable[[Client, int], Awaitable[T]]) -> list[T]:
    """Run the same work with every client concurrently; each one has a number."""
    return await all_at_once([work(client, number) for number, client in enumerate(clients)])


def _account_sas() -> str:
    fields = {"sp": "rwdlacupiytfx", "ss": "bqtf", "srt": "sco", "st": "", "se": "2099-01-01T00:00:00Z", "sip": "", "spr": ""}
    text = "\n".join([DEVELOPMENT_ACCOUNT, *fields.values(), "2021-12-02", "", ""])
    digest = hmac.new(base64.b64decode(DEVELOPMENT_KEY), text.encode(), hashlib.sha256).digest()
    given = {name: value for name, value in fields.items() if value}
    return urlencode({**given, "sv": "2021-12-02", "sig": base64.b64encode(digest).decode()})


SAS = _account_sas()
