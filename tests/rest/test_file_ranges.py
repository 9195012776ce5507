"""Put Range, Clear Range, List Ranges and Get File: blocks of 512 bytes, checksums, structured bodies, differences."""

from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.checksums import crc64, md5
from tests.rest.files import ShareBox
from tests.rest.running import Running
from tests.rest.test_structured_body import headers_for, unwrapped, wrapped

MIB = 1024 * 1024
TIB = 1024**4


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def written(*ranges: tuple[int, int]) -> list[tuple[str, int, int]]:
    return [("Range", start, end) for start, end in ranges]


# Put Range


def test_a_written_range_is_read_back_and_the_rest_is_zeros(share: ShareBox) -> None:
    before = share.put(size=2048)
    reply = share.write(b"hello", 1000)
    assert (reply.status, reply.body) == (201, b"")
    assert reply["ETag"] != before["ETag"]
    assert reply["Content-MD5"] == md5(b"hello")
    assert reply["x-ms-request-server-encrypted"] == "true"
    found = share.get()
    assert found.body == bytes(1000) + b"hello" + bytes(1043)
    assert (found["ETag"], found["x-ms-file-last-write-time"]) == (reply["ETag"], reply["x-ms-file-last-write-time"])
    assert found["x-ms-file-change-time"] == reply["x-ms-file-last-write-time"]
    assert found["x-ms-file-creation-time"] == before["x-ms-file-creation-time"]


def test_the_last_write_time_may_be_preserved(share: ShareBox) -> None:
    created = share.put(size=10)
    for reply in (
        share.write(b"a", headers={"x-ms-file-last-write-time": "Preserve"}),
        share.clear(0, 1, headers={"x-ms-file-last-write-time": "preserve"}),
    ):
        assert reply["x-ms-file-last-write-time"] == created["x-ms-file-last-write-time"]
    found = share.head()
    assert found["x-ms-file-last-write-time"] == created["x-ms-file-last-write-time"]
    assert found["x-ms-file-change-time"] > created["x-ms-file-change-time"]
    moved = share.write(b"a", headers={"x-ms-file-last-write-time": "Now"})
    assert moved["x-ms-file-last-write-time"] > created["x-ms-file-last-write-time"]
    refused = share.write(b"a", headers={"x-ms-file-last-write-time": "2020-01-01T00:00:00Z"})
    assert refused.answer == (400, "InvalidHeaderValue")


def test_the_range_header_of_azure_goes_before_the_one_of_http(share: ShareBox) -> None:
    share.put(size=10)
    reply = share.file("PUT", comp="range", headers={"x-ms-write": "update", "Range": "bytes=1-2"}, body=b"ab")
    assert reply.status == 201
    both = {"x-ms-write": "update", "Range": "bytes=0-1", "x-ms-range": "bytes=5-6"}
    assert share.file("PUT", comp="range", headers=both, body=b"cd").status == 201
    assert share.get().body == b"\0ab\0\0cd\0\0\0"


@pytest.mark.parametrize(
    ("headers", "body", "answer"),
    [
        ({"x-ms-range": "bytes=0-4"}, b"hell", (400, "InvalidHeaderValue")),
        ({"x-ms-range": "bytes=0-4"}, b"", (400, "InvalidHeaderValue")),
        ({"x-ms-range": "bytes=6-10"}, b"hello", (416, "InvalidRange")),
        ({"x-ms-range": "bytes=100-104"}, b"hello", (416, "InvalidRange")),
        ({"x-ms-range": "bytes=0-"}, b"hello", (400, "InvalidHeaderValue")),
        ({"x-ms-range": "hello"}, b"hello", (400, "InvalidHeaderValue")),
        ({"x-ms-range": "bytes=0-4", "x-ms-write": "append"}, b"hello", (400, "InvalidHeaderValue")),
        ({"x-ms-range": "bytes=0-4", "Content-MD5": md5(b"other")}, b"hello", (400, "Md5Mismatch")),
        ({"x-ms-range": "bytes=0-4", "Content-MD5": "AAAA"}, b"hello", (400, "InvalidMd5")),
        ({"x-ms-range": "bytes=0-4", "x-ms-content-crc64": crc64(b"other")}, b"hello", (400, "Crc64Mismatch")),
        ({"x-ms-range": "bytes=0-4", "x-ms-write": "clear"}, b"hello", (400, "InvalidHeaderValue")),
        ({"x-ms-range": "bytes=0-4", "x-ms-write": "clear", "Content-MD5": "AAAA"}, b"", (400, "InvalidHeaderValue")),
        ({"x-ms-range": "bytes=6-10", "x-ms-write": "clear"}, b"", (416, "InvalidRange")),
    ],
)
def test_a_write_that_does_not_fit_is_refused(
    share: ShareBox, headers: dict[str, str], body: bytes, answer: tuple[int, str]
) -> None:
    share.put(size=10)
    assert share.file("PUT", comp="range", headers={"x-ms-write": "update", **headers}, body=body).answer == answer
    assert share.get().body == bytes(10)


