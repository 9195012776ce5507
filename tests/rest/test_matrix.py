"""Every built blob operation × conditional headers × lease states, against what the reference says (`expectations.py`)."""

from dataclasses import astuple, dataclass, field
from itertools import product
from typing import get_args

import pytest

from tests.rest import expectations
from tests.rest.client import Box, Reply
from tests.rest.expectations import Asked, Family, LeaseColumn, Refusal, Sent, State, Truth
from verditer.rest.operation import Level
from verditer.rest.operations.blob import OPERATIONS

HOLDER = "aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa"
OTHER = "bbbbbbbb-0000-0000-0000-bbbbbbbbbbbb"
TAGGED = {"x-ms-tags": "k=v"}


@dataclass(frozen=True)
class Row:
    """How an operation is sent, and what the reference says about it: B3 (ETag, conditions) and the lease column."""

    method: str
    comp: str
    family: Family
    lease: LeaseColumn
    success: int
    needs_blob: bool = True
    returns_etag: bool = True
    changes_etag: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def send(self, box: Box, name: str, headers: dict[str, str]) -> Reply:
        return box.blob(self.method, name, self.comp, self.headers | headers, self.body, query=self.query)


ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": HOLDER}
# fmt: off
ROWS = {  # contract B3, L5
    "GetBlob":           Row("GET",    "",           "read",      "R", 200),
    "GetBlobProperties": Row("HEAD",   "",           "read",      "R", 200),
    "GetBlobMetadata":   Row("GET",    "metadata",   "read",      "R", 200),
    "SetBlobMetadata":   Row("PUT",    "metadata",   "update",    "W", 200, changes_etag=True),
    "SetBlobProperties": Row("PUT",    "properties", "update",    "W", 200, changes_etag=True),
    "SnapshotBlob":      Row("PUT",    "snapshot",   "update",    "R", 201),
    "DeleteBlob":        Row("DELETE", "",           "update",    "W", 202, returns_etag=False),
    "LeaseBlob":         Row("PUT",    "lease",      "update",    "-", 201, headers=ACQUIRE),
    "BreakBlobLease":    Row("PUT",    "lease",      "update",    "-", 202, headers={"x-ms-lease-action": "break"}),
    "PutBlob":           Row("PUT",    "",           "create",    "W", 201, needs_blob=False, changes_etag=True,
                             headers={"x-ms-blob-type": "BlockBlob"} | TAGGED, body=b"new"),
    "PutBlock":          Row("PUT",    "block",      "none",      "W", 201, needs_blob=False, returns_etag=False,
                             query={"blockid": "AAAA"}, body=b"block"),
    "PutBlockList":      Row("PUT",    "blocklist",  "create",    "W", 201, needs_blob=False, changes_etag=True,
                             headers=TAGGED, body=b"<BlockList />"),
    "GetBlockList":      Row("GET",    "blocklist",  "tags only", "R", 200),
}
# fmt: on
# Page and append blobs, copies, versions, tags and tiers start from another blob than this matrix does.
# fmt: off
ELSEWHERE = {
    "GetAccountInformation",
    "PutAppendBlob", "AppendBlock", "AppendBlockFromUrl", "SealAppendBlob",
    "PutPageBlob", "PutPage", "PutPageFromUrl", "ClearPages", "GetPageRanges", "GetPageRangesDiff", "ResizePageBlob",
    "UpdateSequenceNumber", "IncrementalCopyBlob",
    "CopyBlob", "CopyBlobFromUrl", "AbortCopyBlob", "PutBlobFromUrl", "PutBlockFromUrl",
    "DeleteBlobVersion", "PermanentDeleteBlob", "UndeleteBlob", "SetBlobExpiry",
    "SetBlobImmutabilityPolicy", "DeleteBlobImmutabilityPolicy", "SetBlobLegalHold",
    "GetBlobTags", "SetBlobTags", "SetBlobTier", "QueryBlobContents",
}
# fmt: on
BUILT = {op.name for op in OPERATIONS if op.is_built and op.route.level is Level.BLOB}
OPERATION = pytest.mark.parametrize("operation", ROWS)

TRUTHS: tuple[Truth | None, ...] = (None, "met", "unmet")
STARS: tuple[Truth | None, ...] = (None, "met", "unmet", "star")
EVERY_ASKED = [Asked(*values) for values in product(STARS, STARS, TRUTHS, TRUTHS, (None,))]
EVERY_ASKED += [Asked(*values, tags) for values in product(TRUTHS, TRUTHS, (None,), (None,)) for tags in ("met", "unmet")]
FEW_ASKED = [Asked(), Asked("met"), Asked("unmet"), Asked(None, "star"), Asked(None, None, "unmet"), Asked("met", None, "met")]


def headers_of(box: Box, asked: Asked, etag: str) -> dict[str, str]:
    past, future = box.client.date(-3600), box.client.date(3600)
    spelled: dict[str, dict[Truth, str]] = {
        "If-Match": {"met": etag, "unmet": '"0x8D00000000"', "star": "*"},
        "If-None-Match": {"met": '"0x8D00000000"', "unmet": etag, "star": "*"},
        "If-Modified-Since": {"met": past, "unmet": future},
        "If-Unmodified-Since": {"met": future, "unmet": past},
        "x-ms-if-tags": {"met": "k = 'v'", "unmet": "k = 'w'"},
    }
    return {name: spelled[name][truth] for name, truth in zip(spelled, astuple(asked), strict=True) if truth is not None}


