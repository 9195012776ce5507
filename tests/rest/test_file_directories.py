"""Directories: create, properties, metadata, delete, and the root of a share."""

import pytest

from tests.rest.client import Reply
from tests.rest.files import ShareBox

TIMES = ("x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time")
PROPERTIES = (*TIMES, "x-ms-file-attributes", "x-ms-file-permission-key", "x-ms-file-id", "x-ms-file-parent-id")


def shown(reply: Reply) -> dict[str, str]:
    return {name: reply[name] for name in (*PROPERTIES, "ETag", "Last-Modified")}


def test_a_new_directory_has_the_defaults(share: ShareBox) -> None:
    reply = share.directory("PUT", "d", headers={"x-ms-meta-UP": "1"})
    assert (reply.status, reply.body, reply["x-ms-request-server-encrypted"]) == (201, b"", "true")
    assert reply["x-ms-file-attributes"] == "Directory"
    assert reply["x-ms-file-parent-id"] == "0"
    assert len({reply[name] for name in TIMES}) == 1
    assert len(reply["x-ms-file-creation-time"]) == len("2021-07-05T01:36:57.9593040Z")
    found = share.directory("GET", "d")
    assert (found.status, found["x-ms-server-encrypted"], found.metadata) == (200, "true", {"UP": "1"})
    assert shown(found) == shown(reply)
    assert shown(share.directory("HEAD", "d")) == shown(reply)
    below = share.directory("PUT", "d/below")
    assert below["x-ms-file-parent-id"] == reply["x-ms-file-id"]
    assert share.directory("GET", "d")["ETag"] == reply["ETag"]  # what happens below changes nothing


def test_a_name_belongs_to_one_file_or_directory(share: ShareBox) -> None:
    share.make("d")
    share.put("file")
    for name in ("d", "D", "file"):
        reply = share.directory("PUT", name)
        assert reply.answer == (409, "ResourceAlreadyExists")
        assert (reply.detail("Message") or "").startswith("The specified resource already exists.\nRequestId:")


def test_a_slash_at_the_end_is_dropped(share: ShareBox) -> None:
    assert share.directory("PUT", "d/").status == 201
    assert share.directory("GET", "d").status == 200
    assert share.names() == ["d"]


def test_the_parent_has_to_exist(share: ShareBox) -> None:
    share.put("file")
    for reply in (share.directory("PUT", "no/d"), share.directory("GET", "no/d"), share.directory("DELETE", "no/d")):
        assert reply.answer == (404, "ParentNotFound")
    assert (share.directory("PUT", "no/d").detail("Message") or "").startswith("The specified parent path does not exist.")
    assert share.directory("PUT", "file/d").answer == (404, "ParentNotFound")
    assert share.directory("GET", "no").answer == (404, "ResourceNotFound")
    assert share.directory("DELETE", "no").answer == (404, "ResourceNotFound")
    assert share.directory("PUT", "no", "metadata").answer == (404, "ResourceNotFound")


