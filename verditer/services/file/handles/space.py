"""What SMB clients ask about a whole share: its space, and its snapshots as previous versions."""

from verditer.core.dates import truncate
from verditer.core.names import ShareName
from verditer.core.records.file import ShareSnapshot
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.current import require_share
from verditer.services.file.handles.requests import SpaceOfShare
from verditer.services.file.usage import GIB, usage_of


async def share_space(ctx: Context, share: ShareName) -> SpaceOfShare:
    """The quota, and what the files of the share leave of it."""

    def read(tx: Transaction) -> SpaceOfShare:
        found = require_share(tx, share)
        total = found.quota_gib * GIB
        return SpaceOfShare(total_bytes=total, free_bytes=max(0, total - usage_of(tx, found.id)))

    return await ctx.engine.read(share.scope, read)


async def share_snapshots(ctx: Context, share: ShareName) -> list[int]:
    """The names of the snapshots, ticks, newest first. Names with the same whole second are one previous version."""

    def read(tx: Transaction) -> list[int]:
        found = require_share(tx, share)
        return [snapshot.snapshot for snapshot in tx.scan(ShareSnapshot, span_of(found.id))]

    return sorted(await ctx.engine.read(share.scope, read), reverse=True)


async def snapshot_at(ctx: Context, share: ShareName, ticks: int) -> int | None:
    """The snapshot that an `@GMT-` token or a TWrp context names: the newest one of that second. None: there is none."""
    second = truncate(ticks)
    return next((name for name in await share_snapshots(ctx, share) if truncate(name) == second), None)
