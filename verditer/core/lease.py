"""Leases: states, the table of what each action does in each state, and the one function that applies it.

A record keeps `lease: Lease | None`; None is Available, every other state follows from the lease and the time, so nothing
has to run when a lease ends. What a lease forbids other operations is the business of `guard.py`. Microsoft's pages: Lease
Blob and Lease Container, "Outcomes of lease operations".
"""

import re
from collections.abc import Mapping
from enum import Enum

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, seconds
from verditer.core.errors import Code, StorageError, invalid_header, missing_header

INFINITE = -1


class Lease(msgspec.Struct, frozen=True, array_like=True):
    """What a record remembers of its lease, until it is released, replaced, or forgotten by a write (`Guard.lease_after`)."""

    id: str  # lower-case, dashed
    seconds: int  # as acquired, which is what renew starts again; INFINITE has no end
    expires: int | None  # ticks; None when infinite
    breaks: int | None = None  # ticks; set once a break was asked: Breaking before that moment, Broken from it on


class State(Enum):
    """The value is the wire name (x-ms-lease-state), `status` the wire status (x-ms-lease-status)."""

    AVAILABLE = "available"
    LEASED = "leased"
    BREAKING = "breaking"
    BROKEN = "broken"
    EXPIRED = "expired"

    @property
    def status(self) -> str:
        return "locked" if self in (State.LEASED, State.BREAKING) else "unlocked"


class Action(Enum):
    """The value is what x-ms-lease-action says."""

    ACQUIRE = "acquire"
    RENEW = "renew"
    CHANGE = "change"
    RELEASE = "release"
    BREAK = "break"


class Whose(Enum):
    """The id that counts (the proposed one for acquire, the sent one otherwise) against the remembered one."""

    HOLDER = "the remembered id"
    OTHER = "another id, or none"
    RETRY = "another id, but the proposed one is remembered: a change that is asked again"


def state_of(lease: Lease | None, now: int) -> State:
    if lease is None:
        return State.AVAILABLE
    if lease.breaks is not None:
        return State.BREAKING if now < lease.breaks else State.BROKEN
    return State.LEASED if lease.expires is None or now < lease.expires else State.EXPIRED


def duration_of(lease: Lease | None, now: int) -> str | None:
    """x-ms-lease-duration: shown while leased, absent in every other state."""
    if lease is None or state_of(lease, now) is not State.LEASED:
        return None
    return "infinite" if lease.expires is None else "fixed"


AVAILABLE, LEASED, BREAKING, BROKEN, EXPIRED = State
ACQUIRE, RENEW, CHANGE, RELEASE, BREAK = Action
HOLDER, OTHER, RETRY = Whose

PRESENT = Code.LeaseAlreadyPresent
ABSENT = Code.LeaseNotPresentWithLeaseOperation
MISMATCH = Code.LeaseIdMismatchWithLeaseOperation
NO_ACQUIRE = Code.LeaseIsBreakingAndCannotBeAcquired
NO_CHANGE = Code.LeaseIsBreakingAndCannotBeChanged
NO_RENEW = Code.LeaseIsBrokenAndCannotBeRenewed

