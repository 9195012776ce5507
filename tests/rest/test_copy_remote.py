"""Copies from other hosts: pending, progress, success, failure, abort, and what is refused in the meantime."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import watched
from tests.rest import pages
from tests.rest.checksums import md5
from tests.rest.client import Box, Client, Reply
from tests.rest.copies import Elsewhere, File, abort, copy, copy_now, elsewhere, settled, signed, url, wait_for
from tests.rest.running import Running, running
from verditer.config import Outbound
from verditer.core.records.copy import PendingCopy
from verditer.core.records.record import Span
from verditer.core.records.settings import SettingsChange
from verditer.jobs.copy import Copier
from verditer.services.settings import change_settings

HOLDER = "aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa"
LARGE = bytes(range(256)) * 80_000  # three chunks
MIB = 1 << 20
EVERYTHING = Span(b"", b"\xff" * 64)
Form = Callable[..., Reply]
TAGGED = {"ETag": '"one"'}


@pytest.fixture(params=("sqlite", "postgres_ahead"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


@pytest.fixture
def source() -> Iterator[Elsewhere]:
    with elsewhere() as source:
        yield source


def pending_copies(box: Box) -> list[PendingCopy]:
    return box.server.run(box.server.app.engine.read((), lambda tx: list(tx.scan(PendingCopy, EVERYTHING)), long=True))


def held(body: bytes = LARGE, before_gate: int = 0, headers: dict[str, str] | None = None) -> File:
    """A source whose copy stays pending until its gate is opened."""
    return File(body, TAGGED | (headers or {}), gate=threading.Event(), before_gate=before_gate)


def release(file: File) -> None:
    assert file.gate is not None
    file.gate.set()


@pytest.mark.parametrize("body", [b"", b"small", LARGE], ids=len)
def test_a_url_is_copied_in_the_background(box: Box, source: Elsewhere, body: bytes) -> None:
    described = {"Content-Type": "text/plain", "Cache-Control": "no-cache", "x-ms-meta-a": "1", **TAGGED}
    reply = copy(box, source.add("file", File(body, described)))
    assert (reply.status, reply["x-ms-copy-status"]) == (202, "pending")
    done = settled(box)
    assert (done["x-ms-copy-status"], done["x-ms-copy-id"]) == ("success", reply["x-ms-copy-id"])
    assert done["x-ms-copy-progress"] == f"{len(body)}/{len(body)}"
    assert done["x-ms-copy-completion-time"] == done["Last-Modified"]
    assert (done["Content-Type"], done["Cache-Control"], done.metadata) == ("text/plain", "no-cache", {"a": "1"})
    assert done["ETag"] != reply["ETag"]
    assert box.get("copy").body == body
    assert pending_copies(box) == []


def test_while_it_is_pending_the_blob_is_empty_and_nobody_writes_it(box: Box, source: Elsewhere) -> None:
    file = held(before_gate=10 * MIB)
    copy_id = copy(box, source.add("file", file), headers={"x-ms-meta-a": "1"})["x-ms-copy-id"]
    wait_for(lambda: box.head("copy")["x-ms-copy-progress"] == f"{8 * MIB}/{len(LARGE)}")
    seen = box.get("copy")
    assert (seen.body, seen.metadata, seen["x-ms-copy-status"]) == (b"", {"a": "1"}, "pending")
    assert "x-ms-copy-completion-time" not in seen
    busy = (409, "PendingCopyOperation")
    assert box.put("copy").answer == busy
    assert box.put_block("AAAA", name="copy").answer == busy
    assert box.put_block_list("", "copy").answer == busy
    assert box.blob("PUT", "copy", "metadata").answer == busy
    assert box.blob("PUT", "copy", "properties").answer == busy
    assert box.blob("PUT", "copy", "snapshot").answer == busy
    assert box.blob("PUT", "copy", "tier", {"x-ms-access-tier": "Cool"}).answer == busy
    assert box.blob("PUT", "copy", "tags", body=b"<Tags><TagSet /></Tags>").answer == busy
    assert box.blob("DELETE", "copy").answer == busy
    assert box.lease("acquire", name="copy").answer == busy
    assert copy(box, url(box, "copy")).answer == busy
    assert copy(box, url(box, "copy"), "second").answer == busy
    assert abort(box, HOLDER).answer == (409, "CopyIdMismatch")
    release(file)
    assert settled(box)["x-ms-copy-id"] == copy_id
    assert box.get("copy").body == LARGE


def test_an_aborted_copy_leaves_an_empty_blob_with_its_metadata(box: Box, source: Elsewhere) -> None:
    box.put("copy", b"before", {"x-ms-meta-old": "1"})
    file = held(before_gate=10 * MIB, headers={"x-ms-meta-a": "1"})
    copy_id = copy(box, source.add("file", file))["x-ms-copy-id"]
    wait_for(lambda: box.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    assert abort(box, copy_id).status == 204
    after = box.get("copy")
    assert (after.body, after.metadata, after["x-ms-copy-status"]) == (b"", {"a": "1"}, "aborted")
    assert "x-ms-copy-completion-time" in after
    assert abort(box, copy_id).answer == (409, "NoPendingCopyOperation")
    assert pending_copies(box) == []
    release(file)
    assert box.put("copy", b"again").status == 201
    box.server.move_clock(2 * 86400)
    box.server.run(box.server.app.collector.collect())
    assert box.get("copy").body == b"again"


def test_abort_asks_for_the_lease_of_the_target(box: Box, source: Elsewhere) -> None:
    # contract L5
    box.put("copy")
    box.acquire(-1, "copy", HOLDER)
    lease = {"x-ms-lease-id": HOLDER}
    file = held()
    address = source.add("file", file)
    assert copy(box, address).answer == (412, "LeaseIdMissing")
    copy_id = copy(box, address, headers=lease)["x-ms-copy-id"]
    assert abort(box, copy_id).answer == (412, "LeaseIdMissing")
    assert abort(box, copy_id, headers={"x-ms-lease-id": copy_id}).answer == (412, "LeaseIdMismatchWithBlobOperation")
    assert abort(box, copy_id, headers=lease).status == 204
    assert box.head("copy")["x-ms-lease-state"] == "leased"


@pytest.mark.parametrize("kind", ["PageBlob", "AppendBlob"])
def test_the_type_of_the_source_is_kept(box: Box, source: Elsewhere, kind: str) -> None:
    body = b"a" * (8 * MIB) + bytes(8 * MIB) + b"z" * 1024
    properties = {"x-ms-blob-type": kind, "x-ms-blob-sequence-number": "5", "x-ms-blob-committed-block-count": "4"}
    file = held(body, headers=properties)
    copy(box, source.add("file", file))
    assert box.head("copy")["Content-Length"] == (str(len(body)) if kind == "PageBlob" else "0")
    release(file)
    done = settled(box)
    assert (done["x-ms-blob-type"], done["Content-Length"]) == (kind, str(len(body)))
    assert box.get("copy").body == body
    if kind == "PageBlob":
        assert done["x-ms-blob-sequence-number"] == "5"
        assert pages.ranges_in(box.blob("GET", "copy", "pagelist")) == [(0, 8 * MIB), (16 * MIB, len(body))]
    else:
        assert done["x-ms-blob-committed-block-count"] == "4"
        assert box.blob("PUT", "copy", "appendblock", body=b"more")["x-ms-blob-append-offset"] == str(len(body))


@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_breaks_is_made_again_where_it_broke(box: Box, source: Elsewhere, ranges: bool) -> None:
    file = File(LARGE, TAGGED, ranges=ranges, breaks={1: 10 * MIB, 2: 100})
    copy(box, source.add("file", file))
    assert settled(box)["x-ms-copy-status"] == "success"
    assert box.get("copy").body == LARGE
    assert [asked.get("range") for asked in file.asked] == [None, None, f"bytes={8 * MIB}-", f"bytes={8 * MIB}-"]
    assert [asked.get("if-match") for asked in file.asked] == [None, '"one"', '"one"', '"one"']


@pytest.mark.parametrize("heeds_conditions", [True, False])
def test_a_source_that_changes_meanwhile_fails_the_copy(box: Box, source: Elsewhere, heeds_conditions: bool) -> None:
    file = File(LARGE, dict(TAGGED), heeds_conditions=heeds_conditions, breaks={1: 10 * MIB}, gate=threading.Event())
    copy(box, source.add("file", file))
    wait_for(lambda: box.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    file.headers["ETag"] = '"two"'
    release(file)
    failed = settled(box)
    assert (failed["x-ms-copy-status"], failed["Content-Length"]) == ("failed", "0")
    assert failed["x-ms-copy-status-description"].startswith('412 PreconditionFailed "')
    assert "x-ms-copy-completion-time" in failed
    assert box.put("copy", b"usable again").status == 201


def test_a_source_that_is_forbidden_later_fails_the_copy(box: Box, source: Elsewhere) -> None:
    file = File(LARGE, TAGGED, gate=threading.Event(), breaks={1: 10 * MIB})
    copy(box, source.add("file", file))
    wait_for(lambda: len(file.asked) >= 2)
    file.status, file.headers = 403, {"x-ms-error-code": "AuthenticationFailed"}
    file.ranges = False
    file.heeds_conditions = False
    release(file)
    failed = settled(box)
    assert failed["x-ms-copy-status"] == "failed"
    assert failed["x-ms-copy-status-description"].startswith('403 AuthenticationFailed "Copy failed')
    listed = box.page({"include": "copy"}).xml.find(".//CopyStatusDescription")
    assert listed is not None
    assert listed.text == failed["x-ms-copy-status-description"]


def test_a_copy_that_takes_more_than_two_weeks_fails(box: Box, source: Elsewhere) -> None:
    file = held(before_gate=9 * MIB)
    copy(box, source.add("file", file))
    wait_for(lambda: box.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    box.server.move_clock(15 * 86400)
    release(file)
    assert settled(box)["x-ms-copy-status-description"].startswith("500 OperationCancelled")


def test_another_process_goes_on_where_one_fell_silent(box: Box, source: Elsewhere) -> None:
    file = held(before_gate=10 * MIB)
    copy(box, source.add("file", file))
    wait_for(lambda: box.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    app = box.server.app
    box.server.run(app.copier.stop())
    release(file)
    app.copier = Copier(app.ctx)
    box.server.run(started(app.copier))
    box.server.move_clock(60)  # the claim of the first one has expired
    assert settled(box)["x-ms-copy-status"] == "success"
    assert file.asked[-1]["range"] == f"bytes={8 * MIB}-"
    assert box.get("copy").body == LARGE


async def started(copier: Copier) -> None:
    copier.start()


def test_a_copy_ends_with_its_container(box: Box, source: Elsewhere) -> None:
    file = held(before_gate=10 * MIB)
    copy(box, source.add("file", file))
    wait_for(lambda: box.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
    assert box.container("DELETE").status == 202
    box.create()
    box.put("copy", b"of the new container")
    release(file)
    box.server.run(box.server.app.collector.collect())
    box.server.move_clock(600)
    wait_for(lambda: pending_copies(box) == [])
    assert box.get("copy").body == b"of the new container"


def test_a_copy_goes_on_when_its_container_is_restored(box: Box, source: Elsewhere) -> None:
    ctx, account = box.server.app.ctx, box.client.account
    box.server.run(change_settings(ctx, account, SettingsChange(container_soft_delete_days=7)))
    try:
        file = held(before_gate=10 * MIB)
        copy(box, source.add("file", file))
        wait_for(lambda: box.head("copy")["x-ms-copy-progress"].startswith(str(8 * MIB)))
        assert box.container("DELETE").status == 202
        release(file)
        box.server.move_clock(60)
        wait_for(lambda: pending_copies(box)[0].claimed_by == "")
        deleted = box.client.send("GET", query={"comp": "list", "include": "deleted", "prefix": box.name})
        version = deleted.xml.findtext(".//Version") or ""
        restored = {"x-ms-deleted-container-name": box.name, "x-ms-deleted-container-version": version}
        assert box.container("PUT", "undelete", restored).status == 201
        box.server.move_clock(600)
        assert settled(box)["x-ms-copy-status"] == "success"
        assert box.get("copy").body == LARGE
    finally:
        box.server.run(change_settings(ctx, account, SettingsChange(container_soft_delete_days=0)))


def test_many_copies_wait_for_their_turn(box: Box, source: Elsewhere) -> None:
    files = {f"copy{number}": File(bytes([number]) * 100_000, TAGGED) for number in range(12)}
    for name, file in files.items():
        assert copy(box, source.add(name, file), name).status == 202
    for name, file in files.items():
        assert settled(box, name)["x-ms-copy-status"] == "success"
        assert box.get(name).body == file.body


# --- what is refused at once --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [copy, copy_now])
@pytest.mark.parametrize(
    ("status", "code", "answer"),
    [(403, "AuthenticationFailed", 403), (404, "BlobNotFound", 404), (409, "BlobArchived", 409), (302, "Found", 409)],
)
def test_the_refusal_of_the_source_is_shown(box: Box, source: Elsewhere, form: Form, status: int, code: str, answer: int) -> None:
    body = b"<Error><Code>X</Code><Message>Not for you.</Message></Error>"
    address = source.add("file", File(body, {"x-ms-error-code": code, "Location": "http://127.0.0.1:1/"}, status=status))
    reply = form(box, address)
    assert reply.answer == (answer, "CannotVerifyCopySource")
    assert (reply["x-ms-copy-source-status-code"], reply["x-ms-copy-source-error-code"]) == (str(status), code)
    assert reply.detail("CopySourceErrorMessage") == "Not for you."
    assert box.names() == []


def test_a_source_that_cannot_be_reached(box: Box) -> None:
    reply = copy(box, "http://127.0.0.1:1/a/b")
    assert reply.answer == (500, "CannotVerifyCopySource")


def test_an_asynchronous_copy_has_to_know_how_long_the_source_is(box: Box, source: Elsewhere) -> None:
    address = source.add("file", File(b"in chunks", {"Transfer-Encoding": "chunked"}))
    assert copy(box, address).answer == (411, "CannotVerifyCopySource")
    assert copy_now(box, address).status == 202
    assert box.get("copy").body == b"in chunks"


def test_conditions_travel_to_the_source(box: Box, source: Elsewhere) -> None:
    file = File(b"x", TAGGED)
    address = source.add("file", file)
    unmet = {"x-ms-source-if-match": '"two"'}
    assert copy(box, address, headers=unmet).answer == (412, "SourceConditionNotMet")
    assert copy(box, address, headers={"x-ms-source-if-match": '"one"'}).status == 202
    assert settled(box)["x-ms-copy-status"] == "success"
    date = box.client.date(-60)
    copy_now(box, address, headers={"x-ms-source-if-modified-since": date})
    assert file.asked[-1]["if-modified-since"] == date
    only_new = {"If-None-Match": "*"}
    assert copy(box, address, headers=only_new).answer == (409, "BlobAlreadyExists")


def test_a_synchronous_copy_from_elsewhere_is_done_when_it_answers(box: Box, source: Elsewhere) -> None:
    address = source.add("file", File(LARGE, {"Content-Type": "text/plain"}))
    reply = copy_now(box, f"{address}?sv=1&sig=secret", headers={"x-ms-meta-a": "1"})
    assert (reply.status, reply["x-ms-copy-status"]) == (202, "success")
    copied = box.get("copy")
    assert (copied.body, copied["Content-Type"], copied.metadata) == (LARGE, "text/plain", {"a": "1"})
    assert (copied["Content-MD5"], "Content-MD5" in reply) == (md5(LARGE), False)
    assert copied["x-ms-copy-source"] == address


@pytest.mark.parametrize("kind", ["PageBlob", "AppendBlob"])
def test_a_synchronous_copy_takes_block_blobs_only_and_put_blob_takes_them_all(box: Box, source: Elsewhere, kind: str) -> None:
    # contract G7
    there = source.add("file", File(bytes(512), {"x-ms-blob-type": kind}))
    if kind == "PageBlob":
        pages.create(box, 512)
    else:
        box.blob("PUT", headers={"x-ms-blob-type": kind})
        box.blob("PUT", comp="appendblock", body=bytes(512))
    for origin in (there, signed(box, "blob")):
        refused = copy_now(box, origin)
        assert refused.answer == (409, "CannotVerifyCopySource")
        assert "The copy source must be a block blob." in (refused.detail("Message") or "")
        assert box.head("copy").status == 404
        assert copy(box, origin, headers={"x-ms-blob-type": "BlockBlob"}).status == 201
        assert (box.head("copy")["x-ms-blob-type"], box.get("copy").body) == ("BlockBlob", bytes(512))
        box.blob("DELETE", "copy")


@pytest.mark.parametrize(
    ("extra", "heeded"), [({"x-ms-requires-sync": "true"}, False), ({"x-ms-blob-type": "BlockBlob"}, True), ({}, True)], ids=str
)
def test_a_condition_is_passed_on_if_the_operation_has_it(
    box: Box, source: Elsewhere, extra: dict[str, str], heeded: bool
) -> None:
    file = File(b"x")
    reply = copy(box, source.add("file", file), headers={"x-ms-source-if-tags": "k = 'v'"} | extra)
    assert reply.status in (201, 202)
    assert ("x-ms-if-tags" in file.asked[0]) is heeded


def test_a_token_for_the_source_is_passed_on(box: Box, source: Elsewhere) -> None:
    file = File(b"x")
    address = source.add("file", file)
    assert copy_now(box, address, headers={"x-ms-copy-source-authorization": "Bearer abc"}).status == 202
    assert file.asked[-1]["authorization"] == "Bearer abc"
    assert "x-ms-file-request-intent" not in file.asked[-1]
    of_a_file = {"x-ms-copy-source-authorization": "Bearer abc", "x-ms-file-request-intent": "backup"}
    for form in (copy_now, copy):
        assert form(box, address, headers=of_a_file).status == 202
        assert (file.asked[-1]["authorization"], file.asked[-1]["x-ms-file-request-intent"]) == ("Bearer abc", "backup")
    wrong = {"x-ms-copy-source-authorization": "SharedKey a:b"}
    assert copy_now(box, address, headers=wrong).answer == (400, "InvalidHeaderValue")


def test_a_body_that_ends_early_leaves_nothing(box: Box, source: Elsewhere) -> None:
    address = source.add("file", File(LARGE, breaks={0: 100_000}))
    assert copy_now(box, address).answer == (500, "CannotVerifyCopySource")
    assert box.names() == []


@pytest.mark.parametrize(
    ("outbound", "allowed"),
    [
        (Outbound(), True),
        (Outbound(allowed=False), False),
        (Outbound(hosts=("example.com", "*.example.com")), False),
        (Outbound(hosts=("127.0.0.1",)), True),
        (Outbound(hosts=("127.0.0.1:1",)), False),
    ],
)
def test_the_operator_says_which_hosts_are_asked(tmp_path: Path, source: Elsewhere, outbound: Outbound, allowed: bool) -> None:
    with running(tmp_path, in_memory=True, outbound=outbound) as server:
        box = Box(Client(server)).create()
        file = File(b"x")
        address = source.add("file", file)
        expected = (202, None) if allowed else (403, "CannotVerifyCopySource")
        assert copy_now(box, address).answer == expected
        assert copy(box, address).answer == expected
        assert bool(file.asked) is allowed
        box.put("source")
        assert copy(box, url(box), "own").status == 202
        box.client.close()


def test_a_machine_with_dots_in_its_name_reads_its_own_blobs_and_not_those_of_a_neighbour(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True, outbound=Outbound(allowed=False)) as server:
        client = Client(server)
        box = Box(client).create()
        box.put("source", b"here")
        path = f"/{server.account}{box.path}"
        for own, neighbour in (("storage.default.svc", "other.default.svc"), ("DESKTOP-1.local", "DESKTOP-2.local")):
            for host, expected in ((own, (202, None)), (neighbour, (403, "CannotVerifyCopySource"))):
                source = {"x-ms-copy-source": f"http://{host}:{server.port}{path}/source"}
                assert client.send("PUT", f"{path}/copy", headers=source, host=own).answer == expected
        client.close()


def test_an_account_s_name_at_azure_is_the_account_that_is_written_to(tmp_path: Path) -> None:
    """az builds such a source from names; the server sends no outbound request."""
    with running(tmp_path, in_memory=True, outbound=Outbound(allowed=False)) as server:
        client = Client(server)
        box = Box(client).create()
        box.put("source", b"here")
        named = f"https://{server.account}.blob.core.windows.net{box.path}/source"
        assert (copy(box, named).status, box.head("copy")["x-ms-copy-source"]) == (202, named)
        assert box.get("copy").body == b"here"
        assert copy_now(box, named).answer == (401, "CannotVerifyCopySource")
        elsewhere_of_that_name = (403, "CannotVerifyCopySource")
        assert copy(box, f"{named}?{box.sas('r')}").answer == elsewhere_of_that_name
        assert copy(box, named, headers={"x-ms-copy-source-authorization": "Bearer theirs"}).answer == elsewhere_of_that_name
        assert copy(box, named, auth=box.sas("rw")).answer == elsewhere_of_that_name
        assert copy(box, named.replace(server.account, "another")).answer == elsewhere_of_that_name
        client.close()
