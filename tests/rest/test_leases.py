"""Lease Blob and Lease Container: the complete outcome table of reference 3.3, and the headers of the responses."""

import pytest

from tests.rest.client import Box, Reply

A, B, C = (f"{letter * 8}-0000-0000-0000-{letter * 12}" for letter in "abc")
ON = pytest.mark.parametrize("name", ["blob", None], ids=["blob", "container"])
STATES = ("available", "leased", "breaking", "broken", "expired")

PRESENT = "LeaseAlreadyPresent"
ABSENT = "LeaseNotPresentWithLeaseOperation"
MISMATCH = "LeaseIdMismatchWithLeaseOperation"
NO_ACQUIRE = "LeaseIsBreakingAndCannotBeAcquired"
NO_CHANGE = "LeaseIsBreakingAndCannotBeChanged"
NO_RENEW = "LeaseIsBrokenAndCannotBeRenewed"


def bring_to(box: Box, state: str, name: str | None, seconds: int = 60) -> None:
    """A lease that was acquired with the id A and is now in this state."""
    if name is not None:
        box.put(name)
    if state == "available":
        return
    box.acquire(15 if state == "expired" else seconds, name, A)
    if state == "expired":
        box.server.move_clock(15)
    elif state != "leased":
        box.lease("break", {"x-ms-lease-break-period": "30" if state == "breaking" else "0"}, name)


def look(box: Box, name: str | None) -> Reply:
    return box.head(name) if name is not None else box.container("HEAD")


def state_of(box: Box, name: str | None) -> str:
    reply = look(box, name)
    state = reply["x-ms-lease-state"]
    assert reply["x-ms-lease-status"] == ("locked" if state in ("leased", "breaking") else "unlocked")
    assert ("x-ms-lease-duration" in reply) == (state == "leased")
    return state


ACQUIRE = {
    "": ((201, "leased"), (409, PRESENT), (409, PRESENT), (201, "leased"), (201, "leased")),
    A: ((201, "leased"), (201, "leased"), (409, NO_ACQUIRE), (201, "leased"), (201, "leased")),
    B: ((201, "leased"), (409, PRESENT), (409, PRESENT), (201, "leased"), (201, "leased")),
}
BREAK = {
    "0": ((409, ABSENT), (202, "broken"), (202, "broken"), (202, "broken"), (202, "broken")),
    "20": ((409, ABSENT), (202, "breaking"), (202, "breaking"), (202, "broken"), (202, "broken")),
    "": ((409, ABSENT), (202, "breaking"), (202, "breaking"), (202, "broken"), (202, "broken")),
}
CHANGE = {
    (A, B): ((409, ABSENT), (200, "leased"), (409, NO_CHANGE), (409, ABSENT), (409, ABSENT)),
    (B, A): ((409, ABSENT), (200, "leased"), (409, MISMATCH), (409, ABSENT), (409, ABSENT)),
    (B, C): ((409, ABSENT), (409, MISMATCH), (409, MISMATCH), (409, ABSENT), (409, ABSENT)),
}
RENEW = {
    A: ((409, MISMATCH), (200, "leased"), (409, NO_RENEW), (409, NO_RENEW), (200, "leased")),
    B: ((409, MISMATCH), (409, MISMATCH), (409, MISMATCH), (409, MISMATCH), (409, MISMATCH)),
}
RELEASE = {
    A: ((409, MISMATCH), (200, "available"), (200, "available"), (200, "available"), (200, "available")),
    B: ((409, MISMATCH), (409, MISMATCH), (409, MISMATCH), (409, MISMATCH), (409, MISMATCH)),
}
Outcomes = tuple[tuple[int, str], ...]
Case = tuple[str, dict[str, str], Outcomes]
CASES: list[Case] = [
    *[("acquire", {"x-ms-proposed-lease-id": id} if id else {}, row) for id, row in ACQUIRE.items()],
    *[("break", {"x-ms-lease-break-period": period} if period else {}, row) for period, row in BREAK.items()],
    *[("change", {"x-ms-lease-id": old, "x-ms-proposed-lease-id": new}, row) for (old, new), row in CHANGE.items()],
    *[("renew", {"x-ms-lease-id": id}, row) for id, row in RENEW.items()],
    *[("release", {"x-ms-lease-id": id}, row) for id, row in RELEASE.items()],
]


