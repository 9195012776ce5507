"""Lease Share: every action in every state, what a lease refuses, and the leases of snapshots."""

import uuid

import pytest

from tests.rest.client import Reply
from tests.rest.files import ShareBox

A, B = str(uuid.uuid4()), str(uuid.uuid4())
STATES = ("available", "leased", "breaking", "broken", "expired")


def bring(share: ShareBox, state: str) -> None:
    """The lease A of the share in this state."""
    if state == "available":
        return
    sent = {"x-ms-lease-duration": "15", "x-ms-proposed-lease-id": A}
    assert share.lease("acquire", sent, None).status == 201
    if state == "breaking":
        assert share.lease("break", {"x-ms-lease-break-period": "10"}, None).status == 202
    elif state == "broken":
        assert share.lease("break", {"x-ms-lease-break-period": "0"}, None).status == 202
    elif state == "expired":
        share.server.move_clock(16)
    assert share.share("GET")["x-ms-lease-state"] == state


PRESENT = (409, "LeaseAlreadyPresent")
ABSENT = (409, "LeaseNotPresentWithLeaseOperation")
MISMATCH = (409, "LeaseIdMismatchWithLeaseOperation")
NO_ACQUIRE = (409, "LeaseIsBreakingAndCannotBeAcquired")
NO_CHANGE = (409, "LeaseIsBreakingAndCannotBeChanged")
NO_RENEW = (409, "LeaseIsBrokenAndCannotBeRenewed")
MADE, OK, GONE = (201, None), (200, None), (202, None)

# fmt: off
ACTIONS = {
    #                available  leased    breaking    broken    expired
    "acquire":     ( MADE,      PRESENT,  PRESENT,    MADE,     MADE     ),
    "acquire A":   ( MADE,      MADE,     NO_ACQUIRE, MADE,     MADE     ),
    "acquire B":   ( MADE,      PRESENT,  PRESENT,    MADE,     MADE     ),
    "renew A":     ( MISMATCH,  OK,       NO_RENEW,   NO_RENEW, OK       ),
    "renew B":     ( MISMATCH,  MISMATCH, MISMATCH,   MISMATCH, MISMATCH ),
    "change A B":  ( ABSENT,    OK,       NO_CHANGE,  ABSENT,   ABSENT   ),
    "change B A":  ( ABSENT,    OK,       MISMATCH,   ABSENT,   ABSENT   ),
    "release A":   ( MISMATCH,  OK,       OK,         OK,       OK       ),
    "release B":   ( MISMATCH,  MISMATCH, MISMATCH,   MISMATCH, MISMATCH ),
    "break":       ( ABSENT,    GONE,     GONE,       GONE,     GONE     ),
    "break 0":     ( ABSENT,    GONE,     GONE,       GONE,     GONE     ),
}
# fmt: on


def act(share: ShareBox, action: str) -> Reply:
    word, *ids = action.split()
    sent = [{"A": A, "B": B}.get(each, each) for each in ids]
    if word == "acquire":
        proposed = {"x-ms-proposed-lease-id": sent[0]} if sent else {}
        return share.lease(word, {"x-ms-lease-duration": "30", **proposed}, None)
    if word == "break":
        return share.lease(word, {"x-ms-lease-break-period": sent[0]} if sent else {}, None)
    proposed = {"x-ms-proposed-lease-id": sent[1]} if len(sent) > 1 else {}
    return share.lease(word, {"x-ms-lease-id": sent[0], **proposed}, None)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_in_every_state(share: ShareBox, action: str, state: str) -> None:
    bring(share, state)
    before = share.share("GET")
    reply = act(share, action)
    assert reply.answer == ACTIONS[action][STATES.index(state)]
    if reply.status < 300:
        assert (reply["ETag"], reply["Last-Modified"]) == (before["ETag"], before["Last-Modified"])
        assert ("x-ms-lease-id" in reply) == (action.split()[0] in ("acquire", "renew", "change"))
        assert ("x-ms-lease-time" in reply) == (action.split()[0] in ("release", "break"))
    elif reply.answer == ABSENT:
        assert (reply.detail("Message") or "").startswith("There is currently no lease on the file share.\n")


