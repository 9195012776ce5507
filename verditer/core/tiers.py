"""Access tiers: which there are for which blob, what Set Blob Tier does, and rehydration, whose end the clock decides.

An archived blob that is asked back keeps its tier and remembers when it will be ready; from then on it is in the new tier. So
nothing has to run at that moment, as with leases. Microsoft's pages: Set Blob Tier; Blob rehydration from the archive tier.
"""

from enum import Enum
from typing import NamedTuple, Protocol

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError

HOT, COOL, COLD, ARCHIVE = "Hot", "Cool", "Cold", "Archive"
BLOCK_TIERS = (HOT, COOL, COLD, ARCHIVE)

GIB = 1 << 30
# fmt: off
PAGE_TIERS = {  # of premium page blobs: how large a blob may be
    "P4":  32 * GIB,   "P6":  64 * GIB,   "P10": 128 * GIB,  "P15": 256 * GIB,   "P20": 512 * GIB,    "P30": 1024 * GIB,
    "P40": 2048 * GIB, "P50": 4096 * GIB, "P60": 8192 * GIB, "P70": 16384 * GIB, "P80": 32768 * GIB,
}

STANDARD, HIGH = "Standard", "High"
DURATIONS = {  # Azure says up to 15 hours, and under an hour for small blobs: docs/decisions/rehydration.md
    STANDARD: seconds(15 * 3600),
    HIGH:     seconds(1 * 3600),
}


class Place(Enum):
    ONLINE = "online"
    ARCHIVED = "in the archive"
    PENDING = "on its way out of the archive"


class Wish(Enum):
    ONLINE = "an online tier"
    ARCHIVE = "the archive"
    PENDING_TIER = "the tier it is on its way to"


class Step(Enum):
    MOVE = "at once"
    REHYDRATE = "begin to rehydrate"
    WAIT = "go on; a higher priority may shorten it"


STEPS: dict[tuple[Place, Wish], Step | Code] = {
    (Place.ONLINE,   Wish.ONLINE):       Step.MOVE,
    (Place.ONLINE,   Wish.ARCHIVE):      Step.MOVE,
    (Place.ARCHIVED, Wish.ONLINE):       Step.REHYDRATE,
    (Place.ARCHIVED, Wish.ARCHIVE):      Step.MOVE,
    (Place.PENDING,  Wish.PENDING_TIER): Step.WAIT,
    (Place.PENDING,  Wish.ONLINE):       Code.BlobBeingRehydrated,
    (Place.PENDING,  Wish.ARCHIVE):      Code.BlobBeingRehydrated,
}
# fmt: on


class Rehydration(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """On its way to `tier`, where it is from `ready` on."""

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
    """What clients are told. `tier` is None when it was never set."""

    tier: str | None
    changed: int | None
    rehydration: Rehydration | None = None  # while it is pending

    @property
    def archive_status(self) -> str | None:
        return f"rehydrate-pending-to-{self.rehydration.tier.lower()}" if self.rehydration is not None else None


class TierChange(NamedTuple):
    """What the record says from now on, and the status of the answer."""

    tier: str
    changed: int
    rehydration: Rehydration | None
    status: int


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
    step = STEPS[_place(state), _wish(state, tier)]
    if isinstance(step, Code):
        raise StorageError(step)
    if step is Step.MOVE:
        return TierChange(tier, now, None, 200)
    assert state.changed is not None
    if step is Step.REHYDRATE:
        chosen = priority or STANDARD
        return TierChange(ARCHIVE, state.changed, Rehydration(tier=tier, priority=chosen, ready=now + DURATIONS[chosen]), 202)
    return TierChange(ARCHIVE, state.changed, _hastened(state, priority, now), 202)


def check_online(blob: Tiered | None, now: int) -> None:
    """An archived blob is neither read nor written."""
    if blob is None or blob.tier != ARCHIVE:
        return
    place = _place(state_of(blob, now))
    if place is not Place.ONLINE:
        raise StorageError(Code.BlobArchived if place is Place.ARCHIVED else Code.BlobBeingRehydrated)


def check_page_tier(former: str | None, tier: str, size: int) -> None:
    """Set Blob Tier for premium page blobs: only upwards, and large enough for the blob."""
    if former is not None and PAGE_TIERS[tier] < PAGE_TIERS[former]:
        raise StorageError(Code.CannotChangeToLowerTier)
    if size > PAGE_TIERS[tier]:
        raise StorageError(Code.BlobTierInadequateForContentLength)


def _place(state: TierState) -> Place:
    if state.rehydration is not None:
        return Place.PENDING
    return Place.ARCHIVED if state.tier == ARCHIVE else Place.ONLINE


def _wish(state: TierState, tier: str) -> Wish:
    if state.rehydration is not None and tier == state.rehydration.tier:
        return Wish.PENDING_TIER
    return Wish.ARCHIVE if tier == ARCHIVE else Wish.ONLINE


def _hastened(state: TierState, priority: str | None, now: int) -> Rehydration:
    """Standard may become High, and never the other way round."""
    pending = state.rehydration
    assert pending is not None
    if priority is None or priority == pending.priority:
        return pending
    if priority == STANDARD:
        raise StorageError(Code.BlobBeingRehydrated)
    return msgspec.structs.replace(pending, priority=HIGH, ready=min(pending.ready, now + DURATIONS[HIGH]))
