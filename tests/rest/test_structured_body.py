"""Structured bodies over HTTP: uploads and downloads have segments with checksums, and no corrupt body is stored."""

import base64
from collections.abc import Iterator
from struct import pack, unpack

import pytest
from awscrt.checksums import crc64nvme

from tests.conftest import watched
from tests.rest.client import Box, Reply
from tests.rest.running import Running

FORM = "XSM/1.0; properties=crc64"
MIB = 1024 * 1024
LARGE = bytes(range(251)) * (9 * MIB // 251)


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def wrapped(content: bytes, segment_bytes: int = 4 * MIB) -> bytes:
    segments = [content[at : at + segment_bytes] for at in range(0, len(content), segment_bytes)] or [b""]
    message = pack("<BQHH", 1, 21 + 18 * len(segments) + len(content), 1, len(segments))
    for number, segment in enumerate(segments, 1):
        message += pack("<HQ", number, len(segment)) + segment + pack("<Q", crc64nvme(segment))
    return message + pack("<Q", crc64nvme(content))


def unwrapped(message: bytes) -> tuple[bytes, list[int]]:
    """The content and the sizes of its segments, after checking every checksum."""
    version, length, flags, count = unpack("<BQHH", message[:13])
    assert (version, length, flags) == (1, len(message), 1)
    content, sizes, at = b"", list[int](), 13
    for number in range(1, count + 1):
        said, size = unpack("<HQ", message[at : at + 10])
        segment = message[at + 10 : at + 10 + size]
        at += 18 + size
        assert (said, message[at - 8 : at]) == (number, pack("<Q", crc64nvme(segment)))
        content += segment
        sizes.append(size)
    assert message[at:] == pack("<Q", crc64nvme(content))
    return content, sizes


def headers_for(content: bytes, **more: str) -> dict[str, str]:
    return {"x-ms-structured-body": FORM, "x-ms-structured-content-length": str(len(content)), **more}


def put(box: Box, content: bytes, message: bytes, **more: str) -> Reply:
    return box.put(body=message, headers=headers_for(content, **more))


@pytest.mark.parametrize(("size", "segment"), [(0, 10), (1, 10), (1000, 10), (70_000, 30_000), (9 * MIB, 4 * MIB)])
def test_a_structured_upload_stores_its_content(box: Box, size: int, segment: int) -> None:
    content = (LARGE + LARGE)[:size]
    reply = put(box, content, wrapped(content, segment))
    assert reply.status == 201
    assert reply["x-ms-structured-body"] == FORM
    assert reply["x-ms-content-crc64"] == base64.b64encode(pack("<Q", crc64nvme(content))).decode()
    assert box.get().body == content


def test_a_structured_block_stores_its_content(box: Box) -> None:
    block_id = base64.b64encode(b"1").decode()
    content = LARGE[:100_000]
    reply = box.put_block(block_id, wrapped(content, 4096), headers=headers_for(content))
    assert (reply.status, reply["x-ms-structured-body"]) == (201, FORM)
    assert box.put_block_list(f"<Latest>{block_id}</Latest>").status == 201
    assert box.get().body == content
    empty = box.put_block(block_id, wrapped(b""), headers=headers_for(b""))
    assert empty.answer == (400, "InvalidHeaderValue")


def test_a_chunked_structured_upload_stores_its_content(box: Box) -> None:
    content = LARGE[:200_000]
    reply = box.put(body=wrapped(content, 50_000), headers=headers_for(content), chunked=True)
    assert reply.status == 201
    assert box.get().body == content


@pytest.mark.parametrize("size", [100, 300_000])
@pytest.mark.parametrize("where", ["content", "footer"])
def test_a_damaged_upload_is_refused_and_leaves_nothing(box: Box, size: int, where: str) -> None:
    content = LARGE[:size]
    message = bytearray(wrapped(content, 64 * 1024))
    message[50 if where == "content" else -1] ^= 1
    reply = put(box, content, bytes(message))
    assert reply.answer == (400, "Crc64Mismatch")
    assert reply.detail("UserSpecifiedCrc64") != reply.detail("ServerCalculatedCrc64")
    assert box.get().answer == (404, "BlobNotFound")


@pytest.mark.parametrize("size", [100, 300_000])
def test_a_message_that_does_not_add_up_is_refused(box: Box, size: int) -> None:
    content = LARGE[:size]
    assert put(box, content[1:], wrapped(content)).answer == (400, "InvalidInput")
    assert put(box, content, wrapped(content) + b"!").answer == (400, "InvalidInput")
    assert put(box, content, wrapped(content)[:-1]).answer == (400, "InvalidInput")
    assert put(box, content, content).answer == (400, "InvalidInput")
    assert box.get().answer == (404, "BlobNotFound")


def test_the_form_and_the_length_are_required(box: Box) -> None:
    message = wrapped(b"content")
    unknown = box.put(body=message, headers=headers_for(b"content") | {"x-ms-structured-body": "XSM/2.0"})
    assert unknown.answer == (400, "InvalidHeaderValue")
    assert unknown.detail("HeaderName") == "x-ms-structured-body"
    without = box.put(body=message, headers={"x-ms-structured-body": FORM})
    assert without.answer == (400, "MissingRequiredHeader")
    wrong = box.put(body=message, headers=headers_for(b"content") | {"x-ms-structured-content-length": "-1"})
    assert wrong.answer == (400, "InvalidHeaderValue")


def test_limits_count_the_content_and_not_its_wrapping(box: Box) -> None:
    content = bytes(4 * MIB)
    old = {"x-ms-version": "2015-12-11"}  # a block has at most 4 MiB
    block_id = base64.b64encode(b"1").decode()
    assert box.put_block(block_id, wrapped(content), headers=headers_for(content) | old).status == 201
    longer = content + b"!"
    assert box.put_block(block_id, wrapped(longer), headers=headers_for(longer) | old).answer == (413, "RequestBodyTooLarge")


def test_other_checksums_are_of_the_content(box: Box) -> None:
    content = b"Hello World"
    assert put(box, content, wrapped(content), **{"x-ms-content-crc64": "YeJLfssylmU="}).status == 201
    assert put(box, content, wrapped(content), **{"x-ms-content-crc64": "AAAAAAAAAAA="}).answer == (400, "Crc64Mismatch")


def test_append_blocks_and_pages_take_structured_bodies(box: Box) -> None:
    content = LARGE[:1024]
    assert box.blob("PUT", headers={"x-ms-blob-type": "AppendBlob"}).status == 201
    appended = box.blob("PUT", comp="appendblock", headers=headers_for(content), body=wrapped(content, 100))
    assert (appended.status, appended["x-ms-structured-body"]) == (201, FORM)
    assert box.get().body == content
    assert box.blob("PUT", "p", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "2048"}).status == 201
    where = {"x-ms-range": "bytes=512-1535", "x-ms-page-write": "update"}
    paged = box.blob("PUT", "p", comp="page", headers=headers_for(content, **where), body=wrapped(content, 100))
    assert (paged.status, paged["x-ms-structured-body"]) == (201, FORM)
    assert box.get("p").body == bytes(512) + content + bytes(512)


