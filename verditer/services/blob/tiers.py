"""Set Blob Tier. The rules are `core/tiers.py`; a tier is no part of what readers see, so the ETag stays."""

import msgspec

from verditer.core.errors import Code, StorageError, invalid_header
from verditer.core.guard import Guard
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.settings import AccountSettings
from verditer.core.tiers import BLOCK_TIERS, PAGE_TIERS, change, check_page_tier
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
    """Of a blob, a snapshot or a version."""

    def commit(tx: Transaction) -> TierSet:
        blob = require_blob(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        _check_kind(settings_of(tx, target.account), blob, request.tier)
        if blob.blob_type is BlobType.PAGE:
            check_page_tier(blob.tier, request.tier, blob.size)
            tx.put(msgspec.structs.replace(blob, tier=request.tier, tier_changed=tx.now))
            return TierSet(status=200)
        tier, changed, rehydration, status = change(blob, request.tier, request.rehydrate_priority, tx.now)
        tx.put(msgspec.structs.replace(blob, tier=tier, tier_changed=changed, rehydration=rehydration))
        return TierSet(status=status)

    return await ctx.engine.write(target.scope, commit)


def check_tier(tx: Transaction, target: BlobName, blob: Blob) -> None:
    """Of a blob that is about to be put."""
    if blob.tier is None:
        return
    _check_kind(settings_of(tx, target.account), blob, blob.tier)
    if blob.blob_type is BlobType.PAGE:
        check_page_tier(None, blob.tier, blob.size)


def _check_kind(settings: AccountSettings, blob: Blob, tier: str) -> None:
    """Block blobs of standard accounts have tiers, and page blobs of premium ones."""
    if tier not in BLOCK_TIERS and tier not in PAGE_TIERS:
        raise invalid_header("x-ms-access-tier", tier)
    if tier not in _TIERS[blob.blob_type]:
        raise StorageError(Code.AccessTierNotSupportedForBlobType)
    if settings.sku.startswith("Premium") is not (blob.blob_type is BlobType.PAGE):
        raise StorageError(Code.BlobAccessTierNotSupportedForAccountType)
