"""Blob versions: which operations create one; reading, listing, tagging and deleting; turning versioning on and off."""

from collections.abc import Iterator

import pytest

from tests.rest import pages
from tests.rest.client import Box
from tests.rest.copies import copy, url
from tests.rest.history import kinds, put_version, settle, settled, snapshot, states, undelete
from tests.rest.history_fixtures import server  # noqa: F401
from tests.rest.running import Running

UNKNOWN = "2020-01-01T00:00:00.0000000Z"


@pytest.fixture(autouse=True)
def versioning(server: Running) -> Iterator[None]:  # noqa: F811
    with settled(server, versioning=True):
        yield


def test_overwriting_keeps_the_old_state_as_a_version(box: Box) -> None:
    # contract G2, G4
    first = put_version(box, b"one")
    second = put_version(box, b"two")
    assert first < second
    reply = box.get()
    assert (reply.body, reply["x-ms-version-id"], reply["x-ms-is-current-version"]) == (b"two", second, "true")
    old = box.get(query={"versionid": first})
    assert (old.body, old["x-ms-version-id"]) == (b"one", first)
    assert "x-ms-is-current-version" not in old
    assert "x-ms-lease-state" not in old
    assert box.get(query={"versionid": second})["x-ms-is-current-version"] == "true"


@pytest.mark.parametrize("size", [5, 100_000])
def test_a_version_keeps_its_bytes_whatever_happens_to_the_blob(box: Box, size: int) -> None:
    versions = {put_version(box, bytes([number]) * size): bytes([number]) * size for number in range(4)}
    box.blob("DELETE")
    for version, body in versions.items():
        assert box.get(query={"versionid": version}).body == body


def test_committing_blocks_of_the_old_state_again_leaves_it_whole(box: Box) -> None:
    large = b"x" * 100_000
    box.put_block("YQ==", large)
    box.put_block("Yg==", b"b" * 70_000)
    box.put_block_list("<Latest>YQ==</Latest><Latest>Yg==</Latest>")
    reply = box.put_block_list("<Committed>YQ==</Committed>")
    box.blob("DELETE")
    box.blob("DELETE", query={"versionid": reply["x-ms-version-id"]})
    box.server.move_clock(3600)
    box.server.run(box.server.app.collector.collect())
    [kept] = states(box, "versions")
    assert box.get(query={"versionid": kept.id}).body == large + b"b" * 70_000


def test_metadata_makes_a_version_and_properties_do_not(box: Box) -> None:
    put_version(box, b"bytes", headers={"x-ms-meta-m": "old"})
    first = box.head()["x-ms-version-id"]
    box.blob("PUT", comp="properties", headers={"x-ms-blob-content-type": "text/plain"})
    box.acquire()
    box.lease("break", {"x-ms-lease-break-period": "0"})
    assert box.head()["x-ms-version-id"] == first
    reply = box.blob("PUT", comp="metadata", headers={"x-ms-meta-m": "new"})
    assert reply["x-ms-version-id"] > first
    old, new = box.get(query={"versionid": first}), box.get()
    assert (old.metadata, new.metadata) == ({"m": "old"}, {"m": "new"})
    assert old.body == new.body == b"bytes"
    assert old["Content-Type"] == "text/plain"


def test_a_snapshot_begins_a_new_version_and_changes_no_etag(box: Box) -> None:
    put_version(box, b"bytes")
    before = box.head()
    reply = box.blob("PUT", comp="snapshot")
    assert reply["x-ms-version-id"] > before["x-ms-version-id"]
    assert box.head()["ETag"] == reply["ETag"] == before["ETag"]
    assert kinds(box) == ["snapshot", "version", "blob"]
    for query in ({}, {"snapshot": reply["x-ms-snapshot"]}, {"versionid": before["x-ms-version-id"]}):
        assert box.get(query=query).body == b"bytes"
    assert "x-ms-version-id" not in box.head(query={"snapshot": reply["x-ms-snapshot"]})


