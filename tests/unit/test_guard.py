"""The guard: what a lease forbids in each state, the order of the checks, and the lease after a write."""

from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core import guard as rules
from verditer.core.conditions import ANY, NONE, ConditionRule, Conditions, EtagCondition
from verditer.core.dates import rfc1123, seconds
from verditer.core.errors import Code, StorageError
from verditer.core.guard import USES, Guard, GuardRule, LeaseRule, SentLeaseId
from verditer.core.lease import Lease, LeaseAction, LeaseRequest, LeaseState, apply, state_of
from verditer.rest.codecs.conditions import guard_of
from verditer.rest.codecs.etag import show

NOW = 638_000_000_000_000_000
A, B = (f"{digit * 8}-{digit * 4}-{digit * 4}-{digit * 4}-{digit * 12}" for digit in "ab")


class Record(msgspec.Struct, frozen=True):
    etag: int = NOW - seconds(100)
    lease: Lease | None = None
    tags: Mapping[str, str] | None = None
    copy_pending: bool = False


LEASES: dict[LeaseState, Lease | None] = {
    LeaseState.AVAILABLE: None,
    LeaseState.LEASED: Lease(A, 30, NOW + seconds(20)),
    LeaseState.BREAKING: Lease(A, 30, NOW + seconds(20), NOW + seconds(10)),
    LeaseState.BROKEN: Lease(A, 30, NOW + seconds(20), NOW - seconds(1)),
    LeaseState.EXPIRED: Lease(A, 30, NOW - seconds(5)),
}
BLOBS = {state: Record(lease=lease) for state, lease in LEASES.items()}
PASS = None

MISSING = Code.LeaseIdMissing
MISMATCH = Code.LeaseIdMismatchWithBlobOperation
ABSENT = Code.LeaseNotPresentWithBlobOperation
LOST = Code.LeaseLost
C_MISSING = Code.ContainerLeaseIdMissing
C_MISMATCH = Code.LeaseIdMismatchWithContainerOperation
C_ABSENT = Code.LeaseNotPresentWithContainerOperation
C_LOST = Code.ContainerLeaseLost

Row = tuple[GuardRule, str | None, tuple[Code | None, ...]]
# fmt: off
USE_ATTEMPTS: list[Row] = [
    # rule                      sent    available leased      breaking    broken    expired
    (rules.UPDATE,              A,    ( ABSENT,   PASS,       PASS,       LOST,     LOST     )),
    (rules.UPDATE,              B,    ( ABSENT,   MISMATCH,   MISMATCH,   ABSENT,   ABSENT   )),
    (rules.UPDATE,              None, ( PASS,     MISSING,    MISSING,    PASS,     PASS     )),
    (rules.CREATE,              A,    ( ABSENT,   PASS,       PASS,       LOST,     LOST     )),
    (rules.CREATE,              B,    ( ABSENT,   MISMATCH,   MISMATCH,   ABSENT,   ABSENT   )),
    (rules.CREATE,              None, ( PASS,     MISSING,    MISSING,    PASS,     PASS     )),
    (rules.LEASE_ONLY,          A,    ( ABSENT,   PASS,       PASS,       LOST,     LOST     )),
    (rules.LEASE_ONLY,          B,    ( ABSENT,   MISMATCH,   MISMATCH,   ABSENT,   ABSENT   )),
    (rules.LEASE_ONLY,          None, ( PASS,     MISSING,    MISSING,    PASS,     PASS     )),
    (rules.READ,                A,    ( ABSENT,   PASS,       PASS,       LOST,     LOST     )),
    (rules.READ,                B,    ( ABSENT,   MISMATCH,   MISMATCH,   ABSENT,   ABSENT   )),
    (rules.READ,                None, ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.SNAPSHOT,            B,    ( ABSENT,   MISMATCH,   MISMATCH,   ABSENT,   ABSENT   )),
    (rules.SNAPSHOT,            None, ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.BLOCK_LIST_READ,     B,    ( ABSENT,   MISMATCH,   MISMATCH,   ABSENT,   ABSENT   )),
    (rules.BLOCK_LIST_READ,     None, ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.LEASE,               B,    ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.NONE,                B,    ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.CONTAINER_DELETE,    A,    ( C_ABSENT, PASS,       PASS,       C_LOST,   C_LOST   )),
    (rules.CONTAINER_DELETE,    B,    ( C_ABSENT, C_MISMATCH, C_MISMATCH, C_ABSENT, C_ABSENT )),
    (rules.CONTAINER_DELETE,    None, ( PASS,     C_MISSING,  C_MISSING,  PASS,     PASS     )),
    (rules.CONTAINER_READ,      A,    ( C_ABSENT, PASS,       PASS,       C_LOST,   C_LOST   )),
    (rules.CONTAINER_READ,      B,    ( C_ABSENT, C_MISMATCH, C_MISMATCH, C_ABSENT, C_ABSENT )),
    (rules.CONTAINER_READ,      None, ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.CONTAINER_WRITE,     B,    ( C_ABSENT, C_MISMATCH, C_MISMATCH, C_ABSENT, C_ABSENT )),
    (rules.CONTAINER_WRITE,     None, ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.CONTAINER_METADATA,  B,    ( C_ABSENT, C_MISMATCH, C_MISMATCH, C_ABSENT, C_ABSENT )),
    (rules.CONTAINER_METADATA,  None, ( PASS,     PASS,       PASS,       PASS,     PASS     )),
    (rules.CONTAINER_LEASE,     B,    ( PASS,     PASS,       PASS,       PASS,     PASS     )),
]
# fmt: on
CELLS = [(rule, sent, state, code) for rule, sent, codes in USE_ATTEMPTS for state, code in zip(LeaseState, codes, strict=True)]


