"""Snapshot Blob: which properties a snapshot has."""

import re

import pytest

from tests.rest.client import Box

MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z")


def test_a_snapshot_keeps_the_blobs_etag_unless_it_gets_metadata_of_its_own(box: Box) -> None:
    blob = box.put(headers={"x-ms-meta-a": "1"})
    plain = box.blob("PUT", comp="snapshot")
    assert plain.status == 201
    assert MOMENT.fullmatch(plain["x-ms-snapshot"])
    assert (plain["ETag"], plain["Last-Modified"]) == (blob["ETag"], blob["Last-Modified"])
    assert plain["x-ms-request-server-encrypted"] == "true"
    changed = box.blob("PUT", comp="snapshot", headers={"x-ms-meta-b": "2"})
    assert changed["ETag"] != blob["ETag"]
    assert changed["x-ms-snapshot"] > plain["x-ms-snapshot"]
    assert box.head(query={"snapshot": plain["x-ms-snapshot"]}).metadata == {"a": "1"}
    with_metadata = box.head(query={"snapshot": changed["x-ms-snapshot"]})
    assert (with_metadata.metadata, with_metadata["ETag"]) == ({"b": "2"}, changed["ETag"])
    assert box.head()["ETag"] == blob["ETag"]
    assert box.head().metadata == {"a": "1"}


def test_a_snapshot_takes_properties_tags_and_blocks_and_no_lease(box: Box) -> None:
    box.put_block("AAAA", b"content")
    box.put_block_list("<Latest>AAAA</Latest>", headers={"x-ms-blob-content-type": "a/b", "x-ms-tags": "k=v"})
    box.acquire(-1)
    moment = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    reply = box.get(query={"snapshot": moment})
    assert (reply.body, reply["Content-Type"], reply["x-ms-tag-count"]) == (b"content", "a/b", "1")
    assert not [name for name, _ in reply.headers if name.startswith("x-ms-lease")]
    blocks = box.blob("GET", comp="blocklist", query={"snapshot": moment})
    assert [node.text for node in blocks.xml.iter("Name")] == ["AAAA"]


def test_a_snapshot_does_not_change_with_its_blob(box: Box) -> None:
    # contract G3
    box.put(body=b"old")
    moment = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    box.blob("PUT", comp="metadata", headers={"x-ms-meta-later": "1"})
    box.put(body=b"new")
    reply = box.get(query={"snapshot": moment})
    assert (reply.body, reply.metadata) == (b"old", {})


def test_ranges_of_a_snapshot_can_be_read(box: Box) -> None:
    box.put(body=bytes(range(256)) * 1000)
    moment = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    box.put(body=b"")
    assert box.get(headers={"Range": "bytes=1000-1003"}, query={"snapshot": moment}).body == bytes([232, 233, 234, 235])


def test_snapshots_of_one_blob_are_all_different(box: Box) -> None:
    box.put()
    moments = [box.blob("PUT", comp="snapshot")["x-ms-snapshot"] for _ in range(10)]
    assert moments == sorted(set(moments))


def test_what_does_not_exist_has_no_snapshot(box: Box) -> None:
    assert box.blob("PUT", comp="snapshot").answer == (404, "BlobNotFound")
    box.put_block("AAAA")
    assert box.blob("PUT", comp="snapshot").answer == (404, "BlobNotFound")


@pytest.mark.parametrize("headers", [{"x-ms-meta-has-dash": "1"}, {"x-ms-meta-a": "v" * 8192}])
def test_a_snapshot_with_bad_metadata_is_not_taken(box: Box, headers: dict[str, str]) -> None:
    box.put()
    assert box.blob("PUT", comp="snapshot", headers=headers).status == 400
    assert box.names({"include": "snapshots"}) == ["blob"]


def test_a_lease_does_not_forbid_snapshots_but_a_wrong_id_does(box: Box) -> None:
    # contract L5
    box.put()
    lease_id = box.acquire(-1)
    other = "11111111-1111-1111-1111-111111111111"
    assert box.blob("PUT", comp="snapshot").status == 201
    assert box.blob("PUT", comp="snapshot", headers={"x-ms-lease-id": lease_id}).status == 201
    reply = box.blob("PUT", comp="snapshot", headers={"x-ms-lease-id": other})
    assert reply.answer == (412, "LeaseIdMismatchWithBlobOperation")
