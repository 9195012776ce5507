"""A body arrives, and a transaction makes it part of a blob: the steps that all writers of bytes share.

The bytes are durable before the record that names them is put (invariant 1), and go at once when that is refused.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import msgspec

from verditer.core.errors import StorageError
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.content import Slice
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.services.activity import Work
from verditer.services.blob.answers import Written
from verditer.services.blob.content import put_inline, put_layout
from verditer.services.blob.pieces import pieces_of
from verditer.services.blob.spill import is_crowded, spill
from verditer.services.context import Context
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, Source, receive

T = TypeVar("T")
CRC64_SINCE = "2019-02-02"

Place = Callable[[Transaction, Received], tuple[Blob, Blob]]
"""Checks, and makes what was received a piece: the blob before, and the blob to be put."""


class Part(Protocol):
    """A request that brings bytes and may say what they add up to."""

    @property
    def version(self) -> str: ...

    @property
    def content_md5(self) -> bytes | None: ...

    @property
    def content_crc64(self) -> bytes | None: ...


async def write_part(ctx: Context, target: BlobName, request: Part, body: Source, limit: int, place: Place) -> Written:
    """Append Block and Put Page."""
    with ctx.activity.since(ctx.now()) as work:
        expected = Checksums(md5=request.content_md5, crc64=request.content_crc64)
        received = await receive_body(ctx, body, limit, expected)

        def commit(tx: Transaction) -> tuple[Written, int | None]:
            """The answer, and the content that has too many small pieces now."""
            before, after = place(tx, received)
            tx.put(after)
            written = Written(
                etag=after.etag,
                content_md5=received.md5 if request.content_md5 is not None else None,
                content_crc64=received.crc64,
                append_offset=before.size if before.blob_type is BlobType.APPEND else None,
                block_count=after.block_count,
                sequence_number=after.sequence_number,
            )
            return written, before.content_id if is_crowded(pieces_of(before), pieces_of(after)) else None

        written, crowded = await write_received(ctx, target, work, received, commit)
    if crowded is not None:
        await spill(ctx, target, crowded)
    return as_told(request.version, received.md5, written)


async def receive_body(ctx: Context, body: Source, limit: int, expected: Checksums) -> Received:
    return await receive(body, ctx.extents, limit=limit, inline_limit=ctx.inline_limit, expected=expected)


async def write_received(ctx: Context, target: BlobName, work: Work, received: Received, commit: Callable[[Transaction], T]) -> T:
    """Commit; when that is refused, the bytes go at once. An outcome nobody knows is left to the collector."""
    if received.extent is None:
        return await ctx.engine.write(target.scope, commit)
    try:
        return await work.write(ctx.engine, target.scope, commit)
    except StorageError as error:
        if not isinstance(error, EngineUnavailable):
            await ctx.extents.delete(received.extent)
        raise


def put_received(tx: Transaction, content_id: int, received: Received, *, layout: bool = True) -> None:
    """Attach what arrived to a content id. A staged block names its extent itself and needs no layout."""
    if received.inline is not None:
        put_inline(tx, content_id, received.inline)
    elif layout:
        assert received.extent is not None
        put_layout(tx, content_id, [Slice(received.extent, 0, received.size)])


def as_told(version: str, md5: bytes, written: Written) -> Written:
    """Before 2019-02-02 an answer has the MD5 of what was received, asked for or not, and no CRC64."""
    return written if version >= CRC64_SINCE else msgspec.structs.replace(written, content_md5=md5, content_crc64=None)
