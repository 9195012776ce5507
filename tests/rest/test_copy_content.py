"""A copy inside the server shares the bytes: none are copied, changes affect one side only, and the collector removes neither."""

from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest import pages
from tests.rest.client import Box
from tests.rest.copies import copy, copy_now, signed, url
from tests.rest.pages import MIB, PAGE, TIB
from tests.rest.running import Running
from verditer.core.records.blob import Blob
from verditer.core.records.content import ExtentReferences, SharedContent, SharedGarbage
from verditer.core.records.record import Record, Span
from verditer.core.records.settings import SettingsChange
from verditer.services.settings import change_settings

LARGE = bytes(range(256)) * 1000  # stored as an extent
EVERYTHING = Span(b"", b"\xff" * 64)


@pytest.fixture(params=("sqlite", "postgres_ahead"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def extents(box: Box) -> set[str]:
    async def look() -> set[str]:
        return {extent async for extent, _ in box.server.app.ctx.extents.list()}

    return box.server.run(look())


def count(box: Box, kind: type[Record]) -> int:
    return box.server.run(box.server.app.engine.read((), lambda tx: len(list(tx.scan(kind, EVERYTHING))), long=True))


def collect(box: Box, days: float = 2) -> None:
    """Collect at a much later time, so that all unreferenced extents are removed."""
    box.server.move_clock(days * 86400)
    box.server.run(box.server.app.collector.collect())


def put_pages(box: Box, name: str, start: int, data: bytes) -> None:
    sent = {"x-ms-page-write": "update", "x-ms-range": f"bytes={start}-{start + len(data) - 1}"}
    assert box.blob("PUT", name, "page", sent, data).status == 201


def make(box: Box, kind: str) -> bytes:
    """A source of each blob type, partly in extents and partly inline. Returns its content."""
    if kind == "small":
        box.put("source", b"small")
        return b"small"
    if kind == "block":
        box.put("source", LARGE)
        return LARGE
    if kind == "blocks":
        for block_id, data in (("AAAA", LARGE), ("BBBB", b"tail")):
            box.put_block(block_id, data, "source")
        box.put_block_list("<Latest>AAAA</Latest><Latest>BBBB</Latest>", "source")
        return LARGE + b"tail"
    if kind == "append":
        box.blob("PUT", "source", headers={"x-ms-blob-type": "AppendBlob"})
        for data in (LARGE, b"tail"):
            assert box.blob("PUT", "source", "appendblock", body=data).status == 201
        return LARGE + b"tail"
    size = 3 * MIB
    box.blob(
        "PUT",
        "source",
        headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size), "x-ms-blob-sequence-number": "7"},
    )
    put_pages(box, "source", 0, LARGE[: 400 * PAGE])
    put_pages(box, "source", 2 * MIB, b"p" * PAGE)
    whole = bytearray(size)
    whole[: 400 * PAGE] = LARGE[: 400 * PAGE]
    whole[2 * MIB : 2 * MIB + PAGE] = b"p" * PAGE
    return bytes(whole)


KINDS = pytest.mark.parametrize("kind", ["small", "block", "blocks", "append", "page"])


@KINDS
def test_no_byte_moves(box: Box, kind: str) -> None:
    data = make(box, kind)
    before = extents(box)
    for form in (copy, copy_now)[: 1 if kind in ("append", "page") else 2]:  # the synchronous copy accepts block blobs only
        assert form(box, signed(box)).status == 202
        assert box.get("copy").body == data
    assert extents(box) == before


@KINDS
def test_the_copy_outlives_its_source(box: Box, kind: str) -> None:
    data = make(box, kind)
    copy(box, url(box))
    assert box.blob("DELETE", "source").status == 202
    collect(box)
    assert box.get("copy").body == data


@KINDS
def test_the_source_outlives_its_copies(box: Box, kind: str) -> None:
    data = make(box, kind)
    for name in ("copy", "second"):
        copy(box, url(box), name)
    copy(box, url(box, "copy"), "third")
    for name in ("second", "copy", "third"):
        box.blob("DELETE", name)
    collect(box)
    assert box.get("source").body == data


@KINDS
def test_when_all_are_gone_the_bytes_go_too(box: Box, kind: str) -> None:
    collect(box)
    before = extents(box), count(box, SharedGarbage), count(box, SharedContent), count(box, ExtentReferences)
    make(box, kind)
    copy(box, url(box))
    copy(box, url(box, "copy"), "copy")  # onto the source itself
    for name in ("source", "copy"):
        box.blob("DELETE", name)
    collect(box)
    collect(box)
    assert (extents(box), count(box, SharedGarbage), count(box, SharedContent), count(box, ExtentReferences)) == before


@KINDS
def test_a_source_that_is_overwritten_leaves_the_copy_alone(box: Box, kind: str) -> None:
    data = make(box, kind)
    copy(box, url(box))
    box.blob("DELETE", "source")
    box.put("source", b"y" * 100_000)
    copy(box, url(box), "later")
    box.put("source", b"z")
    collect(box)
    assert box.get("copy").body == data
    assert box.get("later").body == b"y" * 100_000


