"""Create and Read Symbolic Link, Create Hard Link. `tests/contract/test_file_links.py` tests what links mean for the file."""

from collections.abc import Iterator, Mapping

import pytest

from tests.rest.client import Reply
from tests.rest.files import FileClient, ShareBox
from tests.rest.running import Running

SYMBOLIC, HARD = {"restype": "symboliclink"}, {"restype": "hardlink"}
OLD = "2001-02-03T04:05:06.0000007Z"
SHOWN = ("ETag", "Last-Modified", "x-ms-file-id", "x-ms-file-change-time", "x-ms-link-count", "x-ms-mode", "x-ms-owner")


@pytest.fixture
def client(server: Running) -> Iterator[FileClient]:
    client = FileClient(server)
    yield client
    client.close()


@pytest.fixture
def share(client: FileClient) -> ShareBox:
    return ShareBox(client).create({"x-ms-enabled-protocols": "NFS"})


def symbolic_link(share: ShareBox, name: str, text: str, headers: Mapping[str, str] | None = None) -> Reply:
    return share.file("PUT", name, headers={"x-ms-link-text": text, **(headers or {})}, query=SYMBOLIC)


def hard_link(share: ShareBox, name: str, file: str, headers: Mapping[str, str] | None = None) -> Reply:
    sent = {"x-ms-type": "file", "x-ms-file-target-file": file, **(headers or {})}
    return share.file("PUT", name, headers=sent, query=HARD)


def test_a_symbolic_link_is_read_as_it_was_written(share: ShareBox) -> None:
    share.make("dir")
    sent = {
        "x-ms-meta-Colour": "blue",
        "x-ms-file-creation-time": OLD,
        "x-ms-file-last-write-time": OLD,
        "x-ms-owner": "345",
        "x-ms-group": "123",
    }
    created = symbolic_link(share, "dir/link", "some%2Fother%20file", sent)
    assert (created.status, created.body) == (201, b"")
    assert (created["x-ms-file-file-type"], created["x-ms-mode"], created["x-ms-link-count"]) == ("SymLink", "0777", "1")
    assert (created["x-ms-owner"], created["x-ms-group"]) == ("345", "123")
    assert created["x-ms-file-creation-time"] == created["x-ms-file-last-write-time"] == OLD
    assert "x-ms-file-attributes" not in created
    read = share.file("GET", "dir/link", query=SYMBOLIC)
    assert (read.status, read["x-ms-link-text"], read["ETag"]) == (200, "some%2Fother%20file", created["ETag"])
    assert share.head("dir/link").metadata == {"Colour": "blue"}
    assert share.names("dir") == ["link"]


def test_a_symbolic_link_of_a_snapshot_can_be_read(share: ShareBox) -> None:
    symbolic_link(share, "link", "file")
    snapshot = share.snapshot()
    assert share.file("DELETE", "link").status == 202
    assert share.file("GET", "link", query=SYMBOLIC | {"sharesnapshot": snapshot})["x-ms-link-text"] == "file"
    assert share.file("GET", "link", query=SYMBOLIC).answer == (404, "ResourceNotFound")


def test_a_hard_link_is_the_same_file(share: ShareBox) -> None:
    share.make("dir")
    share.fill(b"content", "dir/a file")
    created = hard_link(share, "link", "dir/a file")
    assert created.status == 201
    assert (created["x-ms-link-count"], created["x-ms-file-file-type"]) == ("2", "Regular")
    assert share.get("link").body == b"content"
    one, other = share.head("dir/a file"), share.head("link")
    assert [one[name] for name in SHOWN] == [other[name] for name in SHOWN] == [created[name] for name in SHOWN]
    assert one["x-ms-file-parent-id"] != other["x-ms-file-parent-id"]
    assert hard_link(share, "encoded", "/dir/a%20file").status == 201
    deleted = share.file("DELETE", "dir/a file")
    assert (deleted.status, deleted["x-ms-link-count"]) == (202, "2")
    assert share.get("link").body == b"content"
    assert share.file("DELETE", "encoded")["x-ms-link-count"] == "1"
    assert share.file("DELETE", "link")["x-ms-link-count"] == "0"


def test_a_leased_file_gets_another_name_with_its_lease(share: ShareBox) -> None:
    share.fill(b"content")
    lease = share.acquire()
    assert hard_link(share, "link", "file").answer == (412, "LeaseIdMissing")
    assert hard_link(share, "link", "file", {"x-ms-lease-id": lease}).status == 201


def test_links_are_refused_by_name(share: ShareBox) -> None:
    share.make("dir")
    share.fill(b"content")
    assert symbolic_link(share, "file", "x").answer == (409, "ResourceAlreadyExists")
    assert symbolic_link(share, "none/link", "x").answer == (404, "ParentNotFound")
    assert symbolic_link(share, "link", "x" * 2049).answer == (400, "InvalidHeaderValue")
    assert share.file("PUT", "link", query=SYMBOLIC).answer == (400, "MissingRequiredHeader")
    assert share.file("GET", "file", query=SYMBOLIC).answer == (409, "ResourceTypeMismatch")
    assert hard_link(share, "file", "file").answer == (409, "ResourceAlreadyExists")
    assert hard_link(share, "none/link", "file").answer == (404, "ParentNotFound")
    assert hard_link(share, "link", "none").answer == (404, "ResourceNotFound")
    assert hard_link(share, "link", "none/file").answer == (404, "ParentNotFound")
    assert hard_link(share, "link", "dir").answer == (409, "ResourceTypeMismatch")
    assert share.file("PUT", "link", headers={"x-ms-type": "file"}, query=HARD).answer == (400, "MissingRequiredHeader")
    assert share.names() == ["dir", "file"]


def test_a_share_for_smb_has_no_links(client: FileClient) -> None:
    share = ShareBox(client).create()
    share.fill(b"content")
    for reply in (symbolic_link(share, "link", "file"), hard_link(share, "link", "file")):
        assert reply.answer == (400, "InvalidInput")
        assert "NFS" in (reply.detail("Message") or "")
    assert share.file("GET", "file", query=SYMBOLIC).answer == (400, "InvalidInput")


def test_a_symbolic_link_cannot_be_resized(share: ShareBox) -> None:
    symbolic_link(share, "link", "file")
    assert share.file("PUT", "link", "properties", {"x-ms-content-length": "10"}).answer == (409, "ResourceTypeMismatch")
    assert share.file("PUT", "link", "properties", {"x-ms-owner": "7"})["x-ms-owner"] == "7"


def test_a_copy_over_one_name_is_seen_under_the_other(share: ShareBox) -> None:
    share.fill(b"content")
    share.fill(b"the source", "source")
    hard_link(share, "link", "file")
    hard_link(share, "source link", "source")
    assert share.file("PUT", "link", headers={"x-ms-copy-source": share.url("source link")}).status == 202
    assert share.get("file").body == share.get("link").body == b"the source"
    assert share.head("file")["x-ms-link-count"] == "2"
    assert share.head("file")["x-ms-copy-id"] == share.head("link")["x-ms-copy-id"]
    assert share.write(b"THE", name="file").status == 201
    assert (share.get("link").body, share.get("source").body) == (b"THE source", b"the source")


def test_the_root_of_an_nfs_share_has_a_mode_and_no_attributes(files: FileClient) -> None:
    share = ShareBox(files).create({"x-ms-enabled-protocols": "NFS"})
    root = share.directory("GET")
    assert (root["x-ms-mode"], root["x-ms-owner"], root["x-ms-file-file-type"]) == ("0775", "0", "Directory")
    assert "x-ms-file-attributes" not in root
    assert "x-ms-file-permission-key" not in root
