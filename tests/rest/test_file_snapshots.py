"""Share snapshots: what they keep, how they are named, listed and deleted, and that nothing writes to them."""

from collections.abc import Callable, Iterator

import pytest

from tests.conftest import watched
from tests.rest.client import Reply
from tests.rest.files import DIRECTORY, ShareBox
from tests.rest.history import collect
from tests.rest.running import Running

Ask = Callable[[ShareBox, dict[str, str]], Reply]


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def at(snapshot: str) -> dict[str, str]:
    return {"sharesnapshot": snapshot}


def test_a_snapshot_has_the_etag_and_metadata_of_its_share(share: ShareBox) -> None:
    share.share("PUT", "metadata", {"x-ms-meta-m": "1"})
    etag = share.share("GET")["ETag"]
    reply = share.share("PUT", "snapshot")
    assert (reply.status, reply["ETag"]) == (201, etag)
    name = reply["x-ms-snapshot"]
    assert name.endswith(".0000000Z")
    share.share("PUT", "metadata", {"x-ms-meta-m": "2"})
    found = share.share("GET", query=at(name))
    assert (found["ETag"], found.metadata) == (etag, {"m": "1"})
    assert share.share("GET", "metadata", query=at(name)).metadata == {"m": "1"}
    assert share.share("GET").metadata == {"m": "2"}


def test_a_snapshot_may_have_metadata_of_its_own(share: ShareBox) -> None:
    share.share("PUT", "metadata", {"x-ms-meta-m": "1"})
    name = share.snapshot({"x-ms-meta-other": "2"})
    assert share.share("GET", query=at(name)).metadata == {"other": "2"}
    assert share.share("GET").metadata == {"m": "1"}


def test_snapshots_within_a_second_have_different_names(share: ShareBox) -> None:
    names = [share.snapshot() for _ in range(3)]
    assert len(set(names)) == 3
    assert sorted(names) == names


def test_a_snapshot_keeps_names_properties_and_contents(share: ShareBox) -> None:
    share.make("d", "d/gone")
    share.fill(b"before", "d/file")
    share.file("PUT", "d/file", "metadata", {"x-ms-meta-m": "1"})
    before = share.head("d/file")
    name = share.snapshot()
    share.write(b"after!", name="d/file")
    share.file("PUT", "d/file", "metadata", {"x-ms-meta-m": "2"})
    share.file("PUT", "d/file", "properties", {"x-ms-content-length": "3", "x-ms-file-attributes": "Hidden"})
    share.directory("DELETE", "d/gone")
    share.put("d/new")
    assert share.rename("d", "moved", query=DIRECTORY).status == 200
    found = share.get("d/file", query=at(name))
    assert (found.status, found.body, found.metadata) == (200, b"before", {"m": "1"})
    for header in ("ETag", "Last-Modified", "x-ms-file-attributes", "x-ms-file-change-time", "x-ms-file-id", "Content-Length"):
        assert found[header] == before[header]
    assert share.get("d/file", {"Range": "bytes=2-3"}, query=at(name)).body == b"fo"
    assert share.file("GET", "d/file", "metadata", query=at(name)).metadata == {"m": "1"}
    assert share.directory("GET", "d/gone", query=at(name)).status == 200
    assert share.directory("GET", "d", "metadata", query=at(name)).status == 200
    listed = share.page("d", at(name))
    assert listed.xml.attrib["ShareSnapshot"] == name
    assert [item.findtext("Name") for item in listed.xml.find("Entries") or ()] == ["file", "gone"]
    assert share.names("moved") == ["file", "new"]
    assert share.ranges("d/file", at(name)) == [("Range", 0, 5)]
    assert share.get("moved/file").body == b"aft"
    collect(share.server)
    assert share.get("d/file", query=at(name)).body == b"before"


