"""Lease File: every action in every state, and every operation on a file with the right, a wrong and no lease id."""

import uuid
from collections.abc import Callable

import pytest

from tests.rest.client import Reply
from tests.rest.files import ShareBox

A, B = str(uuid.uuid4()), str(uuid.uuid4())
STATES = ("available", "leased", "broken")
Ask = Callable[[ShareBox, dict[str, str]], Reply]


def bring(share: ShareBox, state: str) -> None:
    """A file with the lease A in this state."""
    share.fill(b"content")
    if state != "available":
        assert share.lease("acquire", {"x-ms-proposed-lease-id": A}).status == 201
    if state == "broken":
        assert share.lease("break").status == 202
    assert share.head()["x-ms-lease-state"] == state


PRESENT = (409, "LeaseAlreadyPresent")
ABSENT = (409, "LeaseNotPresentWithLeaseOperation")
MISMATCH = (409, "LeaseIdMismatchWithLeaseOperation")
MADE, OK, GONE = (201, None), (200, None), (202, None)

# fmt: off
ACTIONS = {
    #                available  leased    broken
    "acquire":     ( MADE,      PRESENT,  MADE     ),
    "acquire A":   ( MADE,      MADE,     MADE     ),
    "acquire B":   ( MADE,      PRESENT,  MADE     ),
    "change A B":  ( ABSENT,    OK,       ABSENT   ),
    "change B A":  ( ABSENT,    OK,       ABSENT   ),
    "release A":   ( MISMATCH,  OK,       OK       ),
    "release B":   ( MISMATCH,  MISMATCH, MISMATCH ),
    "break":       ( ABSENT,    GONE,     GONE     ),
    "break A":     ( ABSENT,    GONE,     GONE     ),
    "break B":     ( ABSENT,    MISMATCH, MISMATCH ),
}
# fmt: on


def act(share: ShareBox, action: str) -> Reply:
    word, *ids = action.split()
    sent = [{"A": A, "B": B}[each] for each in ids]
    if word == "acquire":
        return share.lease(word, {"x-ms-proposed-lease-id": sent[0]} if sent else {})
    proposed = {"x-ms-proposed-lease-id": sent[1]} if len(sent) > 1 else {}
    return share.lease(word, ({"x-ms-lease-id": sent[0]} if sent else {}) | proposed)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_in_every_state(share: ShareBox, action: str, state: str) -> None:
    bring(share, state)
    before = share.head()
    reply = act(share, action)
    assert reply.answer == ACTIONS[action][STATES.index(state)]
    if reply.status < 300:
        assert (reply["ETag"], reply["Last-Modified"]) == (before["ETag"], before["Last-Modified"])
        assert ("x-ms-lease-id" in reply) == (action.split()[0] in ("acquire", "change"))
        if action.startswith("break"):
            assert reply["x-ms-lease-time"] == "0"
        after = share.head()
        assert after["x-ms-file-change-time"] == before["x-ms-file-change-time"]
        expected = {"acquire": "leased", "change": "leased", "release": "available", "break": "broken"}
        assert after["x-ms-lease-state"] == expected[action.split()[0]]
    elif reply.answer == ABSENT:
        assert (reply.detail("Message") or "").startswith("There is currently no lease on the file.\n")


@pytest.mark.parametrize(
    ("action", "headers"),
    [
        ("acquire", {"x-ms-lease-duration": "15"}),
        ("acquire", {"x-ms-proposed-lease-id": "no guid"}),
        ("renew", {"x-ms-lease-id": A}),
        ("break", {"x-ms-lease-break-period": "5"}),
        ("steal", {}),
    ],
)
def test_what_files_do_not_have_is_refused(share: ShareBox, action: str, headers: dict[str, str]) -> None:
    share.put()
    assert share.lease(action, headers).answer == (400, "InvalidHeaderValue")


def test_a_lease_is_shown_while_it_lasts(share: ShareBox) -> None:
    share.put()
    share.acquire()
    for reply in (share.head(), share.get()):
        assert (reply["x-ms-lease-status"], reply["x-ms-lease-duration"]) == ("locked", "infinite")
    share.lease("break")
    head = share.head()
    assert (head["x-ms-lease-status"], head["x-ms-lease-state"], "x-ms-lease-duration" in head) == ("unlocked", "broken", False)


MISSING = (412, "LeaseIdMissing")
WRONG = (412, "LeaseIdMismatchWithFileOperation")
NONE = (412, "LeaseNotPresentWithFileOperation")
MESSAGES = {
    MISSING: "There is currently a lease on the file and no lease ID was specified in the request.",
    WRONG: "The lease ID specified did not match the lease ID for the file.",
    NONE: "There is currently no lease on the file.",
}

# fmt: off
READS: dict[str, Ask] = {
    "GetFile":           lambda s, h: s.get(headers=h),
    "GetFileMetadata":   lambda s, h: s.file("GET", comp="metadata", headers=h),
    "ListRanges":        lambda s, h: s.file("GET", comp="rangelist", headers=h),
}
WRITES: dict[str, Ask] = {
    "PutRange":          lambda s, h: s.write(b"x", headers=h),
    "ClearRange":        lambda s, h: s.clear(0, 1, headers=h),
    "SetFileProperties": lambda s, h: s.file("PUT", comp="properties", headers=h),
    "SetFileMetadata":   lambda s, h: s.file("PUT", comp="metadata", headers=h),
    "CreateFile":        lambda s, h: s.put(headers=h),
    "DeleteFile":        lambda s, h: s.file("DELETE", headers=h),
}
#          available  leased   broken
USES = {
    "A": ( NONE,      None,    NONE ),
    "B": ( NONE,      WRONG,   NONE ),
    "":  ( None,      MISSING, None ),
}
# fmt: on


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("sent", USES)
@pytest.mark.parametrize("operation", [*READS, *WRITES])
def test_every_operation_with_every_id(share: ShareBox, operation: str, sent: str, state: str) -> None:
    bring(share, state)
    headers = {"x-ms-lease-id": {"A": A, "B": B}[sent]} if sent else {}
    reply = (READS | WRITES)[operation](share, headers)
    expected = USES[sent][STATES.index(state)]
    if expected is None or (expected == MISSING and operation in READS):
        assert reply.status < 300
    else:
        assert reply.answer == expected
        assert (reply.detail("Message") or "").startswith(MESSAGES[expected])


def test_overwriting_keeps_the_lease(share: ShareBox) -> None:
    share.put()
    lease_id = share.acquire()
    assert share.put(size=5, headers={"x-ms-lease-id": lease_id}).status == 201
    assert share.head()["x-ms-lease-state"] == "leased"
    assert share.write(b"x").answer == MISSING


def test_a_lease_id_for_a_file_that_is_not_there_is_refused(share: ShareBox) -> None:
    assert share.put(headers={"x-ms-lease-id": A}).answer == NONE


def test_a_directory_is_not_leased(share: ShareBox) -> None:
    share.make("d")
    assert share.lease("acquire", name="d").answer == (409, "ResourceTypeMismatch")
    assert share.lease("acquire", name="no").answer == (404, "ResourceNotFound")