def test_a_range_is_required_and_so_is_the_file(share: ShareBox) -> None:
    share.put(size=10)
    assert share.file("PUT", comp="range", headers={"x-ms-write": "update"}, body=b"x").answer == (400, "MissingRequiredHeader")
    assert share.file("PUT", comp="range", headers={"Range": "bytes=0-0"}, body=b"x").answer == (400, "MissingRequiredHeader")
    assert share.write(b"x", name="missing").answer == (404, "ResourceNotFound")
    assert share.write(b"x", name="missing/file").answer == (404, "ParentNotFound")
    share.make("d")
    assert share.write(b"x", name="d").answer == (409, "ResourceTypeMismatch")


def test_one_write_has_at_most_four_mebibytes(share: ShareBox) -> None:
    share.put(size=5 * MIB)
    assert share.write(b"x" * (4 * MIB)).status == 201
    assert share.write(b"x" * (4 * MIB + 1)).answer == (413, "RequestBodyTooLarge")
    assert share.clear(0, 5 * MIB).status == 201
    assert share.ranges() == []


def test_a_matching_checksum_is_accepted(share: ShareBox) -> None:
    share.put(size=10)
    digest = md5(b"hello")
    assert share.write(b"hello", headers={"Content-MD5": digest}).status == 201
    reply = share.write(b"world", 5, headers={"x-ms-content-crc64": crc64(b"world")})
    assert (reply.status, reply["x-ms-content-crc64"]) == (201, crc64(b"world"))
    assert share.get().body == b"helloworld"


def test_structured_bodies_are_written_and_read(share: ShareBox) -> None:
    share.put(size=1000)
    content = bytes(range(200))
    sent = headers_for(content, **{"x-ms-write": "update", "x-ms-range": "bytes=100-299"})
    reply = share.file("PUT", comp="range", headers=sent, body=wrapped(content, 64))
    assert (reply.status, reply["x-ms-structured-body"]) == (201, "XSM/1.0; properties=crc64")
    assert share.get().body[100:300] == content
    found = share.get(headers={"x-ms-structured-body": "XSM/1.0; properties=crc64", "x-ms-range": "bytes=90-109"})
    assert (found.status, found["x-ms-structured-content-length"]) == (206, "20")
    assert unwrapped(found.body)[0] == bytes(10) + content[:10]
    broken = bytearray(wrapped(content, 64))
    broken[30] ^= 1
    assert share.file("PUT", comp="range", headers=sent, body=bytes(broken)).answer == (400, "Crc64Mismatch")


def test_create_file_takes_the_first_bytes(share: ShareBox) -> None:
    digest = md5(b"hello")
    reply = share.put(size=10, headers={"Content-MD5": digest}, body=b"hello", version="2026-06-06")
    assert (reply.status, reply["Content-MD5"]) == (201, digest)
    assert share.get().body == b"hello" + bytes(5)


# Get File


@pytest.mark.parametrize(
    ("asked", "start", "end"), [("bytes=0-0", 0, 0), ("bytes=3-5", 3, 5), ("bytes=3-", 3, 9), ("bytes=9-100", 9, 9)]
)
def test_a_part_says_which_one_it_is(share: ShareBox, asked: str, start: int, end: int) -> None:
    share.fill(b"0123456789")
    for header in ("Range", "x-ms-range"):
        reply = share.get(headers={header: asked})
        assert (reply.status, reply.body) == (206, b"0123456789"[start : end + 1])
        assert reply["Content-Range"] == f"bytes {start}-{end}/10"
        assert (reply["Accept-Ranges"], reply["ETag"]) == ("bytes", share.head()["ETag"])