def test_a_file_that_came_later_is_not_in_the_snapshot(share: ShareBox) -> None:
    name = share.snapshot()
    share.make("d")
    share.fill(b"late")
    assert share.get(query=at(name)).answer == (404, "ResourceNotFound")
    assert share.get("d/file", query=at(name)).answer == (404, "ParentNotFound")
    assert share.names(query=at(name)) == []


def test_a_deleted_snapshot_is_gone_and_its_share_stays(share: ShareBox) -> None:
    share.fill(b"one")
    first = share.snapshot()
    share.write(b"two")
    second = share.snapshot()
    share.write(b"six")
    assert share.share("DELETE", query=at(first)).status == 202
    assert share.get(query=at(first)).answer == (404, "ShareSnapshotNotFound")
    assert share.share("DELETE", query=at(first)).answer == (404, "ShareSnapshotNotFound")
    collect(share.server)
    assert share.get(query=at(second)).body == b"two"
    assert share.get().body == b"six"


def test_a_snapshot_that_never_was_is_not_found(share: ShareBox) -> None:
    share.fill(b"x")
    never = at("2020-01-01T00:00:00.0000000Z")
    assert share.share("GET", query=never).answer == (404, "ShareSnapshotNotFound")
    assert share.get(query=never).answer == (404, "ShareSnapshotNotFound")
    assert share.page(query=never).answer == (404, "ShareSnapshotNotFound")
    assert share.share("GET", query=at("yesterday")).answer == (400, "InvalidQueryParameterValue")


# fmt: off
WRITES: dict[str, Ask] = {
    "SetShareProperties":     lambda s, q: s.share("PUT", "properties", {"x-ms-share-quota": "9"}, query=q),
    "SetShareMetadata":       lambda s, q: s.share("PUT", "metadata", query=q),
    "SetShareAcl":            lambda s, q: s.share("PUT", "acl", query=q),
    "SnapshotShare":          lambda s, q: s.share("PUT", "snapshot", query=q),
    "CreateDirectory":        lambda s, q: s.directory("PUT", "new", query=q),
    "DeleteDirectory":        lambda s, q: s.directory("DELETE", "d", query=q),
    "SetDirectoryProperties": lambda s, q: s.directory("PUT", "d", "properties", query=q),
    "SetDirectoryMetadata":   lambda s, q: s.directory("PUT", "d", "metadata", query=q),
    "RenameDirectory":        lambda s, q: s.rename("d", "e", query={**DIRECTORY, **q}),
    "CreateFile":             lambda s, q: s.put("new", query=q),
    "DeleteFile":             lambda s, q: s.file("DELETE", query=q),
    "SetFileProperties":      lambda s, q: s.file("PUT", comp="properties", query=q),
    "SetFileMetadata":        lambda s, q: s.file("PUT", comp="metadata", query=q),
    "RenameFile":             lambda s, q: s.rename("file", "other", query=q),
    "LeaseFile":              lambda s, q: s.lease("acquire", query=q),
    "PutRange":               lambda s, q: s.write(b"x", query=q),
    "ClearRange":             lambda s, q: s.write(b"", headers={"x-ms-write": "clear", "x-ms-range": "bytes=0-0"}, query=q),
}
# fmt: on


def test_nothing_writes_to_a_snapshot(share: ShareBox) -> None:
    share.make("d")
    share.fill(b"x")
    name = share.snapshot()
    for operation, ask in WRITES.items():
        assert (operation, *ask(share, at(name)).answer) == (operation, 400, "InvalidQueryParameterValue")
    assert share.get().body == share.get(query=at(name)).body == b"x"
    assert share.names() == share.names(query=at(name)) == ["d", "file"]


def test_a_share_has_at_most_200_snapshots(share: ShareBox) -> None:
    if share.server.app.config.database is not None:
        pytest.skip("one engine is enough for a limit")
    for _ in range(200):
        share.snapshot()
    reply = share.share("PUT", "snapshot")
    assert reply.answer == (409, "ShareSnapshotCountExceeded")
    assert (reply.detail("Message") or "").startswith("The total number of snapshots for the share is over the limit.")
