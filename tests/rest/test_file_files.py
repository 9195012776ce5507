"""Files: create, properties, metadata, resize, delete, and the attribute ReadOnly."""

import pytest

from tests.rest.checksums import md5
from tests.rest.client import Reply
from tests.rest.files import FileClient, ShareBox

TIMES = ("x-ms-file-creation-time", "x-ms-file-last-write-time", "x-ms-file-change-time")
PROPERTIES = (*TIMES, "x-ms-file-attributes", "x-ms-file-permission-key", "x-ms-file-id", "x-ms-file-parent-id")
HTTP = {
    "Content-Type": "text/plain",
    "Content-Encoding": "gzip",
    "Content-Language": "da",
    "Content-Disposition": "attachment",
    "Cache-Control": "no-cache",
    "Content-MD5": md5(b"something"),
}
SENT = {f"x-ms-{name.lower()}": value for name, value in HTTP.items()}
READ_ONLY = (409, "ReadOnlyAttribute")


def shown(reply: Reply) -> dict[str, str]:
    return {name: reply[name] for name in (*PROPERTIES, "ETag", "Last-Modified")}


# Create


def test_a_new_file_has_the_defaults(share: ShareBox) -> None:
    reply = share.put(size=5)
    assert (reply.status, reply.body, reply["x-ms-request-server-encrypted"]) == (201, b"", "true")
    assert (reply["x-ms-file-attributes"], reply["x-ms-file-parent-id"]) == ("Archive", "0")
    assert len({reply[name] for name in TIMES}) == 1
    assert "Content-MD5" not in reply
    head, found = share.head(), share.get()
    assert (found.status, found.body) == (200, bytes(5))
    for one in (head, found):
        assert shown(one) == shown(reply)
        assert (one["Content-Length"], one["Content-Type"]) == ("5", "application/octet-stream")
        assert (one["x-ms-type"], one["x-ms-server-encrypted"]) == ("File", "true")
        assert (one["x-ms-lease-status"], one["x-ms-lease-state"]) == ("unlocked", "available")
        for name in ("Content-MD5", "Content-Encoding", "Cache-Control", "x-ms-copy-id", "x-ms-lease-duration"):
            assert name not in one
    assert ("Accept-Ranges" in head, "Accept-Ranges" in found) == (False, True)


def test_a_file_keeps_its_headers(share: ShareBox) -> None:
    assert share.put(headers={**SENT, "x-ms-meta-UP": "1"}).status == 201
    for reply in (share.head(), share.get()):
        assert {name: reply[name] for name in HTTP} == HTTP
        assert reply.metadata == {"UP": "1"}


def test_create_replaces_a_file_wholly(share: ShareBox) -> None:
    share.put(size=5, headers={**SENT, "x-ms-meta-a": "1", "x-ms-file-attributes": "Hidden"})
    share.write(b"hello")
    before = share.head()
    reply = share.put(size=7)
    assert reply.status == 201
    assert reply["ETag"] != before["ETag"]
    found = share.get()
    assert (found.body, found.metadata, found["Content-Type"]) == (bytes(7), {}, "application/octet-stream")
    assert (found["x-ms-file-attributes"], share.ranges()) == ("Archive", [])


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"x-ms-content-length": ""}, (400, "MissingRequiredHeader")),
        ({"x-ms-content-length": "-1"}, (400, "InvalidHeaderValue")),
        ({"x-ms-content-length": "many"}, (400, "InvalidHeaderValue")),
        ({"x-ms-content-md5": "AAAA"}, (400, "InvalidMd5")),
        ({"x-ms-file-attributes": "Directory"}, (400, "InvalidHeaderValue")),
        ({"x-ms-file-attributes": "ReadOnly|Nonsense"}, (400, "InvalidHeaderValue")),
        ({"x-ms-file-change-time": "preserve"}, (400, "InvalidHeaderValue")),
        ({"x-ms-meta-a": "x" * 8192}, (400, "MetadataTooLarge")),
    ],
)
def test_values_that_make_no_sense_are_refused(share: ShareBox, headers: dict[str, str], answer: tuple[int, str]) -> None:
    assert share.put(headers=headers).answer == answer
    assert share.names() == []


def test_the_type_is_required_and_the_parent_too(share: ShareBox) -> None:
    assert share.file("PUT", headers={"x-ms-content-length": "0"}).status == 400
    assert share.put("no/file").answer == (404, "ParentNotFound")
    assert share.get("no/file").answer == (404, "ParentNotFound")
    assert share.get("no").answer == (404, "ResourceNotFound")
    head = share.head("no")
    assert (head.answer, head.body) == ((404, "ResourceNotFound"), b"")
    assert share.file("DELETE", "no").answer == (404, "ResourceNotFound")


# Properties


