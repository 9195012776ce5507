"""Put Block, Put Block List, Get Block List."""

import base64
from collections.abc import Iterable

import pytest

from tests.rest.checksums import crc64, md5
from tests.rest.client import ANONYMOUS, Box, Client, Reply

A, B, C = (base64.b64encode(letter.encode()).decode() for letter in ("block-a", "block-b", "block-c"))
BIG = 70_000  # too large to be inline


def latest(*ids: str) -> str:
    return "".join(f"<Latest>{block_id}</Latest>" for block_id in ids)


def blocks(box: Box, kind: str = "all") -> dict[str, list[tuple[str, int]]]:
    reply = box.blob("GET", comp="blocklist", query={"blocklisttype": kind})
    assert reply.status == 200
    return {part.tag: [(node.findtext("Name") or "", int(node.findtext("Size") or 0)) for node in part] for part in reply.xml}


def committed(box: Box, *parts: tuple[str, bytes]) -> Reply:
    for block_id, body in parts:
        assert box.put_block(block_id, body).status == 201
    reply = box.put_block_list(latest(*[block_id for block_id, _ in parts]))
    assert reply.status == 201
    return reply


def test_a_staged_block_answers_with_the_checksum_that_was_asked_for(box: Box) -> None:
    plain = box.put_block(A, b"data")
    assert (plain.status, plain.body) == (201, b"")
    assert plain["x-ms-content-crc64"] == crc64(b"data")
    assert "Content-MD5" not in plain
    assert plain["x-ms-request-server-encrypted"] == "true"
    assert "ETag" not in plain  # contract B3
    assert "Last-Modified" not in plain
    checked = box.put_block(A, b"data", headers={"Content-MD5": md5(b"data")})
    assert (checked["Content-MD5"], "x-ms-content-crc64" in checked) == (md5(b"data"), False)
    both = box.put_block(A, b"data", headers={"Content-MD5": md5(b"data"), "x-ms-version": "2026-10-06"})
    assert (both["Content-MD5"], both["x-ms-content-crc64"]) == (md5(b"data"), crc64(b"data"))


def test_staged_blocks_are_invisible_until_they_are_committed(box: Box) -> None:
    # race B2
    box.put_block(A, b"data")
    assert box.get().answer == (404, "BlobNotFound")
    assert box.head().answer == (404, "BlobNotFound")
    assert box.names() == []
    assert box.names({"include": "uncommittedblobs"}) == ["blob"]
    reply = box.blob("GET", comp="blocklist", query={"blocklisttype": "all"})
    assert "ETag" not in reply
    assert reply["x-ms-blob-content-length"] == "0"
    assert blocks(box) == {"CommittedBlocks": [], "UncommittedBlocks": [(A, 4)]}


def test_staging_changes_nothing_of_the_committed_blob(box: Box) -> None:
    before = box.put(body=b"committed")
    box.put_block(A, b"staged")
    after = box.get()
    assert (after.body, after["ETag"]) == (b"committed", before["ETag"])


@pytest.mark.parametrize("size", [10, BIG])
def test_a_list_makes_a_blob_of_its_blocks_in_list_order(box: Box, size: int) -> None:
    for letter, block_id in zip(b"abc", (A, B, C), strict=True):
        box.put_block(block_id, bytes([letter]) * size)
    document = f"<BlockList>{latest(C, A, C)}</BlockList>".encode()
    reply = box.put_block_list(latest(C, A, C), headers={"x-ms-meta-k": "v", "x-ms-blob-content-type": "a/b", "x-ms-tags": "t=1"})
    assert (reply.status, reply.body) == (201, b"")
    assert reply["x-ms-content-crc64"] == crc64(document)
    assert reply["x-ms-request-server-encrypted"] == "true"
    blob = box.get()
    assert blob.body == b"c" * size + b"a" * size + b"c" * size
    assert (blob["ETag"], blob["Last-Modified"]) == (reply["ETag"], reply["Last-Modified"])
    assert (blob.metadata, blob["Content-Type"], blob["x-ms-tag-count"]) == ({"k": "v"}, "a/b", "1")
    assert "Content-MD5" not in blob  # no checksum was computed
    assert blocks(box) == {"CommittedBlocks": [(C, size), (A, size), (C, size)], "UncommittedBlocks": []}


