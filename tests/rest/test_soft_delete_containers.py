"""Soft delete of containers: listed with their version, restored with their blobs, removed after their retention."""

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest

from tests.rest.client import Box, Reply
from tests.rest.history import DAY, collect, settle, settled, snapshot
from tests.rest.history_fixtures import server  # noqa: F401
from tests.rest.running import Running


@pytest.fixture(autouse=True)
def soft_delete(server: Running) -> Iterator[None]:  # noqa: F811
    with settled(server, container_soft_delete_days=7):
        yield


def listed(box: Box, include: str = "deleted,metadata", **query: str) -> list[Element]:
    """The containers with this name, over all pages."""
    found: list[Element] = []
    marker = ""
    while True:
        sent = {"comp": "list", "include": include, "prefix": box.name, **query, **({"marker": marker} if marker else {})}
        page = box.client.send("GET", "/", sent).xml
        found += page.find("Containers") or ()
        marker = page.findtext("NextMarker") or ""
        if not marker:
            return found


def version_of(box: Box) -> str:
    return [item.findtext("Version") or "" for item in listed(box) if item.findtext("Deleted") == "true"][-1]


def restore(box: Box, version: str, name: str = "", **more: str) -> Reply:
    sent = {"x-ms-deleted-container-name": name or box.name, "x-ms-deleted-container-version": version}
    return box.container("PUT", "undelete", sent, **more)


def test_a_deleted_container_is_listed_only_when_asked_for(box: Box) -> None:
    # contract G2
    assert box.container("DELETE").status == 202
    assert box.page().answer == (404, "ContainerNotFound")
    assert listed(box, "") == []
    [item] = listed(box)
    assert (item.findtext("Name"), item.findtext("Deleted")) == (box.name, "true")
    assert len(item.findtext("Version") or "") == 16
    assert (item.findtext("Properties/DeletedTime") or "").endswith("GMT")
    assert item.findtext("Properties/RemainingRetentionDays") == "6"


def test_a_restored_container_has_everything_it_held(box: Box) -> None:
    box.container("PUT", "metadata", {"x-ms-meta-m": "1"})
    box.put("a", b"x" * 100_000)
    one = snapshot(box, "a")
    etag = box.container("HEAD")["ETag"]
    box.container("DELETE")
    collect(box.server)
    assert restore(box, version_of(box)).status == 201
    assert box.get("a").body == box.get("a", query={"snapshot": one}).body == b"x" * 100_000
    head = box.container("HEAD")
    assert (head["ETag"], head.metadata) == (etag, {"m": "1"})
    assert [item.findtext("Deleted") for item in listed(box)] == [None]


def test_the_name_can_be_used_again_and_then_nothing_is_restored_over_it(box: Box) -> None:
    box.put("old")
    box.container("DELETE")
    box.create()
    assert box.names() == []
    assert restore(box, version_of(box)).answer == (409, "ContainerAlreadyExists")
    box.put("new")
    box.container("DELETE")
    first, second = listed(box)
    assert restore(box, first.findtext("Version") or "").status == 201
    assert box.names() == ["old"]
    assert [item.findtext("Version") for item in listed(box)] == [second.findtext("Version"), None]
    assert [item.findtext("Version") for item in listed(box, maxresults="1")] == [second.findtext("Version"), None]


@pytest.mark.parametrize("version", ["0000000000000001", "nonsense"])
def test_an_unknown_version_is_not_found(box: Box, version: str) -> None:
    box.container("DELETE")
    assert restore(box, version).answer == (404, "ContainerNotFound")


def test_what_restore_container_asks_for(box: Box) -> None:
    box.container("DELETE")
    version = version_of(box)
    assert box.container("PUT", "undelete").answer == (400, "MissingRequiredHeader")
    assert restore(box, version, "another-name").answer == (400, "InvalidHeaderValue")
    sas = box.client.account_sas("r", srt="c", ss="b")
    assert restore(box, version, auth=sas).answer == (403, "AuthorizationPermissionMismatch")
    assert restore(box, version, auth=box.client.account_sas("w", srt="c", ss="b")).status == 201


def test_a_container_is_gone_when_its_retention_has_passed(box: Box) -> None:
    box.put("a", b"x" * 100_000)
    box.container("DELETE")
    version = version_of(box)
    settle(box.server, container_soft_delete_days=0)  # the retention at the time of the deletion applies
    box.server.move_clock(7 * DAY + 1)
    assert listed(box) == []
    assert restore(box, version).answer == (404, "ContainerNotFound")
    collect(box.server)
    assert restore(box, version).answer == (404, "ContainerNotFound")


def test_blobs_whose_retention_passes_while_their_container_is_deleted(box: Box) -> None:
    settle(box.server, blob_soft_delete_days=1)
    box.put("a")
    box.blob("DELETE", "a")
    box.container("DELETE")
    version = version_of(box)
    box.server.move_clock(2 * DAY)
    collect(box.server)
    assert restore(box, version).status == 201
    assert box.blob("PUT", "a", "undelete").answer == (404, "BlobNotFound")


def test_a_leased_container_comes_back_without_its_lease(box: Box) -> None:
    # contract L6
    lease = {"x-ms-lease-id": box.acquire(-1, None)}
    assert box.container("DELETE").answer == (412, "LeaseIdMissing")
    assert box.container("DELETE", headers=lease).status == 202
    restore(box, version_of(box))
    assert box.container("HEAD")["x-ms-lease-state"] == "available"


def test_without_soft_delete_a_container_is_gone_at_once(box: Box) -> None:
    settle(box.server, container_soft_delete_days=0)
    box.container("DELETE")
    assert listed(box) == []
