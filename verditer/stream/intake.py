"""Intake: how the body of a request becomes stored bytes. Services call `receive`, then commit a record with what it returns.

A small body stays in hand and will live in the record itself. A large one becomes an extent: while one batch is hashed and
written by threads, the loop receives the next, so memory holds two of up to 4 MiB, whatever the size.
"""

import asyncio
from typing import Protocol

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.stream.digest import Checksums, Digest, digest, verify
from verditer.stream.extents import ExtentStore, ExtentWriter

BATCH_BYTES = 1 << 20  # what is hashed and written at once, at least
AHEAD_BYTES = 4 << 20  # and at most: what arrives during the last batch becomes the next


class Source(Protocol):
    """The bytes while they arrive. It raises when they stop before `length`."""

    @property
    def length(self) -> int | None: ...

    @property
    def ended(self) -> bool:
        """Every byte is here already."""

    async def read(self) -> bytes | bytearray: ...


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """Either `inline` holds the bytes or `extent` names them: written, durable, and waiting for their record."""

    size: int
    md5: bytes
    crc64: bytes
    inline: bytes | None = None
    extent: str | None = None


async def receive(source: Source, store: ExtentStore, *, limit: int, inline_limit: int, expected: Checksums) -> Received:
    """Take the whole body, or raise and leave nothing behind."""
    if source.length is not None and source.length > limit:
        raise _too_large(limit)
    pieces, size = await _take(source, inline_limit + 1, limit, limit)
    if size > inline_limit:
        return await _receive_extent(source, store, pieces, size, limit, expected)
    body = b"".join(pieces)  # one of them alone is not copied
    md5, crc64 = digest(body)
    verify(expected, md5, crc64)
    return Received(size=size, md5=md5, crc64=crc64, inline=body)


async def _take(
    source: Source, enough: int, room: int, limit: int, storing: "asyncio.Future[None] | None" = None
) -> tuple[list[bytes | bytearray], int]:
    """Pieces and their size: `enough` or a little more, or less when the source has ended; up to AHEAD_BYTES while the last ones
    are being stored."""
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
    except BaseException:  # a client that went away and a cancelled request included
        await writer.abort()
        raise
    return Received(size=size, md5=md5, crc64=crc64, extent=writer.id)


async def _store(writer: ExtentWriter, digest: Digest, pieces: list[bytes | bytearray]) -> None:
    hashing = asyncio.get_running_loop().run_in_executor(None, digest.update, *pieces)
    await writer.write(pieces)
    await hashing


def _too_large(limit: int) -> StorageError:
    return StorageError(Code.RequestBodyTooLarge, details={"MaxLimit": str(limit)})