def test_blocks_of_all_sizes_mix(box: Box) -> None:
    parts = [(A, b"a" * 3), (B, b"b" * BIG), (C, b"c" * 5)]
    committed(box, *parts)
    whole = b"".join(body for _, body in parts)
    assert box.get().body == whole
    assert box.get(headers={"Range": f"bytes=1-{BIG + 4}"}).body == whole[1 : BIG + 5]


def test_a_commit_replaces_headers_metadata_and_tags_and_keeps_creation_time(box: Box) -> None:
    first = box.put(headers={"x-ms-meta-old": "1", "x-ms-blob-content-language": "en", "x-ms-tags": "t=1"})
    box.server.move_clock(2)
    committed(box, (A, b"x"))
    reply = box.head()
    assert reply.metadata == {}
    assert "Content-Language" not in reply
    assert "x-ms-tag-count" not in reply
    assert reply["x-ms-creation-time"] == first["Last-Modified"]


def test_the_md5_property_comes_from_the_client_unchecked(box: Box) -> None:
    box.put_block(A)
    box.put_block_list(latest(A), headers={"x-ms-blob-content-md5": md5(b"whatever")})
    assert box.head()["Content-MD5"] == md5(b"whatever")


def test_an_empty_list_makes_an_empty_blob(box: Box) -> None:
    assert box.put_block_list("").status == 201
    assert (box.get().body, box.head()["Content-Length"]) == (b"", "0")


def test_staging_a_block_again_replaces_it_and_never_the_committed_one(box: Box) -> None:
    # race B1
    committed(box, (A, b"old"))
    box.put_block(A, b"new")
    assert box.get().body == b"old"
    assert blocks(box) == {"CommittedBlocks": [(A, 3)], "UncommittedBlocks": [(A, 3)]}
    box.put_block(A, b"newer")
    box.put_block(A, b"newer")
    assert blocks(box)["UncommittedBlocks"] == [(A, 5)]
    box.put_block_list(latest(A))
    assert box.get().body == b"newer"


@pytest.mark.parametrize("size", [3, BIG])
def test_each_element_looks_where_it_says(box: Box, size: int) -> None:
    # race B2
    committed(box, (A, b"1" * size), (B, b"2" * size))
    box.put_block(A, b"3" * size)
    assert box.put_block_list(f"<Uncommitted>{B}</Uncommitted>").answer == (400, "InvalidBlockList")
    assert box.put_block_list(f"<Committed>{C}</Committed>").answer == (400, "InvalidBlockList")
    assert box.put_block_list(f"<Uncommitted>{A}</Uncommitted><Committed>{B}</Committed>").status == 201
    assert box.get().body == b"3" * size + b"2" * size
    box.put_block(A, b"4" * size)
    assert box.put_block_list(f"<Committed>{A}</Committed><Latest>{B}</Latest>").status == 201
    assert box.get().body == b"3" * size + b"2" * size


@pytest.mark.parametrize("size", [3, BIG])
def test_a_subset_of_the_committed_blocks_can_be_committed_again(box: Box, size: int) -> None:
    # race B2
    committed(box, (A, b"1" * size), (B, b"2" * size), (C, b"3" * size))
    assert box.put_block_list(latest(C, A)).status == 201
    assert box.get().body == b"3" * size + b"1" * size
    assert blocks(box, "committed") == {"CommittedBlocks": [(C, size), (A, size)]}
    assert box.put_block_list(latest(B)).answer == (400, "InvalidBlockList")


def test_a_commit_discards_every_other_uncommitted_block(box: Box) -> None:
    # race B3
    box.put_block(A)
    box.put_block(B)
    assert box.put_block_list(latest(A)).status == 201
    assert blocks(box, "uncommitted") == {"UncommittedBlocks": []}
    assert box.put_block_list(latest(B)).answer == (400, "InvalidBlockList")
    assert box.get().body == b"block"