@pytest.mark.parametrize(("size", "sizes"), [(0, [0]), (5, [5]), (100_000, [100_000]), (9 * MIB, [4 * MIB, 4 * MIB, MIB])])
def test_a_structured_download_carries_segments_of_4_mib(box: Box, size: int, sizes: list[int]) -> None:
    content = (LARGE + LARGE)[:size]
    box.put(body=content)
    reply = box.get(headers={"x-ms-structured-body": FORM})
    assert reply.status == 200
    assert (reply["x-ms-structured-body"], reply["x-ms-structured-content-length"]) == (FORM, str(size))
    assert unwrapped(reply.body) == (content, sizes)
    assert reply["Content-Length"] == str(len(reply.body))


def test_a_structured_range_carries_the_range(box: Box) -> None:
    box.put(body=LARGE)
    reply = box.get(headers={"x-ms-structured-body": FORM, "x-ms-range": "bytes=100-5000099"})
    assert (reply.status, reply["Content-Range"]) == (206, f"bytes 100-5000099/{len(LARGE)}")
    assert reply["x-ms-structured-content-length"] == "5000000"
    assert unwrapped(reply.body) == (LARGE[100:5_000_100], [4 * MIB, 5_000_000 - 4 * MIB])


def test_a_download_in_an_unknown_form_is_refused(box: Box) -> None:
    box.put()
    assert box.get(headers={"x-ms-structured-body": "XSM/1.0"}).answer == (400, "InvalidHeaderValue")


def test_a_refused_download_is_an_ordinary_error(box: Box) -> None:
    reply = box.get("missing", headers={"x-ms-structured-body": FORM})
    assert reply.answer == (404, "BlobNotFound")
    assert "x-ms-structured-body" not in reply