# The state afterwards, or the refusal. A lease that breaks for zero seconds is Breaking in this table and Broken at once.
# An expired lease is renewable as long as it is remembered, that is until the next write.
# fmt: off
_OUTCOMES: dict[tuple[Action, Whose], tuple[State | Code, ...]] = {
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

TRANSITIONS: dict[tuple[State, Action, Whose], State | Code] = {
    (state, action, whose): outcome
    for (action, whose), outcomes in _OUTCOMES.items()
    for state, outcome in zip(State, outcomes, strict=True)
}


class LeaseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One lease operation, its values already checked by `parse_request`."""

    action: Action
    lease_id: str | None = None
    proposed_id: str | None = None
    duration: int | None = None
    break_period: int | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The lease to store, and what the answer carries: x-ms-lease-id, or x-ms-lease-time after a break."""

    lease: Lease | None
    lease_id: str | None = None
    lease_time: int | None = None


def apply(lease: Lease | None, request: LeaseRequest, now: int, new_id: str) -> Outcome:
    """What the request makes of the lease. `new_id` is used when an acquire proposes none."""
    outcome = TRANSITIONS[state_of(lease, now), request.action, _whose(lease, request)]
    if isinstance(outcome, Code):
        raise StorageError(outcome)
    if request.action is Action.ACQUIRE:
        return _acquired(request, now, new_id)
    assert lease is not None  # the table refuses everything but acquire when there is no lease
    match request.action:
        case Action.RENEW:
            return _held(Lease(lease.id, lease.seconds, _end(lease.seconds, now)))
        case Action.CHANGE:
            assert request.proposed_id is not None
            return _held(msgspec.structs.replace(lease, id=request.proposed_id))
        case Action.RELEASE:
            return Outcome(lease=None)
        case Action.BREAK:
            return _broken(lease, request.break_period, now)


def _whose(lease: Lease | None, request: LeaseRequest) -> Whose:
    held = lease.id if lease is not None else None
    counts = request.proposed_id if request.action is Action.ACQUIRE else request.lease_id
    if counts is not None and counts == held:
        return Whose.HOLDER
    retried = request.action is Action.CHANGE and held is not None and request.proposed_id == held
    return Whose.RETRY if retried else Whose.OTHER


def _acquired(request: LeaseRequest, now: int, new_id: str) -> Outcome:
    assert request.duration is not None
    return _held(Lease(request.proposed_id or new_id, request.duration, _end(request.duration, now)))


def _held(lease: Lease) -> Outcome:
    return Outcome(lease=lease, lease_id=lease.id)


def _end(duration: int, now: int) -> int | None:
    return None if duration == INFINITE else now + seconds(duration)


def _broken(lease: Lease, period: int | None, now: int) -> Outcome:
    """A break never lengthens: it ends with what is left of the lease or of an earlier break, or sooner if asked."""
    ends = lease.expires if lease.breaks is None else lease.breaks
    asked = None if period is None else now + seconds(period)
    breaks = min((moment for moment in (ends, asked) if moment is not None), default=now)
    remaining = -(-max(breaks - now, 0) // TICKS_PER_SECOND)  # rounded up: after that many seconds it is free
    return Outcome(lease=msgspec.structs.replace(lease, breaks=breaks), lease_time=remaining)


# What each action requires. Break ignores a lease id; acquire without a proposed id gets a new one.
_REQUIRED = {
    Action.ACQUIRE: ("x-ms-lease-duration",),
    Action.RENEW: ("x-ms-lease-id",),
    Action.CHANGE: ("x-ms-lease-id", "x-ms-proposed-lease-id"),
    Action.RELEASE: ("x-ms-lease-id",),
    Action.BREAK: (),
}


def parse_request(headers: Mapping[str, str]) -> LeaseRequest:
    """A lease operation from lower-case headers: InvalidHeaderValue or MissingRequiredHeader when it cannot be one."""
    action = _action(headers)
    for name in _REQUIRED[action]:
        if name not in headers:
            raise missing_header(name)
    return LeaseRequest(
        action=action,
        lease_id=parse_lease_id(headers),
        proposed_id=parse_lease_id(headers, "x-ms-proposed-lease-id"),
        duration=_whole_number(headers, "x-ms-lease-duration", _DURATIONS),
        break_period=_whole_number(headers, "x-ms-lease-break-period", _BREAK_PERIODS),
    )


def parse_lease_id(headers: Mapping[str, str], name: str = "x-ms-lease-id") -> str | None:
    text = headers.get(name)
    if text is None:
        return None
    guid = parse_guid(text)
    if guid is None:
        raise invalid_header(name, text)
    return guid


_DURATIONS = frozenset({INFINITE, *range(15, 61)})  # Lease Blob, "x-ms-lease-duration"
_BREAK_PERIODS = frozenset(range(61))  # Lease Blob, "x-ms-lease-break-period"
_ACTIONS = {action.value: action for action in Action}


def _action(headers: Mapping[str, str]) -> Action:
    text = headers.get("x-ms-lease-action")
    if text is None:
        raise missing_header("x-ms-lease-action")
    action = _ACTIONS.get(text.strip().lower())
    if action is None:
        raise invalid_header("x-ms-lease-action", text)
    return action


def _whole_number(headers: Mapping[str, str], name: str, allowed: frozenset[int]) -> int | None:
    text = headers.get(name)
    if text is None:
        return None
    if re.fullmatch(r"-?[0-9]{1,9}", text.strip()) is None or int(text) not in allowed:
        raise invalid_header(name, text)
    return int(text)


_PLAIN = re.compile(
    r"[0-9a-f]{32}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\{[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\}"
    r"|\([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\)"
)
_HEXADECIMAL = re.compile(
    r"\{0x([0-9a-f]{1,8}),0x([0-9a-f]{1,4}),0x([0-9a-f]{1,4}),\{" + ",".join([r"0x([0-9a-f]{1,2})"] * 8) + r"\}\}"
)
_WIDTHS = (8, 4, 4, *[2] * 8)


def parse_guid(text: str) -> str | None:
    """Any .NET Guid format (N, D, B, P, X), as lower-case dashed digits."""
    text = text.strip().lower()
    if _PLAIN.fullmatch(text):
        digits = re.sub(r"[^0-9a-f]", "", text)
    elif groups := _HEXADECIMAL.fullmatch(re.sub(r"\s", "", text)):
        digits = "".join(group.rjust(width, "0") for group, width in zip(groups.groups(), _WIDTHS, strict=True))
    else:
        return None
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