def test_http_properties_are_set_as_one(share: ShareBox) -> None:
    share.put(size=3, headers=SENT)
    assert share.file("PUT", comp="properties", headers={"x-ms-content-length": "9"}).status == 200
    found = share.head()
    assert (found["Content-Length"], found["Content-Type"], found["Cache-Control"]) == ("9", "text/plain", "no-cache")
    assert share.file("PUT", comp="properties", headers={"x-ms-content-language": "sv"}).status == 200
    found = share.head()
    assert (found["Content-Language"], found["Content-Type"]) == ("sv", "application/octet-stream")
    for name in ("Cache-Control", "Content-MD5", "Content-Encoding", "Content-Disposition"):
        assert name not in found


def test_properties_are_kept_unless_given(share: ShareBox) -> None:
    every = "ReadOnly|Hidden|System|Archive|Temporary|Offline|NotContentIndexed|NoScrubData"
    given = {"x-ms-file-attributes": every, "x-ms-file-creation-time": "3005-05-10T17:26:28.12345Z"}
    created = share.put(headers=given)
    assert created["x-ms-file-attributes"] == every.replace("|", " | ")
    assert created["x-ms-file-creation-time"] == "3005-05-10T17:26:28.1234500Z"
    kept = share.file("PUT", comp="properties")
    assert (kept.status, kept["x-ms-file-attributes"]) == (200, created["x-ms-file-attributes"])
    for name in (*TIMES[:2], "x-ms-file-permission-key", "x-ms-file-id"):
        assert kept[name] == created[name]
    assert kept["x-ms-file-change-time"] > created["x-ms-file-change-time"]
    cleared = share.file("PUT", comp="properties", headers={"x-ms-file-attributes": "None", "x-ms-file-creation-time": "now"})
    assert cleared["x-ms-file-attributes"] == "None"
    assert cleared["x-ms-file-creation-time"] < created["x-ms-file-creation-time"]
    assert shown(share.head()) == shown(cleared)


def test_a_new_size_moves_the_last_write_time(share: ShareBox) -> None:
    created = share.put(size=3)
    resized = share.file("PUT", comp="properties", headers={"x-ms-content-length": "5"})
    assert resized["x-ms-file-last-write-time"] > created["x-ms-file-last-write-time"]
    given = {"x-ms-content-length": "7", "x-ms-file-last-write-time": "2001-01-01T00:00:00Z"}
    assert share.file("PUT", comp="properties", headers=given)["x-ms-file-last-write-time"] == "2001-01-01T00:00:00.0000000Z"
    assert share.get().body == bytes(7)


def test_metadata_is_replaced_as_a_whole(share: ShareBox) -> None:
    created = share.put(headers={"x-ms-meta-a": "1"})
    reply = share.file("PUT", comp="metadata", headers={"x-ms-meta-UP": "2"})
    assert (reply.status, reply["x-ms-request-server-encrypted"]) == (200, "true")
    found = share.file("GET", comp="metadata")
    assert (found.metadata, found["ETag"], found.body) == ({"UP": "2"}, reply["ETag"], b"")
    head = share.head()
    assert head["x-ms-file-last-write-time"] == created["x-ms-file-last-write-time"]
    assert head["x-ms-file-change-time"] > created["x-ms-file-change-time"]
    assert share.file("PUT", comp="metadata").status == 200
    assert share.file("HEAD", comp="metadata").metadata == {}


def test_a_deleted_file_is_gone(share: ShareBox) -> None:
    share.fill(b"content")
    reply = share.file("DELETE", "FILE")
    assert (reply.status, reply.body) == (202, b"")
    assert share.get().answer == (404, "ResourceNotFound")
    assert share.put().status == 201
    assert share.ranges() == []


# ReadOnly


def test_a_read_only_file_is_read_but_not_changed(share: ShareBox) -> None:
    share.fill(b"content")
    assert share.file("PUT", comp="properties", headers={"x-ms-file-attributes": "ReadOnly"}).status == 200
    refused = share.write(b"x")
    expected = "The specified resource is read-only and cannot be modified at this time."
    assert (refused.detail("Message") or "").startswith(expected)
    for reply in (
        refused,
        share.clear(0, 1),
        share.put(),
        share.file("PUT", comp="metadata", headers={"x-ms-meta-a": "1"}),
        share.file("PUT", comp="properties", headers={"x-ms-content-length": "1"}),
        share.file("PUT", comp="properties", headers={"x-ms-content-type": "a/b"}),
    ):
        assert reply.answer == READ_ONLY
    assert (share.get().body, share.ranges()) == (b"content", [("Range", 0, 6)])
    assert share.file("PUT", comp="properties", headers={"x-ms-file-attributes": "None"}).status == 200
    assert share.write(b"x").status == 201


def test_a_file_may_become_read_only_with_its_size(share: ShareBox) -> None:
    share.put(size=11)
    headers = {"x-ms-content-length": "1", "x-ms-file-attributes": "ReadOnly|Archive"}
    reply = share.file("PUT", comp="properties", headers=headers)
    assert (reply.status, reply["x-ms-file-attributes"]) == (200, "ReadOnly | Archive")
    assert share.head()["Content-Length"] == "1"