# fmt: off
MISSING = (412, "LeaseIdMissing")
WRONG = (412, "LeaseIdMismatchWithContainerOperation")
NONE = (412, "LeaseNotPresentWithContainerOperation")
USES = {
    #           available  leased   breaking  broken  expired
    "read":   ( OK,        OK,      OK,       OK,     OK     ),
    "read A": ( NONE,      OK,      OK,       NONE,   NONE   ),
    "read B": ( NONE,      WRONG,   WRONG,    NONE,   NONE   ),
    "set":    ( OK,        MISSING, MISSING,  OK,     OK     ),
    "set A":  ( NONE,      OK,      OK,       NONE,   NONE   ),
    "set B":  ( NONE,      WRONG,   WRONG,    NONE,   NONE   ),
}
MESSAGES: dict[tuple[int, str | None], str] = {
    MISSING: "There is currently a lease on the file share and no lease ID was specified in the request.",
    WRONG: "The lease ID specified did not match the lease ID for the file share.",
    NONE: "There is currently no lease on the file share.",
}
# fmt: on


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("use", USES)
def test_every_use_in_every_state(share: ShareBox, use: str, state: str) -> None:
    bring(share, state)
    word, *ids = use.split()
    headers = {"x-ms-lease-id": {"A": A, "B": B}[ids[0]]} if ids else {}
    expected = USES[use][STATES.index(state)]
    if word == "read":
        for comp in ("", "metadata", "acl", "stats"):
            assert share.share("GET", comp, headers).answer == expected
    else:
        for comp in ("metadata", "acl", "properties"):
            reply = share.share("PUT", comp, headers)
            assert reply.answer == expected
            if reply.status == 412:
                assert (reply.detail("Message") or "").startswith(MESSAGES[expected])
        deleted = share.share("DELETE", headers=headers)
        assert deleted.answer == ((202, None) if expected == OK else expected)


def test_a_lease_on_the_share_does_not_concern_its_files(share: ShareBox) -> None:
    share.acquire(None)
    share.make("d")
    share.fill(b"content", "d/file")
    assert share.file("DELETE", "d/file").status == 202
    assert share.share("PUT", "snapshot").status == 201


def test_the_time_of_a_break_is_what_is_left_or_less(share: ShareBox) -> None:
    share.acquire(None, 30)
    assert share.lease("break", {}, None)["x-ms-lease-time"] == "30"
    assert share.lease("break", {"x-ms-lease-break-period": "5"}, None)["x-ms-lease-time"] == "5"
    assert share.lease("break", {"x-ms-lease-break-period": "20"}, None)["x-ms-lease-time"] == "5"
    share.server.move_clock(6)
    assert share.share("GET")["x-ms-lease-state"] == "broken"
    share.acquire(None)
    found = share.share("GET")
    assert (found["x-ms-lease-duration"], found["x-ms-lease-status"]) == ("infinite", "locked")
    assert share.lease("break", {}, None)["x-ms-lease-time"] == "0"


@pytest.mark.parametrize(
    ("action", "headers"),
    [
        ("acquire", {"x-ms-lease-duration": "14"}),
        ("acquire", {"x-ms-lease-duration": "61"}),
        ("acquire", {"x-ms-proposed-lease-id": "no guid"}),
        ("break", {"x-ms-lease-break-period": "61"}),
        ("steal", {}),
    ],
)
def test_values_outside_the_range_are_refused(share: ShareBox, action: str, headers: dict[str, str]) -> None:
    assert share.lease(action, headers, None).answer == (400, "InvalidHeaderValue")


def test_a_snapshot_has_a_lease_of_its_own(share: ShareBox) -> None:
    snapshot = {"sharesnapshot": share.snapshot()}
    of_share = share.acquire(None)
    of_snapshot = share.acquire(None, query=snapshot)
    assert share.share("GET", query=snapshot)["x-ms-lease-state"] == "leased"
    for query, lease_id in (({}, of_snapshot), (snapshot, of_share)):
        assert share.share("GET", headers={"x-ms-lease-id": lease_id}, query=query).answer == WRONG
        assert share.share("DELETE", headers={"x-ms-lease-id": lease_id}, query=query).answer == WRONG
    assert share.share("DELETE", query=snapshot).answer == MISSING
    assert share.share("DELETE", headers={"x-ms-lease-id": of_snapshot}, query=snapshot).status == 202


def test_a_leased_snapshot_needs_the_stronger_word(share: ShareBox) -> None:
    snapshot = {"sharesnapshot": share.snapshot()}
    of_share = share.acquire(None)
    share.acquire(None, query=snapshot)
    held = {"x-ms-lease-id": of_share}
    assert share.share("DELETE", headers={"x-ms-delete-snapshots": "include-leased"}).answer == MISSING
    assert share.share("DELETE", headers={"x-ms-delete-snapshots": "include", **held}).answer == MISSING
    assert share.share("DELETE", headers={"x-ms-delete-snapshots": "include-leased", **held}).status == 202
