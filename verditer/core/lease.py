"""Leases: states, the table of what each action does in each state, and the one function that applies it.

A record stores `lease: Lease | None`. None is Available; every other state follows from the lease and the time, so no work is
due when a lease ends. `guard.py` decides which operations a lease forbids. Microsoft's pages: Lease Blob and Lease Container,
"Outcomes of lease operations".
"""

from enum import Enum

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, seconds
from verditer.core.errors import Code, StorageError

INFINITE = -1


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """The lease that a record stores until it is released, replaced, or dropped by a write (`Guard.lease_after`)."""

    id: str  # lower-case, dashed
    seconds: int  # the duration as acquired, which a renewal starts again; INFINITE has no end
    expires: int | None  # ticks; None when infinite
    breaks: int | None = None  # ticks; set by a break: the lease is Breaking before that moment and Broken from it on


class LeaseState(Enum):
    """The value is Azure's name of the state."""

    AVAILABLE = "available"
    LEASED = "leased"
    BREAKING = "breaking"
    BROKEN = "broken"
    EXPIRED = "expired"

    @property
    def is_locked(self) -> bool:
        return self in (LeaseState.LEASED, LeaseState.BREAKING)


class LeaseAction(Enum):
    """The value is Azure's name of the action."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


class LeaseIdMatch(Enum):
    """How the id in the request (the proposed id for acquire, the lease id otherwise) compares with the stored one."""

    HOLDER = "the stored id"
    OTHER = "another id, or none"
    RETRY = "another id, but the proposed id is stored: a change that is sent again"


def state_of(lease: Lease | None, now: int) -> LeaseState:
    if lease is None:
        return LeaseState.AVAILABLE
    if lease.breaks is not None:
        return LeaseState.BREAKING if now < lease.breaks else LeaseState.BROKEN
    return LeaseState.LEASED if lease.expires is None or now < lease.expires else LeaseState.EXPIRED


def duration_of(lease: Lease | None, now: int) -> str | None:
    """Fixed or infinite while leased; None in every other state."""
    if lease is None or state_of(lease, now) is not LeaseState.LEASED:
        return None
    return "infinite" if lease.expires is None else "fixed"


AVAILABLE, LEASED, BREAKING, BROKEN, EXPIRED = LeaseState
ACQUIRE, RENEW, CHANGE, RELEASE, BREAK = LeaseAction
HOLDER, OTHER, RETRY = LeaseIdMatch

PRESENT = Code.LeaseAlreadyPresent
ABSENT = Code.LeaseNotPresentWithLeaseOperation
MISMATCH = Code.LeaseIdMismatchWithLeaseOperation
NO_ACQUIRE = Code.LeaseIsBreakingAndCannotBeAcquired
NO_CHANGE = Code.LeaseIsBreakingAndCannotBeChanged
NO_RENEW = Code.LeaseIsBrokenAndCannotBeRenewed

# The state afterwards, or the error. A lease that breaks for zero seconds is Breaking in this table and Broken at once.
# An expired lease can be renewed as long as the record stores it, that is until the next write.
# fmt: off
_OUTCOMES: dict[tuple[LeaseAction, LeaseIdMatch], tuple[LeaseState | Code, ...]] = {
    #                    AVAILABLE  LEASED     BREAKING    BROKEN     EXPIRED
    (ACQUIRE, HOLDER): ( LEASED,    LEASED,    NO_ACQUIRE, LEASED,    LEASED    ),
    (ACQUIRE, OTHER):  ( LEASED,    PRESENT,   PRESENT,    LEASED,    LEASED    ),
    (RENEW,   HOLDER): ( MISMATCH,  LEASED,    NO_RENEW,   NO_RENEW,  LEASED    ),
    (RENEW,   OTHER):  ( MISMATCH,  MISMATCH,  MISMATCH,   MISMATCH,  MISMATCH  ),
    (CHANGE,  HOLDER): ( ABSENT,    LEASED,    NO_CHANGE,  ABSENT,    ABSENT    ),
    (CHANGE,  RETRY):  ( ABSENT,    LEASED,    MISMATCH,   ABSENT,    ABSENT    ),
    (CHANGE,  OTHER):  ( ABSENT,    MISMATCH,  MISMATCH,   ABSENT,    ABSENT    ),
    (RELEASE, HOLDER): ( MISMATCH,  AVAILABLE, AVAILABLE,  AVAILABLE, AVAILABLE ),
    (RELEASE, OTHER):  ( MISMATCH,  MISMATCH,  MISMATCH,   MISMATCH,  MISMATCH  ),
    (BREAK,   HOLDER): ( ABSENT,    BREAKING,  BREAKING,   BROKEN,    BROKEN    ),
    (BREAK,   OTHER):  ( ABSENT,    BREAKING,  BREAKING,   BROKEN,    BROKEN    ),
}
# fmt: on

TRANSITIONS: dict[tuple[LeaseState, LeaseAction, LeaseIdMatch], LeaseState | Code] = {
    (state, action, match): outcome
    for (action, match), outcomes in _OUTCOMES.items()
    for state, outcome in zip(LeaseState, outcomes, strict=True)
}


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One lease operation. The front end has checked the ids, the duration and the break period."""

    action: LeaseAction
    lease_id: str | None = None
    proposed_id: str | None = None
    duration: int | None = None
    break_period: int | None = None


class LeaseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The lease to store, and what the answer reports: the lease id, or after a break the remaining seconds."""

    lease: Lease | None
    lease_id: str | None = None
    lease_time: int | None = None


def apply(lease: Lease | None, request: LeaseRequest, now: int, new_id: str) -> LeaseOutcome:
    """Apply the request to the lease. `new_id` is used when an acquire proposes no id."""
    outcome = TRANSITIONS[state_of(lease, now), request.action, _id_match(lease, request)]
    if isinstance(outcome, Code):
        raise StorageError(outcome)
    if request.action is LeaseAction.ACQUIRE:
        return _acquired(request, now, new_id)
    assert lease is not None  # the table refuses everything but acquire when there is no lease
    match request.action:
        case LeaseAction.RENEW:
            return _held(Lease(lease.id, lease.seconds, _end(lease.seconds, now)))
        case LeaseAction.CHANGE:
            assert request.proposed_id is not None
            return _held(msgspec.structs.replace(lease, id=request.proposed_id))
        case LeaseAction.RELEASE:
            return LeaseOutcome(lease=None)
        case LeaseAction.BREAK:
            return _broken(lease, request.break_period, now)


def _id_match(lease: Lease | None, request: LeaseRequest) -> LeaseIdMatch:
    held = lease.id if lease is not None else None
    counts = request.proposed_id if request.action is LeaseAction.ACQUIRE else request.lease_id
    if counts is not None and counts == held:
        return LeaseIdMatch.HOLDER
    retried = request.action is LeaseAction.CHANGE and held is not None and request.proposed_id == held
    return LeaseIdMatch.RETRY if retried else LeaseIdMatch.OTHER


def _acquired(request: LeaseRequest, now: int, new_id: str) -> LeaseOutcome:
    assert request.duration is not None
    return _held(Lease(request.proposed_id or new_id, request.duration, _end(request.duration, now)))


def _held(lease: Lease) -> LeaseOutcome:
    return LeaseOutcome(lease=lease, lease_id=lease.id)


def _end(duration: int, now: int) -> int | None:
    return None if duration == INFINITE else now + seconds(duration)


def _broken(lease: Lease, period: int | None, now: int) -> LeaseOutcome:
    """A break never lengthens: it ends with what is left of the lease or of an earlier break, or sooner if asked."""
    ends = lease.expires if lease.breaks is None else lease.breaks
    asked = None if period is None else now + seconds(period)
    breaks = min((moment for moment in (ends, asked) if moment is not None), default=now)
    remaining = -(-max(breaks - now, 0) // TICKS_PER_SECOND)  # rounded up: after that many seconds it is free
    return LeaseOutcome(lease=msgspec.structs.replace(lease, breaks=breaks), lease_time=remaining)
