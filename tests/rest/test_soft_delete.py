"""Soft delete of blobs: what is kept after an overwrite or delete, the retention, undelete and permanent delete."""

from collections.abc import Iterator

import pytest

from tests.rest import pages
from tests.rest.client import Box
from tests.rest.history import DAY, collect, kinds, settle, settled, snapshot, states, undelete
from tests.rest.history_fixtures import server  # noqa: F401
from tests.rest.running import Running
from verditer.core.records.blob import DeletedBlob, DeletedSnapshot
from verditer.core.records.content import Inline, Layout
from verditer.core.records.record import Record, Span

LARGE = b"0123456789abcdef" * 10_000  # too large to be inline


@pytest.fixture(autouse=True)
def soft_delete(server: Running) -> Iterator[None]:  # noqa: F811
    with settled(server, blob_soft_delete_days=7):
        yield


def test_a_deleted_blob_is_out_of_reach_and_comes_back(box: Box) -> None:
    # contract G2
    box.put(body=LARGE, headers={"x-ms-meta-m": "1", "x-ms-tags": "colour=red"})
    before = box.head()
    reply = box.blob("DELETE")
    assert (reply.status, reply["x-ms-delete-type-permanent"]) == (202, "false")
    assert box.get().answer == (404, "BlobNotFound")
    assert box.blob("DELETE").answer == (404, "BlobNotFound")
    assert kinds(box, "") == []
    assert kinds(box, "deleted") == ["deleted blob"]
    assert undelete(box).status == 200
    after = box.get()
    assert (after.body, after.metadata, after["ETag"]) == (LARGE, {"m": "1"}, before["ETag"])
    assert after["Last-Modified"] == before["Last-Modified"]
    found = box.container("GET", "blobs", query={"where": "colour='red'"})
    assert len(found.xml.find("Blobs") or ()) == 1


def test_undelete_without_anything_deleted(box: Box) -> None:
    assert undelete(box).answer == (404, "BlobNotFound")
    box.put()
    assert undelete(box).status == 200


def test_an_overwritten_state_is_kept_as_a_deleted_snapshot(box: Box) -> None:
    box.put(body=b"one")
    box.put(body=LARGE)
    box.put(body=b"three")
    assert kinds(box, "deleted") == ["blob"]
    assert kinds(box, "snapshots") == ["blob"]
    assert kinds(box, "snapshots,deleted") == ["deleted snapshot", "deleted snapshot", "blob"]
    old = states(box, "snapshots,deleted")
    assert box.get(query={"snapshot": old[1].id}).answer == (404, "BlobNotFound")
    assert undelete(box).status == 200
    assert [box.get(query={"snapshot": state.id}).body for state in old[:2]] == [b"one", LARGE]
    assert box.get().body == b"three"


def test_changes_in_place_keep_nothing(box: Box) -> None:
    box.put()
    box.blob("PUT", comp="metadata", headers={"x-ms-meta-m": "1"})
    box.blob("PUT", comp="properties", headers={"x-ms-blob-content-type": "text/plain"})
    assert kinds(box) == ["blob"]


def test_snapshots_are_deleted_and_restored_with_their_blob(box: Box) -> None:
    box.put(body=b"one")
    taken = [snapshot(box)]
    box.put(body=b"two")
    taken.append(snapshot(box))
    assert box.blob("DELETE").answer == (409, "SnapshotsPresent")
    assert box.blob("DELETE", headers={"x-ms-delete-snapshots": "include"}).status == 202
    assert kinds(box, "snapshots,deleted") == ["deleted snapshot", "deleted snapshot", "deleted snapshot", "deleted blob"]
    undelete(box)
    assert [box.get(query={"snapshot": one}).body for one in taken] == [b"one", b"two"]
    assert box.get().body == b"two"


def test_a_deleted_snapshot_comes_back_by_itself(box: Box) -> None:
    box.put(body=b"one")
    one = snapshot(box)
    assert box.blob("DELETE", query={"snapshot": one})["x-ms-delete-type-permanent"] == "false"
    assert box.get(query={"snapshot": one}).answer == (404, "BlobNotFound")
    undelete(box)
    assert box.get(query={"snapshot": one}).body == b"one"
    assert box.blob("DELETE", headers={"x-ms-delete-snapshots": "only"})["x-ms-delete-type-permanent"] == "false"
    assert kinds(box, "snapshots,deleted") == ["deleted snapshot", "blob"]


def test_a_deleted_blob_beside_a_new_one_counts_as_a_snapshot(box: Box) -> None:
    for body in (b"one", b"two"):
        box.put(body=body)
        box.blob("DELETE")
    assert kinds(box, "snapshots,deleted") == ["deleted snapshot", "deleted blob"]
    box.put(body=b"three")
    old = states(box, "snapshots,deleted")
    assert [state.kind for state in old] == ["deleted snapshot", "deleted snapshot", "blob"]
    assert kinds(box, "deleted") == ["blob"]
    undelete(box)
    assert box.get().body == b"three"
    assert [box.get(query={"snapshot": state.id}).body for state in old[:2]] == [b"one", b"two"]


