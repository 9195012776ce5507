"""Reading a content: the parts that hold a range, found in one transaction, and the body that is made of them afterwards.

All parts belong to one committed state (contract G3). Extents never change and outlive the read (`services/activity.py`), so a
body can be sent for as long as the client takes.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, closing

from verditer.core.records.content import Slice
from verditer.partition.engine import Transaction
from verditer.services.content.content import Content
from verditer.services.content.interval_rows import clip
from verditer.services.content.intervals import visible_intervals
from verditer.services.content.layout import read_inline, slices_of
from verditer.services.context import Context
from verditer.stream.extents import ExtentFile

LONG_RANGE = 1 << 20  # bytes: a shorter range has few enough intervals to be read on the event loop
LONG_SLICE = 2 << 20  # bytes: from this length on, sending an extent as a file takes less time than reading and sending its bytes
ZEROS = bytes(1 << 20)

ContentPart = Slice | bytes | int
"""A stretch of a body: a slice of an extent, the bytes themselves, or a number of zeros."""


def reads_many_rows(content: Content, length: int) -> bool:
    """Whether reading so many bytes of the content may touch too many rows for the event loop."""
    return content.intervals is not None and length > LONG_RANGE


def content_parts(tx: Transaction, content: Content, start: int, length: int) -> list[ContentPart]:
    """The parts that hold `length` bytes from `start` on, in order."""
    if not length:
        return []
    if content.inline:
        data = read_inline(tx, content.content_id)
        return [data if length == content.size else data[start : start + length]]
    if content.intervals is not None:
        return _interval_parts(tx, content, start, start + length)
    return [*slices_of(tx, content.content_id, start, length)]


def _interval_parts(tx: Transaction, content: Content, start: int, end: int) -> list[ContentPart]:
    """Intervals, and the number of zeros in each gap between them."""
    parts: list[ContentPart] = []
    position = start
    for row in visible_intervals(tx, content, start, end):
        interval = clip(row, start, end)
        if interval.start > position:
            parts.append(interval.start - position)
        parts.append(interval.data if interval.extent is None else Slice(interval.extent, interval.offset, interval.length))
        position = interval.end
    if end > position:
        parts.append(end - position)
    return parts


async def body_of(ctx: Context, since: int, parts: list[ContentPart], length: int) -> "bytes | StoredBody":
    """The bytes themselves when they are few and need not be waited for. `since` is the tick at which the read began. A remote
    store has then given the first bytes: one that does not answer is an error, not a body that ends too early."""
    if not parts:
        return b""
    if len(parts) == 1 and isinstance(parts[0], bytes):
        return parts[0]
    if length <= LONG_RANGE and (known := [_bytes_now(ctx, part) for part in parts]) and None not in known:
        return b"".join([one for one in known if one is not None])
    body = StoredBody(ctx, since, parts)
    if ctx.extents.is_remote:
        await body.begin()
    return body


def _bytes_now(ctx: Context, part: ContentPart) -> bytes | None:
    """The bytes of a part, unless they have to be waited for."""
    if isinstance(part, Slice):
        return ctx.extents.read_now(part.extent, part.offset, part.length)
    return part if isinstance(part, bytes) else bytes(part)


class StoredBody:
    """A body that is read while it is sent, and a running operation as long as something refers to it or reads it. A front end
    that can send files iterates over `parts` instead."""

    def __init__(self, ctx: Context, since: int, parts: list[ContentPart]) -> None:
        self._ctx = ctx
        self._operation = ctx.activity.begin(since)
        self._parts = parts
        self._chunks = self._operation.during(_chunks(ctx, parts))
        self._first: bytes | None = None  # when it was read before the rest

    async def begin(self) -> None:
        self._first = await anext(self._chunks, None)

    def __aiter__(self) -> "StoredBody":
        return self

    async def __anext__(self) -> bytes:
        if self._first is None:
            return await anext(self._chunks)
        first, self._first = self._first, None
        return first

    async def aclose(self) -> None:
        await self._chunks.aclose()
        self._operation.end()

    def __del__(self) -> None:
        self._operation.end()

    def parts(self) -> AsyncGenerator[bytes | ExtentFile, None]:
        return self._operation.during(self._chunks_and_files())

    async def _chunks_and_files(self) -> AsyncGenerator[bytes | ExtentFile, None]:
        if self._first is not None:
            async with aclosing(self):
                async for chunk in self:
                    yield chunk
            return
        for part in self._parts:
            file = None
            if isinstance(part, Slice) and part.length >= LONG_SLICE:
                file = self._ctx.extents.file(part.extent, part.offset, part.length)
            if file is None:
                async for chunk in _chunks(self._ctx, [part]):
                    yield chunk
            else:
                with closing(file):
                    yield file


async def whole_body(body: bytes | AsyncIterator[bytes]) -> bytes:
    return body if isinstance(body, bytes) else b"".join([chunk async for chunk in body])


async def _chunks(ctx: Context, parts: list[ContentPart]) -> AsyncGenerator[bytes, None]:
    for part in parts:
        if isinstance(part, Slice):
            async for chunk in ctx.extents.read(part.extent, part.offset, part.length):
                yield chunk
        elif isinstance(part, bytes):
            yield part
        else:
            for position in range(0, part, len(ZEROS)):
                yield ZEROS[: part - position]
