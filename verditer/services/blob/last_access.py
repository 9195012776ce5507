"""When a blob was last accessed: its last write, or a later read.

Reads write nothing, except where an account tracks accesses or a blob has the tier Smart: there a read is recorded at most once
in 24 hours, as Microsoft documents it. The record keeps its ETag.
"""

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import StorageError
from verditer.core.names import BlobName
from verditer.core.records.blob import NO_RARE_PROPERTIES, Blob
from verditer.core.records.container import BlobSettings
from verditer.core.tiers import SMART, smart_tier
from verditer.partition.engine import Transaction
from verditer.services.blob.current import current_blob
from verditer.services.context import Context

INTERVAL = seconds(24 * 3600)
replace = msgspec.structs.replace


def last_access_of(blob: Blob) -> int:
    read = blob.rare.last_read if blob.rare is not None else None
    return max(blob.etag, read or 0)


def smart_tier_of(blob: Blob, now: int) -> str:
    """The tier in which a blob of the tier Smart is."""
    return smart_tier(max(last_access_of(blob), blob.tier_changed or 0), now)


def is_due(blob: Blob, settings: BlobSettings, now: int) -> bool:
    """Whether a read of the blob has to be recorded. Snapshots and versions are not tracked."""
    return (settings.tracks_access or blob.tier == SMART) and type(blob) is Blob and now - last_access_of(blob) >= INTERVAL


async def record_access(ctx: Context, target: BlobName, blob: Blob) -> None:
    """A blob that was written or read meanwhile needs nothing. A store that refuses writes does not make the read fail."""

    def commit(tx: Transaction) -> None:
        _, current = current_blob(tx, target)
        if current == blob:
            tx.put(replace(blob, rare=replace(blob.rare or NO_RARE_PROPERTIES, last_read=tx.now)))

    try:
        await ctx.engine.write([target.scope], commit)
    except StorageError:
        return