def test_put_blob_discards_uncommitted_and_committed_blocks(box: Box) -> None:
    committed(box, (A, b"x"))
    box.put_block(B)
    box.put(body=b"whole")
    assert blocks(box) == {"CommittedBlocks": [], "UncommittedBlocks": []}
    assert box.put_block_list(f"<Committed>{A}</Committed>").answer == (400, "InvalidBlockList")


def test_one_block_comes_through_one_kind_of_element_only(box: Box) -> None:
    box.put_block(A)
    mixed = f"<Latest>{A}</Latest><Uncommitted>{A}</Uncommitted>"
    assert box.put_block_list(mixed).status == 400
    assert box.get().answer == (404, "BlobNotFound")


@pytest.mark.parametrize(
    ("block_id", "answer"),
    [
        ("", (400, "MissingRequiredQueryParameter")),
        ("not base64!", (400, "InvalidQueryParameterValue")),
        ("AAA", (400, "InvalidQueryParameterValue")),
        (base64.b64encode(b"x" * 65).decode(), (400, "OutOfRangeInput")),
        (base64.b64encode(b"x" * 64).decode(), (201, None)),
    ],
)
def test_a_block_id_is_base64_of_up_to_64_bytes(box: Box, block_id: str, answer: tuple[int, str | None]) -> None:
    assert box.put_block(block_id).answer == answer


def test_block_ids_of_one_blob_are_equally_long(box: Box) -> None:
    box.put_block(A)
    assert box.put_block(base64.b64encode(b"longer-than-a").decode()).answer == (400, "InvalidBlobOrBlock")
    assert blocks(box)["UncommittedBlocks"] == [(A, 5)]


def test_block_ids_with_every_byte_survive(box: Box) -> None:
    ids = [base64.b64encode(bytes([0, number, 255])).decode() for number in (0, 1, 62, 63, 255)]
    for block_id in ids:
        assert box.put_block(block_id, block_id.encode()).status == 201
    assert blocks(box)["UncommittedBlocks"] == [(block_id, 4) for block_id in ids]
    box.put_block_list(latest(*ids))
    assert box.get().body == "".join(ids).encode()


@pytest.mark.parametrize("chunked", [False, True])
def test_an_empty_block_is_refused(box: Box, chunked: bool) -> None:
    reply = box.blob("PUT", comp="block", query={"blockid": A}, body=b"", chunked=chunked)
    assert reply.answer == (400, "InvalidHeaderValue")
    assert reply.detail("HeaderName") == "Content-Length"
    assert box.blob("GET", comp="blocklist").answer == (404, "BlobNotFound")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Content-MD5": md5(b"other")}, "Md5Mismatch"),
        ({"Content-MD5": "AAAA"}, "InvalidMd5"),
        ({"x-ms-content-crc64": crc64(b"other")}, "Crc64Mismatch"),
        ({"x-ms-content-crc64": crc64(b"block"), "Content-MD5": md5(b"block")}, "BothCrc64AndMd5HeaderPresent"),
    ],
)
def test_a_block_with_a_wrong_checksum_is_not_staged(box: Box, headers: dict[str, str], code: str) -> None:
    assert box.put_block(A, headers=headers).answer == (400, code)
    assert box.blob("GET", comp="blocklist").answer == (404, "BlobNotFound")


def test_the_checksum_of_a_commit_is_of_its_document(box: Box) -> None:
    box.put_block(A)
    document = f"<BlockList>{latest(A)}</BlockList>".encode()
    assert box.put_block_list(latest(A), headers={"Content-MD5": md5(b"other")}).answer == (400, "Md5Mismatch")
    assert box.put_block_list(latest(A), headers={"x-ms-content-crc64": crc64(b"other")}).answer == (400, "Crc64Mismatch")
    assert box.put_block_list(latest(A), headers={"Content-MD5": md5(document)})["Content-MD5"] == md5(document)


