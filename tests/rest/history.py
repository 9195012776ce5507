"""Shared by the tests of versions, soft delete and settings: settings for one test, and the states in a listing."""

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.rest.client import Box, Reply
from tests.rest.running import ADMIN, PATIENCE_SECONDS, Running

PLAIN: dict[str, object] = {
    "versioning": False,
    "blob_soft_delete_days": 0,
    "permanent_delete": False,
    "container_soft_delete_days": 0,
    "share_soft_delete_days": 0,
    "public_access": True,
    "hierarchical_namespace": False,
    "sku": "Standard_RAGRS",
    "kind": "StorageV2",
    "last_access_tracking": False,
    "version_level_immutability": False,
    "encryption_scopes": [],
    "smb_encrypted_shares": [],
}
DAY = 86400
EVERYTHING = "snapshots,versions,deleted,deletedwithversions,uncommittedblobs,metadata,tags"


def ask_admin(server: Running, method: str, path: str, document: object = None) -> tuple[int, dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.admin_port, timeout=PATIENCE_SECONDS)
    connection.request(method, path, json.dumps(document) if document is not None else None, ADMIN)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


def settle(server: Running, **settings: object) -> None:
    status, answer = ask_admin(server, "PUT", f"/control/accounts/{server.account}/settings", settings)
    assert status == 200, answer


@contextmanager
def settled(server: Running, **settings: object) -> Iterator[None]:
    """The server is shared, so the settings are restored after the test."""
    settle(server, **settings)
    try:
        yield
    finally:
        settle(server, **PLAIN)


def protect(box: Box, **values: object) -> tuple[int, dict[str, object]]:
    """Set what the control plane of Azure sets for a container."""
    return ask_admin(box.server, "PUT", f"/control/accounts/{box.server.account}/containers/{box.name}", values)


class State(NamedTuple):
    """An item of a listing."""

    name: str
    kind: str  # "blob", "snapshot", "version", "uncommitted", "versions only"; "deleted …" of the first three
    id: str
    size: int


def states(box: Box, include: str = EVERYTHING, **query: str) -> list[State]:
    """All pages of a listing; `maxresults` limits their size."""
    found: list[State] = []
    marker = ""
    while True:
        reply = box.page({"include": include, **query, **({"marker": marker} if marker else {})})
        assert reply.status == 200, reply.body
        found += [_state(item) for item in reply.xml.find("Blobs") or ()]
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            return found


def kinds(box: Box, include: str = EVERYTHING, **query: str) -> list[str]:
    return [state.kind for state in states(box, include, **query)]


def _state(item: Any) -> State:
    name, size = item.findtext("Name"), int(item.findtext("Properties/Content-Length") or 0)
    if item.tag == "BlobPrefix":
        return State(name, "prefix", "", 0)
    deleted = "deleted " if item.findtext("Deleted") == "true" else ""
    for element, kind in (("Snapshot", "snapshot"), ("VersionId", "version")):
        id = item.findtext(element)
        if id is not None and item.findtext("IsCurrentVersion") != "true":
            return State(name, deleted + kind, id, size)
    if item.findtext("HasVersionsOnly") == "true":
        return State(name, "versions only", "", size)
    if item.findtext("Properties/Etag") is None:
        return State(name, "uncommitted", "", size)
    return State(name, deleted + "blob", item.findtext("VersionId") or "", size)


def snapshot(box: Box, name: str = "blob") -> str:
    reply = box.blob("PUT", name, "snapshot")
    assert reply.status == 201, reply.body
    return reply["x-ms-snapshot"]


def put_version(box: Box, body: bytes, name: str = "blob", **more: Any) -> str:
    reply = box.put(name, body, **more)
    assert reply.status == 201, reply.body
    return reply["x-ms-version-id"]


def undelete(box: Box, name: str = "blob") -> Reply:
    return box.blob("PUT", name, "undelete")


def collect(server: Running) -> None:
    server.run(server.app.collector.collect())
