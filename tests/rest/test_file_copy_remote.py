"""Copies from other hosts into files: pending, progress, success, failure, abort, restart, and what is refused meanwhile."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from tests.conftest import watched
from tests.rest.client import Reply
from tests.rest.copies import Elsewhere, File, elsewhere, wait_for
from tests.rest.files import DIRECTORY, FileClient, ShareBox
from tests.rest.running import PATIENCE_SECONDS, Running, running
from tests.rest.test_file_copy import copy, put_from
from verditer.core.records.content import ClosedContentView, ContentView, Interval
from verditer.core.records.file import PendingFileCopy
from verditer.core.records.record import EVERY_KEY, Record

HOLDER = "aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa"
LARGE = bytes(range(256)) * 80_000  # three chunks
MIB = 1 << 20
TAGGED = {"ETag": '"one"'}
BUSY = (409, "PendingCopyOperation")
R = TypeVar("R", bound=Record)


@pytest.fixture(params=("sqlite", "postgres_ahead"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


@pytest.fixture
def source() -> Iterator[Elsewhere]:
    with elsewhere() as source:
        yield source


def stored(share: ShareBox, kind: type[R]) -> list[R]:
    return share.server.run(share.server.app.engine.read((), lambda tx: list(tx.scan(kind, EVERY_KEY)), long=True))


def held(body: bytes = LARGE, before_gate: int = 0, headers: dict[str, str] | None = None) -> File:
    """A source whose copy stays pending until its gate is opened."""
    return File(body, TAGGED | (headers or {}), gate=threading.Event(), before_gate=before_gate)


def release(file: File) -> None:
    assert file.gate is not None
    file.gate.set()


def settled(share: ShareBox, name: str = "copy") -> Reply:
    end = time.monotonic() + PATIENCE_SECONDS
    while (reply := share.head(name))["x-ms-copy-status"] == "pending":
        assert time.monotonic() < end, reply.headers
        time.sleep(0.01)
    return reply


def abort(share: ShareBox, copy_id: str, headers: dict[str, str] | None = None) -> Reply:
    sent = {"x-ms-copy-action": "abort", **(headers or {})}
    return share.file("PUT", "copy", "copy", sent, query={"copyid": copy_id})


@pytest.mark.parametrize("body", [b"", b"small", LARGE], ids=len)
def test_a_url_is_copied_in_the_background(share: ShareBox, source: Elsewhere, body: bytes) -> None:
    described = {"Content-Type": "text/plain", "Cache-Control": "no-cache", "x-ms-meta-a": "1", **TAGGED}
    reply = copy(share, source.add("file", File(body, described)))
    assert (reply.status, reply["x-ms-copy-status"]) == (202, "pending")
    done = settled(share)
    assert (done["x-ms-copy-status"], done["x-ms-copy-id"]) == ("success", reply["x-ms-copy-id"])
    assert done["x-ms-copy-progress"] == f"{len(body)}/{len(body)}"
    assert done["x-ms-copy-completion-time"] == done["Last-Modified"]
    assert (done["Content-Type"], done["Cache-Control"], done.metadata) == ("text/plain", "no-cache", {"a": "1"})
    assert done["ETag"] != reply["ETag"]
    assert share.get("copy").body == body
    assert stored(share, PendingFileCopy) == []
    if body:
        assert share.write(b"new", 0, "copy").status == 201
        assert share.get("copy").body == b"new" + body[3:]


def test_while_it_is_pending_nobody_writes_the_file(share: ShareBox, source: Elsewhere) -> None:
    file = held(before_gate=10 * MIB)
    share.put("other")
    copy_id = copy(share, source.add("file", file), headers={"x-ms-meta-a": "1"})["x-ms-copy-id"]
    wait_for(lambda: share.head("copy")["x-ms-copy-progress"] == f"{8 * MIB}/{len(LARGE)}")
    seen = share.get("copy", {"x-ms-range": "bytes=0-9"})
    assert (seen.body, seen.metadata, seen["x-ms-copy-status"]) == (bytes(10), {"a": "1"}, "pending")
    assert seen["Content-Range"].endswith(f"/{len(LARGE)}")
    assert "x-ms-copy-completion-time" not in seen
    assert share.put("copy").answer == BUSY
    assert share.write(b"x", 0, "copy").answer == BUSY
    assert share.clear(0, 512, "copy").answer == BUSY
    assert share.file("PUT", "copy", "metadata").answer == BUSY
    assert share.file("PUT", "copy", "properties").answer == BUSY
    assert share.file("DELETE", "copy").answer == BUSY
    assert share.lease("acquire", name="copy").answer == BUSY
    assert share.rename("copy", "moved").answer == BUSY
    assert share.rename("other", "copy", {"x-ms-file-rename-replace-if-exists": "true"}).answer == BUSY
    assert copy(share, share.url("copy")).answer == BUSY
    assert copy(share, share.url("copy"), "second").answer == BUSY
    assert abort(share, HOLDER).answer == (409, "CopyIdMismatch")
    release(file)
    assert settled(share)["x-ms-copy-id"] == copy_id
    assert share.get("copy").body == LARGE


def test_an_aborted_copy_leaves_an_empty_file_with_its_metadata(share: ShareBox, source: Elsewhere) -> None:
    share.fill(b"before", "copy")
    file = held(before_gate=10 * MIB, headers={"x-ms-meta-a": "1"})
    copy_id = copy(share, source.add("file", file))["x-ms-copy-id"]
    wait_for(lambda: share.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    assert share.share("GET", "stats").xml.findtext("ShareUsageBytes") == str(len(LARGE))
    assert abort(share, copy_id).status == 204
    after = share.get("copy")
    assert (after.body, after.metadata, after["x-ms-copy-status"]) == (b"", {"a": "1"}, "aborted")
    assert "x-ms-copy-completion-time" in after
    assert share.share("GET", "stats").xml.findtext("ShareUsageBytes") == "0"
    assert abort(share, copy_id).answer == (409, "NoPendingCopyOperation")
    assert stored(share, PendingFileCopy) == []
    release(file)
    assert share.put("copy", 5).status == 201
    share.server.move_clock(2 * 86400)
    share.server.run(share.server.app.collector.collect())
    assert share.get("copy").body == bytes(5)


def test_abort_asks_for_the_lease_of_the_target(share: ShareBox, source: Elsewhere) -> None:
    # contract L5
    share.put("copy")
    lease = share.acquire("copy")
    file = held()
    address = source.add("file", file)
    assert copy(share, address).answer == (412, "LeaseIdMissing")
    copy_id = copy(share, address, headers={"x-ms-lease-id": lease})["x-ms-copy-id"]
    assert abort(share, copy_id).answer == (412, "LeaseIdMissing")
    assert abort(share, copy_id, {"x-ms-lease-id": HOLDER}).answer == (412, "LeaseIdMismatchWithFileOperation")
    assert abort(share, copy_id, {"x-ms-lease-id": lease}).status == 204
    assert share.head("copy")["x-ms-lease-state"] == "leased"


def test_a_copy_goes_on_when_its_directory_is_renamed(share: ShareBox, source: Elsewhere) -> None:
    share.make("a")
    file = held(before_gate=10 * MIB)
    copy(share, source.add("file", file), "a/copy")
    wait_for(lambda: share.head("a/copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    assert share.rename("a", "b", query=DIRECTORY).status == 200
    release(file)
    assert settled(share, "b/copy")["x-ms-copy-status"] == "success"
    assert share.get("b/copy").body == LARGE


def test_a_copy_into_a_file_with_two_names(files: FileClient, source: Elsewhere) -> None:
    share = ShareBox(files).create({"x-ms-enabled-protocols": "NFS"})
    share.put("copy")
    link = {"x-ms-type": "file", "x-ms-file-target-file": "/copy"}
    assert share.file("PUT", "other", headers=link, query={"restype": "hardlink"}).status == 201
    file = held(before_gate=10 * MIB)
    address = source.add("file", file)
    copy_id = copy(share, address, "other")["x-ms-copy-id"]
    again = share.file("PUT", "third", headers=link, query={"restype": "hardlink"})
    assert again.answer == BUSY
    assert abort(share, copy_id).status == 204
    release(file)
    copy(share, address, "other")
    assert settled(share)["x-ms-copy-status"] == "success"
    assert share.get("copy").body == share.get("other").body == LARGE
    assert share.head("copy")["x-ms-link-count"] == "2"


def test_a_snapshot_taken_during_a_copy_keeps_the_pending_file_and_nothing_more(share: ShareBox, source: Elsewhere) -> None:
    before = contents(share)
    file = held(before_gate=10 * MIB)
    copy(share, source.add("file", file))
    wait_for(lambda: share.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    moment = share.snapshot()
    release(file)
    assert settled(share)["x-ms-copy-status"] == "success"
    later = share.snapshot()
    assert share.get("copy", query={"sharesnapshot": moment}).body == bytes(len(LARGE))
    assert share.get("copy", query={"sharesnapshot": later}).body == LARGE
    assert share.get("copy").body == LARGE
    assert share.file("DELETE", "copy").status == 202
    assert share.get("copy", query={"sharesnapshot": later}).body == LARGE
    assert share.share("DELETE", headers={"x-ms-delete-snapshots": "include"}).status == 202
    share.server.move_clock(2 * 86400)
    for _ in range(3):
        share.server.run(share.server.app.collector.collect())
    assert contents(share) <= before


def contents(share: ShareBox) -> set[int]:
    """The ids of all contents that have rows."""
    views = {row.content_id for row in [*stored(share, ContentView), *stored(share, ClosedContentView)]}
    return views | {row.content_id for row in stored(share, Interval)}


def test_a_connection_that_breaks_is_tried_again(share: ShareBox, source: Elsewhere) -> None:
    file = File(LARGE, TAGGED, breaks={1: 9 * MIB})
    assert copy(share, source.add("file", file)).status == 202
    assert settled(share)["x-ms-copy-status"] == "success"
    assert share.get("copy").body == LARGE
    assert file.asked[-1]["range"] == f"bytes={8 * MIB}-"


def test_a_source_that_changes_fails_the_copy(share: ShareBox, source: Elsewhere) -> None:
    file = File(LARGE, TAGGED | {"x-ms-meta-a": "1"}, breaks={1: 9 * MIB})
    assert copy(share, source.add("file", file)).status == 202
    wait_for(lambda: share.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    file.headers["ETag"] = '"two"'  # the second attempt waits for half a second at least
    done = settled(share)
    assert (done["x-ms-copy-status"], done["Content-Length"], done.metadata) == ("failed", "0", {"a": "1"})
    assert done["x-ms-copy-status-description"].startswith("412 PreconditionFailed")
    assert share.share("GET", "stats").xml.findtext("ShareUsageBytes") == "0"


def test_a_source_that_cannot_be_read_is_refused_at_once(share: ShareBox, source: Elsewhere) -> None:
    refused = copy(share, source.add("file", File(status=403)))
    assert refused.answer == (403, "CannotVerifyCopySource")
    assert refused["x-ms-copy-source-status-code"] == "403"
    assert share.head("copy").status == 404
    unknown = copy(share, source.add("endless", File(headers={"Transfer-Encoding": "chunked"})))
    assert unknown["x-ms-error-code"] == "CannotVerifyCopySource"


def test_a_range_is_written_from_any_url(share: ShareBox, source: Elsewhere) -> None:
    address = source.add("file", File(b"0123456789"))
    share.put("file", 8)
    assert put_from(share, address, 3, 2, 4).status == 201
    assert share.get("file").body == bytes(2) + b"3456" + bytes(2)
    whole = source.add("whole", File(b"0123456789", ranges=False))
    assert put_from(share, whole, 3, 2, 4).answer == (416, "CannotVerifyCopySource")


def test_a_copy_survives_a_restart(tmp_path: Path, source: Elsewhere) -> None:
    file = held(before_gate=10 * MIB)
    address = source.add("file", file)
    with running(tmp_path) as server:
        share = ShareBox(FileClient(server)).create()
        copy(share, address)
        wait_for(lambda: share.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
        share.client.close()
    release(file)
    file.gate = None
    with running(tmp_path) as server:
        server.move_clock(60)  # the claim of the process that stopped has run out
        again = ShareBox(FileClient(server), share.name)
        assert settled(again)["x-ms-copy-status"] == "success"
        assert again.get("copy").body == LARGE
        assert file.asked[-1]["range"] == f"bytes={8 * MIB}-"
        again.client.close()


def test_a_copy_into_a_deleted_share_leaves_nothing(share: ShareBox, source: Elsewhere) -> None:
    file = held(before_gate=10 * MIB)
    copy(share, source.add("file", file))
    wait_for(lambda: share.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    assert share.share("DELETE").status == 202
    share.server.move_clock(2 * 86400)
    share.server.run(share.server.app.collector.collect())
    assert stored(share, PendingFileCopy) == []
    release(file)