def test_a_snapshot_of_a_copy_and_a_copy_of_a_snapshot_hold_the_bytes(box: Box) -> None:
    make(box, "block")
    copy(box, url(box))
    taken = box.blob("PUT", "copy", "snapshot")["x-ms-snapshot"]
    copy(box, url(box, "copy", f"snapshot={taken}"), "last")
    box.blob("DELETE", "source")
    box.blob("DELETE", "copy", headers={"x-ms-delete-snapshots": "include"})
    collect(box)
    assert box.get("last").body == LARGE


def test_appending_to_one_side_leaves_the_other_as_it_is(box: Box) -> None:
    data = make(box, "append")
    copy(box, url(box))
    assert box.head("copy")["x-ms-blob-committed-block-count"] == "2"
    reply = box.blob("PUT", "copy", "appendblock", body=b"copy")
    assert (reply["x-ms-blob-append-offset"], reply["x-ms-blob-committed-block-count"]) == (str(len(data)), "3")
    box.blob("PUT", "source", "appendblock", body=b"source")
    collect(box)
    assert box.get("copy").body == data + b"copy"
    assert box.get("source").body == data + b"source"


def test_a_copied_append_blob_is_sealed_when_asked_or_when_its_source_is(box: Box) -> None:
    make(box, "append")
    assert box.blob("PUT", "source", "seal").status == 200
    copy(box, url(box))
    assert box.head("copy")["x-ms-blob-sealed"] == "true"
    assert box.blob("PUT", "copy", "appendblock", body=b"x").answer == (409, "BlobIsSealed")
    copy(box, url(box), "sealed", {"x-ms-seal-blob": "true"})
    assert box.head("sealed")["x-ms-blob-sealed"] == "true"


def test_writing_pages_on_one_side_leaves_the_other_as_it_is(box: Box) -> None:
    data = make(box, "page")
    copy(box, url(box))
    assert box.head("copy")["x-ms-blob-sequence-number"] == "7"
    put_pages(box, "copy", 0, b"c" * (400 * PAGE))  # overwrites the whole shared extent
    put_pages(box, "source", 10 * PAGE, b"s" * PAGE)
    collect(box)
    assert box.get("copy").body == b"c" * (400 * PAGE) + data[400 * PAGE :]
    assert box.get("source").body == data[: 10 * PAGE] + b"s" * PAGE + data[11 * PAGE :]


def test_a_sparse_disk_is_copied_as_sparse_as_it_is(box: Box) -> None:
    assert pages.create(box, TIB).status == 201
    assert pages.write(box, TIB - PAGE, b"e" * PAGE).status == 201
    assert copy(box, url(box, "blob")).status == 202
    reply = box.blob("GET", "copy", "pagelist")
    assert pages.ranges_in(reply) == [(TIB - PAGE, TIB)]
    assert reply["x-ms-blob-content-length"] == str(TIB)


def test_a_page_blob_s_snapshot_is_copied_as_it_was(box: Box) -> None:
    data = make(box, "page")
    taken = box.blob("PUT", "source", "snapshot")["x-ms-snapshot"]
    put_pages(box, "source", 0, b"n" * (400 * PAGE))
    copy(box, url(box, query=f"snapshot={taken}"))
    box.blob("DELETE", "source", headers={"x-ms-delete-snapshots": "include"})
    collect(box)
    assert box.get("copy").body == data


def test_a_version_is_copied_over_the_blob_to_bring_it_back(box: Box) -> None:
    ctx, account = box.server.app.ctx, box.client.account
    box.server.run(change_settings(ctx, account, SettingsChange(versioning=True)))
    try:
        first = box.put("source", LARGE)["x-ms-version-id"]
        box.put("source", b"newer")
        reply = copy(box, url(box, query=f"versionid={first}"), "source")
        assert reply["x-ms-version-id"] not in ("", first)
        assert box.get("source").body == LARGE
        assert box.get("source", query={"versionid": first}).body == LARGE
        assert box.blob("DELETE", "source", query={"versionid": first}).status == 202
        collect(box)
        assert box.get("source").body == LARGE
    finally:
        box.server.run(change_settings(ctx, account, SettingsChange(versioning=False)))


def test_a_source_is_marked_once(box: Box) -> None:
    """Sharing marks the source's record and is not visible to clients."""
    box.put("source", LARGE)
    before = box.head("source")
    copy(box, url(box))
    after = box.head("source")
    assert (after["ETag"], after["Last-Modified"]) == (before["ETag"], before["Last-Modified"])
    blobs = box.server.run(box.server.app.engine.read((), lambda tx: list(tx.scan(Blob, EVERYTHING)), long=True))
    assert {blob.name for blob in blobs if blob.shared} >= {"source", "copy"}