# Conditions


@pytest.mark.parametrize(
    "header",
    [("If-Match", '"0x0"'), ("If-None-Match", "*"), ("If-Modified-Since", "future"), ("If-Unmodified-Since", "past")],
)
def test_conditions_do_not_count(share: ShareBox, header: tuple[str, str]) -> None:
    share.fill(b"content")
    dates = {"future": share.client.date(3600), "past": share.client.date(-3600)}
    sent = {header[0]: dates.get(header[1], header[1])}
    assert share.get(headers=sent).body == b"content"
    assert share.head(headers=sent).status == 200
    assert share.write(b"x", headers=sent).status == 201
    assert share.file("PUT", comp="properties", headers=sent).status == 200
    assert share.file("PUT", comp="metadata", headers=sent).status == 200
    assert share.put(headers=sent).status == 201
    assert share.share("GET", headers=sent).status == 200
    assert share.share("PUT", "metadata", sent).status == 200
    assert share.directory("PUT", "d", headers=sent).status == 201
    assert share.file("DELETE", headers=sent).status == 202


def test_a_name_of_metadata_is_sent_once(share: ShareBox) -> None:
    twice = {"x-ms-meta-a": "1", "x-ms-meta-A": "2"}
    share.put()
    assert share.put("other", headers=twice).answer == (400, "InvalidMetadata")
    assert share.file("PUT", "file", "metadata", twice).answer == (400, "InvalidMetadata")
    assert share.share("PUT", "metadata", twice).answer == (400, "InvalidMetadata")
    assert share.names() == ["file"]


def test_a_header_has_eight_kibibytes_of_permission(share: ShareBox) -> None:
    long = "O:BAG:BAD:" + "(A;;FA;;;SY)" * 800
    assert share.put(headers={"x-ms-file-permission": long}).answer == (400, "InvalidHeaderValue")
    key = share.permission(long)["x-ms-file-permission-key"]
    assert share.put(headers={"x-ms-file-permission-key": key})["x-ms-file-permission-key"] == key


@pytest.mark.parametrize(
    ("protocols", "headers"),
    [
        ("SMB", {"x-ms-mode": "0644"}),
        ("SMB", {"x-ms-owner": "7"}),
        ("SMB", {"x-ms-group": "7"}),
        ("NFS", {"x-ms-file-attributes": "ReadOnly"}),
        ("NFS", {"x-ms-file-permission": "O:BAG:BAD:(A;;FA;;;SY)"}),
        ("NFS", {"x-ms-file-permission-key": "1*2"}),
    ],
)
def test_properties_of_the_other_protocol_are_refused(files: FileClient, protocols: str, headers: dict[str, str]) -> None:
    share = ShareBox(files).create({"x-ms-enabled-protocols": protocols})
    assert share.put().status == 201
    for reply in (
        share.put("new", headers=headers),
        share.directory("PUT", "d", headers=headers),
        share.file("PUT", "file", "properties", headers),
        share.rename("file", "new", headers),
        share.file("PUT", "new", headers={"x-ms-copy-source": share.url("file"), **headers}),
    ):
        assert reply.answer == (400, "UnsupportedHeader")
    assert share.names() == ["file"]


def test_words_that_ask_for_nothing_are_taken_by_either_protocol(files: FileClient) -> None:
    """Clients send them with every request."""
    new = {"x-ms-file-attributes": "none", "x-ms-file-permission": "Inherit", "x-ms-file-creation-time": "now"}
    kept = {"x-ms-file-attributes": "Preserve", "x-ms-file-permission": "preserve", "x-ms-file-creation-time": "preserve"}
    for protocols in ("SMB", "NFS"):
        share = ShareBox(files).create({"x-ms-enabled-protocols": protocols})
        assert share.put(headers=new).status == share.directory("PUT", "d", headers=new).status == 201
        assert share.file("PUT", "file", "properties", kept).status == 200
        assert share.directory("PUT", "d", "properties", kept).status == 200
        assert share.rename("file", "renamed", kept).status == 200
        copied = {"x-ms-copy-source": share.url("renamed"), "x-ms-file-attributes": "source", "x-ms-file-permission": "inherit"}
        assert share.file("PUT", "copy", headers=copied).status == 202


@pytest.mark.parametrize("word", ["preserve", "Source", "inherit"])
def test_a_word_of_another_operation_is_no_attribute_of_a_new_file(share: ShareBox, word: str) -> None:
    refused = share.put(headers={"x-ms-file-attributes": word})
    assert refused.answer == (400, "InvalidHeaderValue")
    assert (refused.detail("HeaderName"), refused.detail("HeaderValue")) == ("x-ms-file-attributes", word)


def test_create_file_makes_regular_files(share: ShareBox) -> None:
    assert share.put(headers={"x-ms-file-file-type": "Regular"}).status == 201
    assert share.put("other", headers={"x-ms-file-file-type": "SymLink"}).answer == (400, "InvalidHeaderValue")