def test_a_part_that_begins_behind_the_end_is_refused(share: ShareBox) -> None:
    share.fill(b"0123456789")
    assert share.get(headers={"Range": "bytes=10-"}).answer == (416, "InvalidRange")
    share.put("empty")
    assert share.get("empty", {"x-ms-range": "bytes=0-4194303"}).answer == (416, "InvalidRange")
    assert share.get("empty").body == b""


def test_the_md5_of_a_part_is_reported_on_request(share: ShareBox) -> None:
    digest = md5(b"0123456789")
    share.put(size=5 * MIB, headers={"x-ms-content-md5": digest})
    share.write(b"0123456789")
    reply = share.get(headers={"x-ms-range": "bytes=2-4", "x-ms-range-get-content-md5": "true"})
    assert reply["Content-MD5"] == md5(b"234")
    assert reply["x-ms-content-md5"] == digest
    assert share.head()["Content-MD5"] == digest
    asked = {"x-ms-range-get-content-md5": "true"}
    assert share.get(headers={**asked, "x-ms-range": "bytes=0-4194304"}).status == 400
    assert share.get(headers=asked).status == 400


# Clear and List Ranges


def test_a_fresh_file_has_no_ranges(share: ShareBox) -> None:
    share.put(size=4096)
    reply = share.file("GET", comp="rangelist")
    assert reply.body.endswith(b'<?xml version="1.0" encoding="utf-8"?><Ranges />')
    assert (reply["x-ms-content-length"], reply["ETag"]) == ("4096", share.head()["ETag"])
    assert reply["Content-Type"] == "application/xml"


def test_ranges_are_blocks_of_512_bytes_up_to_the_end_of_the_file(share: ShareBox) -> None:
    share.put(size=2049)
    share.write(b"World", 1023)
    assert share.ranges() == written((512, 1535))
    share.write(b"x", 2048)
    assert share.ranges() == written((512, 1535), (2048, 2048))
    share.write(b"x" * 512, 1536)
    assert share.ranges() == written((512, 2048))


def test_clearing_frees_whole_blocks_and_zeroes_the_rest(share: ShareBox) -> None:
    share.fill(b"x" * 4096)
    reply = share.clear(768, 2305)
    assert (reply.status, "Content-MD5" in reply) == (201, False)
    assert share.ranges() == written((0, 1023), (2048, 4095))
    assert share.get().body == b"x" * 768 + bytes(1537) + b"x" * (4096 - 2305)
    share.clear(2048, 4096)
    assert share.ranges() == written((0, 1023))
    share.clear(100, 200)
    assert share.ranges() == written((0, 1023))
    share.clear(0, 4096)
    assert share.ranges() == []


def test_clearing_what_was_never_written_writes_nothing(share: ShareBox) -> None:
    share.put(size=4096)
    assert share.clear(100, 1100).status == 201
    assert share.ranges() == []


def test_clearing_up_to_the_end_frees_the_last_block(share: ShareBox) -> None:
    share.fill(b"HelloWorld")
    share.clear(1, 9)
    assert share.ranges() == written((0, 9))
    assert share.get().body == b"H" + bytes(8) + b"d"
    share.clear(0, 10)
    assert share.ranges() == []


def test_a_list_is_clipped_to_the_asked_range(share: ShareBox) -> None:
    share.put(size=4096)
    share.write(b"x" * 1536)
    share.write(b"x" * 512, 2048)
    assert share.ranges() == written((0, 1535), (2048, 2559))
    assert share.ranges(headers={"x-ms-range": "bytes=1024-2047"}) == written((1024, 1535))
    assert share.ranges(headers={"Range": "bytes=1536-2047"}) == []
    assert share.ranges(headers={"Range": "bytes=2100-"}) == written((2100, 2559))