@ON
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join([case[0], *[v[:2] for v in case[1].values()]]))
def test_every_action_in_every_state_has_its_outcome(box: Box, name: str | None, state: str, case: Case) -> None:
    # contract L1, L2
    action, headers, outcomes = case
    status, outcome = outcomes[STATES.index(state)]
    bring_to(box, state, name)
    before = look(box, name)
    reply = box.lease(action, headers, name)
    if status == 409:
        assert reply.answer == (409, outcome)
        assert state_of(box, name) == state  # contract G7
        return
    assert reply.status == status
    assert state_of(box, name) == outcome
    assert (reply["ETag"], reply["Last-Modified"]) == (before["ETag"], before["Last-Modified"])
    assert ("x-ms-lease-id" in reply) == (action in ("acquire", "renew", "change"))
    assert ("x-ms-lease-time" in reply) == (action == "break")


@ON
@pytest.mark.parametrize(("seconds", "duration"), [(15, "fixed"), (60, "fixed"), (-1, "infinite")])
def test_a_lease_lasts_as_long_as_it_says(box: Box, name: str | None, seconds: int, duration: str) -> None:
    # contract L1
    bring_to(box, "available", name)
    box.acquire(seconds, name)
    assert look(box, name)["x-ms-lease-duration"] == duration
    box.server.move_clock(3600 if seconds < 0 else seconds - 1)
    assert state_of(box, name) == "leased"
    box.server.move_clock(1)
    assert state_of(box, name) == ("leased" if seconds < 0 else "expired")


@ON
def test_renewing_starts_the_clock_again_and_changing_does_not(box: Box, name: str | None) -> None:
    # contract L1
    bring_to(box, "available", name)
    box.acquire(20, name, A)
    box.server.move_clock(15)
    box.lease("renew", {"x-ms-lease-id": A}, name)
    box.server.move_clock(15)
    assert state_of(box, name) == "leased"
    box.lease("change", {"x-ms-lease-id": A, "x-ms-proposed-lease-id": B}, name)
    box.server.move_clock(5)
    assert state_of(box, name) == "expired"


@ON
@pytest.mark.parametrize(
    ("seconds", "period", "time"),
    [(-1, "3", 3), (-1, "60", 60), (-1, None, 0), (60, "10", 10), (30, "60", 30), (30, None, 30), (30, "0", 0)],
)
def test_a_break_shows_when_the_lease_is_free(box: Box, name: str | None, seconds: int, period: str | None, time: int) -> None:
    # contract L1, race L5
    bring_to(box, "available", name)
    box.acquire(seconds, name, A)
    reply = box.lease("break", {"x-ms-lease-break-period": period} if period else {}, name)
    assert reply["x-ms-lease-time"] == str(time)
    assert state_of(box, name) == ("breaking" if time else "broken")
    box.server.move_clock(time)
    assert state_of(box, name) == "broken"
    assert box.lease("acquire", name=name).status == 201


@ON
def test_the_last_second_of_a_break_is_reported_as_one(box: Box, name: str | None) -> None:
    """A client asks until it is told 0, and then takes the lease to be broken."""
    bring_to(box, "available", name)
    box.acquire(-1, name, A)
    box.lease("break", {"x-ms-lease-break-period": "3"}, name)
    box.server.move_clock(2.5)
    assert (box.lease("break", name=name)["x-ms-lease-time"], state_of(box, name)) == ("1", "breaking")
    box.server.move_clock(0.5)
    assert (box.lease("break", name=name)["x-ms-lease-time"], state_of(box, name)) == ("0", "broken")


@ON
def test_a_second_break_never_lengthens_the_first(box: Box, name: str | None) -> None:
    bring_to(box, "available", name)
    box.acquire(-1, name, A)
    times = [box.lease("break", {"x-ms-lease-break-period": period}, name)["x-ms-lease-time"] for period in ("30", "50", "10")]
    assert times == ["30", "30", "10"]


@ON
@pytest.mark.parametrize(
    ("action", "headers", "code"),
    [
        ("acquire", {"x-ms-lease-duration": "14"}, "InvalidHeaderValue"),
        ("acquire", {"x-ms-lease-duration": "61"}, "InvalidHeaderValue"),
        ("acquire", {"x-ms-lease-duration": "0"}, "InvalidHeaderValue"),
        ("acquire", {"x-ms-lease-duration": "-2"}, "InvalidHeaderValue"),
        ("acquire", {"x-ms-lease-duration": "soon"}, "InvalidHeaderValue"),
        ("acquire", {"x-ms-proposed-lease-id": "not-a-guid"}, "InvalidHeaderValue"),
        ("renew", {}, "MissingRequiredHeader"),
        ("renew", {"x-ms-lease-id": "not-a-guid"}, "InvalidHeaderValue"),
        ("release", {}, "MissingRequiredHeader"),
        ("change", {"x-ms-lease-id": A}, "MissingRequiredHeader"),
        ("change", {"x-ms-proposed-lease-id": A}, "MissingRequiredHeader"),
        ("break", {"x-ms-lease-break-period": "61"}, "InvalidHeaderValue"),
        ("break", {"x-ms-lease-break-period": "-1"}, "InvalidHeaderValue"),
        ("borrow", {}, "InvalidHeaderValue"),
    ],
)
def test_a_lease_request_that_is_none_is_refused(
    box: Box, name: str | None, action: str, headers: dict[str, str], code: str
) -> None:
    # contract L1
    bring_to(box, "available", name)
    assert box.lease(action, headers, name).answer == (400, code)
    assert state_of(box, name) == "available"