def test_properties_are_kept_unless_given(share: ShareBox) -> None:
    given = {
        "x-ms-file-attributes": "hidden | System",
        "x-ms-file-creation-time": "2019-05-10T17:26:28Z",
        "x-ms-file-last-write-time": "2019-05-11T17:26:28.1Z",
        "x-ms-file-change-time": "3005-05-11T17:26:28.123456Z",
    }
    created = share.directory("PUT", "d", headers=given)
    assert created["x-ms-file-attributes"] == "Hidden | System | Directory"
    assert [created[name] for name in TIMES] == [
        "2019-05-10T17:26:28.0000000Z",
        "2019-05-11T17:26:28.1000000Z",
        "3005-05-11T17:26:28.1234560Z",
    ]
    kept = share.directory("PUT", "d", "properties")
    assert kept.status == 200
    assert kept["ETag"] != created["ETag"]
    for name in (*TIMES[:2], "x-ms-file-attributes", "x-ms-file-permission-key", "x-ms-file-id"):
        assert kept[name] == created[name]
    assert kept["x-ms-file-change-time"] != created["x-ms-file-change-time"]
    words = {"x-ms-file-attributes": "None", "x-ms-file-creation-time": "preserve", "x-ms-file-last-write-time": "now"}
    changed = share.directory("PUT", "d", "properties", words)
    assert changed["x-ms-file-attributes"] == "Directory"
    assert changed["x-ms-file-creation-time"] == created["x-ms-file-creation-time"]
    assert changed["x-ms-file-last-write-time"] > created["x-ms-file-last-write-time"]
    assert shown(share.directory("GET", "d")) == shown(changed)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-ms-file-attributes": "Temporary"},  # files only
        {"x-ms-file-attributes": "Blue"},
        {"x-ms-file-creation-time": "yesterday"},
        {"x-ms-file-creation-time": "preserve"},
        {"x-ms-file-last-write-time": "1600-12-31T00:00:00Z"},
        {"x-ms-file-permission": "abcde"},
        {"x-ms-file-permission": "inherit", "x-ms-file-permission-key": "1*2"},
    ],
)
def test_values_that_make_no_sense_are_refused(share: ShareBox, headers: dict[str, str]) -> None:
    assert share.directory("PUT", "d", headers=headers).answer == (400, "InvalidHeaderValue")
    assert share.names() == []


def test_metadata_is_replaced_as_a_whole(share: ShareBox) -> None:
    created = share.directory("PUT", "d", headers={"x-ms-meta-a": "1"})
    reply = share.directory("PUT", "d", "metadata", {"x-ms-meta-B": "2"})
    assert (reply.status, reply["x-ms-request-server-encrypted"]) == (200, "true")
    found = share.directory("GET", "d", "metadata")
    assert (found.metadata, found["ETag"]) == ({"B": "2"}, reply["ETag"])
    times = share.directory("GET", "d")
    assert times["x-ms-file-last-write-time"] == created["x-ms-file-last-write-time"]
    assert times["x-ms-file-change-time"] > created["x-ms-file-change-time"]
    assert share.directory("PUT", "d", "metadata").status == 200
    assert share.directory("HEAD", "d", "metadata").metadata == {}


def test_only_an_empty_directory_is_deleted(share: ShareBox) -> None:
    share.make("d", "d/sub")
    refused = share.directory("DELETE", "d")
    assert refused.answer == (409, "DirectoryNotEmpty")
    assert (refused.detail("Message") or "").startswith("The specified directory is not empty.")
    assert share.directory("DELETE", "d/sub").status == 202
    assert share.directory("DELETE", "D").status == 202
    assert share.names() == []
    assert share.directory("PUT", "d").status == 201


def test_the_root_is_a_directory_that_stays(share: ShareBox) -> None:
    found = share.directory("GET")
    assert (found.status, found["x-ms-file-id"], found["x-ms-file-attributes"]) == (200, "0", "Directory")
    assert share.directory("PUT").answer == (409, "ResourceAlreadyExists")
    assert share.directory("DELETE").status == 400
    assert share.directory("PUT", "", "metadata", {"x-ms-meta-a": "1"}).status == 200
    assert share.directory("GET").metadata == {"a": "1"}
    assert share.share("GET").metadata == {}


def test_a_file_is_no_directory(share: ShareBox) -> None:
    share.put("file")
    share.make("d")
    assert share.directory("GET", "file").answer == (404, "ResourceNotFound")
    for reply in (share.directory("DELETE", "file"), share.directory("PUT", "file", "metadata")):
        assert reply.answer == (409, "ResourceTypeMismatch")
    for reply in (share.get("d"), share.file("DELETE", "d"), share.file("PUT", "d", "metadata"), share.put("d")):
        assert reply.answer == (409, "ResourceTypeMismatch")
    assert share.head("d").answer == (409, "ResourceTypeMismatch")