def test_the_last_deleted_blob_is_the_one_that_comes_back(box: Box) -> None:
    for body in (b"one", b"two"):
        box.put(body=body)
        box.blob("DELETE")
    undelete(box)
    assert box.get().body == b"two"
    assert kinds(box) == ["snapshot", "blob"]


@pytest.mark.parametrize("kind", ["AppendBlob", "PageBlob"])
def test_blobs_made_of_pieces_come_back_and_go_on(box: Box, kind: str) -> None:
    if kind == "PageBlob":
        pages.create(box, 2048)
        pages.write(box, 512, b"a" * 512)
    else:
        box.blob("PUT", headers={"x-ms-blob-type": kind})
        box.blob("PUT", comp="appendblock", body=b"a" * 512)
    whole = box.get().body
    box.blob("DELETE")
    collect(box.server)
    undelete(box)
    assert box.get().body == whole
    if kind == "PageBlob":
        assert pages.write(box, 0, b"b" * 512).status == 201
        assert box.get().body == b"b" * 512 + whole[512:]
    else:
        assert box.blob("PUT", comp="appendblock", body=b"b").status == 201
        assert box.get().body == whole + b"b"


def test_the_listing_says_when_it_was_deleted_and_how_long_it_stays(box: Box) -> None:
    box.put()
    box.blob("DELETE")
    [item] = box.page({"include": "deleted"}).xml.findall("Blobs/Blob")
    assert item.findtext("Deleted") == "true"
    assert item.findtext("Properties/DeletedTime", "").endswith("GMT")
    assert item.findtext("Properties/RemainingRetentionDays") == "6"
    assert item.find("Properties/LeaseState") is None
    box.server.move_clock(DAY)
    [item] = box.page({"include": "deleted"}).xml.findall("Blobs/Blob")
    assert item.findtext("Properties/RemainingRetentionDays") == "5"


def test_retention_is_decided_at_the_deletion_and_ends_by_the_clock(box: Box) -> None:
    for name in ("short", "long"):
        box.put(name, LARGE)
    box.put("short", b"again")
    settle(box.server, blob_soft_delete_days=1)
    box.blob("DELETE", "short")
    settle(box.server, blob_soft_delete_days=30)
    box.blob("DELETE", "long")
    settle(box.server, blob_soft_delete_days=0)
    box.server.move_clock(2 * DAY)
    assert kinds(box, "deleted") == ["deleted blob"]  # before the collector ran
    assert kinds(box, "snapshots,deleted", prefix="short") == ["deleted snapshot"]
    assert undelete(box, "short").status == 200
    assert box.get("short").answer == (404, "BlobNotFound")
    assert undelete(box, "long").status == 200
    assert box.get("long").body == LARGE


def test_the_collector_removes_what_has_been_kept_long_enough(box: Box) -> None:
    box.server.move_clock(8 * DAY)
    before = rows(box, Inline, Layout)
    box.put("a", LARGE)
    box.put("a", b"small")
    one = snapshot(box, "a")
    box.blob("DELETE", "a", query={"snapshot": one})
    box.blob("DELETE", "a")
    assert rows(box, Inline, Layout) == before + 3
    assert kinds(box) == ["deleted snapshot", "deleted snapshot", "deleted blob"]
    box.server.move_clock(8 * DAY)
    assert rows(box, Inline, Layout) == before
    assert rows(box, DeletedBlob, DeletedSnapshot) == 0
    assert undelete(box, "a").answer == (404, "BlobNotFound")


def rows(box: Box, *records: type[Record]) -> int:
    """The number of records in the whole store after the collector ran."""
    collect(box.server)
    everything = Span(b"", b"\xff" * 64)
    return box.server.run(
        box.server.app.engine.read((), lambda tx: sum(len(list(tx.scan(record, everything))) for record in records), long=True)
    )


def test_permanent_delete_is_for_what_is_soft_deleted(box: Box) -> None:
    settle(box.server, permanent_delete=True)
    box.put(body=b"one")
    one = {"snapshot": snapshot(box), "deletetype": "permanent"}
    assert box.blob("DELETE", query=one).answer == (409, "BlobSnapshotNotSoftDeleted")
    box.blob("DELETE", query={"snapshot": one["snapshot"]})
    reply = box.blob("DELETE", query=one)
    assert (reply.status, reply["x-ms-delete-type-permanent"]) == (202, "true")
    assert box.blob("DELETE", query=one).answer == (404, "BlobNotFound")
    undelete(box)
    assert kinds(box) == ["blob"]
    assert box.blob("DELETE", query={"deletetype": "permanent"}).answer == (400, "InvalidQueryParameterValue")


