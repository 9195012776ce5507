"""Server-sent events: requests of all workers, counters, and the state of a watched object, which changes on its own."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError
from azure.storage.blob import BlobServiceClient

from tests.rest.running import ADMIN, PATIENCE_SECONDS, Running, running
from tests.simulation.servers import Server
from verditer.services.account import DEVELOPMENT_ACCOUNT as ACCOUNT
from verditer.services.account import DEVELOPMENT_KEY
from verditer.serving.request_summary import RequestSummary
from verditer.web.events import _changes

Events = Iterator[tuple[str, Any]]


@contextmanager
def watching(port: int, query: str) -> Iterator[Events]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", f"/api/events?{query}", headers=ADMIN)
    response = connection.getresponse()
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/event-stream"
    try:
        yield _events(response)
    finally:
        connection.close()


def _events(response: http.client.HTTPResponse) -> Events:
    name = ""
    while line := response.readline():
        field, _, value = line.decode().rstrip("\n").partition(": ")
        if field == "event":
            name = value
        elif field == "data":
            yield name, json.loads(value)


def blobs(server: Running) -> BlobServiceClient:
    return BlobServiceClient.from_connection_string(server.connection_string, retry_total=0)


def test_the_feed_shows_requests_and_says_why_one_was_refused(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server, watching(server.admin_port, "topics=feed") as events:
        container = blobs(server).create_container("feed")
        blob = container.upload_blob("a", b"1")
        etag = blob.get_blob_properties().etag
        blob.upload_blob(b"2", overwrite=True)
        with suppress(ResourceModifiedError):
            blob.upload_blob(b"3", overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["status"] != 412:
            name, entries = next(events)
            assert name == "requests"
            seen += entries
        assert [entry["operation"] for entry in seen] == ["CreateContainer", "PutBlob", "GetBlobProperties", "PutBlob", "PutBlob"]
        assert seen[-1]["code"] == "ConditionNotMet"
        assert seen[-1]["why"].startswith("The object was changed after the client had read it")
        assert seen[0]["why"] is None


def test_a_watched_object_is_sent_again_when_it_changes_or_its_lease_ends(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server:
        blob = blobs(server).create_container("watched").upload_blob("a/b", b"1")
        with watching(server.admin_port, f"service=blob&account={ACCOUNT}&path={quote('watched/a/b', safe='')}") as events:
            assert next(events)[1]["lease"]["state"] == "available"
            blob.acquire_lease(60)
            assert _until(events, "leased")
            server.move_clock(61)
            assert _until(events, "expired")
            blob.delete_blob()
            while (found := next(events)[1]).get("etag"):
                assert found["lease"]["state"] == "expired"


def _until(events: Events, state: str) -> bool:
    return any(document["lease"]["state"] == state for _, document in events)


def test_counters_grow_with_requests_and_not_with_the_explorer(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server, watching(server.admin_port, "topics=metrics") as events:
        assert sum(next(events)[1]["requests"].values()) == 0
        http_get(server.admin_port, f"/storage/blob/{ACCOUNT}?comp=list")
        blobs(server).create_container("counted")
        while not (found := next(events)[1])["requests"]:
            pass
        assert (found["requests"], found["statuses"]) == ({"blob": 1}, {"201": 1})


def http_get(port: int, target: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.request("GET", target, headers=ADMIN)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_server_that_stops_ends_the_streams(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server, watching(server.admin_port, "topics=feed") as events:
        server.run(_stop_events(server))
        assert list(events) == []


async def _stop_events(server: Running) -> None:
    assert server.app.admin is not None
    server.app.admin.events.stop()


def test_the_feed_shows_the_requests_of_every_worker(tmp_path: Path) -> None:
    """Connections are spread over two workers, on a busy machine not evenly; one of the workers serves the feed."""
    server = Server(tmp_path / "data").start()
    try:
        worker_of: dict[str, int] = {}
        clients: list[BlobServiceClient] = []  # each keeps its connection
        with watching(server.admin_port, "topics=feed") as events:
            while set(worker_of.values()) != {0, 1}:
                clients.append(_blob_client(server))
                path = f"/{ACCOUNT}/box-{len(clients)}"
                clients[-1].create_container(f"box-{len(clients)}")
                while path not in worker_of:
                    name, entries = next(events)
                    assert name == "requests"
                    worker_of |= {entry["path"]: entry["worker"] for entry in entries}
        assert set(worker_of) == {f"/{ACCOUNT}/box-{number + 1}" for number in range(len(clients))}
    finally:
        server.stop()


def _blob_client(server: Server) -> BlobServiceClient:
    url = f"http://127.0.0.1:{server.port}/{ACCOUNT}"
    return BlobServiceClient(url, credential={"account_name": ACCOUNT, "account_key": DEVELOPMENT_KEY}, retry_total=0)


@pytest.mark.parametrize(
    ("service", "request_line", "lists"),
    [
        ("blob", "PUT /box", ["", "box"]),
        ("blob", "PUT /box/a%20b", ["box"]),
        ("blob", "DELETE /box/folder/a", ["box"]),
        ("blob", "GET /box/a", []),
        ("blob", "PUT /boxes/a", []),
        ("table", "PUT /box(PartitionKey='a',RowKey='b/c')", ["box"]),
        ("table", "POST /$batch", ["", "box"]),
        ("table", "DELETE /Tables('box')", [""]),
    ],
)
def test_a_page_is_notified_of_requests_that_may_change_its_list(service: str, request_line: str, lists: list[str]) -> None:
    done = _request(service, request_line)
    assert [name for name in ("", "box") if _changes(done, service, [ACCOUNT, *filter(None, [name])])] == lists
    assert not _changes(done, "queue", [ACCOUNT, "box"])
    assert not _changes(msgspec.structs.replace(done, status=409), service, [ACCOUNT, "box"])
    host_style = msgspec.structs.replace(done, path=done.path.removeprefix(f"/{ACCOUNT}"))
    assert _changes(host_style, service, [ACCOUNT, "box"]) == ("box" in lists)


def _request(service: str, text: str) -> RequestSummary:
    method, _, path = text.partition(" ")
    fields: dict[str, Any] = {"bytes_in": 0, "bytes_out": 0, "seconds": 0.0, "request_id": "", "client": "", "time": 0}
    path = f"/{ACCOUNT}{path}"
    return RequestSummary(service=service, operation=None, method=method, path=path, status=201, error_code=None, **fields)


def test_a_change_over_smb_changes_lists_of_files() -> None:
    written = msgspec.structs.replace(_request("smb", "Write "), operation="Write", status="SUCCESS")
    read = msgspec.structs.replace(written, operation="Read")
    assert _changes(written, "file", [ACCOUNT, "share"])
    assert not _changes(read, "file", [ACCOUNT, "share"])
    assert not _changes(written, "blob", [ACCOUNT, "share"])


def test_a_change_before_the_page_was_opened_is_not_reported(tmp_path: Path) -> None:
    with running(tmp_path, in_memory=True) as server:
        blobs(server).create_container("before")
        query = f"topics=changes,metrics&service=blob&account={ACCOUNT}&list="
        with watching(server.admin_port, query) as events:
            assert next(events)[0] == "metrics"
            blobs(server).create_container("after")
            while (name := next(events)[0]) == "metrics":
                pass
            assert name == "changed"