def refusal(guard: Guard, current: Record | None, now: int = NOW) -> Code | None:
    try:
        guard.check(current, now)
    except StorageError as error:
        return error.code
    return None


@pytest.mark.parametrize(("rule", "sent", "state", "code"), CELLS)
def test_a_lease_is_asked_for_as_the_use_table_says(
    rule: GuardRule, sent: str | None, state: LeaseState, code: Code | None
) -> None:
    # contract L3, L4, L5, L6; race L2 (the id of an expired lease)
    assert refusal(Guard(rule=rule, lease_id=sent), BLOBS[state]) is code


def test_the_use_table_has_a_cell_for_every_rule_id_and_state() -> None:
    used = (LeaseRule.IF_LEASED, LeaseRule.IF_GIVEN)
    assert set(USES) == {(rule, sent, state) for rule in used for sent in SentLeaseId for state in LeaseState}


@pytest.mark.parametrize("rule", [rules.CREATE, rules.LEASE_ONLY])
def test_a_lease_id_for_what_does_not_exist_yet_is_refused(rule: GuardRule) -> None:
    # contract L3
    assert refusal(Guard(rule=rule, lease_id=A), None) is ABSENT
    assert refusal(Guard(rule=rule), None) is PASS


def test_the_lease_is_checked_before_the_conditions() -> None:
    # race L3: If-None-Match: * over a leased blob
    star = Conditions(if_none_match=ANY)
    assert refusal(Guard(rule=rules.CREATE, conditions=star), BLOBS[LeaseState.LEASED]) is MISSING
    assert refusal(Guard(rule=rules.CREATE, conditions=star, lease_id=B), BLOBS[LeaseState.LEASED]) is MISMATCH
    assert refusal(Guard(rule=rules.CREATE, conditions=star), BLOBS[LeaseState.AVAILABLE]) is Code.BlobAlreadyExists
    assert refusal(Guard(rule=rules.CREATE, conditions=star), BLOBS[LeaseState.EXPIRED]) is Code.BlobAlreadyExists
    assert refusal(Guard(rule=rules.CREATE, conditions=star), None) is PASS


def test_the_holder_of_the_lease_overwrites_despite_the_none_match_star() -> None:
    star = Conditions(if_none_match=ANY)
    assert refusal(Guard(rule=rules.CREATE, conditions=star, lease_id=A), BLOBS[LeaseState.LEASED]) is PASS
    assert refusal(Guard(rule=rules.CREATE, conditions=star, lease_id=A), BLOBS[LeaseState.BREAKING]) is PASS


def test_a_lease_id_that_nobody_compared_makes_no_holder() -> None:
    unchecked = GuardRule(ConditionRule.CREATE, LeaseRule.NOT_USED)
    guard = Guard(rule=unchecked, conditions=Conditions(if_none_match=ANY), lease_id=B)
    assert refusal(guard, BLOBS[LeaseState.LEASED]) is Code.BlobAlreadyExists


def test_the_holder_still_has_to_meet_every_other_condition() -> None:
    # contract B1
    current = BLOBS[LeaseState.LEASED]
    stale, fresh = Conditions(if_match=EtagCondition((1,))), Conditions(if_match=EtagCondition((current.etag,)))
    assert refusal(Guard(rule=rules.UPDATE, conditions=stale, lease_id=A), current) is Code.ConditionNotMet
    assert refusal(Guard(rule=rules.UPDATE, conditions=fresh, lease_id=A), current) is PASS


def test_who_may_only_create_does_not_overwrite() -> None:
    guard = Guard(rule=rules.CREATE, create_only=True, lease_id=B, conditions=Conditions(if_none_match=ANY))
    assert refusal(guard, BLOBS[LeaseState.LEASED]) is Code.UnauthorizedBlobOverwrite
    assert refusal(Guard(rule=rules.CREATE, create_only=True), BLOBS[LeaseState.AVAILABLE]) is Code.UnauthorizedBlobOverwrite
    assert refusal(Guard(rule=rules.CREATE, create_only=True), None) is PASS