def test_a_lease_request_names_an_action_and_acquire_a_duration(box: Box) -> None:
    box.put()
    assert box.blob("PUT", comp="lease").answer == (400, "MissingRequiredHeader")
    reply = box.blob("PUT", comp="lease", headers={"x-ms-lease-action": "acquire"})
    assert reply.answer == (400, "MissingRequiredHeader")
    assert reply.detail("HeaderName") == "x-ms-lease-duration"


@pytest.mark.parametrize("spelling", [A.upper(), A.replace("-", ""), f"{{{A}}}", f"({A})"])
def test_a_lease_id_is_a_guid_in_any_spelling(box: Box, spelling: str) -> None:
    box.put()
    assert box.acquire(15, lease_id=spelling) == A
    assert box.put(headers={"x-ms-lease-id": spelling}).status == 201


def test_a_blob_that_does_not_exist_cannot_be_leased(box: Box) -> None:
    assert box.lease("acquire").answer == (404, "BlobNotFound")
    box.put_block("AAAA")
    assert box.lease("acquire").answer == (404, "BlobNotFound")
    assert Box(box.client).lease("acquire").answer == (404, "ContainerNotFound")


@ON
def test_a_lease_looks_at_dates(box: Box, name: str | None) -> None:
    # contract B3
    bring_to(box, "available", name)
    past, future = box.client.date(-3600), box.client.date(3600)
    for refused in ({"If-Modified-Since": future}, {"If-Unmodified-Since": past}):
        assert box.lease("acquire", refused, name).answer == (412, "ConditionNotMet")
    assert box.lease("acquire", {"If-Unmodified-Since": future}, name).status == 201


def test_a_lease_on_a_blob_looks_at_etags(box: Box) -> None:
    # contract B3
    etag = box.put()["ETag"]
    assert box.lease("acquire", {"If-Match": '"0x1"'}).answer == (412, "ConditionNotMet")
    assert box.lease("acquire", {"If-None-Match": etag}).answer == (412, "ConditionNotMet")
    assert box.lease("acquire", {"If-Match": etag}).status == 201


def test_the_lease_of_a_container_says_nothing_about_its_blobs(box: Box) -> None:
    # contract L6
    box.acquire(-1, None, A)
    assert box.put().status == 201
    assert box.blob("DELETE").status == 202


@pytest.mark.parametrize(
    ("sent", "outcomes"),
    [
        (A, ("Absent", 202, 202, "Lost", "Lost")),
        (B, ("Absent", "Mismatch", "Mismatch", "Absent", "Absent")),
        (None, (202, "Missing", "Missing", 202, 202)),
    ],
)
@pytest.mark.parametrize("state", STATES)
def test_only_delete_demands_the_lease_of_a_container(
    box: Box, state: str, sent: str | None, outcomes: tuple[str | int, ...]
) -> None:
    # contract L6
    codes = {
        "Absent": "LeaseNotPresentWithContainerOperation",
        "Mismatch": "LeaseIdMismatchWithContainerOperation",
        "Missing": "LeaseIdMissing",
        "Lost": "LeaseLost",
    }
    outcome = outcomes[STATES.index(state)]
    bring_to(box, state, None)
    headers = {"x-ms-lease-id": sent} if sent else {}
    refusal = codes[outcome] if isinstance(outcome, str) else None
    for method, comp, status in (
        ("GET", "", 200),
        ("GET", "metadata", 200),
        ("PUT", "metadata", 200),
        ("GET", "acl", 200),
        ("PUT", "acl", 200),
        ("DELETE", "", 202),
    ):
        reply = box.container(method, comp, headers)
        demanded = refusal if sent or method == "DELETE" else None
        assert reply.answer == ((412, demanded) if demanded else (status, None)), (method, comp)


def test_the_expired_lease_of_a_container_survives_writes_to_it(box: Box) -> None:
    box.acquire(15, None, A)
    box.server.move_clock(15)
    box.container("PUT", "metadata", {"x-ms-meta-a": "1"})
    assert box.lease("renew", {"x-ms-lease-id": A}, None).status == 200
