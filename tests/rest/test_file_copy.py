"""Copies into files, and files as the source of blobs: Copy File, Put Range From URL, and Blob's operations From URL."""

import base64
from collections.abc import Mapping
from typing import Any

import pytest

from tests.rest import pages
from tests.rest.client import ANONYMOUS, Box, Reply
from tests.rest.files import ShareBox
from verditer.core.crc64 import crc64nvme

KIB, MIB = 1 << 10, 1 << 20
HOLDER = "aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa"
OLD = "2001-02-03T04:05:06.0000007Z"


def crc64(data: bytes) -> str:
    return base64.b64encode(crc64nvme(data).to_bytes(8, "little")).decode()


def copy(share: ShareBox, source: str, name: str = "copy", headers: Mapping[str, str] | None = None, **more: Any) -> Reply:
    return share.file("PUT", name, headers={"x-ms-copy-source": source, **(headers or {})}, **more)


def put_from(
    share: ShareBox, source: str, first: int, start: int, length: int, headers: Mapping[str, str] | None = None
) -> Reply:
    """Put Range From URL: `length` bytes of the source from `first` on become those of the file from `start` on."""
    sent = {
        "x-ms-copy-source": source,
        "x-ms-write": "update",
        "x-ms-source-range": f"bytes={first}-{first + length - 1}",
        "x-ms-range": f"bytes={start}-{start + length - 1}",
        **(headers or {}),
    }
    return share.file("PUT", "file", "range", sent)


def signed(share: ShareBox, name: str = "source", sp: str = "r") -> str:
    return f"{share.url(name)}?{share.sas(sp)}"


def blob_url(box: Box, name: str = "source", query: str = "") -> str:
    return f"http://127.0.0.1:{box.server.port}/{box.client.account}{box.path}/{name}{'?' + query if query else ''}"


# --- Copy File --------------------------------------------------------------------------------------------------------------


def test_a_file_is_copied_with_its_properties_and_metadata(share: ShareBox) -> None:
    share.put("source", 1000, {"x-ms-content-type": "text/plain", "x-ms-cache-control": "no-cache", "x-ms-meta-A": "1"})
    share.write(b"x" * 600, 100, "source")
    reply = copy(share, share.url("source"))
    assert (reply.status, reply["x-ms-copy-status"]) == (202, "success")
    done = share.get("copy")
    assert done.body == bytes(100) + b"x" * 600 + bytes(300)
    assert (done["Content-Type"], done["Cache-Control"], done.metadata) == ("text/plain", "no-cache", {"A": "1"})
    assert (done["ETag"], done["x-ms-copy-id"]) == (reply["ETag"], reply["x-ms-copy-id"])
    assert (done["x-ms-copy-status"], done["x-ms-copy-progress"]) == ("success", "1000/1000")
    assert done["x-ms-copy-source"] == share.url("source")
    assert done["x-ms-copy-completion-time"] == done["Last-Modified"]
    assert done["x-ms-file-attributes"] == "Archive"
    assert share.ranges("copy") == share.ranges("source")


def test_metadata_of_the_request_replaces_that_of_the_source(share: ShareBox) -> None:
    share.put("source", 0, {"x-ms-meta-a": "1"})
    copy(share, share.url("source"), headers={"x-ms-meta-b": "2"})
    assert share.head("copy").metadata == {"b": "2"}


def test_source_and_copy_are_independent(share: ShareBox) -> None:
    large = bytes(range(256)) * (4 * KIB)
    share.fill(large, "source")
    share.make("sub")
    copy(share, share.url("source"), "sub/copy")
    share.write(b"new", 10, "source")
    share.write(b"old", 20, "sub/copy")
    assert share.get("sub/copy").body == large[:20] + b"old" + large[23:]
    assert share.file("DELETE", "source").status == 202
    share.server.move_clock(2 * 86400)
    share.server.run(share.server.app.collector.collect())
    assert share.get("sub/copy").body == large[:20] + b"old" + large[23:]


