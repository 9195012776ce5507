"""Delete Blob, with and without snapshots."""

import pytest

from tests.rest.client import Box


def snapshot(box: Box) -> str:
    return box.blob("PUT", comp="snapshot")["x-ms-snapshot"]


def test_a_deleted_blob_is_gone_at_once(box: Box) -> None:
    # contract G2
    box.put()
    reply = box.blob("DELETE")
    assert (reply.status, reply.body) == (202, b"")
    assert reply["x-ms-delete-type-permanent"] == "true"
    assert "ETag" not in reply
    assert box.get().answer == (404, "BlobNotFound")
    assert box.names() == []
    assert box.blob("DELETE").answer == (404, "BlobNotFound")


def test_a_blob_with_snapshots_is_not_deleted_by_accident(box: Box) -> None:
    box.put()
    moment = snapshot(box)
    assert box.blob("DELETE").answer == (409, "SnapshotsPresent")
    assert box.get().status == 200
    assert box.get(query={"snapshot": moment}).status == 200


def test_include_deletes_everything_and_only_deletes_the_snapshots(box: Box) -> None:
    for choice, base_status in (("include", 404), ("only", 200)):
        box.put()
        moments = [snapshot(box), snapshot(box)]
        assert box.blob("DELETE", headers={"x-ms-delete-snapshots": choice}).status == 202
        assert [box.get(query={"snapshot": moment}).status for moment in moments] == [404, 404]
        assert box.get().status == base_status


def test_one_snapshot_can_be_deleted_alone(box: Box) -> None:
    box.put()
    first, second = snapshot(box), snapshot(box)
    assert box.blob("DELETE", query={"snapshot": first}).status == 202
    assert box.get(query={"snapshot": first}).answer == (404, "BlobNotFound")
    assert box.get(query={"snapshot": second}).status == 200
    assert box.blob("DELETE", query={"snapshot": first}).answer == (404, "BlobNotFound")


def test_a_snapshot_has_no_snapshots_to_delete(box: Box) -> None:
    box.put()
    reply = box.blob("DELETE", headers={"x-ms-delete-snapshots": "include"}, query={"snapshot": snapshot(box)})
    assert reply.answer == (400, "InvalidQueryParameterValue")


@pytest.mark.parametrize("choice", ["all", "true"])
def test_a_choice_that_does_not_exist_is_refused(box: Box, choice: str) -> None:
    box.put()
    assert box.blob("DELETE", headers={"x-ms-delete-snapshots": choice}).answer == (400, "InvalidHeaderValue")
    assert box.get().status == 200


def test_a_leased_blob_goes_with_its_lease(box: Box) -> None:
    box.put()
    lease_id = box.acquire(-1)
    assert box.blob("DELETE").answer == (412, "LeaseIdMissing")
    assert box.blob("DELETE", headers={"x-ms-lease-id": lease_id}).status == 202
    box.put()
    assert box.head()["x-ms-lease-state"] == "available"


def test_uncommitted_blocks_can_be_deleted(box: Box) -> None:
    box.put_block("AAAA")
    assert box.blob("DELETE").status == 202
    assert box.blob("GET", comp="blocklist").answer == (404, "BlobNotFound")
    assert box.blob("DELETE").answer == (404, "BlobNotFound")


def test_deleting_a_blob_discards_its_uncommitted_blocks(box: Box) -> None:
    box.put()
    box.put_block("AAAA")
    box.blob("DELETE")
    assert box.blob("GET", comp="blocklist").answer == (404, "BlobNotFound")


def test_large_content_shared_with_a_snapshot_survives_the_base_blob(box: Box) -> None:
    body = b"shared" * 50_000
    box.put(body=body)
    moment = snapshot(box)
    box.put(body=b"other")
    box.blob("PUT", comp="snapshot")
    assert box.get(query={"snapshot": moment}).body == body


@pytest.mark.parametrize("query", [{"deletetype": "temporary"}, {"deletetype": "temporary", "versionid": "2020-01-01T00:00:00Z"}])
def test_a_way_to_delete_that_there_is_not_deletes_nothing(box: Box, query: dict[str, str]) -> None:
    # contract G7
    box.put()
    reply = box.blob("DELETE", query=query)
    assert (reply.answer, reply.detail("QueryParameterName")) == ((400, "InvalidQueryParameterValue"), "deletetype")
    assert box.get().body == b"hello"
