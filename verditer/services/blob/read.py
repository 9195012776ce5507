"""Get Blob: a blob's bytes, whole or a range, with the properties of the very same state (contract G3)."""

from collections.abc import AsyncGenerator
from contextlib import closing

import msgspec

from verditer.core.errors import Code, StorageError, invalid_header, missing_header
from verditer.core.guard import Guard
from verditer.core.limits import MAX_RANGE_DIGEST
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob
from verditer.core.records.content import Slice
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlobRead
from verditer.services.blob.content import inline_bytes, slices_of
from verditer.services.blob.current import require_blob
from verditer.services.blob.pieces import cut, visible
from verditer.services.context import Context
from verditer.stream.digest import digest
from verditer.stream.extents import ExtentFile

LONG_RANGE = 1 << 20  # bytes: up to here the pieces of a range are few enough to be read on the event loop
LONG_SLICE = 2 << 20  # bytes: from here on a file is copied in less time than its pieces are read and sent
ZEROS = bytes(1 << 20)

Part = Slice | bytes | int
"""A stretch of a body: in an extent, at hand, or so many zeros."""


class GetBlob(msgspec.Struct, frozen=True, kw_only=True):
    version: str = ""
    snapshot: int | None = None
    version_id: int | None = None
    range: tuple[int, int | None] | None = None  # first byte, last byte or None for "to the end"
    range_md5: bool = False
    range_crc64: bool = False


async def get_blob(ctx: Context, target: BlobName, request: GetBlob, guard: Guard) -> BlobRead:
    if request.range_md5 and request.range_crc64:
        raise invalid_header("x-ms-range-get-content-crc64", "true")  # one checksum of a range, not two

    def look(tx: Transaction, *, at_once: bool = False) -> tuple[BlobRead, list[Part]] | None:
        """None: there may be many pieces, so look again beside the event loop."""
        blob = require_blob(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        check_online(blob, tx.now)
        start, length = _extent_of(blob, request)
        ranged = request.range is not None
        data = b""
        if blob.inline and length:
            data = inline_bytes(tx, blob.content_id)
            if length != blob.size:
                data = data[start : start + length]
        read = BlobRead(blob=blob, now=tx.now, version=request.version, start=start, length=length, ranged=ranged, body=data)
        if blob.inline or not length:
            return read, []
        if blob.pieces is not None:
            if length > LONG_RANGE and not at_once:
                return None
            return read, _parts_of_pieces(tx, blob, start, start + length)
        return read, list(slices_of(tx, blob, start, length))

    found = await ctx.engine.read(target.scope, look)
    if found is None:
        found = await ctx.engine.scan(target.scope, lambda tx: look(tx, at_once=True))
    assert found is not None
    read, parts = found
    if parts:
        body = _bytes_of(parts) if read.length <= LONG_RANGE else None
        read = msgspec.structs.replace(read, body=body if body is not None else StoredBody(ctx, read.now, parts))
    if request.range_md5 or request.range_crc64:
        read = await _with_digest(read, request)
    return read


def _extent_of(blob: Blob, request: GetBlob) -> tuple[int, int]:
    """First byte and number of bytes. A range is cut at the end of the blob; one that begins behind it is refused."""
    if request.range is None:
        if request.range_md5 or request.range_crc64:
            raise missing_header("Range")
        return 0, blob.size
    first, last = request.range
    if first >= blob.size:
        raise StorageError(Code.InvalidRange, headers={"Content-Range": f"bytes */{blob.size}"})
    length = min(last if last is not None else blob.size - 1, blob.size - 1) - first + 1
    if (request.range_md5 or request.range_crc64) and length > MAX_RANGE_DIGEST:
        raise invalid_header("x-ms-range-get-content-md5" if request.range_md5 else "x-ms-range-get-content-crc64", "true")
    return first, length


def _parts_of_pieces(tx: Transaction, blob: Blob, start: int, end: int) -> list[Part]:
    """What an append or page blob has between two positions, with the holes in between."""
    parts: list[Part] = []
    position = start
    for row in visible(tx, blob, start, end):
        piece = cut(row, start, end)
        if piece.start > position:
            parts.append(piece.start - position)
        parts.append(piece.data if piece.extent is None else Slice(piece.extent, piece.offset, piece.length))
        position = piece.end
    if end > position:
        parts.append(end - position)
    return parts


def _bytes_of(parts: list[Part]) -> bytes | None:
    """All of them together, when none is in an extent."""
    if any(isinstance(part, Slice) for part in parts):
        return None
    return b"".join([part if isinstance(part, bytes) else bytes(part) for part in parts if not isinstance(part, Slice)])


class StoredBody:
    """Bytes that are in extents, in pieces. Whoever can copy files takes `parts` instead."""

    def __init__(self, ctx: Context, start: int, parts: list[Part]) -> None:
        self._ctx = ctx
        self._start = start
        self._parts = parts
        self._pieces = ctx.activity.stream(start, _pieces(ctx, parts))

    def __aiter__(self) -> "StoredBody":
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        await self._pieces.aclose()

    def parts(self) -> AsyncGenerator[bytes | ExtentFile, None]:
        return self._ctx.activity.stream(self._start, _pieces_and_files(self._ctx, self._parts))


async def _pieces_and_files(ctx: Context, parts: list[Part]) -> AsyncGenerator[bytes | ExtentFile, None]:
    for part in parts:
        file = None
        if isinstance(part, Slice) and part.length >= LONG_SLICE:
            file = ctx.extents.file(part.extent, part.offset, part.length)
        if file is None:
            async for piece in _pieces(ctx, [part]):
                yield piece
        else:
            with closing(file):
                yield file


async def _pieces(ctx: Context, parts: list[Part]) -> AsyncGenerator[bytes, None]:
    for part in parts:
        if isinstance(part, Slice):
            async for piece in ctx.extents.read(part.extent, part.offset, part.length):
                yield piece
        elif isinstance(part, bytes):
            yield part
        else:
            for position in range(0, part, len(ZEROS)):
                yield ZEROS[: part - position]


async def _with_digest(read: BlobRead, request: GetBlob) -> BlobRead:
    body = read.body if isinstance(read.body, bytes) else b"".join([piece async for piece in read.body])
    md5, crc64 = digest(body)
    return msgspec.structs.replace(
        read,
        body=body,
        range_md5=md5 if request.range_md5 else None,
        range_crc64=crc64 if request.range_crc64 else None,
    )
