"""Set Blob Tier. `core/tiers.py` has the rules. Changing the tier does not change the ETag."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.settings import AccountSettings
from verditer.core.tiers import BLOCK_TIERS, PAGE_TIERS, SMART, change, check_page_tier
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import TierSet
from verditer.services.blob.current import require_blob
from verditer.services.context import Context
from verditer.services.settings import settings_of

_TIERS = {BlobType.BLOCK: frozenset(BLOCK_TIERS), BlobType.PAGE: frozenset(PAGE_TIERS), BlobType.APPEND: frozenset[str]()}


class SetBlobTier(msgspec.Struct, frozen=True, kw_only=True):
    tier: str
    rehydrate_priority: str | None = None
    snapshot: int | None = None
    version_id: int | None = None


async def set_tier(ctx: Context, target: BlobName, request: SetBlobTier, guard: Guard) -> TierSet:
    """Set the tier of a blob, a snapshot or a version."""

    def commit(tx: Transaction) -> TierSet:
        blob = require_blob(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        _check_kind(settings_of(tx, target.account), blob, request.tier)
        if blob.blob_type is BlobType.PAGE:
            check_page_tier(blob.tier, request.tier, blob.size)
            tx.put(msgspec.structs.replace(blob, tier=request.tier))
            return TierSet(rehydrating=False)
        tier, changed, rehydration = change(blob, request.tier, request.rehydrate_priority, tx.now)
        tx.put(msgspec.structs.replace(blob, tier=tier, tier_changed=changed, rehydration=rehydration))
        return TierSet(rehydrating=rehydration is not None)

    return await ctx.engine.write([target.scope], commit)


def check_tier(tx: Transaction, target: BlobName, blob: Blob) -> None:
    """Check the tier of a blob that is about to be put."""
    if blob.tier is None:
        return
    _check_kind(settings_of(tx, target.account), blob, blob.tier)
    if blob.blob_type is BlobType.PAGE:
        check_page_tier(None, blob.tier, blob.size)


def _check_kind(settings: AccountSettings, blob: Blob, tier: str) -> None:
    """Block blobs of standard accounts have tiers, and page blobs of premium ones. Smart is for zone-redundant accounts."""
    if tier not in BLOCK_TIERS and tier not in PAGE_TIERS:
        raise StorageError(Code.InvalidHeaderValue, field="tier", value=tier)
    if tier not in _TIERS[blob.blob_type]:
        raise StorageError(Code.AccessTierNotSupportedForBlobType)
    if settings.is_premium is not (blob.blob_type is BlobType.PAGE) or (tier == SMART and not settings.is_zone_redundant):
        raise StorageError(Code.BlobAccessTierNotSupportedForAccountType)