def lease_outcome(operation: str, state: State) -> Refusal | None:
    """What Lease Blob itself makes of the state, once the conditions are met (reference 3.3)."""
    if operation == "LeaseBlob" and state == "breaking":
        return 409, "LeaseIsBreakingAndCannotBeAcquired"
    if operation == "BreakBlobLease" and state == "available":
        return 409, "LeaseNotPresentWithLeaseOperation"
    return None


def check(box: Box, row: Row, name: str, reply: Reply, expected: Refusal | None, etag: str) -> str | None:
    """What is wrong with the answer, or with the blob afterwards."""
    if reply.answer != (expected or (row.success, None)):
        return f"answered {reply.answer}, expected {expected or row.success}"
    if expected is None and ("ETag" in reply) != row.returns_etag:
        return f"ETag in the answer: {reply.header('ETag')}"
    after = box.head(name)
    if expected is None and row.method == "DELETE":
        return None if after.status == 404 else "the blob is still there"
    changed = after["ETag"] != etag
    if changed != (expected is None and row.changes_etag):
        return f"the ETag {'changed' if changed else 'stayed'}"  # contract G4, G7
    if expected is None and row.returns_etag and reply["ETag"] != after["ETag"]:
        return "another ETag was answered than the blob has"
    return None


def test_every_built_blob_operation_has_a_row_here() -> None:
    assert set(ROWS) <= BUILT
    assert BUILT - set(ROWS) - ELSEWHERE == set(), "give the new operation a row above, or a matrix of its own and a place here"


@OPERATION
def test_conditions_decide_as_the_reference_says(box: Box, operation: str) -> None:
    # contract B1, B2, B3
    row = ROWS[operation]
    wrong = []
    etag = ""
    for asked in EVERY_ASKED:
        if not etag:
            etag = box.put(headers=TAGGED)["ETag"]
            if operation == "BreakBlobLease":
                box.acquire(-1)
        expected = expectations.illegal(row.family, asked) or expectations.unmet(row.family, asked)
        reply = row.send(box, "blob", headers_of(box, asked, etag))
        problem = check(box, row, "blob", reply, expected, etag)
        if problem:
            wrong.append((asked, problem))
        if expected is None:
            etag = ""
            box.lease("break", {"x-ms-lease-break-period": "0"})
            box.blob("DELETE", headers={"x-ms-delete-snapshots": "include"})
    assert wrong == []


@OPERATION
def test_conditions_on_what_does_not_exist_decide_as_the_reference_says(box: Box, operation: str) -> None:
    # contract B2, race E1
    row = ROWS[operation]
    lone = [asked for asked in EVERY_ASKED if sum(value is not None for value in astuple(asked)) <= 1]
    cases: list[tuple[Asked, dict[str, str]]] = [(asked, {}) for asked in lone]
    cases.append((Asked(), {"x-ms-lease-id": OTHER}))
    wrong = []
    for number, (asked, lease) in enumerate(cases):
        expected = expectations.illegal(row.family, asked) or expectations.missing(
            row.family, asked, needs_blob=row.needs_blob, lease_id=bool(lease)
        )
        reply = row.send(box, f"absent{number}", headers_of(box, asked, '"0x8D11111111"') | lease)
        if reply.answer != (expected or (row.success, None)):
            wrong.append((asked, lease, reply.answer, expected))
    assert wrong == []
    if row.needs_blob:
        assert box.names({"include": "uncommittedblobs"}) == []  # contract G7


LEASE_CASES = [
    (operation, state, sent)
    for operation, state, sent in product(ROWS, get_args(State), get_args(Sent))
    if ROWS[operation].lease != "-" or sent == "nothing"  # the id of a lease operation is part of it: test_leases.py
]


@pytest.mark.parametrize(("operation", "state", "sent"), LEASE_CASES)
def test_the_lease_decides_before_the_conditions(box: Box, operation: str, state: State, sent: Sent) -> None:
    # contract L2, L3, L4, L5
    row = ROWS[operation]
    etags = {}
    for number in range(len(FEW_ASKED)):
        etags[f"b{number}"] = box.put(f"b{number}", headers=TAGGED)["ETag"]
        if state != "available":
            box.acquire(15 if state == "expired" else -1, f"b{number}", HOLDER)
        if state in ("breaking", "broken"):
            box.lease("break", {"x-ms-lease-break-period": "60" if state == "breaking" else "0"}, f"b{number}")
    if state == "expired":
        box.server.move_clock(15)
    lease: dict[str, str] = {"holder": {"x-ms-lease-id": HOLDER}, "other": {"x-ms-lease-id": OTHER}, "nothing": {}}[sent]
    wrong = []
    for (name, etag), asked in zip(etags.items(), FEW_ASKED, strict=True):
        expected = (
            expectations.illegal(row.family, asked)
            or expectations.leased(row.lease, state, sent)
            or expectations.unmet(row.family, asked, holder=sent == "holder" and row.lease == "W")
            or lease_outcome(operation, state)
        )
        reply = row.send(box, name, headers_of(box, asked, etag) | lease)
        problem = check(box, row, name, reply, expected, etag)
        if problem:
            wrong.append((asked, problem))
        # A write without an id forgets the lease that ended: reference 3.4.
        forgotten = expected is None and row.changes_etag and state in ("broken", "expired")
        if forgotten and box.head(name)["x-ms-lease-state"] != "available":
            wrong.append((asked, "the ended lease is still remembered"))
    assert wrong == []
