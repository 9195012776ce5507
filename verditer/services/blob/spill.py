"""Moves the small pieces of an append or page blob into one extent, when there are many bytes of them (see `pieces.py`).

Readers see the same bytes before and after, so the blob keeps its ETag. Whoever wrote the piece that was too much does it,
before it is answered; pieces that change meanwhile simply stay small.
"""

import logging

import msgspec

from verditer.core.errors import StorageError
from verditer.core.names import BlobName
from verditer.core.records.content import Pieces
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.services.blob.current import current_blob
from verditer.services.blob.pieces import SMALL_BYTES, move_pieces, small_pieces
from verditer.services.context import Context

logger = logging.getLogger("verditer")


def is_crowded(before: Pieces, after: Pieces) -> bool:
    """Once for every SMALL_BYTES: of many writers at a time one is told, and after a failure a later one."""
    return after.small_bytes // SMALL_BYTES > before.small_bytes // SMALL_BYTES


async def spill(ctx: Context, target: BlobName, content_id: int) -> None:
    """The write before it has succeeded, so nothing here may fail the request."""
    try:
        await _spill(ctx, target, content_id)
    except StorageError as error:
        logger.warning("small pieces of %s stay where they are: %s", "/".join(target.scope), error)


async def _spill(ctx: Context, target: BlobName, content_id: int) -> None:
    with ctx.activity.since(ctx.now()) as work:
        small = await ctx.engine.scan(target.scope, lambda tx: small_pieces(tx, content_id))
        if not small:
            return
        extent = await _write_extent(ctx, [piece.data for piece in small])

        def commit(tx: Transaction) -> bool:
            """Whether the extent is in use now."""
            _, blob = current_blob(tx, target)
            if blob is None or blob.content_id != content_id or blob.pieces is None:
                return False
            pieces = move_pieces(tx, blob, small, extent)
            tx.put(msgspec.structs.replace(blob, pieces=pieces))
            return pieces != blob.pieces

        try:
            used = await work.write(ctx.engine, target.scope, commit)
        except StorageError as error:
            if not isinstance(error, EngineUnavailable):  # else nobody knows the outcome: the collector will
                await ctx.extents.delete(extent)
            raise
        if not used:
            await ctx.extents.delete(extent)


async def _write_extent(ctx: Context, pieces: list[bytes]) -> str:
    writer = ctx.extents.new()
    try:
        await writer.write(pieces)
        await writer.commit()
    except BaseException:
        await writer.abort()
        raise
    return writer.id
