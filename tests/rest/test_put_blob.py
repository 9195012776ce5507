"""Put Blob of a block blob: stored state, responses, errors."""

import re

import pytest

from tests.rest.checksums import crc64, md5
from tests.rest.client import Box, Reply
from tests.rest.copies import signed

ETAG = re.compile(r'"0x[0-9A-F]+"')
PUT = [("x-ms-blob-type", "BlockBlob"), ("x-ms-version", "2015-02-21")]
LARGE = b"0123456789abcdef" * 10_000  # too large to be inline


def target(box: Box) -> str:
    """A request line for tests that write the complete request."""
    return f"/{box.server.account}{box.path}/blob?{box.sas('w')}"


@pytest.mark.parametrize("body", [b"", b"Hello World", LARGE], ids=["empty", "small", "large"])
def test_a_stored_blob_answers_with_etag_date_and_both_checksums(box: Box, body: bytes) -> None:
    reply = box.put(body=body)
    assert (reply.status, reply.body) == (201, b"")
    assert ETAG.fullmatch(reply["ETag"])
    assert reply["Last-Modified"].endswith(" GMT")
    assert reply["Content-MD5"] == md5(body)
    assert reply["x-ms-content-crc64"] == crc64(body)
    assert reply["x-ms-request-server-encrypted"] == "true"
    assert box.get().body == body


def test_the_checksum_of_hello_world_is_the_one_azure_gives(box: Box) -> None:
    assert box.put(body=b"Hello World")["x-ms-content-crc64"] == "YeJLfssylmU="
    assert box.put(body=b"")["x-ms-content-crc64"] == "AAAAAAAAAAA="


def test_every_write_has_an_etag_of_its_own(box: Box) -> None:
    # contract G4
    etags = [box.put()["ETag"] for _ in range(20)]
    assert len(set(etags)) == 20
    assert etags == sorted(etags)


def test_overwriting_replaces_headers_and_metadata_too(box: Box) -> None:
    box.put(headers={"x-ms-blob-content-language": "de", "x-ms-meta-a": "1", "x-ms-tags": "t=1", "x-ms-access-tier": "Cool"})
    box.put(body=b"second")
    reply = box.head()
    assert reply.metadata == {}
    assert "Content-Language" not in reply
    assert "x-ms-tag-count" not in reply
    assert reply["x-ms-access-tier"] == "Hot"
    assert reply["x-ms-access-tier-inferred"] == "true"


def test_the_prefixed_header_wins_over_the_plain_one(box: Box) -> None:
    plain = {"Content-Type": "text/a", "Content-Encoding": "ea", "Content-Language": "la", "Cache-Control": "ca"}
    prefixed = {f"x-ms-blob-{name.lower()}": value.replace("a", "b") for name, value in plain.items()}
    box.put(headers=plain)
    assert {name: box.head().header(name) for name in plain} == plain
    box.put(headers=plain | prefixed | {"x-ms-blob-content-disposition": "inline"})
    reply = box.head()
    assert [reply[name] for name in plain] == list(prefixed.values())
    assert reply["Content-Disposition"] == "inline"


def test_a_blob_without_a_content_type_is_a_stream_of_octets(box: Box) -> None:
    box.put()
    assert box.head()["Content-Type"] == "application/octet-stream"


def test_metadata_names_keep_their_case(box: Box) -> None:
    box.put(headers={"x-ms-meta-CamelCase": " spaced ", "X-MS-Meta-other": "x"})
    assert box.head().metadata == {"CamelCase": "spaced", "other": "x"}
    assert box.get().metadata == {"CamelCase": "spaced", "other": "x"}


def test_a_repeated_metadata_header_is_joined(box: Box) -> None:
    headers = [("x-ms-blob-type", "BlockBlob"), ("x-ms-meta-name", "a"), ("x-ms-meta-NAME", "b")]
    assert box.blob("PUT", headers=headers, body=b"").status == 201
    assert box.head().metadata == {"name": "a,b"}


