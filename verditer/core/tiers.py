"""Access tiers: the tiers of each blob type, what Set Blob Tier does, and rehydration, which ends at a stored time.

An archived blob that is being rehydrated keeps its tier and stores when it will be ready; from then on it is in the new tier. No
work is due at that moment, as with leases. Microsoft's pages: Set Blob Tier; Blob rehydration from the archive tier.
"""

from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError

HOT, COOL, COLD, ARCHIVE, SMART = "Hot", "Cool", "Cold", "Archive", "Smart"
BLOCK_TIERS = (HOT, COOL, COLD, ARCHIVE, SMART)
SMART_TIERS = ((seconds(30 * 86400), HOT), (seconds(90 * 86400), COOL))  # where a blob is until so long after its last access

GIB = 1 << 30
# fmt: off
PAGE_TIERS = {  # tiers of premium page blobs, with the maximum size of a blob
    "P4":  32 * GIB,   "P6":  64 * GIB,   "P10": 128 * GIB,  "P15": 256 * GIB,   "P20": 512 * GIB,    "P30": 1024 * GIB,
    "P40": 2048 * GIB, "P50": 4096 * GIB, "P60": 8192 * GIB, "P70": 16384 * GIB, "P80": 32768 * GIB,
}

STANDARD, HIGH = "Standard", "High"
DURATIONS = {  # Azure documents up to 15 hours, and under an hour for small blobs: docs/decisions/rehydration.md
    STANDARD: seconds(15 * 3600),
    HIGH:     seconds(1 * 3600),
}


class Availability(Enum):
    ONLINE = "online"
    ARCHIVED = "archived"
    PENDING = "being rehydrated"


class RequestedTier(Enum):
    ONLINE = "an online tier"
    ARCHIVE = "the archive tier"
    PENDING_TIER = "the tier that it is being rehydrated to"


class TierStep(Enum):
    MOVE = "change the tier at once"
    REHYDRATE = "start the rehydration"
    WAIT = "continue; a higher priority may shorten it"


STEPS: dict[tuple[Availability, RequestedTier], TierStep | Code] = {
    (Availability.ONLINE,   RequestedTier.ONLINE):       TierStep.MOVE,
    (Availability.ONLINE,   RequestedTier.ARCHIVE):      TierStep.MOVE,
    (Availability.ARCHIVED, RequestedTier.ONLINE):       TierStep.REHYDRATE,
    (Availability.ARCHIVED, RequestedTier.ARCHIVE):      TierStep.MOVE,
    (Availability.PENDING,  RequestedTier.PENDING_TIER): TierStep.WAIT,
    (Availability.PENDING,  RequestedTier.ONLINE):       Code.BlobBeingRehydrated,
    (Availability.PENDING,  RequestedTier.ARCHIVE):      Code.BlobBeingRehydrated,
}
# fmt: on


class Rehydration(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A blob that is leaving the archive; it is in `tier` from `ready` on."""

    tier: str
    priority: str
    ready: int


class Tiered(Protocol):
    @property
    def tier(self) -> str | None: ...

    @property
    def tier_changed(self) -> int | None: ...

    @property
    def rehydration(self) -> Rehydration | None: ...


class TierState(NamedTuple):
    """The tier at a given time. `tier` is None when it was never set."""

    tier: str | None
    changed: int | None
    rehydration: Rehydration | None = None  # while rehydration is pending

    @property
    def archive_status(self) -> str | None:
        return f"rehydrate-pending-to-{self.rehydration.tier.lower()}" if self.rehydration is not None else None


class TierChange(NamedTuple):
    """The fields of the record after Set Blob Tier."""

    tier: str
    changed: int
    rehydration: Rehydration | None


def state_of(blob: Tiered, now: int) -> TierState:
    pending = blob.rehydration
    if pending is None:
        return TierState(blob.tier, blob.tier_changed)
    if now < pending.ready:
        return TierState(blob.tier, blob.tier_changed, pending)
    return TierState(pending.tier, pending.ready)


def change(blob: Tiered, tier: str, priority: str | None, now: int) -> TierChange:
    """Set Blob Tier for block blobs."""
    state = state_of(blob, now)
    step = STEPS[_availability(state), _requested(state, tier)]
    if isinstance(step, Code):
        raise StorageError(step)
    if step is TierStep.MOVE:
        return TierChange(tier, now, None)
    assert state.changed is not None
    if step is TierStep.REHYDRATE:
        chosen = priority or STANDARD
        return TierChange(ARCHIVE, state.changed, Rehydration(tier=tier, priority=chosen, ready=now + DURATIONS[chosen]))
    return TierChange(ARCHIVE, state.changed, _with_priority(state, priority, now))


def check_online(blob: Tiered | None, now: int) -> None:
    """Raise StorageError for an archived blob, which can be neither read nor written."""
    if blob is None or blob.tier != ARCHIVE:
        return
    availability = _availability(state_of(blob, now))
    if availability is not Availability.ONLINE:
        raise StorageError(Code.BlobArchived if availability is Availability.ARCHIVED else Code.BlobBeingRehydrated)


def smart_tier(last_access: int, now: int) -> str:
    """The tier in which a blob of the tier Smart is. Microsoft's page: Smart tier of Azure Blob Storage."""
    return next((tier for age, tier in SMART_TIERS if now - last_access < age), COLD)


def inferred_page_tier(size: int) -> str:
    """Of a premium page blob whose tier was never set. The smallest that Azure infers, as far as seen, is P10."""
    return next(tier for tier, limit in PAGE_TIERS.items() if size <= limit and limit >= PAGE_TIERS["P10"])


def check_page_tier(former: str | None, tier: str, size: int) -> None:
    """Set Blob Tier for premium page blobs: the tier may only rise, and the blob has to fit."""
    if former is not None and PAGE_TIERS[tier] < PAGE_TIERS[former]:
        raise StorageError(Code.CannotChangeToLowerTier)
    if size > PAGE_TIERS[tier]:
        raise StorageError(Code.BlobTierInadequateForContentLength)


def _availability(state: TierState) -> Availability:
    if state.rehydration is not None:
        return Availability.PENDING
    return Availability.ARCHIVED if state.tier == ARCHIVE else Availability.ONLINE


def _requested(state: TierState, tier: str) -> RequestedTier:
    if state.rehydration is not None and tier == state.rehydration.tier:
        return RequestedTier.PENDING_TIER
    return RequestedTier.ARCHIVE if tier == ARCHIVE else RequestedTier.ONLINE


def _with_priority(state: TierState, priority: str | None, now: int) -> Rehydration:
    """The priority of a pending rehydration may rise from Standard to High, not fall."""
    pending = state.rehydration
    assert pending is not None
    if priority is None or priority == pending.priority:
        return pending
    if priority == STANDARD:
        raise StorageError(Code.BlobBeingRehydrated)
    return msgspec.structs.replace(pending, priority=HIGH, ready=min(pending.ready, now + DURATIONS[HIGH]))