def test_pages_and_appended_blocks_change_the_current_version(box: Box) -> None:
    pages.create(box, 1024)
    first = box.head()["x-ms-version-id"]
    pages.write(box, 0, b"a" * 512)
    assert box.head()["x-ms-version-id"] == first
    box.blob("PUT", comp="metadata", headers={"x-ms-meta-m": "1"})
    pages.write(box, 0, b"b" * 512)
    assert box.get(query={"versionid": first}).body == b"a" * 512 + bytes(512)
    assert box.get().body == b"b" * 512 + bytes(512)
    box.blob("PUT", "log", headers={"x-ms-blob-type": "AppendBlob"})
    box.blob("PUT", "log", "appendblock", body=b"one")
    box.blob("PUT", "log", headers={"x-ms-blob-type": "AppendBlob"})
    [old] = [state.id for state in states(box, "versions", prefix="log") if state.kind == "version"]
    assert box.get("log", query={"versionid": old}).body == b"one"


def test_deleting_the_blob_leaves_its_versions(box: Box) -> None:
    versions = [put_version(box, b"one"), put_version(box, b"two")]
    reply = box.blob("DELETE")
    assert (reply.status, reply["x-ms-delete-type-permanent"]) == (202, "false")
    assert box.get().answer == (404, "BlobNotFound")
    assert box.blob("DELETE").answer == (404, "BlobNotFound")
    assert box.names() == []
    assert [state.id for state in states(box, "versions")] == versions
    assert undelete(box).status == 200  # nothing is soft-deleted, and no version is promoted
    assert box.get().answer == (404, "BlobNotFound")


def test_deleting_a_version_removes_it_and_never_the_current_one(box: Box) -> None:
    first, second = put_version(box, b"one"), put_version(box, b"two")
    assert box.blob("DELETE", query={"versionid": second}).answer == (403, "OperationNotAllowedOnRootBlob")
    reply = box.blob("DELETE", query={"versionid": first})
    assert (reply.status, reply["x-ms-delete-type-permanent"]) == (202, "true")
    assert box.get(query={"versionid": first}).answer == (404, "BlobNotFound")
    assert box.blob("DELETE", query={"versionid": first}).answer == (404, "BlobNotFound")
    assert box.get().body == b"two"


def test_with_soft_delete_a_deleted_version_can_come_back(box: Box) -> None:
    settle(box.server, blob_soft_delete_days=1)
    first = put_version(box, b"one")
    put_version(box, b"two")
    assert box.blob("DELETE", query={"versionid": first})["x-ms-delete-type-permanent"] == "false"
    assert box.get(query={"versionid": first}).answer == (404, "BlobNotFound")
    assert kinds(box, "versions") == ["blob"]
    assert kinds(box, "versions,deleted") == ["deleted version", "blob"]
    assert undelete(box).status == 200
    assert box.get(query={"versionid": first}).body == b"one"
    assert box.get().body == b"two"


def test_overwriting_with_both_leaves_no_soft_deleted_snapshot(box: Box) -> None:
    settle(box.server, blob_soft_delete_days=1)
    put_version(box, b"one")
    put_version(box, b"two")
    assert kinds(box) == ["version", "blob"]


@pytest.mark.parametrize(
    ("include", "expected"),
    [
        ("", ["blob"]),
        ("versions", ["version", "version", "blob", "version"]),
        ("snapshots", ["snapshot", "blob"]),
        ("snapshots,versions", ["snapshot", "version", "version", "blob", "version"]),
        ("deletedwithversions", ["blob", "versions only"]),
        ("versions,deletedwithversions", ["version", "version", "blob", "version", "versions only"]),
    ],
)
def test_a_listing_shows_what_it_was_asked_for(box: Box, include: str, expected: list[str]) -> None:
    put_version(box, b"one", "a")
    snapshot(box, "a")  # which creates a version
    put_version(box, b"two", "a")
    put_version(box, b"gone", "b")
    box.blob("DELETE", "b")
    assert kinds(box, include) == expected


