"""Leases: the complete outcome table, the clock, the headers, and random histories compared with a small model."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core.dates import TICKS_PER_SECOND, seconds
from verditer.core.errors import Code, StorageError
from verditer.core.lease import (
    TRANSITIONS,
    Lease,
    LeaseAction,
    LeaseIdMatch,
    LeaseOutcome,
    LeaseRequest,
    LeaseState,
    apply,
    duration_of,
    state_of,
)
from verditer.rest.codecs.leases import lease_status, parse_guid, parse_lease_request
from verditer.rest.errors import elements_of

NOW = 638_000_000_000_000_000
A, B, C, X = (f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "abcf")

HELD: dict[LeaseState, Lease | None] = {
    LeaseState.AVAILABLE: None,
    LeaseState.LEASED: Lease(A, 30, NOW + seconds(20)),
    LeaseState.BREAKING: Lease(A, 30, NOW + seconds(20), NOW + seconds(10)),
    LeaseState.BROKEN: Lease(A, 30, NOW + seconds(20), NOW - seconds(1)),
    LeaseState.EXPIRED: Lease(A, 30, NOW - seconds(5)),
}

ACQUIRE = LeaseRequest(action=LeaseAction.ACQUIRE, duration=15)
ACQUIRE_A = LeaseRequest(action=LeaseAction.ACQUIRE, duration=15, proposed_id=A)
ACQUIRE_B = LeaseRequest(action=LeaseAction.ACQUIRE, duration=15, proposed_id=B)
BREAK_0 = LeaseRequest(action=LeaseAction.BREAK, break_period=0)
BREAK_3 = LeaseRequest(action=LeaseAction.BREAK, break_period=3)
BREAK_60 = LeaseRequest(action=LeaseAction.BREAK, break_period=60)
BREAK = LeaseRequest(action=LeaseAction.BREAK)
BREAK_B = LeaseRequest(action=LeaseAction.BREAK, lease_id=B)
CHANGE_AB = LeaseRequest(action=LeaseAction.CHANGE, lease_id=A, proposed_id=B)
CHANGE_AA = LeaseRequest(action=LeaseAction.CHANGE, lease_id=A, proposed_id=A)
CHANGE_BA = LeaseRequest(action=LeaseAction.CHANGE, lease_id=B, proposed_id=A)
CHANGE_BC = LeaseRequest(action=LeaseAction.CHANGE, lease_id=B, proposed_id=C)
RENEW_A = LeaseRequest(action=LeaseAction.RENEW, lease_id=A)
RENEW_B = LeaseRequest(action=LeaseAction.RENEW, lease_id=B)
RELEASE_A = LeaseRequest(action=LeaseAction.RELEASE, lease_id=A)
RELEASE_B = LeaseRequest(action=LeaseAction.RELEASE, lease_id=B)

PRESENT = Code.LeaseAlreadyPresent
ABSENT = Code.LeaseNotPresentWithLeaseOperation
MISMATCH = Code.LeaseIdMismatchWithLeaseOperation
NO_ACQUIRE = Code.LeaseIsBreakingAndCannotBeAcquired
NO_CHANGE = Code.LeaseIsBreakingAndCannotBeChanged
NO_RENEW = Code.LeaseIsBrokenAndCannotBeRenewed

Cell = Code | tuple[str, str | None, int | None]  # an error, or: state afterwards, id in the response, time in the response
FREE: Cell = ("available", None, None)
BROKEN: Cell = ("broken", None, 0)


def leased(lease_id: str) -> Cell:
    return "leased", lease_id, None


def breaking(time: int) -> Cell:
    return "breaking", None, time


# fmt: off
OUTCOMES: list[tuple[LeaseRequest, tuple[Cell, ...]]] = [
    # request     available   leased        breaking      broken      expired
    (ACQUIRE,   ( leased(X),  PRESENT,      PRESENT,      leased(X),  leased(X) )),
    (ACQUIRE_A, ( leased(A),  leased(A),    NO_ACQUIRE,   leased(A),  leased(A) )),
    (ACQUIRE_B, ( leased(B),  PRESENT,      PRESENT,      leased(B),  leased(B) )),
    (BREAK_0,   ( ABSENT,     BROKEN,       BROKEN,       BROKEN,     BROKEN    )),
    (BREAK_3,   ( ABSENT,     breaking(3),  breaking(3),  BROKEN,     BROKEN    )),
    (BREAK_60,  ( ABSENT,     breaking(20), breaking(10), BROKEN,     BROKEN    )),
    (BREAK,     ( ABSENT,     breaking(20), breaking(10), BROKEN,     BROKEN    )),
    (BREAK_B,   ( ABSENT,     breaking(20), breaking(10), BROKEN,     BROKEN    )),
    (CHANGE_AB, ( ABSENT,     leased(B),    NO_CHANGE,    ABSENT,     ABSENT    )),
    (CHANGE_AA, ( ABSENT,     leased(A),    NO_CHANGE,    ABSENT,     ABSENT    )),
    (CHANGE_BA, ( ABSENT,     leased(A),    MISMATCH,     ABSENT,     ABSENT    )),
    (CHANGE_BC, ( ABSENT,     MISMATCH,     MISMATCH,     ABSENT,     ABSENT    )),
    (RENEW_A,   ( MISMATCH,   leased(A),    NO_RENEW,     NO_RENEW,   leased(A) )),
    (RENEW_B,   ( MISMATCH,   MISMATCH,     MISMATCH,     MISMATCH,   MISMATCH  )),
    (RELEASE_A, ( MISMATCH,   FREE,         FREE,         FREE,       FREE      )),
    (RELEASE_B, ( MISMATCH,   MISMATCH,     MISMATCH,     MISMATCH,   MISMATCH  )),
]
# fmt: on
CELLS = [(request, state, cell) for request, cells in OUTCOMES for state, cell in zip(LeaseState, cells, strict=True)]


def result(lease: Lease | None, request: LeaseRequest, now: int) -> Cell:
    try:
        outcome = apply(lease, request, now, X)
    except StorageError as error:
        return error.code
    return state_of(outcome.lease, now).value, outcome.lease_id, outcome.lease_time


@pytest.mark.parametrize(("request_", "state", "cell"), CELLS)
def test_every_action_in_every_state_ends_as_the_outcome_table_says(
    request_: LeaseRequest, state: LeaseState, cell: Cell
) -> None:
    # contract L1, L2; race L4 (release of an expired lease), L5 (change with id = proposed)
    assert state_of(HELD[state], NOW) is state
    assert result(HELD[state], request_, NOW) == cell


def test_the_table_has_a_cell_for_every_state_action_and_id() -> None:
    wanted = {
        (state, action, match)
        for state in LeaseState
        for action in LeaseAction
        for match in (LeaseIdMatch.HOLDER, LeaseIdMatch.OTHER)
    }
    wanted |= {(state, LeaseAction.CHANGE, LeaseIdMatch.RETRY) for state in LeaseState}
    assert set(TRANSITIONS) == wanted


@pytest.mark.parametrize(
    ("state", "status", "duration"),
    [
        (LeaseState.AVAILABLE, "unlocked", None),
        (LeaseState.LEASED, "locked", "fixed"),
        (LeaseState.BREAKING, "locked", None),
        (LeaseState.BROKEN, "unlocked", None),
        (LeaseState.EXPIRED, "unlocked", None),
    ],
)
def test_a_state_shows_its_status_and_only_a_running_lease_its_duration(
    state: LeaseState, status: str, duration: str | None
) -> None:
    assert (lease_status(state), duration_of(HELD[state], NOW)) == (status, duration)


def test_an_infinite_lease_never_expires_and_says_so() -> None:
    # contract L1
    lease = held(apply(None, LeaseRequest(action=LeaseAction.ACQUIRE, duration=-1), NOW, X))
    assert (lease.expires, duration_of(lease, NOW + seconds(10**9))) == (None, "infinite")
    assert held(apply(lease, LeaseRequest(action=LeaseAction.RENEW, lease_id=X), NOW + 5, "")) == lease


def test_a_lease_ends_at_the_very_tick_it_expires() -> None:
    # contract L1
    lease = held(apply(None, ACQUIRE, NOW, X))
    end = NOW + seconds(15)
    assert (state_of(lease, end - 1), state_of(lease, end)) == (LeaseState.LEASED, LeaseState.EXPIRED)


def test_renew_starts_the_clock_again_with_the_first_duration() -> None:
    # contract L1
    lease = held(apply(None, ACQUIRE_A, NOW, X))
    late = NOW + seconds(40)
    assert held(apply(lease, RENEW_A, late, X)) == Lease(A, 15, late + seconds(15))


def test_acquire_by_the_holder_takes_the_new_duration_and_change_keeps_the_clock() -> None:
    # contract L1
    running = Lease(A, 30, NOW + seconds(20))
    longer = LeaseRequest(action=LeaseAction.ACQUIRE, duration=60, proposed_id=A)
    assert held(apply(running, longer, NOW, X)) == Lease(A, 60, NOW + seconds(60))
    assert held(apply(running, CHANGE_AB, NOW, X)) == Lease(B, 30, NOW + seconds(20))


def test_a_break_with_a_period_keeps_the_lease_until_the_period_is_over() -> None:
    # contract L1; race L5 (a break with a period broke at once)
    infinite = Lease(A, -1, None)
    outcome = apply(infinite, BREAK_3, NOW, X)
    end = NOW + seconds(3)
    assert outcome.lease_time == 3
    assert (state_of(outcome.lease, end - 1), state_of(outcome.lease, end)) == (LeaseState.BREAKING, LeaseState.BROKEN)


def test_a_break_without_a_period_ends_an_infinite_lease_at_once() -> None:
    outcome = apply(Lease(A, -1, None), BREAK, NOW, X)
    assert (state_of(outcome.lease, NOW), outcome.lease_time) == (LeaseState.BROKEN, 0)


def test_the_time_left_is_in_whole_seconds_rounded_up() -> None:
    outcome = apply(Lease(A, 15, NOW + seconds(15)), BREAK, NOW + 1, X)
    assert outcome.lease_time == 15
    assert apply(outcome.lease, BREAK, NOW + seconds(14) + 1, X).lease_time == 1


def test_an_expired_lease_is_released_once() -> None:
    # race L4
    first = apply(HELD[LeaseState.EXPIRED], RELEASE_A, NOW, X)
    assert first == LeaseOutcome(lease=None)
    assert result(first.lease, RELEASE_A, NOW) is MISMATCH


@pytest.mark.parametrize(
    "text",
    [
        "0102030405060708090a0b0c0d0e0f10",
        "01020304-0506-0708-090A-0B0C0D0E0F10",
        "{01020304-0506-0708-090a-0b0c0d0e0f10}",
        "(01020304-0506-0708-090a-0b0c0d0e0f10)",
        " {0x1020304, 0x506,0x0708,{0x09,0xA,0x0b,0x0c,0x0d,0x0e,0x0f,0x10}} ",
    ],
)
def test_every_dotnet_guid_format_is_the_same_lease_id(text: str) -> None:
    assert parse_guid(text) == "01020304-0506-0708-090a-0b0c0d0e0f10"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lease-1",
        A[:-1],
        A + "0",
        "{" + A,
        A + "}",
        "{" + A + ")",
        "{" + A.replace("-", "") + "}",
        A.replace("-", "", 1),
        "g" + A[1:],
    ],
)
def test_what_is_not_a_guid_is_no_lease_id(text: str) -> None:
    assert parse_guid(text) is None


def headers(**values: str) -> dict[str, str]:
    return {f"x-ms-{name.replace('_', '-')}": value for name, value in values.items()}


@pytest.mark.parametrize(
    ("sent", "request_"),
    [
        (headers(lease_action="acquire", lease_duration="15"), ACQUIRE),
        (headers(lease_action="acquire", lease_duration="15", proposed_lease_id=A.upper()), ACQUIRE_A),
        (headers(lease_action="acquire", lease_duration="60"), LeaseRequest(action=LeaseAction.ACQUIRE, duration=60)),
        (headers(lease_action="acquire", lease_duration="-1"), LeaseRequest(action=LeaseAction.ACQUIRE, duration=-1)),
        (headers(lease_action="renew", lease_id=A.replace("-", "")), RENEW_A),
        (headers(lease_action="change", lease_id=A, proposed_lease_id=B), CHANGE_AB),
        (headers(lease_action="release", lease_id=A), RELEASE_A),
        (headers(lease_action="break"), BREAK),
        (headers(lease_action="break", lease_break_period="0"), BREAK_0),
        (
            headers(lease_action="break", lease_break_period="60", lease_id=B),
            LeaseRequest(action=LeaseAction.BREAK, break_period=60, lease_id=B),
        ),
    ],
)
def test_a_lease_operation_is_read_from_its_headers(sent: dict[str, str], request_: LeaseRequest) -> None:
    assert parse_lease_request(sent) == request_


INVALID, MISSING = Code.InvalidHeaderValue, Code.MissingRequiredHeader


@pytest.mark.parametrize(
    ("sent", "code", "header"),
    [
        (headers(), MISSING, "x-ms-lease-action"),
        (headers(lease_action="steal"), INVALID, "x-ms-lease-action"),
        (headers(lease_action="acquire"), MISSING, "x-ms-lease-duration"),
        (headers(lease_action="acquire", lease_duration="14"), INVALID, "x-ms-lease-duration"),
        (headers(lease_action="acquire", lease_duration="61"), INVALID, "x-ms-lease-duration"),
        (headers(lease_action="acquire", lease_duration="0"), INVALID, "x-ms-lease-duration"),
        (headers(lease_action="acquire", lease_duration="-2"), INVALID, "x-ms-lease-duration"),
        (headers(lease_action="acquire", lease_duration="soon"), INVALID, "x-ms-lease-duration"),
        (headers(lease_action="acquire", lease_duration="15", proposed_lease_id="me"), INVALID, "x-ms-proposed-lease-id"),
        (headers(lease_action="renew"), MISSING, "x-ms-lease-id"),
        (headers(lease_action="renew", lease_id="me"), INVALID, "x-ms-lease-id"),
        (headers(lease_action="change", proposed_lease_id=A), MISSING, "x-ms-lease-id"),
        (headers(lease_action="change", lease_id=A), MISSING, "x-ms-proposed-lease-id"),
        (headers(lease_action="release"), MISSING, "x-ms-lease-id"),
        (headers(lease_action="break", lease_break_period="-1"), INVALID, "x-ms-lease-break-period"),
        (headers(lease_action="break", lease_break_period="61"), INVALID, "x-ms-lease-break-period"),
    ],
)
def test_a_lease_operation_that_cannot_be_one_names_the_header(sent: dict[str, str], code: Code, header: str) -> None:
    # contract L1: any other duration is refused
    with pytest.raises(StorageError) as caught:
        parse_lease_request(sent)
    assert (caught.value.code, elements_of(caught.value)["HeaderName"]) == (code, header)


class Model:
    """Microsoft's outcome table written independently of the code under test, with seconds and names."""

    def __init__(self) -> None:
        self.word = "available"
        self.holder: str | None = None
        self.length = 0
        self.left = 0.0  # seconds until the lease or the break period ends; infinity for an infinite lease

    def wait(self, span: float) -> None:
        if self.word in ("leased", "breaking"):
            self.left -= span
            if self.left <= 0:
                self.word = "expired" if self.word == "leased" else "broken"

    def acquire(self, proposed: str | None, length: int) -> Cell:
        if self.word == "breaking" and proposed == self.holder:
            return NO_ACQUIRE
        if self.word == "breaking" or (self.word == "leased" and proposed != self.holder):
            return PRESENT
        self.word, self.holder, self.length = "leased", proposed or X, length
        self.left = math.inf if length == -1 else length
        return self.word, self.holder, None

    def renew(self, sent: str) -> Cell:
        if sent != self.holder:
            return MISMATCH
        if self.word in ("breaking", "broken"):
            return NO_RENEW
        return self.acquire_again()

    def acquire_again(self) -> Cell:
        self.word = "leased"
        self.left = math.inf if self.length == -1 else self.length
        return self.word, self.holder, None

    def change(self, sent: str, proposed: str) -> Cell:
        if self.word in ("available", "broken", "expired"):
            return ABSENT
        if self.word == "breaking":
            return NO_CHANGE if sent == self.holder else MISMATCH
        if self.holder not in (sent, proposed):
            return MISMATCH
        self.holder = proposed
        return self.word, self.holder, None

    def release(self, sent: str) -> Cell:
        if sent != self.holder:
            return MISMATCH
        self.word, self.holder = "available", None
        return FREE

    def break_(self, period: int | None) -> Cell:
        if self.word == "available":
            return ABSENT
        if self.word in ("broken", "expired"):
            self.word = "broken"
            return BROKEN
        asked = period if period is not None else (0 if self.left == math.inf else self.left)
        self.left = min(asked, self.left)
        self.word = "breaking" if self.left > 0 else "broken"
        return self.word, None, math.ceil(self.left)