def test_a_list_comes_in_pages(share: ShareBox) -> None:
    share.put(size=10 * 1024)
    for block in range(5):
        share.write(b"x" * 512, block * 1024)
    found, marker = [], ""
    while True:
        query = {"maxresults": "2", **({"marker": marker} if marker else {})}
        reply = share.file("GET", comp="rangelist", query=query, version="2026-10-06")
        page = [int(item[0].text or "") for item in reply.xml if len(item)]
        assert 0 < len(page) <= 2
        found += page
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            break
    assert found == [0, 1024, 2048, 3072, 4096]


def test_a_huge_file_costs_its_ranges(share: ShareBox) -> None:
    assert share.put(size=4 * TIB).status == 201
    for start in (0, TIB, 4 * TIB - 512):
        assert share.write(b"x" * 512, start).status == 201
    assert share.ranges() == written((0, 511), (TIB, TIB + 511), (4 * TIB - 512, 4 * TIB - 1))
    assert share.get(headers={"Range": f"bytes={TIB - 2}-{TIB + 1}"}).body == b"\0\0xx"
    assert share.put("more", 4 * TIB + 1).answer == (400, "InvalidHeaderValue")


def test_shrinking_drops_what_is_cut_off(share: ShareBox) -> None:
    share.fill(b"x" * 2048)
    share.file("PUT", comp="properties", headers={"x-ms-content-length": "700"})
    assert share.ranges() == written((0, 699))
    share.file("PUT", comp="properties", headers={"x-ms-content-length": "2048"})
    assert share.get().body == b"x" * 700 + bytes(1348)
    assert share.ranges() == written((0, 1023))


# Differences from a snapshot


def test_a_difference_has_what_was_written_and_what_was_cleared(share: ShareBox) -> None:
    share.put(size=2049)
    share.write(b"Hello")
    snapshot = share.snapshot()
    assert share.ranges(query={"prevsharesnapshot": snapshot}) == []
    share.clear(0, 512)
    share.write(b"World", 1023)
    expected = [("ClearRange", 0, 511), ("Range", 512, 1535)]
    assert share.ranges(query={"prevsharesnapshot": snapshot}) == expected
    later = share.snapshot()
    share.write(b"Hello")
    assert share.ranges(query={"prevsharesnapshot": snapshot, "sharesnapshot": later}) == expected
    assert share.ranges(query={"prevsharesnapshot": later}) == written((0, 511))


def test_a_renamed_file_is_followed_when_the_request_says_so(share: ShareBox) -> None:
    share.put(size=1024)
    share.write(b"Hello")
    snapshot = share.snapshot()
    share.rename("file", "renamed")
    share.write(b"World", 600, "renamed")
    query = {"prevsharesnapshot": snapshot}
    assert share.file("GET", "renamed", "rangelist", query=query).answer == (409, "PreviousSnapshotNotFound")
    refused = share.file("GET", "renamed", "rangelist", {"x-ms-file-support-rename": "false"}, query=query)
    assert refused.answer == (409, "PreviousSnapshotNotFound")
    assert share.ranges("renamed", query, {"x-ms-file-support-rename": "true"}) == written((512, 1023))


def test_a_file_that_was_replaced_has_no_difference(share: ShareBox) -> None:
    share.fill(b"x" * 1024)
    snapshot = share.snapshot()
    share.fill(b"y" * 1024)
    share.fill(b"z" * 1024, "new")
    query = {"prevsharesnapshot": snapshot}
    assert share.file("GET", comp="rangelist", query=query).answer == (409, "PreviousSnapshotNotFound")
    assert share.file("GET", "new", "rangelist", query=query).answer == (404, "ResourceNotFound")
    never = {"prevsharesnapshot": "2020-01-01T00:00:00.0000000Z"}
    assert share.file("GET", comp="rangelist", query=never).answer == (404, "ShareSnapshotNotFound")


def test_a_difference_is_reported_to_an_earlier_snapshot_only(share: ShareBox) -> None:
    share.fill(b"x" * 1024)
    first = share.snapshot()
    share.write(b"y" * 512)
    second = share.snapshot()
    assert share.ranges(query={"sharesnapshot": second, "prevsharesnapshot": first}) == [("Range", 0, 511)]
    assert share.ranges(query={"sharesnapshot": first, "prevsharesnapshot": first}) == []
    query = {"sharesnapshot": first, "prevsharesnapshot": second}
    assert share.file("GET", comp="rangelist", query=query).answer == (400, "InvalidQueryParameterValue")
