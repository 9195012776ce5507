"""Incremental Copy Blob: snapshots of a page blob become snapshots of the copy."""

from tests.rest.client import Box, Reply
from tests.rest.copies import url
from tests.rest.history import protect
from tests.rest.history_fixtures import server  # noqa: F401
from tests.rest.pages import PAGE, create, ranges_in, snapshot, write

REFUSED = (409, "OperationNotAllowedOnIncrementalCopyBlob")


def copy_incrementally(box: Box, moment: str, name: str = "copy", source: str = "blob", **headers: str) -> Reply:
    sent = {"x-ms-copy-source": url(box, source, f"snapshot={moment}" if moment else "")}
    return box.blob("PUT", name, "incrementalcopy", sent | {name.replace("_", "-"): value for name, value in headers.items()})


def test_each_copy_adds_a_snapshot(box: Box) -> None:
    create(box, 4 * PAGE)
    write(box, 0, b"a" * PAGE)
    first = snapshot(box)
    write(box, PAGE, b"b" * PAGE)
    second = snapshot(box)
    write(box, 0, b"c" * PAGE)
    reply = copy_incrementally(box, first)
    assert (reply.status, reply["x-ms-copy-status"]) == (202, "success")
    head = box.head("copy")
    assert (head["x-ms-incremental-copy"], head["x-ms-copy-status"]) == ("true", "success")
    one = head["x-ms-copy-destination-snapshot"]
    assert box.get("copy", query={"snapshot": one}).body == b"a" * PAGE + bytes(3 * PAGE)
    assert copy_incrementally(box, second).status == 202
    two = box.head("copy")["x-ms-copy-destination-snapshot"]
    assert box.get("copy", query={"snapshot": two}).body == b"a" * PAGE + b"b" * PAGE + bytes(2 * PAGE)
    assert box.get("copy", query={"snapshot": one}).body == b"a" * PAGE + bytes(3 * PAGE)
    listed = box.page({"include": "copy,snapshots", "prefix": "copy"}).xml
    assert [one.findtext("Snapshot") for one in listed.iter("Blob")] == [one, two, None]
    assert listed.findtext("Blobs/Blob/Properties/IncrementalCopy") == "true"
    assert ranges_in(box.blob("GET", "copy", "pagelist", query={"snapshot": two})) == [(0, 2 * PAGE)]


def test_the_copy_itself_is_neither_read_nor_written(box: Box) -> None:
    create(box, PAGE)
    assert copy_incrementally(box, snapshot(box)).status == 202
    assert box.get("copy").answer == REFUSED
    write_page = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
    assert box.blob("PUT", "copy", "page", write_page, b"x" * PAGE).answer == REFUSED
    assert box.blob("PUT", "copy", "metadata").answer == REFUSED
    assert box.put("copy").answer[0] == 409
    assert box.blob("DELETE", "copy", headers={"x-ms-delete-snapshots": "include"}).status == 202


def test_a_copy_continues_its_own_source_only(box: Box) -> None:
    create(box, PAGE)
    first, second = snapshot(box), snapshot(box)
    assert copy_incrementally(box, "").answer == (409, "IncrementalCopySourceMustBeSnapshot")
    assert copy_incrementally(box, second).status == 202
    assert copy_incrementally(box, first).answer == (409, "IncrementalCopyOfEarlierSnapshotNotAllowed")
    box.put("block")
    moment = box.blob("PUT", "block", "snapshot")["x-ms-snapshot"]
    assert copy_incrementally(box, moment, "other", "block").answer == (409, "InvalidSourceBlobType")
    assert copy_incrementally(box, first, "block").answer == (409, "InvalidBlobType")
    assert copy_incrementally(box, "2020-01-01T00:00:00.0000000Z").answer == (404, "CannotVerifyCopySource")


def test_a_source_has_to_be_named(box: Box) -> None:
    reply = box.blob("PUT", "copy", "incrementalcopy")
    assert (reply.answer, reply.detail("HeaderName")) == ((400, "MissingRequiredHeader"), "x-ms-copy-source")


def test_a_policy_of_the_container_protects_the_copy(box: Box) -> None:
    create(box, PAGE)
    moments = [snapshot(box) for _ in range(3)]
    assert copy_incrementally(box, moments[0]).status == 202
    assert protect(box, immutability_days=2)[0] == 200
    assert copy_incrementally(box, moments[1]).answer == (409, "BlobImmutableDueToPolicy")
    assert protect(box, immutability_days=0, legal_holds=["case"])[0] == 200
    assert copy_incrementally(box, moments[1]).answer == (409, "BlobImmutableDueToLegalHold")
    assert protect(box, legal_holds=[])[0] == 200
    assert copy_incrementally(box, moments[1]).status == 202


def test_conditions_have_the_errors_of_the_recordings(box: Box) -> None:
    create(box, PAGE)
    moments = [snapshot(box) for _ in range(2)]
    assert copy_incrementally(box, moments[0]).status == 202
    etag = box.head("copy")["ETag"]
    assert copy_incrementally(box, moments[1], If_Match='"0x1"').answer == (412, "TargetConditionNotMet")
    assert copy_incrementally(box, moments[1], If_None_Match=etag).answer == (412, "ConditionNotMet")
    assert copy_incrementally(box, moments[1], If_Modified_Since=box.client.date(60)).answer == (412, "ConditionNotMet")
    assert copy_incrementally(box, moments[1], If_Unmodified_Since=box.client.date(-60)).answer == (412, "ConditionNotMet")
    assert copy_incrementally(box, moments[1], If_Match=etag).status == 202


def test_a_lease_of_the_copy_is_not_asked_for_and_stays(box: Box) -> None:
    """The operation has no lease header (reference 1.6)."""
    create(box, PAGE)
    moments = [snapshot(box) for _ in range(3)]
    assert copy_incrementally(box, moments[0]).status == 202
    held = box.acquire(-1, "copy")
    assert copy_incrementally(box, moments[1]).status == 202
    assert box.head("copy")["x-ms-lease-state"] == "leased"
    assert copy_incrementally(box, moments[2], x_ms_lease_id=held).status == 202
    assert box.head("copy")["x-ms-lease-state"] == "leased"