@pytest.mark.parametrize("delimiter", ["", "/"])
def test_pages_of_one_show_the_same_as_one_page(box: Box, delimiter: str) -> None:
    settle(box.server, blob_soft_delete_days=1)
    query = {"delimiter": delimiter} if delimiter else {}
    include = "versions,deleted,deletedwithversions,uncommittedblobs" + ("" if delimiter else ",snapshots")
    for name in ("a", "a0", "dir/b", "z"):
        versions = [put_version(box, bytes(size), name) for size in range(1, 5)]
        box.blob("DELETE", name, query={"versionid": versions[0]})
        if name != "a0":
            snapshot(box, name)
        if name == "a":
            box.blob("DELETE", name, query={"snapshot": snapshot(box, name)})
    box.blob("DELETE", "a0")
    box.put_block("YQ==", name="a0")
    whole = states(box, include, **query)
    assert len(whole) > 10
    assert states(box, include, maxresults="1", **query) == whole
    assert states(box, include, maxresults="3", **query) == whole
    assert len(set(whole)) == len(whole)


def test_versions_are_tagged_and_found_only_as_long_as_they_are_current(box: Box) -> None:
    first = put_version(box, b"one", headers={"x-ms-tags": "colour=red"})
    put_version(box, b"two", headers={"x-ms-tags": "colour=blue"})
    tags = b"<Tags><TagSet><Tag><Key>colour</Key><Value>green</Value></Tag></TagSet></Tags>"
    assert box.blob("PUT", comp="tags", body=tags, query={"versionid": first}).status == 204
    assert b"green" in box.blob("GET", comp="tags", query={"versionid": first}).body
    assert b"blue" in box.blob("GET", comp="tags").body

    def found(value: str) -> int:
        reply = box.container("GET", "blobs", query={"where": f"colour='{value}'"})
        return len(reply.xml.find("Blobs") or ())

    assert [found(value) for value in ("red", "green", "blue")] == [0, 0, 1]
    box.blob("DELETE")
    assert found("blue") == 0


def test_conditions_look_at_the_version_that_is_named(box: Box) -> None:
    # contract B2
    first = put_version(box, b"one")
    etag = box.head()["ETag"]
    put_version(box, b"two")
    named = {"versionid": first}
    assert box.get(headers={"If-Match": etag}, query=named).body == b"one"
    assert box.get(headers={"If-None-Match": etag}, query=named).status == 304
    assert box.blob("DELETE", headers={"If-Match": '"0x1"'}, query=named).answer == (412, "ConditionNotMet")
    assert box.blob("DELETE", headers={"If-Match": etag}, query=named).status == 202


def test_a_version_cannot_be_written_and_unknown_ones_are_not_found(box: Box) -> None:
    # contract G7
    first = put_version(box, b"one")
    put_version(box, b"two")
    assert box.blob("PUT", comp="metadata", query={"versionid": first}).answer == (400, "InvalidQueryParameterValue")
    assert box.blob("PUT", comp="snapshot", query={"versionid": first}).answer == (400, "InvalidQueryParameterValue")
    assert box.get(query={"versionid": UNKNOWN}).answer == (404, "BlobNotFound")
    assert box.get(query={"versionid": "yesterday"}).answer == (400, "InvalidQueryParameterValue")
    both = {"versionid": first, "snapshot": first}
    assert box.get(query=both).answer == (400, "MutuallyExclusiveQueryParameters")


def test_all_versions_are_of_one_type(box: Box) -> None:
    put_version(box, b"one")
    assert pages.create(box, 512).answer == (409, "InvalidBlobType")
    box.blob("DELETE")
    assert pages.create(box, 512).answer == (409, "InvalidBlobType")
    assert box.put_block("YQ==").status == 201


@pytest.mark.parametrize(("letters", "status"), [("d", 403), ("y", 403), ("x", 202)])
def test_deleting_a_version_asks_for_its_own_permission(box: Box, letters: str, status: int) -> None:
    first = put_version(box, b"one")
    put_version(box, b"two")
    assert box.blob("DELETE", query={"versionid": first}, auth=box.sas(letters)).status == status


