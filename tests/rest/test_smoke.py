"""A short pass through all layers, on every engine: write, read back, conditions, leases."""

import base64
from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.client import ANONYMOUS, Box
from tests.rest.running import Running

ENGINES = ("sqlite", "postgres")


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def test_a_small_and_a_large_blob_come_back_as_they_were_sent(box: Box) -> None:
    for size in (0, 1, 65536, 65537, 3_000_000):
        body = bytes(range(251)) * (size // 251 + 1)
        assert box.put(f"b{size}", body[:size]).status == 201
        assert box.get(f"b{size}").body == body[:size]
        assert box.head(f"b{size}")["Content-Length"] == str(size)


def test_a_stale_etag_is_refused_and_the_current_one_accepted(box: Box) -> None:
    # contract B1
    first = box.put()["ETag"]
    second = box.put(body=b"second", headers={"If-Match": first})
    assert second.status == 201
    assert box.put(body=b"third", headers={"If-Match": first}).answer == (412, "ConditionNotMet")
    assert box.get().body == b"second"
    assert box.get()["ETag"] == second["ETag"]


def test_a_lease_excludes_others_until_it_expires(box: Box) -> None:
    # contract L1, L3
    box.put()
    lease_id = box.acquire(15)
    assert box.put(body=b"no").answer == (412, "LeaseIdMissing")
    assert box.put(body=b"yes", headers={"x-ms-lease-id": lease_id}).status == 201
    box.server.move_clock(16)
    assert box.put(body=b"free", headers={"x-ms-lease-id": lease_id}).answer == (412, "LeaseLost")
    assert box.put(body=b"free").status == 201


def test_staged_blocks_appear_all_at_once(box: Box) -> None:
    ids = [base64.b64encode(bytes([number])).decode() for number in range(4)]
    for number, block_id in enumerate(ids):
        assert box.put_block(block_id, bytes([number]) * 40_000).status == 201
    assert box.get().answer == (404, "BlobNotFound")
    assert box.put_block_list("".join(f"<Latest>{block_id}</Latest>" for block_id in reversed(ids))).status == 201
    assert box.get().body == b"".join(bytes([number]) * 40_000 for number in (3, 2, 1, 0))


def test_a_snapshot_keeps_what_the_blob_was(box: Box) -> None:
    box.put(body=b"old" * 50_000)
    snapshot = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    box.put(body=b"new")
    assert box.get(query={"snapshot": snapshot}).body == b"old" * 50_000
    assert box.blob("DELETE").answer == (409, "SnapshotsPresent")
    assert box.blob("DELETE", headers={"x-ms-delete-snapshots": "include"}).status == 202
    assert box.get(query={"snapshot": snapshot}).answer == (404, "BlobNotFound")


def test_listing_pages_are_complete_and_in_order(box: Box) -> None:
    names = ["Z", "a", "a/b", "a/c", "b", "ä", "\U0001f600", "\uffee"]
    for name in names:
        box.put(name)
    assert box.names() == ["Z", "a", "a/b", "a/c", "b", "ä", "\U0001f600", "\uffee"]
    assert box.names({"delimiter": "/"}) == ["Z", "a", "a/", "b", "ä", "\U0001f600", "\uffee"]
    found, marker = [], ""
    while True:
        reply = box.page({"maxresults": "3", "marker": marker})
        found += [item.findtext("Name") for item in reply.xml.find("Blobs") or ()]
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            break
    assert found == names


def test_an_access_level_counts_at_once(box: Box) -> None:
    # contract G2
    box.put()
    assert box.get(auth=ANONYMOUS).status == 401
    assert box.container("PUT", "acl", {"x-ms-blob-public-access": "blob"}).status == 200
    assert box.get(auth=ANONYMOUS).status == 200
    assert box.container("PUT", "acl").status == 200
    assert box.get(auth=ANONYMOUS).status == 401


def test_a_deleted_container_takes_its_blobs_along_and_may_come_back_empty(box: Box) -> None:
    # race G4
    box.put()
    assert box.container("DELETE").status == 202
    assert box.get().answer == (404, "ContainerNotFound")
    box.create()
    assert box.names() == []
    assert box.get().answer == (404, "BlobNotFound")
