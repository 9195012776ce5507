"""Get Blob and Get Blob Properties: headers, ranges, and answers without a body."""

import pytest

from tests.rest.checksums import crc64, md5
from tests.rest.client import Box

SMALL = bytes(range(100))
LARGE = bytes(range(256)) * 1000
SIZES = pytest.mark.parametrize("content", [SMALL, LARGE], ids=["small", "large"])


def test_a_whole_blob_comes_with_all_it_says_about_itself(box: Box) -> None:
    written = box.put(
        body=SMALL,
        headers={
            "x-ms-blob-content-type": "text/plain",
            "x-ms-blob-content-encoding": "identity",
            "x-ms-blob-content-language": "en",
            "x-ms-blob-cache-control": "no-cache",
            "x-ms-blob-content-disposition": "attachment",
            "x-ms-meta-MyName": "value",
            "x-ms-tags": "a=1",
        },
    )
    get, head = box.get(), box.head()
    for reply in (get, head):
        assert reply.status == 200
        assert reply["ETag"] == written["ETag"]
        assert reply["Last-Modified"] == written["Last-Modified"]
        assert reply["Content-Length"] == "100"
        assert reply["Content-Type"] == "text/plain"
        assert reply["Content-Encoding"] == "identity"
        assert reply["Content-Language"] == "en"
        assert reply["Cache-Control"] == "no-cache"
        assert reply["Content-Disposition"] == "attachment"
        assert reply["Content-MD5"] == md5(SMALL)
        assert reply["Accept-Ranges"] == "bytes"
        assert reply["x-ms-blob-type"] == "BlockBlob"
        assert reply["x-ms-creation-time"] == written["Last-Modified"]
        assert reply["x-ms-server-encrypted"] == "true"
        assert reply["x-ms-lease-status"] == "unlocked"
        assert reply["x-ms-lease-state"] == "available"
        assert reply["x-ms-tag-count"] == "1"
        assert reply.metadata == {"MyName": "value"}
        assert "Content-Range" not in reply
    assert get.body == SMALL
    assert head.body == b""
    assert head["x-ms-access-tier"] == "Hot"
    assert head["x-ms-access-tier-inferred"] == "true"


@SIZES
@pytest.mark.parametrize("header", ["Range", "x-ms-range"])
@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("0-0", 0, 0), ("0-9", 0, 9), ("10-20", 10, 20), ("99-", 99, None), ("0-", 0, None), ("50-99999999", 50, None)],
)
def test_a_range_is_cut_out_exactly(box: Box, content: bytes, header: str, asked: str, first: int, last: int | None) -> None:
    box.put(body=content)
    end = len(content) - 1 if last is None else last
    reply = box.get(headers={header: f"bytes={asked}"})
    assert reply.status == 206
    assert reply["Content-Range"] == f"bytes {first}-{end}/{len(content)}"
    assert reply["Content-Length"] == str(end - first + 1)
    assert reply.body == content[first : end + 1]
    assert "Content-MD5" not in reply
    assert reply["x-ms-blob-content-md5"] == md5(content)


@SIZES
def test_a_range_that_covers_everything_is_still_a_range(box: Box, content: bytes) -> None:
    box.put(body=content)
    reply = box.get(headers={"Range": f"bytes=0-{len(content) - 1}"})
    assert (reply.status, reply.body) == (206, content)


@SIZES
def test_a_range_may_bring_its_own_checksum(box: Box, content: bytes) -> None:
    box.put(body=content)
    reply = box.get(headers={"x-ms-range": "bytes=3-8", "x-ms-range-get-content-md5": "true"})
    assert (reply["Content-MD5"], reply["x-ms-blob-content-md5"]) == (md5(content[3:9]), md5(content))
    reply = box.get(headers={"x-ms-range": "bytes=3-8", "x-ms-range-get-content-crc64": "true"})
    assert reply["x-ms-content-crc64"] == crc64(content[3:9])
    assert reply.body == content[3:9]