@pytest.mark.parametrize(
    ("xml", "code"),
    [
        ("<Latest>not base64!</Latest>", "InvalidBlockId"),
        (f"<Latest>{A}</Latest><Latest>AAAA</Latest>", "InvalidBlockId"),
        ("<Latest></Latest>", "InvalidBlockId"),
        (f"<Earliest>{A}</Earliest>", "InvalidXmlDocument"),
        ("<Latest>", "InvalidXmlDocument"),
        (f"<Latest>{C}</Latest>", "InvalidBlockList"),
    ],
)
def test_a_list_that_cannot_be_leaves_the_blob_as_it_was(box: Box, xml: str, code: str) -> None:
    # contract G7
    before = committed(box, (A, b"kept"))
    box.put_block(B)
    assert box.put_block_list(xml).answer == (400, code)
    assert (box.get().body, box.head()["ETag"]) == (b"kept", before["ETag"])
    assert blocks(box)["UncommittedBlocks"] == [(B, 5)]


def test_a_list_longer_than_50000_blocks_is_refused(box: Box) -> None:
    box.put_block("AAAA", b"x")
    assert box.put_block_list("<Latest>AAAA</Latest>" * 50_001).answer == (400, "BlockListTooLong")


def test_a_blob_of_50000_blocks_can_be_made_and_read(box: Box) -> None:
    box.put_block("AAAA", b"x")
    assert box.put_block_list("<Latest>AAAA</Latest>" * 50_000).status == 201
    assert box.get().body == b"x" * 50_000
    assert len(blocks(box, "committed")["CommittedBlocks"]) == 50_000


@pytest.mark.parametrize(
    ("kind", "parts"),
    [
        ("", ["CommittedBlocks"]),
        ("committed", ["CommittedBlocks"]),
        ("uncommitted", ["UncommittedBlocks"]),
        ("all", ["CommittedBlocks", "UncommittedBlocks"]),
        ("ALL", ["CommittedBlocks", "UncommittedBlocks"]),
    ],
)
def test_the_lists_that_were_asked_for_are_answered(box: Box, kind: str, parts: Iterable[str]) -> None:
    committed(box, (A, b"12345"))
    box.put_block(C)
    box.put_block(B)
    reply = box.blob("GET", comp="blocklist", query={"blocklisttype": kind} if kind else {})
    assert reply.status == 200
    assert reply["Content-Type"] == "application/xml"
    assert reply["ETag"] == box.head()["ETag"]
    assert reply["Last-Modified"] == box.head()["Last-Modified"]
    assert reply["x-ms-blob-content-length"] == "5"
    assert [node.tag for node in reply.xml] == parts
    if "UncommittedBlocks" in parts:
        assert blocks(box, "uncommitted")["UncommittedBlocks"] == [(B, 5), (C, 5)]  # by id, not by time


def test_a_list_that_does_not_exist_is_refused(box: Box) -> None:
    box.put()
    reply = box.blob("GET", comp="blocklist", query={"blocklisttype": "latest"})
    assert reply.answer == (400, "InvalidQueryParameterValue")
    assert reply.detail("QueryParameterName") == "blocklisttype"


def test_blocks_need_a_container(box: Box) -> None:
    missing = Box(box.client)
    assert missing.put_block(A).answer == (404, "ContainerNotFound")
    assert missing.put_block_list(latest(A)).answer == (404, "ContainerNotFound")


def test_anonymous_readers_see_committed_blocks_only(client: Client) -> None:
    box = Box(client).create({"x-ms-blob-public-access": "blob"})
    box.put_block("AAAA")
    box.put_block_list("<Latest>AAAA</Latest>")
    box.put_block("BBBB")
    cases: tuple[tuple[dict[str, str], int], ...] = (
        ({}, 200),
        ({"blocklisttype": "committed"}, 200),
        ({"blocklisttype": "all"}, 401),
    )
    for query, status in cases:
        assert box.blob("GET", comp="blocklist", query=query, auth=ANONYMOUS).status == status
    assert box.blob("GET", comp="blocklist", query={"blocklisttype": "all"}, auth=box.sas("r")).status == 200
