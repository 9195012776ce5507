"""Set Blob Expiry: a blob that has expired is gone for every request, and the collector removes it."""

from collections.abc import Iterator

import pytest

from tests.rest.client import Box, Reply
from tests.rest.history import collect, settled
from tests.rest.history_fixtures import server  # noqa: F401
from verditer.core.records.blob import BlobExpiry
from verditer.core.records.record import EVERY_KEY
from verditer.partition.engine import Transaction


@pytest.fixture
def tree(box: Box) -> Iterator[Box]:
    with settled(box.server, hierarchical_namespace=True):
        yield box


def expiries(tx: Transaction) -> list[BlobExpiry]:
    return list(tx.scan(BlobExpiry, EVERY_KEY))


def expire(box: Box, option: str, time: str | None = None, name: str = "blob") -> Reply:
    sent = {"x-ms-expiry-option": option} | ({"x-ms-expiry-time": time} if time is not None else {})
    return box.blob("PUT", name, "expiry", sent)


def test_an_account_without_hierarchical_namespace_has_no_expiry(box: Box) -> None:
    assert expire(box, "NeverExpire").answer == (400, "HierarchicalNamespaceNotEnabled")  # clients detect such accounts so
    box.put()
    assert expire(box, "RelativeToNow", "1000").answer == (400, "HierarchicalNamespaceNotEnabled")
    assert box.put("new", headers={"x-ms-expiry-option": "NeverExpire"}).answer == (400, "HierarchicalNamespaceNotEnabled")


@pytest.mark.parametrize("option", ["RelativeToNow", "RelativeToCreation", "Absolute"])
def test_an_expired_blob_is_gone_for_every_request(tree: Box, option: str) -> None:
    box = tree
    etag = box.put(headers={"x-ms-tags": "k=v"})["ETag"]
    reply = expire(box, option, box.client.date(60) if option == "Absolute" else "60000")
    assert (reply.status, reply["ETag"] == etag) == (200, False)
    head = box.head()
    assert (head["ETag"], head["x-ms-expiry-time"] >= box.client.date(55)) == (reply["ETag"], True)
    assert box.page().xml.findtext("Blobs/Blob/Properties/Expiry-Time") == head["x-ms-expiry-time"]
    box.server.move_clock(62)
    assert (box.head().status, box.get().answer, box.names()) == (404, (404, "BlobNotFound"), [])
    assert box.blob("PUT", comp="metadata").answer == (404, "BlobNotFound")
    assert box.blob("DELETE").answer == (404, "BlobNotFound")
    assert box.container("GET", "blobs", query={"where": "k='v'"}).xml.find("Blobs/Blob") is None
    if option == "Absolute":
        collect(box.server)
        assert box.server.run(box.server.app.ctx.engine.read((), expiries)) == []
    assert box.put(body=b"again", headers={"If-None-Match": "*"}).status == 201
    box.server.move_clock(3600)
    collect(box.server)
    assert box.get().body == b"again"


def test_an_expiry_can_be_moved_and_taken_back(tree: Box) -> None:
    box = tree
    box.put()
    assert expire(box, "RelativeToNow", "60000").status == 200
    assert expire(box, "RelativeToNow", "600000").status == 200
    box.server.move_clock(100)
    collect(box.server)
    assert box.head().status == 200
    assert expire(box, "NeverExpire").status == 200
    assert "x-ms-expiry-time" not in box.head()
    box.server.move_clock(10_000)
    collect(box.server)
    assert box.get().body == b"hello"


@pytest.mark.parametrize("option", ["RelativeToNow", "RelativeToCreation"])
def test_an_expiry_after_the_year_9999_is_refused(tree: Box, option: str) -> None:
    """It has no date that could be shown, and a listing shows the dates of all blobs."""
    box = tree
    box.put()
    assert expire(box, option, "999999999999999").answer == (400, "InvalidHeaderValue")
    new = box.put("new", headers={"x-ms-expiry-option": option, "x-ms-expiry-time": "999999999999999"})
    assert new.answer == (400, "InvalidHeaderValue")
    assert expire(box, option, "250000000000000").status == 200
    assert (box.head()["x-ms-expiry-time"].split()[3] > "9900", box.names()) == (True, ["blob"])


def test_what_an_expiry_says_is_checked(tree: Box) -> None:
    box = tree
    box.put()
    assert expire(box, "Someday", "1").answer == (400, "InvalidHeaderValue")
    assert expire(box, "Absolute", box.client.date(-60)).answer == (400, "InvalidHeaderValue")
    assert expire(box, "Absolute", "soon").answer == (400, "InvalidHeaderValue")
    assert expire(box, "Absolute").answer == (400, "MissingRequiredHeader")
    assert expire(box, "RelativeToNow").answer == (400, "MissingRequiredHeader")
    assert box.blob("PUT", comp="expiry").answer == (400, "MissingRequiredHeader")
    assert expire(box, "NeverExpire", name="absent").answer == (404, "BlobNotFound")


def test_a_new_blob_may_bring_its_expiry(tree: Box) -> None:
    box = tree
    sent = {"x-ms-expiry-option": "RelativeToNow", "x-ms-expiry-time": "60000"}
    assert box.put(headers=sent).status == 201
    assert "x-ms-expiry-time" in box.head()
    box.server.move_clock(61)
    assert box.head().status == 404