@pytest.mark.parametrize("state", LeaseState)
def test_a_write_keeps_a_lease_that_locks_and_forgets_one_that_ended(state: LeaseState) -> None:
    # contract L7; race L5 (lease lost on overwrite)
    kept = LEASES[state] if state in (LeaseState.LEASED, LeaseState.BREAKING) else None
    assert Guard(rule=rules.CREATE).lease_after(BLOBS[state], NOW) == kept
    assert Guard(rule=rules.CONTAINER_WRITE).lease_after(BLOBS[state], NOW) == LEASES[state]
    assert Guard(rule=rules.CREATE).lease_after(None, NOW) is None


def test_a_lease_that_expired_before_a_write_cannot_be_renewed() -> None:
    # race L1
    renew = LeaseRequest(action=LeaseAction.RENEW, lease_id=A)
    tombstone = Guard(rule=rules.UPDATE).lease_after(BLOBS[LeaseState.EXPIRED], NOW)
    assert apply(LEASES[LeaseState.EXPIRED], renew, NOW, B).lease_id == A
    with pytest.raises(StorageError) as caught:
        apply(tombstone, renew, NOW, B)
    assert caught.value.code is Code.LeaseIdMismatchWithLeaseOperation


# From a request

DATE = rfc1123(NOW)


def test_a_rule_takes_what_it_uses_from_the_headers() -> None:
    headers = {"x-ms-lease-id": A.upper(), "if-match": '"0x1"', "if-unmodified-since": DATE, "x-ms-if-tags": "bad"}
    assert guard_of(rules.CONTAINER_WRITE, headers) == Guard(
        rule=rules.CONTAINER_WRITE, lease_id=A, conditions=Conditions(if_unmodified_since=NOW)
    )
    assert guard_of(rules.LEASE_ONLY, headers) == Guard(rule=rules.LEASE_ONLY, lease_id=A)
    assert guard_of(rules.NONE, headers) == Guard(rule=rules.NONE)
    assert guard_of(rules.CREATE, {}, create_only=True) == Guard(rule=rules.CREATE, create_only=True)
    assert guard_of(rules.CREATE, {}).conditions is NONE


@pytest.mark.parametrize(
    ("rule", "headers", "code"),
    [
        (rules.UPDATE, {"x-ms-lease-id": "me"}, Code.InvalidHeaderValue),
        (rules.UPDATE, {"if-modified-since": "now"}, Code.InvalidHeaderValue),
        (rules.UPDATE, {"if-match": "a", "if-none-match": "b"}, Code.MultipleConditionHeadersNotSupported),
        (rules.READ, {"if-none-match": "*"}, Code.UnsatisfiableCondition),
        (rules.LEASE, {"x-ms-lease-id": "me"}, PASS),
        (rules.LEASE_ONLY, {"if-modified-since": "now"}, PASS),
        (rules.BLOCK_LIST_READ, {"if-modified-since": "now"}, PASS),
    ],
)
def test_headers_that_are_wrong_in_themselves_are_refused_before_a_record_is_read(
    rule: GuardRule, headers: dict[str, str], code: Code | None
) -> None:
    assert parse_refusal(rule, headers) is code


def parse_refusal(rule: GuardRule, headers: dict[str, str]) -> Code | None:
    try:
        guard_of(rule, headers)
    except StorageError as error:
        return error.code
    return None


def test_source_conditions_have_a_prefix_of_their_own() -> None:
    guard = guard_of(rules.COPY_SOURCE, {"x-ms-source-if-match": '"0x1"', "if-match": show(Record().etag)})
    assert refusal(guard, Record()) is Code.SourceConditionNotMet


# The guard as a pure function

RULES = st.sampled_from([rule for rule in vars(rules).values() if isinstance(rule, GuardRule)])
GUARDS = st.builds(
    Guard,
    rule=RULES,
    conditions=st.builds(
        Conditions,
        if_match=st.none() | st.just(ANY) | st.just(EtagCondition((Record().etag,))) | st.just(EtagCondition((1, 2))),
        if_none_match=st.none() | st.just(ANY) | st.just(EtagCondition((Record().etag,))),
        if_modified_since=st.none() | st.just(NOW) | st.just(0),
        if_unmodified_since=st.none() | st.just(NOW) | st.just(0),
    )
    | st.just(NONE),
    lease_id=st.sampled_from([None, A, B]),
    create_only=st.booleans(),
)


@given(GUARDS, st.none() | st.sampled_from(list(BLOBS.values())), st.integers(0, 60))
def test_checking_changes_nothing_and_always_answers_the_same(guard: Guard, current: Record | None, wait: int) -> None:
    # contract G7
    now = NOW + seconds(wait)
    before = (repr(guard), repr(current))
    first = refusal(guard, current, now)
    assert refusal(guard, current, now) is first
    assert (repr(guard), repr(current)) == before


@given(GUARDS, st.sampled_from(list(LEASES.values())), st.integers(0, 60))
def test_no_write_passes_an_active_lease_without_its_id(guard: Guard, lease: Lease | None, wait: int) -> None:
    # contract L3
    now = NOW + seconds(wait)
    locked = state_of(lease, now).is_locked
    if guard.rule.lease is LeaseRule.IF_LEASED and locked and guard.lease_id != A:
        assert refusal(guard, Record(lease=lease), now) is not PASS