def test_tags_and_tier_are_kept(box: Box) -> None:
    box.put(headers={"x-ms-tags": "one=1&two=a%20b", "x-ms-access-tier": "cool"})
    reply = box.head()
    assert reply["x-ms-tag-count"] == "2"
    assert reply["x-ms-access-tier"] == "Cool"
    assert "x-ms-access-tier-inferred" not in reply
    assert reply["x-ms-access-tier-change-time"] == reply["Last-Modified"]


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"x-ms-meta-has-dash": "v"}, "InvalidMetadata"),
        ({"x-ms-meta-": "v"}, "EmptyMetadataKey"),
        ({"x-ms-meta-a": "v" * 8192}, "MetadataTooLarge"),
        ({"x-ms-meta-a": "ä"}, "InvalidMetadata"),
        ({"x-ms-tags": "a=1&a=2"}, "DuplicateTagNames"),
        ({"x-ms-tags": "=1"}, "EmptyTagName"),
        ({"x-ms-tags": "a=%21"}, "InvalidTag"),
        ({"x-ms-tags": "&".join(f"t{number}=1" for number in range(11))}, "TagsTooLarge"),
        ({"x-ms-access-tier": "Lukewarm"}, "InvalidHeaderValue"),
        ({"Content-MD5": "AAAA"}, "InvalidMd5"),
        ({"Content-MD5": "not base64"}, "InvalidMd5"),
        ({"x-ms-blob-content-md5": "AAAA"}, "InvalidMd5"),
        ({"Content-MD5": md5(b"other")}, "Md5Mismatch"),
        ({"x-ms-blob-content-md5": md5(b"other")}, "Md5Mismatch"),
        ({"x-ms-content-crc64": "AAAA"}, "InvalidHeaderValue"),
        ({"x-ms-content-crc64": crc64(b"other")}, "Crc64Mismatch"),
        ({"Content-MD5": md5(b"new"), "x-ms-content-crc64": crc64(b"new")}, "BothCrc64AndMd5HeaderPresent"),
        ({"x-ms-lease-id": "not a guid"}, "InvalidHeaderValue"),
        ({"If-Modified-Since": "yesterday"}, "InvalidHeaderValue"),
        ({"x-ms-if-tags": "a = b"}, "InvalidHeaderValue"),
    ],
    ids=lambda value: value if isinstance(value, str) else next(iter(value)),
)
def test_a_refused_write_leaves_the_blob_as_it_was(box: Box, headers: dict[str, str], code: str) -> None:
    # contract G7
    before = box.put(body=b"old", headers={"x-ms-meta-kept": "yes"})
    if "x-ms-meta-a" in headers and not headers["x-ms-meta-a"].isascii():
        headers = {"x-ms-meta-a": headers["x-ms-meta-a"].encode().decode("latin-1")}
    sas = box.sas("wt", blob="blob")  # without a signature over the headers
    assert box.put(body=b"new", headers=headers, auth=sas).answer == (400, code)
    after = box.get()
    assert (after.body, after["ETag"], after.metadata) == (b"old", before["ETag"], {"kept": "yes"})


@pytest.mark.parametrize("size", [3, 200_000])
def test_a_checksum_that_differs_is_reported_with_the_one_that_was_computed(box: Box, size: int) -> None:
    body = b"x" * size
    reply = box.put(body=body, headers={"Content-MD5": md5(b"other")})
    assert reply.answer == (400, "Md5Mismatch")
    assert reply.detail("UserSpecifiedMd5") == md5(b"other")
    assert reply.detail("ServerCalculatedMd5") == md5(body)
    reply = box.put(body=body, headers={"x-ms-content-crc64": crc64(b"other")})
    assert reply.answer == (400, "Crc64Mismatch")
    assert reply.detail("UserSpecifiedCrc64") == crc64(b"other")
    assert reply.detail("ServerCalculatedCrc64") == crc64(body)
    assert box.get().answer == (404, "BlobNotFound")


@pytest.mark.parametrize("size", [3, 200_000])
def test_a_checksum_that_agrees_is_accepted(box: Box, size: int) -> None:
    body = b"y" * size
    assert box.put(body=body, headers={"Content-MD5": md5(body)}).status == 201
    assert box.put(body=body, headers={"x-ms-blob-content-md5": md5(body)}).status == 201
    assert box.put(body=body, headers={"x-ms-content-crc64": crc64(body)}).status == 201


def test_the_prefixed_md5_counts_when_both_are_sent(box: Box) -> None:
    wrong, right = md5(b"other"), md5(b"hello")
    assert box.put(headers={"Content-MD5": wrong, "x-ms-blob-content-md5": right}).status == 201
    assert box.put(headers={"Content-MD5": right, "x-ms-blob-content-md5": wrong}).answer == (400, "Md5Mismatch")


def test_a_put_needs_a_blob_type_that_exists(box: Box) -> None:
    missing = box.blob("PUT", body=b"x")
    assert missing.answer == (400, "MissingRequiredHeader")
    assert missing.detail("HeaderName") == "x-ms-blob-type"
    wrong = box.blob("PUT", headers={"x-ms-blob-type": "RoundBlob"}, body=b"x")
    assert wrong.answer == (400, "InvalidHeaderValue")
    assert (wrong.detail("HeaderName"), wrong.detail("HeaderValue")) == ("x-ms-blob-type", "RoundBlob")