def test_a_file_is_copied_as_a_share_snapshot_saw_it(share: ShareBox) -> None:
    share.fill(b"before", "source")
    moment = share.snapshot()
    share.write(b"after!", name="source")
    source = f"{share.url('source')}?sharesnapshot={moment}"
    assert copy(share, source).status == 202
    assert (share.get("copy").body, share.get("source").body) == (b"before", b"after!")
    assert share.head("copy")["x-ms-copy-source"] == source
    assert share.file("DELETE", "source").status == 202
    assert copy(share, source, "second").status == 202
    assert share.get("second").body == b"before"
    assert share.get("copy", query={"sharesnapshot": moment}).status == 404


@pytest.mark.parametrize("size", [0, 10, 3 * MIB, 9 * MIB])
def test_a_block_blob_becomes_a_file(share: ShareBox, box: Box, size: int) -> None:
    body = (bytes(range(251)) * (size // 251 + 1))[:size]
    box.put("source", body, {"x-ms-blob-content-type": "text/x", "x-ms-meta-a": "1"})
    assert copy(share, blob_url(box, query=box.sas("r"))).status == 202
    done = share.get("copy")
    assert (done.body, done["Content-Type"], done.metadata) == (body, "text/x", {"a": "1"})
    if size > 3:
        assert share.write(b"new", 1, "copy").status == 201
        assert share.get("copy").body == body[:1] + b"new" + body[4:]
    assert box.get("source").body == body


def test_append_and_page_blobs_become_files(share: ShareBox, box: Box) -> None:
    box.blob("PUT", "log", headers={"x-ms-blob-type": "AppendBlob"})
    for part in (b"one", b"two" * 4 * MIB):
        assert box.blob("PUT", "log", "appendblock", body=part).status == 201
    copy(share, blob_url(box, "log", box.sas("r")))
    assert share.write(b"X", 9 * MIB, "copy").status == 201
    expected = b"one" + b"two" * 4 * MIB
    assert share.get("copy").body == expected[: 9 * MIB] + b"X" + expected[9 * MIB + 1 :]
    pages.create(box, 4096)
    pages.write(box, 512, b"p" * 512)
    copy(share, blob_url(box, "blob", box.sas("r")))
    assert share.get("copy").body == bytes(512) + b"p" * 512 + bytes(3072)
    assert share.ranges("copy") == [("Range", 512, 1023)]


def test_only_a_file_of_the_account_is_read_by_the_right_of_the_request(share: ShareBox, box: Box) -> None:
    share.fill(b"source", "source")
    box.put("source")
    assert copy(share, share.url("source")).status == 202
    refused = copy(share, blob_url(box))
    assert refused.answer == (401, "CannotVerifyCopySource")
    assert refused["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    box.container("PUT", "acl", {"x-ms-blob-public-access": "blob"})
    assert copy(share, blob_url(box)).status == 202
    assert copy(share, share.url("source"), auth=share.sas("rcw")).answer == (401, "CannotVerifyCopySource")
    assert copy(share, signed(share), auth=share.sas("w")).status == 202
    assert copy(share, signed(share, sp="w"), auth=share.sas("w")).answer == (403, "CannotVerifyCopySource")
    assert copy(share, signed(share), "new", auth=share.sas("c")).status == 202
    assert copy(share, signed(share), "new", auth=share.sas("c")).status == 403
    assert copy(share, signed(share), auth=share.sas("r")).answer == (403, "AuthorizationPermissionMismatch")


def test_what_cannot_be_copied(share: ShareBox) -> None:
    share.make("sub")
    share.fill(b"source", "source")
    moment = share.snapshot()
    assert copy(share, share.url("missing")).answer == (404, "ResourceNotFound")
    assert copy(share, signed(share, "missing"), auth=share.sas("w")).status == 404
    assert copy(share, share.url("missing/file")).answer == (404, "ParentNotFound")
    assert copy(share, share.url("sub")).answer == (409, "ResourceTypeMismatch")
    assert copy(share, share.url("source"), "sub").answer == (409, "ResourceTypeMismatch")
    assert copy(share, share.url("source"), "missing/copy").answer == (404, "ParentNotFound")
    assert copy(share, "not a url").answer == (400, "InvalidHeaderValue")
    assert copy(share, share.url("source").rpartition("/")[0]).answer == (400, "InvalidHeaderValue")
    refused = copy(share, share.url("source"), query={"sharesnapshot": moment})
    assert refused.answer == (400, "InvalidQueryParameterValue")


def test_the_lease_of_the_target_is_asked_for_and_kept(share: ShareBox) -> None:
    # contract L5
    share.fill(b"source", "source")
    share.fill(b"copy", "copy")
    lease = share.acquire("copy")
    assert copy(share, share.url("source")).answer == (412, "LeaseIdMissing")
    assert copy(share, share.url("source"), headers={"x-ms-lease-id": HOLDER}).answer == (
        412,
        "LeaseIdMismatchWithFileOperation",
    )
    assert copy(share, share.url("source"), headers={"x-ms-lease-id": lease}).status == 202
    assert share.head("copy")["x-ms-lease-state"] == "leased"


@pytest.mark.parametrize("spelling", ["readonly", "read-only"])  # the SDK's and that of the page Copy File
def test_a_read_only_target_is_replaced_only_on_request(share: ShareBox, spelling: str) -> None:
    share.fill(b"source", "source")
    share.put("copy", 0, {"x-ms-file-attributes": "ReadOnly"})
    assert copy(share, share.url("source")).answer == (409, "ReadOnlyAttribute")
    assert copy(share, share.url("source"), headers={f"x-ms-file-copy-ignore-{spelling}": "true"}).status == 202
    assert share.get("copy").body == b"source"


def test_attributes_and_times_are_given_or_taken_from_the_source(share: ShareBox) -> None:
    times = ("creation", "last-write", "change")
    share.put("source", 0, {"x-ms-file-attributes": "Hidden", **{f"x-ms-file-{time}-time": OLD for time in times}})
    named = {"x-ms-file-attributes": "source", **{f"x-ms-file-{time}-time": "source" for time in times}}
    copy(share, share.url("source"), headers=named)
    done = share.head("copy")
    assert [done[f"x-ms-file-{time}-time"] for time in times] == [OLD] * 3
    assert done["x-ms-file-attributes"] == "Hidden"
    copy(share, share.url("source"), headers=named | {"x-ms-file-copy-set-archive": "true"})
    assert share.head("copy")["x-ms-file-attributes"] == "Hidden | Archive"
    copy(share, share.url("source"), headers={"x-ms-file-attributes": "System", "x-ms-file-creation-time": OLD})
    done = share.head("copy")
    assert (done["x-ms-file-attributes"], done["x-ms-file-creation-time"]) == ("System", OLD)
    assert done["x-ms-file-last-write-time"] != OLD
    copy(share, share.url("source"), headers={"x-ms-file-attributes": "none"})
    assert share.head("copy")["x-ms-file-attributes"] == "None"
    assert copy(share, share.url("source"), headers={"x-ms-file-creation-time": "now?"}).answer == (400, "InvalidHeaderValue")


def test_the_permission_is_inherited_copied_or_given(share: ShareBox) -> None:
    own = share.permission("O:SYG:SYD:(A;;FA;;;SY)")["x-ms-file-permission-key"]
    share.put("source", 0, {"x-ms-file-permission-key": own})
    share.put("plain")
    inherited = share.head("plain")["x-ms-file-permission-key"]
    mode = "x-ms-file-permission-copy-mode"
    for headers, expected in (
        ({}, inherited),
        ({mode: "source"}, own),
        ({mode: "override", "x-ms-file-permission-key": own}, own),
        ({mode: "override", "x-ms-file-permission": "O:SYG:SYD:(A;;FA;;;SY)"}, own),
        ({mode: "override", "x-ms-file-permission": "inherit"}, inherited),
    ):
        assert copy(share, share.url("source"), headers=headers).status == 202
        assert share.head("copy")["x-ms-file-permission-key"] == expected, headers
    assert copy(share, share.url("source"), headers={mode: "override"}).answer == (400, "MissingRequiredHeader")
    assert copy(share, share.url("source"), headers={mode: "both"}).answer == (400, "InvalidHeaderValue")
    other = ShareBox(share.client).create()
    assert copy(other, share.url("source"), headers={mode: "source"}).status == 202
    assert other.head("copy")["x-ms-file-permission-key"] == own


def test_a_copy_counts_for_the_quota_of_its_share(share: ShareBox) -> None:
    share.put("source", 600 << 20)
    small = ShareBox(share.client)
    small.create({"x-ms-share-quota": "1"})
    assert copy(small, share.url("source"), "one").status == 202
    assert copy(small, share.url("source"), "two").answer == (403, "ShareSizeLimitReached")
    assert copy(small, share.url("source"), "one").status == 202
    assert small.share("GET", "stats").xml.findtext("ShareUsageBytes") == str(600 << 20)


def test_setting_properties_removes_the_state_of_the_copy(share: ShareBox) -> None:
    share.fill(b"source", "source")
    copy(share, share.url("source"))
    share.file("PUT", "copy", "metadata", {"x-ms-meta-a": "1"})
    assert "x-ms-copy-id" in share.head("copy")
    share.file("PUT", "copy", "properties", {"x-ms-content-type": "text/plain"})
    assert "x-ms-copy-id" not in share.head("copy")


def test_trailing_dots_of_the_source(share: ShareBox) -> None:
    dots = {"x-ms-allow-trailing-dot": "true"}
    share.put("source.", 0, {**dots, "x-ms-meta-a": "dot"})
    assert copy(share, share.url("source.")).answer == (404, "ResourceNotFound")
    assert copy(share, share.url("source."), headers={"x-ms-source-allow-trailing-dot": "true"}).status == 202
    assert share.head("copy").metadata == {"a": "dot"}


# --- Put Range From URL -----------------------------------------------------------------------------------------------------


def test_a_range_of_a_file_or_blob_is_written(share: ShareBox, box: Box) -> None:
    share.fill(b"0123456789", "source")
    box.put("source", b"abcdefghij")
    share.put("file", 12)
    before = share.head("file")
    reply = put_from(share, signed(share), 2, 1, 4)
    assert (reply.status, reply["x-ms-content-crc64"]) == (201, crc64(b"2345"))
    assert reply["ETag"] != before["ETag"]
    assert reply["x-ms-request-server-encrypted"] == "true"
    assert put_from(share, blob_url(box, query=box.sas("r")), 6, 8, 4).status == 201
    assert share.get("file").body == b"\0" + b"2345" + bytes(3) + b"ghij"


def test_the_last_write_time_is_moved_or_kept(share: ShareBox) -> None:
    share.fill(b"source", "source")
    share.put("file", 12, {"x-ms-file-last-write-time": OLD})
    kept = put_from(share, signed(share), 0, 0, 4, {"x-ms-file-last-write-time": "preserve"})
    assert kept["x-ms-file-last-write-time"] == OLD
    assert put_from(share, signed(share), 0, 0, 4)["x-ms-file-last-write-time"] != OLD


def test_a_source_of_the_same_account_needs_its_own_authorization(share: ShareBox) -> None:
    share.fill(b"source", "source")
    share.put("file", 12)
    refused = put_from(share, share.url("source"), 0, 0, 4)
    assert refused.answer == (401, "CannotVerifyCopySource")
    assert refused["x-ms-copy-source-status-code"] == "401"
    assert refused["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"
    missing = put_from(share, signed(share, "missing"), 0, 0, 4)
    assert missing.answer == (404, "CannotVerifyCopySource")
    assert missing["x-ms-copy-source-error-code"] == "ResourceNotFound"
    assert share.get("file").body == bytes(12)


def test_the_checksum_and_the_conditions_are_about_the_source_range(share: ShareBox) -> None:
    share.fill(b"0123456789", "source")
    share.put("file", 12)
    right, wrong = crc64(b"234"), crc64(b"345")
    source = signed(share)
    assert put_from(share, source, 2, 0, 3, {"x-ms-source-content-crc64": wrong}).answer == (400, "Crc64Mismatch")
    assert put_from(share, source, 2, 0, 3, {"x-ms-source-if-match-crc64": wrong}).answer == (412, "SourceConditionNotMet")
    assert put_from(share, source, 2, 0, 3, {"x-ms-source-if-none-match-crc64": right}).answer == (412, "SourceConditionNotMet")
    assert share.get("file").body == bytes(12)
    fitting = {
        "x-ms-source-content-crc64": right,
        "x-ms-source-if-match-crc64": right,
        "x-ms-source-if-none-match-crc64": wrong,
    }
    assert put_from(share, source, 2, 0, 3, fitting).status == 201


def test_ranges_that_do_not_fit(share: ShareBox) -> None:
    share.fill(b"0123456789", "source")
    share.put("file", 12)
    source = signed(share)
    assert put_from(share, source, 0, 10, 4).answer == (416, "InvalidRange")
    assert put_from(share, source, 8, 0, 4).answer == (416, "InvalidRange")
    assert put_from(share, source, 20, 0, 4).answer == (416, "CannotVerifyCopySource")
    assert put_from(share, source, 0, 0, 4, {"x-ms-source-range": "bytes=0-9"}).answer == (400, "InvalidHeaderValue")
    assert put_from(share, source, 0, 0, 5 * MIB).answer == (413, "RequestBodyTooLarge")
    assert put_from(share, source, 0, 0, 4, {"x-ms-write": "clear"}).answer == (400, "InvalidHeaderValue")
    lease = share.acquire("file")
    assert put_from(share, source, 0, 0, 4).answer == (412, "LeaseIdMissing")
    assert put_from(share, source, 0, 0, 4, {"x-ms-lease-id": lease}).status == 201


# --- files as the source of blobs -------------------------------------------------------------------------------------------


def test_blobs_are_made_from_files(share: ShareBox, box: Box) -> None:
    body = bytes(range(256)) * KIB
    share.put("source", len(body) + MIB, {"x-ms-content-type": "text/x", "x-ms-meta-a": "1"})
    share.write(body, name="source")
    whole = body + bytes(MIB)
    source = {"x-ms-copy-source": signed(share)}
    copied = box.blob("PUT", "copied", headers=source)
    assert (copied.status, copied["x-ms-copy-status"]) == (202, "success")
    assert box.blob("PUT", "now", headers={**source, "x-ms-requires-sync": "true"}).status == 202
    assert box.blob("PUT", "put", headers={**source, "x-ms-blob-type": "BlockBlob"}).status == 201
    for name in ("copied", "now", "put"):
        done = box.get(name)
        assert (done.body, done["Content-Type"], done["x-ms-blob-type"]) == (whole, "text/x", "BlockBlob")
    assert (box.head("copied").metadata, box.head("put").metadata) == ({"a": "1"}, {})
    assert box.head("copied")["x-ms-copy-source"] == share.url("source")


def test_parts_of_blobs_are_made_from_ranges_of_files(share: ShareBox, box: Box) -> None:
    share.fill(b"0" * 512 + b"1" * 512, "source")
    part = {"x-ms-copy-source": signed(share), "x-ms-source-range": "bytes=512-1023"}
    assert box.blob("PUT", "blocks", "block", part, query={"blockid": "AAAA"}).status == 201
    box.put_block_list("<Latest>AAAA</Latest>", "blocks")
    box.blob("PUT", "log", headers={"x-ms-blob-type": "AppendBlob"})
    assert box.blob("PUT", "log", "appendblock", part).status == 201
    pages.create(box, 512, name="disk")
    written = box.blob("PUT", "disk", "page", {**part, "x-ms-page-write": "update", "x-ms-range": "bytes=0-511"})
    assert written.status == 201
    for name in ("blocks", "log", "disk"):
        assert box.get(name).body == b"1" * 512


def test_a_blob_from_a_file_asks_for_the_right_to_read_it(share: ShareBox, box: Box) -> None:
    share.fill(b"source", "source")
    for headers in ({}, {"x-ms-blob-type": "BlockBlob"}):
        refused = box.blob("PUT", "copy", headers={"x-ms-copy-source": share.url("source"), **headers})
        assert refused.answer == (401, "CannotVerifyCopySource")
    missing = box.blob("PUT", "copy", headers={"x-ms-copy-source": signed(share, "missing")})
    assert missing.answer == (404, "CannotVerifyCopySource")
    etag = {"x-ms-source-if-match": '"0x1"'}
    unmet = box.blob("PUT", "copy", headers={"x-ms-copy-source": signed(share), **etag})
    assert unmet.answer == (412, "SourceConditionNotMet")
    assert box.get("copy", auth=ANONYMOUS).status == 401
