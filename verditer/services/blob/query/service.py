"""Query Blob Contents: reads one committed state of the blob, evaluates the query in a thread and streams the result.

The thread takes the next piece of the blob only when it needs it, and computes the next piece of the result only when the client
has taken the one before. So memory does not grow with the blob or with the result. Parquet is read by ranges, from its end.
"""

import asyncio
import importlib.util
import io
from collections.abc import AsyncIterator, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import READ, Guard
from verditer.core.names import BlobName
from verditer.services.blob.answers import BlobRead
from verditer.services.blob.query.request import QueryBlob
from verditer.services.blob.read import GetBlob, get_blob
from verditer.services.context import Context

T = TypeVar("T")
MAX_RUNNING = 4  # queries that compute at the same time
PROGRESS_SECONDS = 1.0
RANGE_BYTES = 4 << 20  # of a Parquet file, read at once


class ResultData(msgspec.Struct, frozen=True):
    data: bytes


class QueryProgress(msgspec.Struct, frozen=True):
    scanned: int
    total: int


class QueryError(msgspec.Struct, frozen=True, kw_only=True):
    fatal: bool
    name: str
    description: str
    position: int


class QueryEnd(msgspec.Struct, frozen=True):
    total: int


QueryEvent = ResultData | QueryProgress | QueryError | QueryEnd


class QueryResult(msgspec.Struct, frozen=True, kw_only=True):
    read: BlobRead
    events: AsyncIterator[QueryEvent]


async def query_blob(ctx: Context, target: BlobName, request: QueryBlob, guard: Guard) -> QueryResult:
    if any(importlib.util.find_spec(name) is None for name in ("duckdb", "pyarrow")):
        message = "Query Blob Contents needs the extra `query`, which is not installed on this server."
        raise StorageError(Code.NotImplemented, message=message)
    from verditer.services.blob.query.evaluation import evaluate  # only here: importing takes half a second

    asked = GetBlob(
        version=request.version,
        snapshot=request.snapshot,
        version_id=request.version_id,
        encryption_key=request.encryption_key,
        encryption_key_sha256=request.encryption_key_sha256,
        encryption_algorithm=request.encryption_algorithm,
    )
    read = await get_blob(ctx, target, asked, guard)
    loop = asyncio.get_running_loop()
    file: BodyFile | RangeFile
    if request.input.parquet:
        file = RangeFile(loop, ctx, target, asked, read)
    else:
        file = BodyFile(loop, read)
    steps = evaluate(request, file, read.blob.size, ctx.now())
    try:
        await loop.run_in_executor(_threads(), next, steps)  # the query is checked against the columns of the blob
    except BaseException:
        await file.end()
        raise
    return QueryResult(read=read, events=_events(loop, steps, file, read.blob.size))


async def _events(
    loop: asyncio.AbstractEventLoop, steps: Iterator[QueryEvent | None], file: "BodyFile | RangeFile", total: int
) -> AsyncIterator[QueryEvent]:
    """An aggregate has no result before the end of the blob; the client sees meanwhile that the query goes on."""
    try:
        event: QueryEvent | None = QueryProgress(0, total)  # first: azure-storage-blob fails if the first record is an error
        while event is not None:
            yield event
            step = loop.run_in_executor(_threads(), next, steps, None)
            while not (await asyncio.wait((step,), timeout=PROGRESS_SECONDS))[0]:
                yield QueryProgress(min(file.position, total), total)
            event = await step
    finally:
        await file.end()


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_RUNNING, "verditer-query")


class _LoopFile(io.RawIOBase):
    """A file that a thread reads, and whose bytes the event loop provides."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._is_ended = False

    def readable(self) -> bool:
        return True

    def _await(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def end(self) -> None:
        """The result is complete, or nobody wants it any more: the thread finds the end of the file."""
        self._is_ended = True


class BodyFile(_LoopFile):
    """The body of a blob, from beginning to end."""

    def __init__(self, loop: asyncio.AbstractEventLoop, read: BlobRead) -> None:
        super().__init__(loop)
        self._body = read.body
        self._piece = memoryview(read.body if isinstance(read.body, bytes) else b"")
        self.position = 0

    def read(self, size: int = -1) -> bytes:
        if self._is_ended:
            return b""
        if not self._piece and not isinstance(self._body, bytes):
            self._piece = memoryview(self._await(self._next()))
        taken = self._piece if size < 0 else self._piece[:size]
        self._piece = self._piece[len(taken) :]
        self.position += len(taken)
        return bytes(taken)

    async def _next(self) -> bytes:
        assert not isinstance(self._body, bytes)
        return await anext(self._body, b"")

    async def end(self) -> None:
        await super().end()
        close = getattr(self._body, "aclose", None)
        if close is not None:
            await close()


class RangeFile(_LoopFile):
    """A blob that is read at any position. Its state must not change meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ctx: Context, target: BlobName, asked: GetBlob, read: BlobRead) -> None:
        super().__init__(loop)
        self._ctx = ctx
        self._target = target
        self._asked = asked
        self._etag = read.blob.etag
        self._size = read.blob.size
        self._start, self._cached = 0, b""
        self.position = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self.position, io.SEEK_END: self._size}[whence]
        return self.position

    def tell(self) -> int:
        return self.position

    def read(self, size: int = -1) -> bytes:
        wanted = min(self._size - self.position, size if size >= 0 else self._size)
        if wanted <= 0 or self._is_ended:
            return b""
        offset = self.position - self._start
        if not 0 <= offset <= offset + wanted <= len(self._cached):
            self._start, offset = self.position, 0
            self._cached = self._await(self._range(self.position, max(wanted, min(RANGE_BYTES, self._size - self.position))))
        self.position += wanted
        return self._cached[offset : offset + wanted]

    async def _range(self, start: int, length: int) -> bytes:
        asked = msgspec.structs.replace(self._asked, range=(start, start + length - 1))
        read = await get_blob(self._ctx, self._target, asked, Guard(rule=READ))
        if read.blob.etag != self._etag:
            raise StorageError(Code.BlobOverwritten)
        return read.body if isinstance(read.body, bytes) else b"".join([piece async for piece in read.body])