def test_x_ms_range_wins_over_range(box: Box) -> None:
    box.put(body=SMALL)
    assert box.get(headers={"Range": "bytes=0-1", "x-ms-range": "bytes=5-6"}).body == SMALL[5:7]


@pytest.mark.parametrize("asked", ["bytes=-5", "bytes=1-2,4-5", "bytes=9-3", "lines=1-2", "nonsense"])
def test_a_range_of_another_kind_is_ignored_and_refused_in_x_ms_range(box: Box, asked: str) -> None:
    box.put(body=SMALL)
    reply = box.get(headers={"Range": asked})
    assert (reply.status, reply.body) == (200, SMALL)
    assert box.get(headers={"x-ms-range": asked}).answer == (400, "InvalidHeaderValue")


@pytest.mark.parametrize(("size", "first"), [(100, 100), (100, 5000), (0, 0)])
def test_a_range_behind_the_end_shows_where_the_end_is(box: Box, size: int, first: int) -> None:
    box.put(body=b"x" * size)
    reply = box.get(headers={"Range": f"bytes={first}-"})
    assert reply.answer == (416, "InvalidRange")
    assert reply["Content-Range"] == f"bytes */{size}"


@pytest.mark.parametrize("flag", ["x-ms-range-get-content-md5", "x-ms-range-get-content-crc64"])
def test_a_range_checksum_needs_a_short_range(box: Box, flag: str) -> None:
    box.put(body=b"x" * (4 * 1024 * 1024 + 1))
    assert box.get(headers={flag: "true"}).answer == (400, "MissingRequiredHeader")
    assert box.get(headers={flag: "true", "Range": "bytes=0-"}).answer == (400, "InvalidHeaderValue")
    assert box.get(headers={flag: "true", "Range": "bytes=1-"}).status == 206
    assert box.get(headers={flag: "maybe", "Range": "bytes=1-"}).answer == (400, "InvalidHeaderValue")


def test_only_one_range_checksum_at_a_time(box: Box) -> None:
    box.put()
    both = {"x-ms-range": "bytes=0-1", "x-ms-range-get-content-md5": "true", "x-ms-range-get-content-crc64": "true"}
    assert box.get(headers=both).status == 400


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_metadata_can_be_read_alone(box: Box, method: str) -> None:
    written = box.put(headers={"x-ms-meta-Key": "v"})
    reply = box.blob(method, comp="metadata")
    assert (reply.status, reply.body, reply.metadata) == (200, b"", {"Key": "v"})
    assert (reply["ETag"], reply["Last-Modified"]) == (written["ETag"], written["Last-Modified"])
    assert reply["Content-Length"] == "0"


@pytest.mark.parametrize(("method", "comp"), [("GET", ""), ("HEAD", ""), ("GET", "metadata"), ("GET", "blocklist")])
def test_a_blob_that_does_not_exist_is_not_found(box: Box, method: str, comp: str) -> None:
    assert box.blob(method, comp=comp).answer == (404, "BlobNotFound")
    missing = Box(box.client)
    assert missing.blob(method, comp=comp).answer == (404, "ContainerNotFound")


def test_names_are_case_sensitive(box: Box) -> None:
    box.put("Name")
    assert box.get("name").answer == (404, "BlobNotFound")


@pytest.mark.parametrize("snapshot", ["yesterday", "2026-13-01T00:00:00.0000000Z", "1"])
def test_a_snapshot_that_is_no_time_is_refused(box: Box, snapshot: str) -> None:
    box.put()
    reply = box.get(query={"snapshot": snapshot})
    assert reply.answer == (400, "InvalidQueryParameterValue")
    assert reply.detail("QueryParameterName") == "snapshot"


def test_a_snapshot_and_a_version_exclude_each_other(box: Box) -> None:
    box.put()
    moment = "2026-01-01T00:00:00.0000000Z"
    assert box.get(query={"snapshot": moment, "versionid": moment}).answer == (400, "MutuallyExclusiveQueryParameters")
