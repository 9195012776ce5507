"""Put Blob, Put Block, Append Block and Put Page From URL: the server fetches the bytes from itself or from another host."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import watched
from tests.rest.checksums import crc64, md5
from tests.rest.client import Box, Reply
from tests.rest.copies import Elsewhere, File, elsewhere, signed, url
from tests.rest.running import Running

LARGE = bytes(range(256)) * 1000
PAGE = 512
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


@pytest.fixture(params=("here", "elsewhere"))
def source(request: pytest.FixtureRequest, box: Box) -> Iterator["Source"]:
    with elsewhere() as remote:
        yield Source(box, remote if request.param == "elsewhere" else None)


class Source:
    """The same bytes, once as a blob of this server and once from another host."""

    def __init__(self, box: Box, remote: Elsewhere | None) -> None:
        self._box = box
        self._remote = remote

    def of(self, body: bytes) -> str:
        described = {"Content-Type": "text/plain", "Content-Encoding": "br", "Cache-Control": "no-store"}
        if self._remote is not None:
            return self._remote.add("source", File(body, described | {"ETag": '"0x1"', "x-ms-meta-a": "1"}))
        sent = {f"x-ms-blob-{name}".lower(): value for name, value in described.items()}
        assert self._box.put("source", body, sent | {"x-ms-meta-a": "1"}).status == 201
        return signed(self._box)


def from_url(box: Box, address: str, comp: str = "", headers: dict[str, str] | None = None, **more: Any) -> Reply:
    sent = {"x-ms-copy-source": address, **(headers or {})}
    return box.blob("PUT", "target", comp, sent, **more)


def put_block(box: Box, address: str, headers: dict[str, str] | None = None) -> Reply:
    return from_url(box, address, "block", headers, query={"blockid": "AAAA"})


# --- Put Blob From URL ----------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"hello", LARGE], ids=len)
def test_a_blob_is_put_from_a_url(box: Box, source: Source, body: bytes) -> None:
    reply = from_url(box, source.of(body), headers=BLOCK_BLOB | {"x-ms-meta-mine": "1", "x-ms-tags": "k=v"})
    assert reply.status == 201
    assert "Content-MD5" not in reply
    assert reply.header("x-ms-content-crc64") in (crc64(body), None if body == LARGE else crc64(body))
    put = box.get("target")
    assert (put.body, put["ETag"], put.metadata, put["x-ms-tag-count"]) == (body, reply["ETag"], {"mine": "1"}, "1")
    assert (put["Content-Type"], put["Content-Encoding"], put["Cache-Control"]) == ("text/plain", "br", "no-store")
    assert "x-ms-copy-id" not in put


def test_properties_of_the_request_come_before_those_of_the_source(box: Box, source: Source) -> None:
    address = source.of(b"hello")
    from_url(box, address, headers=BLOCK_BLOB | {"x-ms-blob-content-type": "a/b"})
    assert (box.head("target")["Content-Type"], box.head("target")["Content-Encoding"]) == ("a/b", "br")
    from_url(box, address, headers=BLOCK_BLOB | {"x-ms-copy-source-blob-properties": "false"})
    assert box.head("target")["Content-Type"] == "application/octet-stream"
    assert "Content-Encoding" not in box.head("target")


def test_checksums_of_the_source_are_compared(box: Box, source: Source) -> None:
    address = source.of(LARGE)
    for name in ("x-ms-source-content-md5", "x-ms-blob-content-md5"):
        assert from_url(box, address, headers=BLOCK_BLOB | {name: md5(b"other")}).answer == (400, "Md5Mismatch")
        assert box.head("target").status == 404
        assert from_url(box, address, headers=BLOCK_BLOB | {name: md5(LARGE)}).status == 201
        assert box.blob("DELETE", "target").status == 202


def test_a_page_blob_here_becomes_a_block_blob(box: Box) -> None:
    box.blob("PUT", "source", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(4 * PAGE)})
    assert from_url(box, signed(box), headers=BLOCK_BLOB).status == 201
    put = box.get("target")
    assert (put.body, put["x-ms-blob-type"]) == (bytes(4 * PAGE), "BlockBlob")


def test_tags_come_along_when_asked(box: Box) -> None:
    box.put("source", headers={"x-ms-tags": "k=v"})
    copied = BLOCK_BLOB | {"x-ms-copy-source-tag-option": "COPY"}
    assert from_url(box, signed(box), headers=copied).status == 201
    assert box.head("target")["x-ms-tag-count"] == "1"
    sas = box.sas("r", blob="source", sr="b")
    assert from_url(box, f"{url(box)}?{sas}", headers=copied).answer == (403, "CannotVerifyCopySource")


def test_an_md5_of_the_source_is_answered_alone(box: Box, source: Source) -> None:
    reply = from_url(box, source.of(LARGE), headers=BLOCK_BLOB | {"x-ms-source-content-md5": md5(LARGE)})
    assert (reply["Content-MD5"], "x-ms-content-crc64" in reply) == (md5(LARGE), False)


# --- conditions of the source ---------------------------------------------------------------------

CONDITIONS = {
    "x-ms-source-if-match": ('"0x9"', 412),
    "x-ms-source-if-none-match": ("current", 304),
    "x-ms-source-if-modified-since": ("future", 304),
    "x-ms-source-if-unmodified-since": ("past", 412),
}


@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize("operation", ["blob", "block", "append", "page"])
def test_an_unmet_condition_of_the_source_is_the_refusal_of_the_source(box: Box, name: str, operation: str) -> None:
    # contract B2, B3
    etag = box.put("source", bytes(PAGE))["ETag"]
    value, status = CONDITIONS[name]
    texts = {"current": etag, "future": box.client.date(3600), "past": box.client.date(-3600)}
    unmet = {name: texts.get(value, value)}
    for version, told in (("2021-08-06", False), ("2024-08-04", True)):
        reply = conditional(box, operation, unmet | {"x-ms-version": version})
        assert reply.answer == (status, "CannotVerifyCopySource")
        assert reply.header("x-ms-copy-source-status-code") == (str(status) if told else None)
        assert reply.header("x-ms-copy-source-error-code") == ("ConditionNotMet" if told else None)
        assert (reply.body == b"") is (status == 304)
        if status == 412:
            assert reply.detail("CopySourceErrorCode") == ("ConditionNotMet" if told else None)
            words = (reply.detail("Message") or "").partition("\n")[0]
            own = "Could not verify the copy source within the specified time."
            assert (words == own) is (operation != "blob")


def conditional(box: Box, operation: str, headers: dict[str, str]) -> Reply:
    if operation == "blob":
        return from_url(box, signed(box), headers=BLOCK_BLOB | headers)
    if operation == "block":
        return put_block(box, signed(box), headers)
    if operation == "append":
        box.blob("PUT", "target", headers={"x-ms-blob-type": "AppendBlob"})
        return from_url(box, signed(box), "appendblock", headers)
    box.blob("PUT", "target", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(PAGE)})
    return put_page(box, signed(box), "bytes=0-511", "bytes=0-511", headers)


# --- Put Block From URL ---------------------------------------------------------------------------


def test_blocks_are_put_from_a_url_and_committed(box: Box, source: Source) -> None:
    address = source.of(LARGE)
    reply = put_block(box, address, {"x-ms-source-range": "bytes=1000-200999"})
    assert reply.status == 201
    assert reply["x-ms-content-crc64"] == crc64(LARGE[1000:201_000])
    assert "ETag" not in reply
    assert box.put_block_list("<Latest>AAAA</Latest>", "target").status == 201
    assert box.get("target").body == LARGE[1000:201_000]


def test_a_block_without_a_range_is_the_whole_source(box: Box, source: Source) -> None:
    assert put_block(box, source.of(b"hello"), {"x-ms-source-content-md5": md5(b"hello")})["Content-MD5"] == md5(b"hello")
    box.put_block_list("<Latest>AAAA</Latest>", "target")
    assert box.get("target").body == b"hello"


def test_a_block_that_is_not_what_was_meant_is_refused(box: Box, source: Source) -> None:
    address = source.of(LARGE)
    ranged = {"x-ms-source-range": "bytes=0-99"}
    assert put_block(box, address, ranged | {"x-ms-source-content-md5": md5(b"x")}).answer == (400, "Md5Mismatch")
    assert put_block(box, address, ranged | {"x-ms-source-content-crc64": crc64(b"x")}).answer == (400, "Crc64Mismatch")
    assert put_block(box, address, {"x-ms-source-range": "0-99"}).answer == (400, "InvalidHeaderValue")
    unmet = {"x-ms-source-if-match": '"0x9"'}
    assert put_block(box, address, unmet).answer == (412, "CannotVerifyCopySource")
    assert box.blob("GET", "target", "blocklist", query={"blocklisttype": "all"}).status == 404


def test_a_range_behind_the_end_is_the_source_s_to_refuse(box: Box) -> None:
    box.put("source", b"short")
    reply = put_block(box, signed(box), {"x-ms-source-range": "bytes=100-199"})
    assert reply.answer == (416, "CannotVerifyCopySource")
    assert reply["x-ms-copy-source-error-code"] == "InvalidRange"


def test_a_source_without_ranges_gives_no_range(box: Box) -> None:
    with elsewhere() as remote:
        address = remote.add("file", File(LARGE, ranges=False))
        assert put_block(box, address, {"x-ms-source-range": "bytes=0-9"}).answer == (416, "CannotVerifyCopySource")


def test_a_leased_target_asks_for_its_lease(box: Box, source: Source) -> None:
    # contract L5
    address = source.of(b"hello")
    box.put("target")
    box.acquire(15, "target")
    assert put_block(box, address).answer == (412, "LeaseIdMissing")
    assert from_url(box, address, headers=BLOCK_BLOB).answer == (412, "LeaseIdMissing")


# --- Append Block From URL ------------------------------------------------------------------------


def test_blocks_are_appended_from_a_url(box: Box, source: Source) -> None:
    address = source.of(LARGE)
    box.blob("PUT", "target", headers={"x-ms-blob-type": "AppendBlob"})
    first = from_url(box, address, "appendblock", {"x-ms-source-range": "bytes=0-99999"})
    assert (first.status, first["x-ms-blob-append-offset"], first["x-ms-blob-committed-block-count"]) == (201, "0", "1")
    at = {"x-ms-source-range": "bytes=5-9", "x-ms-blob-condition-appendpos": "100000"}
    assert from_url(box, address, "appendblock", at).status == 201
    assert from_url(box, address, "appendblock", at).answer == (412, "AppendPositionConditionNotMet")
    full = {"x-ms-source-range": "bytes=0-9", "x-ms-blob-condition-maxsize": "100006"}
    assert from_url(box, address, "appendblock", full).answer == (412, "MaxBlobSizeConditionNotMet")
    assert from_url(box, address, "appendblock", {"If-Match": '"0x9"'}).answer == (412, "ConditionNotMet")
    assert from_url(box, address, "appendblock", {"x-ms-source-if-match": '"0x9"'}).answer == (412, "CannotVerifyCopySource")
    assert box.get("target").body == LARGE[:100_000] + LARGE[5:10]


def test_appending_needs_an_append_blob(box: Box, source: Source) -> None:
    address = source.of(b"hello")
    assert from_url(box, address, "appendblock").answer == (404, "BlobNotFound")
    box.put("target")
    assert from_url(box, address, "appendblock").answer == (409, "InvalidBlobType")


# --- Put Page From URL ----------------------------------------------------------------------------


def put_page(box: Box, address: str, ours: str, theirs: str, headers: dict[str, str] | None = None) -> Reply:
    sent = {"x-ms-page-write": "update", "x-ms-range": ours, "x-ms-source-range": theirs, **(headers or {})}
    return from_url(box, address, "page", sent)


def test_pages_are_put_from_a_url(box: Box, source: Source) -> None:
    address = source.of(LARGE)
    box.blob("PUT", "target", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(8 * PAGE)})
    reply = put_page(box, address, "bytes=512-1535", "bytes=100-1123")
    assert (reply.status, reply["x-ms-blob-sequence-number"]) == (201, "0")
    assert reply["x-ms-content-crc64"] == crc64(LARGE[100:1124])
    assert box.get("target").body == bytes(512) + LARGE[100:1124] + bytes(5 * PAGE)
    assert put_page(box, address, "bytes=0-511", "bytes=0-1023").answer == (400, "InvalidHeaderValue")
    assert put_page(box, address, "bytes=1-512", "bytes=0-511").answer == (416, "InvalidPageRange")
    fenced = {"x-ms-if-sequence-number-lt": "0"}
    assert put_page(box, address, "bytes=0-511", "bytes=0-511", fenced).answer == (412, "SequenceNumberConditionNotMet")
    missing = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
    assert from_url(box, address, "page", missing).answer == (400, "MissingRequiredHeader")


def test_a_source_that_is_not_there_is_reported_for_every_operation(box: Box) -> None:
    box.blob("PUT", "target", headers={"x-ms-blob-type": "AppendBlob"})
    assert from_url(box, signed(box), "appendblock").answer == (404, "CannotVerifyCopySource")
    assert put_block(box, signed(box)).answer == (404, "CannotVerifyCopySource")
    assert from_url(box, signed(box), headers=BLOCK_BLOB).answer == (404, "CannotVerifyCopySource")


def test_a_source_in_the_same_account_has_to_be_public_or_signed(box: Box) -> None:
    # contract G7
    box.put("source", bytes(PAGE))
    append = {"x-ms-blob-type": "AppendBlob"}
    pages = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(PAGE)}
    forms: list[tuple[dict[str, str], Callable[[], Reply]]] = [
        (append, lambda: from_url(box, url(box), "appendblock")),
        (pages, lambda: put_page(box, url(box), "bytes=0-511", "bytes=0-511")),
        (BLOCK_BLOB, lambda: put_block(box, url(box))),
        (BLOCK_BLOB, lambda: from_url(box, url(box), headers=BLOCK_BLOB)),
        (BLOCK_BLOB, lambda: from_url(box, url(box), headers={"x-ms-requires-sync": "true"})),
    ]

    def answers() -> list[tuple[int, str | None]]:
        return [form().answer for kind, form in forms if box.blob("PUT", "target", headers=kind).status == 201]

    assert answers() == [(401, "CannotVerifyCopySource")] * len(forms)
    assert from_url(box, url(box)).status == 202  # Copy Blob
    box.container("PUT", "acl", {"x-ms-blob-public-access": "blob"})
    assert [status for status, _ in answers()] == [201, 201, 201, 201, 202]


def test_a_request_that_brings_bytes_of_its_own_is_refused(box: Box) -> None:
    box.put("source")
    assert from_url(box, signed(box), headers=BLOCK_BLOB, body=b"bytes").answer == (400, "InvalidHeaderValue")