def test_a_lease_stays_with_the_blob_and_not_with_its_versions(box: Box) -> None:
    # contract L3, L7
    first = put_version(box, b"one")
    lease = {"x-ms-lease-id": box.acquire(-1)}
    assert box.put(body=b"two").answer == (412, "LeaseIdMissing")
    put_version(box, b"two", headers=lease)
    assert box.head()["x-ms-lease-state"] == "leased"
    assert box.blob("DELETE", query={"versionid": first}).status == 202


def test_versioning_turned_on_keeps_what_was_there_before(box: Box) -> None:
    settle(box.server, versioning=False)
    assert "x-ms-version-id" not in box.put(body=b"before")
    settle(box.server, versioning=True)
    put_version(box, b"after")
    old, current = states(box, "versions")
    assert (old.kind, current.kind) == ("version", "blob")
    assert box.get(query={"versionid": old.id}).body == b"before"


def test_versioning_turned_off_keeps_every_version_and_makes_no_more(box: Box) -> None:
    versions = [put_version(box, b"one"), put_version(box, b"two")]
    settle(box.server, versioning=False)
    for body in (b"three", b"four"):
        assert "x-ms-version-id" not in box.put(body=body)
    assert [state.id for state in states(box, "versions")] == [*versions, ""]
    assert box.get().body == b"four"
    assert box.blob("DELETE")["x-ms-delete-type-permanent"] == "true"


def test_a_container_takes_its_versions_with_it(box: Box) -> None:
    put_version(box, b"x" * 100_000)
    put_version(box, b"y" * 100_000)
    box.container("DELETE")
    box.server.run(box.server.app.collector.collect())
    box.create()
    assert kinds(box) == []


def test_a_version_shows_its_blocks_and_its_pages(box: Box) -> None:
    with settled(box.server, versioning=True):
        box.put_block("AAAA", b"former")
        former = {"versionid": box.put_block_list("<Latest>AAAA</Latest>")["x-ms-version-id"]}
        box.put()
        reply = box.blob("GET", comp="blocklist", query=former | {"blocklisttype": "all"})
        assert [one.text for one in reply.xml.iter("Name")] == ["AAAA"]
        assert (reply["x-ms-blob-content-length"], reply["ETag"]) == ("6", box.head(query=former)["ETag"])
        assert box.blob("GET", comp="blocklist", query={"versionid": "2020-01-01T00:00:00Z"}).answer == (404, "BlobNotFound")

        page_blob = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "1024"}
        box.blob("PUT", "disk", headers=page_blob)
        first, second = ({"x-ms-page-write": "update", "x-ms-range": f"bytes={at}-{at + 511}"} for at in (0, 512))
        box.blob("PUT", "disk", "page", first, bytes(512))
        before = snapshot(box, "disk")
        former = {"versionid": box.head("disk")["x-ms-version-id"]}
        box.blob("PUT", "disk", "metadata")
        after = snapshot(box, "disk")
        box.blob("PUT", "disk", "page", second, bytes(512))
        assert len(box.blob("GET", "disk", "pagelist").xml.findall("PageRange")) == 1
        assert box.blob("GET", "disk", "pagelist").xml.findtext("PageRange/End") == "1023"
        assert box.blob("GET", "disk", "pagelist", query=former).xml.findtext("PageRange/End") == "511"
        assert len(box.blob("GET", "disk", "pagelist", query=former | {"prevsnapshot": before}).xml.findall("PageRange")) == 0
        newer = box.blob("GET", "disk", "pagelist", query=former | {"prevsnapshot": after})
        assert newer.answer == (400, "PreviousSnapshotCannotBeNewer")


def test_a_copy_made_without_versioning_does_not_take_the_version_id_of_its_source(box: Box) -> None:
    put_version(box, b"source", "source")
    settle(box.server, versioning=False)
    assert copy(box, url(box)).status == 202
    assert "x-ms-version-id" not in box.head("copy")


def test_a_snapshot_taken_without_versioning_leaves_the_current_version_current(box: Box) -> None:
    version = put_version(box, b"bytes")
    settle(box.server, versioning=False)
    snapshot(box)
    assert box.head()["x-ms-version-id"] == version
    assert [state.id for state in states(box, "versions")] == [version]
