"""Moves the inline intervals of a content into one extent when they hold many bytes (see `intervals.py`).

Readers see the same bytes before and after, so the owning record keeps its ETag. The request whose write crossed the limit does
the work before it is answered. Intervals that change meanwhile stay inline.
"""

import logging

from verditer.core.errors import StorageError
from verditer.core.records.content import IntervalMap
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.services.content.content import ContentOwner
from verditer.services.content.intervals import COMPACT_ABOVE_BYTES, inline_intervals, move_to_extent
from verditer.services.context import Context

logger = logging.getLogger("verditer")


def needs_compaction(before: IntervalMap, after: IntervalMap) -> bool:
    """True once for every COMPACT_ABOVE_BYTES: of many concurrent writers one compacts, and after a failure a later one."""
    return after.inline_bytes // COMPACT_ABOVE_BYTES > before.inline_bytes // COMPACT_ABOVE_BYTES


async def compact(ctx: Context, owner: ContentOwner, content_id: int) -> None:
    """The write that led here has succeeded, so a failure of the compaction is logged and does not fail the request."""
    try:
        await _compact(ctx, owner, content_id)
    except StorageError as error:
        logger.warning("the inline intervals of %s were not compacted: %s", "/".join(owner.scope), error)


async def _compact(ctx: Context, owner: ContentOwner, content_id: int) -> None:
    with ctx.activity.begin(ctx.now()) as work:
        inline = await ctx.engine.read(owner.scope, lambda tx: inline_intervals(tx, content_id), long=True)
        if not inline:
            return
        extent = await _write_extent(ctx, [row.data for row in inline])

        def commit(tx: Transaction) -> bool:
            """Whether the extent is in use now."""
            content = owner.load(tx)
            if content is None or content.content_id != content_id or content.intervals is None:
                return False
            intervals = move_to_extent(tx, content, inline, extent)
            owner.save(tx, intervals)
            return intervals != content.intervals

        try:
            used = await work.write(ctx.engine, owner.scope, commit)
        except StorageError as error:
            if not isinstance(error, EngineUnavailable):  # the outcome of that one is unknown; the collector will find out
                await ctx.extents.delete(extent)
            raise
        if not used:
            await ctx.extents.delete(extent)


async def _write_extent(ctx: Context, data: list[bytes]) -> str:
    writer = ctx.extents.new()
    try:
        await writer.write(data)
        await writer.commit()
    except BaseException:
        await writer.abort()
        raise
    return writer.id