IDS = st.sampled_from([A, B, C])
STEPS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.5, 1, 5, 14.5, 15, 30, 60])),
    st.tuples(st.just("acquire"), st.none() | IDS, st.sampled_from([-1, 15, 30, 60])),
    st.tuples(st.just("renew"), IDS),
    st.tuples(st.just("change"), IDS, IDS),
    st.tuples(st.just("release"), IDS),
    st.tuples(st.just("break_"), st.none() | st.sampled_from([0, 1, 10, 60])),
)


def step_request(step: tuple[object, ...]) -> LeaseRequest:
    match step:
        case ("acquire", str() | None as proposed, int(duration)):
            return LeaseRequest(action=LeaseAction.ACQUIRE, proposed_id=proposed, duration=duration)
        case ("change", str(sent), str(proposed)):
            return LeaseRequest(action=LeaseAction.CHANGE, lease_id=sent, proposed_id=proposed)
        case ("break_", int() | None as period):
            return LeaseRequest(action=LeaseAction.BREAK, break_period=period)
        case (str(action), str(sent)):
            return LeaseRequest(action=LeaseAction(action), lease_id=sent)
    raise AssertionError(step)


@given(st.lists(STEPS, max_size=30))
def test_random_histories_agree_with_the_model(steps: list[tuple[object, ...]]) -> None:
    # contract L1, L2
    model, lease, now = Model(), None, NOW
    for step in steps:
        if step[0] == "wait":
            assert isinstance(step[1], int | float)
            model.wait(step[1])
            now += int(step[1] * TICKS_PER_SECOND)
        else:
            request = step_request(step)
            expected: Cell = getattr(model, str(step[0]))(*step[1:])
            assert result(lease, request, now) == expected
            if not isinstance(expected, Code):
                lease = apply(lease, request, now, X).lease
        assert (state_of(lease, now).value, lease.id if lease else None) == (model.word, model.holder)


def held(outcome: LeaseOutcome) -> Lease:
    assert outcome.lease is not None
    assert outcome.lease_id == outcome.lease.id
    return outcome.lease
