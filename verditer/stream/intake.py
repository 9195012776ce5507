"""How the body of a request is stored. Services call `receive` and then commit a record with the result.

A small body is kept in memory and becomes part of the record. A large body becomes an extent: while threads hash and write one
batch, the event loop receives the next one. So a body of any size needs memory for two batches of up to 4 MiB.
"""

import asyncio
from typing import Protocol

import msgspec

from verditer.core.errors import Code, Limit, StorageError
from verditer.core.records.lifecycle import ExtentId
from verditer.stream.digest import Checksums, Digest, digest, verify
from verditer.stream.extents import ExtentStore, ExtentWriter

BATCH_BYTES = 1 << 20  # the least that is hashed and written at once
AHEAD_BYTES = 4 << 20  # the most: what arrives while a batch is stored becomes the next batch


class Source(Protocol):
    """A body that is being received. `read` raises when the body ends before `length`."""

    @property
    def length(self) -> int | None: ...

    @property
    def ended(self) -> bool:
        """Whether every byte has been received."""

    async def read(self) -> bytes | bytearray: ...


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """Either `inline` holds the bytes, or `extent` names them: they are durable, and no record names them yet."""

    size: int
    md5: bytes
    crc64: bytes
    inline: bytes | None = None
    extent: ExtentId | None = None


async def receive(source: Source, store: ExtentStore, *, limit: int, inline_limit: int, expected: Checksums) -> Received:
    """Receive the whole body, or raise and leave nothing behind."""
    if source.length is not None and source.length > limit:
        raise _too_large(limit)
    pieces, size = await _take(source, inline_limit + 1, limit, limit)
    if size > inline_limit:
        return await _receive_extent(source, store, pieces, size, limit, expected)
    body = b"".join(pieces)  # a single piece is not copied
    md5, crc64 = digest(body)
    verify(expected, md5, crc64)
    return Received(size=size, md5=md5, crc64=crc64, inline=body)


async def _take(
    source: Source, enough: int, room: int, limit: int, storing: "asyncio.Future[None] | None" = None
) -> tuple[list[bytes | bytearray], int]:
    """The next pieces and their size: `enough` or slightly more, or less at the end of the source. While the pieces before them
    are being stored, up to AHEAD_BYTES."""
    pieces: list[bytes | bytearray] = []
    size = 0
    while size < (enough if storing is None or storing.done() else AHEAD_BYTES) and (piece := await source.read()):
        size += len(piece)
        if size > room:
            raise _too_large(limit)
        pieces.append(piece)
    return pieces, size


async def _receive_extent(
    source: Source, store: ExtentStore, pieces: list[bytes | bytearray], size: int, limit: int, expected: Checksums
) -> Received:
    writer = store.new()
    digest = Digest()
    try:
        while pieces:
            storing = asyncio.ensure_future(_store(writer, digest, pieces))
            try:
                pieces, taken = await _take(source, BATCH_BYTES, limit - size, limit, storing)
            finally:
                await storing
            size += taken
        md5, crc64 = digest.md5(), digest.crc64()
        verify(expected, md5, crc64)
        await writer.commit()
    except BaseException:  # also when the client disconnects or the request is cancelled
        await writer.abort()
        raise
    return Received(size=size, md5=md5, crc64=crc64, extent=writer.id)


async def _store(writer: ExtentWriter, digest: Digest, pieces: list[bytes | bytearray]) -> None:
    hashing = asyncio.get_running_loop().run_in_executor(None, digest.update, *pieces)
    await writer.write(pieces)
    await hashing


def _too_large(limit: int) -> StorageError:
    return StorageError(Code.RequestBodyTooLarge, details=Limit(limit))
