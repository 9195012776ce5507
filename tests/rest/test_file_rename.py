"""Rename File and Rename Directory: what moves, what may be replaced, leases, properties, and what is refused."""

from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.files import DIRECTORY, FileClient, ShareBox
from tests.rest.running import Running

EXISTS = (409, "ResourceAlreadyExists")
REPLACE = {"x-ms-file-rename-replace-if-exists": "true"}


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def test_a_renamed_file_keeps_everything_but_its_name(share: ShareBox) -> None:
    share.make("d")
    share.put("a", 7, {"x-ms-content-type": "text/plain", "x-ms-meta-m": "1", "x-ms-file-attributes": "Hidden"})
    share.write(b"content", name="a")
    before = share.head("a")
    reply = share.rename("a", "d/b")
    assert (reply.status, reply["x-ms-request-server-encrypted"]) == (200, "true")
    assert reply["ETag"] != before["ETag"]
    found = share.get("d/b")
    assert (found.body, found.metadata, found["Content-Type"]) == (b"content", {"m": "1"}, "text/plain")
    kept = ("creation-time", "last-write-time", "attributes", "permission-key", "id")
    for name in kept:
        assert reply[f"x-ms-file-{name}"] == found[f"x-ms-file-{name}"] == before[f"x-ms-file-{name}"]
    assert reply["x-ms-file-change-time"] > before["x-ms-file-change-time"]
    assert reply["x-ms-file-parent-id"] == share.directory("GET", "d")["x-ms-file-id"]
    assert share.head("a").answer == (404, "ResourceNotFound")


def test_a_rename_may_set_properties(share: ShareBox) -> None:
    share.put("a", headers={"x-ms-meta-m": "1"})
    headers = {
        "x-ms-meta-n": "2",
        "x-ms-content-type": "text/html",
        "x-ms-file-attributes": "System",
        "x-ms-file-creation-time": "2001-01-01T00:00:00Z",
        "x-ms-file-last-write-time": "2002-01-01T00:00:00Z",
    }
    reply = share.rename("a", "b", headers)
    assert (reply.status, reply["x-ms-file-attributes"]) == (200, "System")
    found = share.head("b")
    assert (found.metadata, found["Content-Type"]) == ({"n": "2"}, "text/html")
    assert found["x-ms-file-creation-time"] == "2001-01-01T00:00:00.0000000Z"
    assert found["x-ms-file-last-write-time"] == "2002-01-01T00:00:00.0000000Z"


def test_a_renamed_directory_takes_along_what_is_below_it(share: ShareBox) -> None:
    share.make("d", "d/sub", "elsewhere")
    share.fill(b"content", "d/sub/file")
    before = share.directory("GET", "d")
    reply = share.rename("d", "elsewhere/é", query=DIRECTORY)
    assert (reply.status, reply["x-ms-file-id"]) == (200, before["x-ms-file-id"])
    assert reply["x-ms-file-attributes"] == "Directory"
    assert share.get("elsewhere/é/sub/file").body == b"content"
    assert share.get("d/sub/file").answer == (404, "ParentNotFound")
    assert share.rename("elsewhere/é", "back", query=DIRECTORY).status == 200
    assert share.names() == ["back", "elsewhere"]


def test_only_the_case_may_change(share: ShareBox) -> None:
    share.make("dir")
    share.fill(b"content", "dir/file")
    assert share.rename("dir/file", "dir/FILE").status == 200
    assert share.rename("dir", "DIR", query=DIRECTORY).status == 200
    assert (share.names(), share.names("dir")) == (["DIR"], ["FILE"])
    assert share.rename("dir/file", "dir/file").status == 200
    assert share.get("dir/file").body == b"content"


def test_an_existing_target_stays_unless_it_may_be_replaced(share: ShareBox) -> None:
    share.make("d", "e")
    share.fill(b"one", "a")
    share.fill(b"two!", "b")
    refused = share.rename("a", "b")
    assert refused.answer == EXISTS
    assert (refused.detail("Message") or "").startswith("The specified resource already exists.")
    assert share.get("b").body == b"two!"
    assert share.rename("a", "b", REPLACE).status == 200
    assert (share.get("b").body, share.names()) == (b"one", ["b", "d", "e"])
    assert usage(share) == 3
    assert share.rename("d", "b", query=DIRECTORY).answer == EXISTS
    assert share.rename("d", "b", REPLACE, query=DIRECTORY).status == 200  # a directory replaces a file
    assert share.rename("b", "e", REPLACE, query=DIRECTORY).answer == EXISTS
    share.put("f")
    assert share.rename("f", "e", REPLACE).answer == EXISTS
    assert share.names() == ["b", "e", "f"]


def usage(share: ShareBox) -> int:
    return int(share.share("GET", "stats").xml.findtext("ShareUsageBytes") or "")


def test_a_read_only_target_needs_its_own_word(share: ShareBox) -> None:
    share.put("a", 1)
    share.put("b", 2, {"x-ms-file-attributes": "ReadOnly"})
    ignore = {"x-ms-file-rename-ignore-readonly": "true"}
    assert share.rename("a", "b", REPLACE).answer == (409, "ReadOnlyAttribute")
    assert share.rename("a", "b", ignore).status >= 400
    assert share.rename("a", "b", REPLACE | ignore).status == 200
    assert share.head("b")["Content-Length"] == "1"


def test_a_read_only_file_may_be_renamed(share: ShareBox) -> None:
    share.put("a", 1, {"x-ms-file-attributes": "ReadOnly"})
    reply = share.rename("a", "b")
    assert (reply.status, reply["x-ms-file-attributes"]) == (200, "ReadOnly")