def test_a_deleted_blob_that_counts_as_a_snapshot_can_be_deleted_permanently(box: Box) -> None:
    settle(box.server, permanent_delete=True)
    box.put(body=b"one")
    box.blob("DELETE")
    box.put(body=b"two")
    [old, _] = states(box, "snapshots,deleted")
    assert box.blob("DELETE", query={"snapshot": old.id, "deletetype": "permanent"}).status == 202
    assert kinds(box) == ["blob"]


def test_permanent_delete_has_to_be_allowed_and_needs_its_own_permission(box: Box) -> None:
    box.put(body=b"one")
    one = {"snapshot": snapshot(box), "deletetype": "permanent"}
    box.blob("DELETE", query={"snapshot": one["snapshot"]})
    assert box.blob("DELETE", query=one).answer == (400, "InvalidQueryParameterValue")
    settle(box.server, permanent_delete=True)
    for letters in ("d", "x"):
        assert box.blob("DELETE", query=one, auth=box.sas(letters)).answer == (403, "AuthorizationPermissionMismatch")
    assert box.blob("DELETE", query=one, auth=box.sas("y")).status == 202


@pytest.mark.parametrize(("letters", "status"), [("r", 403), ("d", 403), ("w", 200)])
def test_undelete_asks_for_write_permission(box: Box, letters: str, status: int) -> None:
    box.put()
    box.blob("DELETE")
    assert box.blob("PUT", comp="undelete", auth=box.sas(letters)).status == status


def test_set_blob_service_properties_turns_it_on_and_off(box: Box) -> None:
    def set_retention(xml: str) -> None:
        document = f"<StorageServiceProperties><DeleteRetentionPolicy>{xml}</DeleteRetentionPolicy></StorageServiceProperties>"
        service = {"restype": "service", "comp": "properties"}
        assert box.client.send("PUT", "/", service, body=document.encode()).status == 202

    set_retention("<Enabled>false</Enabled>")
    box.put()
    assert box.blob("DELETE")["x-ms-delete-type-permanent"] == "true"
    set_retention("<Enabled>true</Enabled><Days>3</Days><AllowPermanentDelete>true</AllowPermanentDelete>")
    shown = box.client.send("GET", "/", {"restype": "service", "comp": "properties"}).xml
    assert shown.findtext("DeleteRetentionPolicy/Days") == "3"
    assert shown.findtext("DeleteRetentionPolicy/AllowPermanentDelete") == "true"
    box.put()
    assert box.blob("DELETE")["x-ms-delete-type-permanent"] == "false"
    assert undelete(box).status == 200


def test_uncommitted_blocks_are_not_kept(box: Box) -> None:
    box.put_block("YQ==")
    assert box.blob("DELETE")["x-ms-delete-type-permanent"] == "true"
    assert undelete(box).answer == (404, "BlobNotFound")


def test_staging_blocks_beside_a_deleted_blob(box: Box) -> None:
    box.put(body=b"one")
    box.blob("DELETE")
    box.put_block("YQ==", b"two")
    assert sorted(kinds(box, "deleted,uncommittedblobs")) == ["deleted blob", "uncommitted"]
    assert states(box, "deleted,uncommittedblobs", maxresults="1") == states(box, "deleted,uncommittedblobs")
    box.put_block_list("<Latest>YQ==</Latest>")
    assert kinds(box, "snapshots,deleted") == ["deleted snapshot", "blob"]


def test_committing_blocks_of_a_state_that_is_kept_leaves_it_whole(box: Box) -> None:
    box.put_block("YQ==", LARGE)
    box.put_block("Yg==", LARGE[::-1])
    box.put_block_list("<Latest>YQ==</Latest><Latest>Yg==</Latest>")
    box.put_block_list("<Committed>YQ==</Committed>")
    box.put(body=b"other")
    [one, two, _] = states(box, "snapshots,deleted")
    undelete(box)
    box.blob("DELETE", query={"snapshot": two.id})
    box.server.move_clock(8 * DAY)
    collect(box.server)
    assert box.get(query={"snapshot": one.id}).body == LARGE + LARGE[::-1]


def test_a_lease_ends_with_the_deletion(box: Box) -> None:
    # contract L3
    box.put()
    lease = {"x-ms-lease-id": box.acquire(-1)}
    assert box.blob("DELETE").answer == (412, "LeaseIdMissing")
    assert box.blob("DELETE", headers=lease).status == 202
    undelete(box)
    assert box.head()["x-ms-lease-state"] == "available"


def test_conditions_that_are_not_met_keep_the_blob(box: Box) -> None:
    # contract G7, B2
    box.put()
    assert box.blob("DELETE", headers={"If-Match": '"0x1"'}).answer == (412, "ConditionNotMet")
    assert kinds(box) == ["blob"]