def test_a_body_larger_than_the_version_allows_is_refused_before_it_is_sent(box: Box) -> None:
    limit = 64 * 1024 * 1024
    headers = [("Content-Length", str(limit + 1)), ("Expect", "100-continue")]
    reply = box.client.exchange("PUT", target(box), [*PUT, *headers])
    assert reply.answer == (413, "RequestBodyTooLarge")
    assert reply.detail("MaxLimit") == str(limit)


def test_a_body_may_come_in_chunks(box: Box) -> None:
    assert box.put(body=LARGE, chunked=True).status == 201
    assert box.get().body == LARGE


def test_a_body_needs_a_length(box: Box) -> None:
    assert box.client.exchange("PUT", target(box), PUT).answer == (411, "MissingContentLengthHeader")


def test_a_name_may_be_1024_characters_long_and_no_longer(box: Box) -> None:
    assert box.put("n" * 1024).status == 201
    assert box.put("n" * 1025).answer == (400, "OutOfRangeInput")
    assert box.put("ä" * 1024).status == 201
    assert box.put("/".join("s" * 255)).answer == (400, "InvalidResourceName")
    assert box.names() == ["n" * 1024, "ä" * 1024]


def test_a_backslash_is_stored_as_a_slash(box: Box) -> None:
    box.client.send("PUT", f"{box.path}/a%5Cb", headers={"x-ms-blob-type": "BlockBlob"}, body=b"x")
    assert box.names() == ["a/b"]
    assert box.get("a/b").body == b"x"


def sums(reply: Reply) -> set[str]:
    """The checksums of an answer."""
    assert reply.status == 201, reply.body
    names = {"md5": "Content-MD5", "crc64": "x-ms-content-crc64"}
    return {short for short, name in names.items() if name in reply}


@pytest.mark.parametrize(
    ("version", "summed"), [("2021-08-06", {"md5"}), ("2026-02-06", {"md5"}), ("2026-10-06", {"md5", "crc64"})]
)
def test_a_digest_that_was_sent_is_answered_and_since_2026_the_other_too(box: Box, version: str, summed: set[str]) -> None:
    """Seen on Azure."""
    body = bytes(512)
    box.put("source", body)
    sent, told = {"Content-MD5": md5(body)}, {"x-ms-source-content-md5": md5(body), "x-ms-copy-source": signed(box)}
    ranged = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
    block = {"blockid": "AAAA"}
    assert sums(box.put(body=body, headers=sent, version=version)) == {"md5", "crc64"}
    assert sums(box.put(body=b"", headers=told, version=version)) == summed
    assert sums(box.blob("PUT", "staged", "block", sent, body, query=block, version=version)) == summed
    assert sums(box.blob("PUT", "staged", "block", told, query=block, version=version)) == summed
    box.blob("PUT", "append", headers={"x-ms-blob-type": "AppendBlob"})
    assert sums(box.blob("PUT", "append", "appendblock", sent, body, version=version)) == summed
    assert sums(box.blob("PUT", "append", "appendblock", told, version=version)) == summed
    box.blob("PUT", "disk", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"})
    assert sums(box.blob("PUT", "disk", "page", ranged | sent, body, version=version)) == summed
    source = told | {"x-ms-source-range": "bytes=0-511"}
    assert sums(box.blob("PUT", "disk", "page", ranged | source, version=version)) == summed


@pytest.mark.parametrize(("version", "summed"), [("2018-11-09", {"md5"}), ("2019-02-02", {"crc64"})])
def test_the_checksum_in_an_answer_is_the_one_the_version_knows(box: Box, version: str, summed: set[str]) -> None:
    assert sums(box.put(version=version)) == summed | {"md5"}
    block = {"x-ms-version": version}
    assert sums(box.put_block("AAAA", headers=block)) == summed
    assert sums(box.put_block_list("<Latest>AAAA</Latest>", headers=block)) == summed
    box.blob("PUT", "append", headers={"x-ms-blob-type": "AppendBlob"})
    assert sums(box.blob("PUT", "append", "appendblock", body=b"more", version=version)) == summed
    box.blob("PUT", "disk", headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": "512"})
    page = {"x-ms-page-write": "update", "x-ms-range": "bytes=0-511"}
    assert sums(box.blob("PUT", "disk", "page", page, bytes(512), version=version)) == summed