def test_leases_of_both_ends_count(share: ShareBox) -> None:
    share.put("a", 1)
    share.put("b", 2)
    source, target = share.acquire("a"), share.acquire("b")
    missing, wrong = (412, "LeaseIdMissing"), (412, "LeaseIdMismatchWithFileOperation")
    assert share.rename("a", "new").answer == missing
    assert share.rename("a", "new", {"x-ms-source-lease-id": target}).answer == wrong
    assert share.rename("a", "b", REPLACE | {"x-ms-source-lease-id": source}).answer == missing
    assert share.rename("a", "b", REPLACE | {"x-ms-destination-lease-id": target}).answer == missing
    both = {"x-ms-source-lease-id": source, "x-ms-destination-lease-id": target}
    assert share.rename("a", "b", REPLACE | both).status == 200
    assert share.head("b")["Content-Length"] == "1"
    assert share.head("b")["x-ms-lease-state"] == "leased"  # the lease of the source moves along


def test_a_directory_replaces_a_leased_file_with_its_lease(share: ShareBox) -> None:
    share.make("d")
    share.put("file")
    lease_id = share.acquire("file")
    assert share.rename("d", "file", REPLACE, query=DIRECTORY).answer == (412, "LeaseIdMissing")
    held = REPLACE | {"x-ms-destination-lease-id": lease_id}
    assert share.rename("d", "file", held, query=DIRECTORY).status == 200
    assert share.directory("GET", "file").status == 200


def test_a_directory_is_not_moved_into_itself(share: ShareBox) -> None:
    share.make("d", "d/sub")
    assert share.rename("d", "d/sub/d", query=DIRECTORY).status == 400
    assert share.rename("d", "d/d", query=DIRECTORY).status == 400
    assert share.names("d") == ["sub"]


def test_both_ends_have_to_be_there(share: ShareBox) -> None:
    share.make("d")
    share.put("a")
    assert share.rename("no", "b").answer == (404, "ResourceNotFound")
    assert share.rename("no/no", "b").answer == (404, "ParentNotFound")
    assert share.rename("a", "no/b").answer == (404, "ParentNotFound")
    assert share.rename("a", "a/b").answer == (404, "ParentNotFound")
    assert share.rename("d", "b").answer == (409, "ResourceTypeMismatch")
    assert share.rename("a", "b", query=DIRECTORY).answer == (409, "ResourceTypeMismatch")
    assert share.file("PUT", "b", "rename").answer == (400, "MissingRequiredHeader")
    for source in ("nowhere", "http://[::1/share/a", f"{share.url('a')}?sharesnapshot={share.snapshot()}"):
        assert share.rename("a", "b", {"x-ms-file-rename-source": source}).answer == (400, "InvalidHeaderValue"), source
    assert share.names() == ["a", "d"]


def test_a_rename_stays_in_its_share(files: FileClient, share: ShareBox) -> None:
    other = ShareBox(files).create()
    other.put("a")
    assert share.file("PUT", "b", "rename", {"x-ms-file-rename-source": other.url("a")}).status == 400
    assert other.names() == ["a"]


def test_the_slash_behind_the_share_may_be_encoded(share: ShareBox) -> None:
    """The Java library sends sources so."""
    share.make("d")
    share.fill(b"data", "d/a")
    source = share.url("d/a").replace(f"{share.name}/d/a", f"{share.name}%2Fd%2Fa")
    assert share.file("PUT", "copy", headers={"x-ms-copy-source": source}).status == 202
    assert share.file("PUT", "b", "rename", {"x-ms-file-rename-source": source}).status == 200
    assert (share.get("copy").body, share.get("b").body) == (b"data", b"data")


def test_the_source_may_name_a_machine_with_dots_in_its_name(share: ShareBox) -> None:
    share.fill(b"data", "a")
    source = share.url("a").replace("127.0.0.1", "storage.default.svc")
    assert share.rename("a", "b", {"x-ms-file-rename-source": source}).status == 200
    assert share.get("b").body == b"data"


def test_the_root_is_not_renamed(share: ShareBox) -> None:
    share.make("d")
    root = {"x-ms-file-rename-source": share.url("").removesuffix("/")}
    assert share.directory("PUT", "d/x", "rename", root).status == 400
    assert share.directory("PUT", "", "rename", {"x-ms-file-rename-source": share.url("d")}).status >= 400


def test_trailing_dots_of_source_and_target_have_headers_of_their_own(share: ShareBox) -> None:
    share.put("a.", 1, {"x-ms-allow-trailing-dot": "true"})
    assert share.rename("a.", "b.").answer == (404, "ResourceNotFound")
    assert share.rename("a.", "b.", {"x-ms-source-allow-trailing-dot": "true"}).status == 200
    assert share.names() == ["b"]
    assert share.rename("b", "c.", {"x-ms-allow-trailing-dot": "true"}).status == 200
    assert share.names() == ["c."]


def test_a_share_sas_with_read_and_write_is_enough(share: ShareBox) -> None:
    share.make("d")
    share.put("a")
    sas = share.sas("rw")
    source = {"x-ms-file-rename-source": f"{share.url('a')}?{sas}"}
    assert share.file("PUT", "b", "rename", source, auth=sas).status == 200
    source = {"x-ms-file-rename-source": f"{share.url('d')}?{sas}"}
    assert share.directory("PUT", "e", "rename", source, auth=sas).status == 200
    assert share.names() == ["b", "e"]
