"""Append blobs: create, append, seal; responses and errors."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import watched
from tests.rest.checksums import crc64, md5
from tests.rest.client import Box, Reply
from tests.rest.running import Running
from verditer.core.records.blob import Blob
from verditer.core.records.content import Interval
from verditer.core.records.record import Span
from verditer.partition.engine import Transaction

LARGE = b"0123456789abcdef" * 10_000  # more than an inline interval may have
ENGINES = ("sqlite", "postgres")


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def create(box: Box, headers: dict[str, str] | None = None, **more: Any) -> Reply:
    return box.blob("PUT", headers={"x-ms-blob-type": "AppendBlob", **(headers or {})}, **more)


def append(box: Box, body: bytes, headers: dict[str, str] | None = None, **more: Any) -> Reply:
    return box.blob("PUT", "blob", "appendblock", headers, body, **more)


def seal(box: Box, headers: dict[str, str] | None = None) -> Reply:
    return box.blob("PUT", "blob", "seal", headers)


def test_a_new_append_blob_is_empty_and_says_what_it_is(box: Box) -> None:
    reply = create(box, {"x-ms-blob-content-type": "text/plain", "x-ms-meta-A": "1", "x-ms-tags": "t=1"})
    assert (reply.status, reply["x-ms-request-server-encrypted"]) == (201, "true")
    head = box.head()
    assert (head["Content-Length"], head["x-ms-blob-type"], head["Content-Type"]) == ("0", "AppendBlob", "text/plain")
    assert (head["x-ms-blob-committed-block-count"], head.metadata, head["x-ms-tag-count"]) == ("0", {"A": "1"}, "1")
    assert head["ETag"] == reply["ETag"]
    assert "x-ms-blob-sealed" not in head
    assert "Content-MD5" not in head
    assert box.get().body == b""


def test_blocks_come_one_behind_the_other_whatever_their_size(box: Box) -> None:
    create(box)
    whole = b""
    for number, block in enumerate((b"a", LARGE, b"b" * 65536, b"c", LARGE[::-1], b"d" * 65537)):
        reply = append(box, block)
        assert reply.status == 201
        assert (reply["x-ms-blob-append-offset"], reply["x-ms-blob-committed-block-count"]) == (str(len(whole)), str(number + 1))
        whole += block
        assert reply["ETag"] == box.head()["ETag"]
    assert box.get().body == whole
    for start, end in ((0, 0), (1, 1), (0, 200_000), (160_000, 230_000), (len(whole) - 3, len(whole) + 10)):
        reply = box.get(headers={"x-ms-range": f"bytes={start}-{end}"})
        assert (reply.status, reply.body) == (206, whole[start : end + 1])


def test_many_small_blocks_move_to_an_extent_and_stay_what_they_were(box: Box) -> None:
    create(box)
    blocks = [bytes([number]) * 60_000 for number in range(75)]  # 4.5 MB: more than is kept inline
    etags = [append(box, block)["ETag"] for block in blocks]
    snapshot = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    append(box, b"behind")
    assert box.get().body == b"".join(blocks) + b"behind"
    assert box.get(query={"snapshot": snapshot}).body == b"".join(blocks)
    assert box.head(query={"snapshot": snapshot})["ETag"] == etags[-1]
    assert len(set(etags)) == len(blocks)

    def small(tx: Transaction) -> int:
        blob = next(one for one in tx.scan(Blob, Span(b"", b"\xff" * 64)) if one.etag == int(box.head()["ETag"].strip('"'), 16))
        rows = list(tx.scan(Interval, Span(blob.content_id.to_bytes(8, "big"), (blob.content_id + 1).to_bytes(8, "big"))))
        assert blob.intervals is not None
        assert blob.intervals.inline_bytes == sum(len(row.data) for row in rows)
        return blob.intervals.inline_bytes

    assert 0 < box.server.run(box.server.app.ctx.engine.read((), small, long=True)) < 1_000_000


def test_checksums_are_verified_and_answered(box: Box) -> None:
    create(box)
    plain = append(box, b"Hello World")
    assert plain["x-ms-content-crc64"] == "YeJLfssylmU="
    assert "Content-MD5" not in plain
    checked = append(box, b"x", {"Content-MD5": md5(b"x")})
    assert (checked["Content-MD5"], "x-ms-content-crc64" in checked) == (md5(b"x"), False)
    assert append(box, b"x", {"x-ms-content-crc64": crc64(b"x")})["x-ms-content-crc64"] == crc64(b"x")
    assert append(box, b"x", {"Content-MD5": md5(b"y")}).answer == (400, "Md5Mismatch")
    assert append(box, LARGE, {"x-ms-content-crc64": crc64(b"y")}).answer == (400, "Crc64Mismatch")
    assert append(box, b"x", {"Content-MD5": md5(b"x"), "x-ms-content-crc64": crc64(b"x")}).status == 400
    assert box.get().body == b"Hello Worldxx"


def test_a_range_checksum_is_of_the_range(box: Box) -> None:
    create(box)
    append(box, b"abc")
    append(box, b"def")
    reply = box.get(headers={"x-ms-range": "bytes=1-4", "x-ms-range-get-content-md5": "true"})
    assert (reply.body, reply["Content-MD5"]) == (b"bcde", md5(b"bcde"))


@pytest.mark.parametrize(
    ("headers", "answer"),
    [
        ({"x-ms-blob-condition-appendpos": "5"}, (201, None)),
        ({"x-ms-blob-condition-appendpos": "0"}, (412, "AppendPositionConditionNotMet")),
        ({"x-ms-blob-condition-appendpos": "6"}, (412, "AppendPositionConditionNotMet")),
        ({"x-ms-blob-condition-maxsize": "8"}, (201, None)),
        ({"x-ms-blob-condition-maxsize": "7"}, (412, "MaxBlobSizeConditionNotMet")),
        ({"x-ms-blob-condition-maxsize": "4"}, (412, "MaxBlobSizeConditionNotMet")),
        ({"x-ms-blob-condition-appendpos": "5", "x-ms-blob-condition-maxsize": "8"}, (201, None)),
        ({"x-ms-blob-condition-appendpos": "-1"}, (400, "InvalidHeaderValue")),
        ({"x-ms-blob-condition-maxsize": "x"}, (400, "InvalidHeaderValue")),
    ],
)
def test_a_block_goes_where_it_was_meant_to_go_or_nowhere(
    box: Box, headers: dict[str, str], answer: tuple[int, str | None]
) -> None:
    create(box)
    append(box, b"12345")
    assert append(box, b"678", headers).answer == answer
    assert box.get().body == (b"12345678" if answer[0] == 201 else b"12345")


@pytest.mark.parametrize("size", [10, 100_000])
def test_a_repeated_append_is_told_that_its_place_is_taken(box: Box, size: int) -> None:
    # race A3
    create(box)
    headers = {"x-ms-blob-condition-appendpos": "0"}
    assert append(box, b"x" * size, headers).status == 201
    assert append(box, b"x" * size, headers).answer == (412, "AppendPositionConditionNotMet")
    assert box.head()["Content-Length"] == str(size)


def test_conditions_of_every_write_hold_for_appends_too(box: Box) -> None:
    # contract B1, B2
    first = create(box)["ETag"]
    second = append(box, b"a", {"If-Match": first})
    assert second.status == 201
    assert append(box, b"b", {"If-Match": first}).answer == (412, "ConditionNotMet")
    assert append(box, b"b", {"If-None-Match": second["ETag"]}).answer == (412, "ConditionNotMet")
    assert append(box, b"b", {"If-Unmodified-Since": box.client.date(-3600)}).answer == (412, "ConditionNotMet")
    assert append(box, b"b", {"If-Match": first, "x-ms-blob-condition-appendpos": "9"}).answer == (412, "ConditionNotMet")
    assert append(box, b"b", {"x-ms-if-tags": "a='1'"}).answer == (412, "ConditionNotMet")
    assert create(box, {"If-None-Match": "*"}).answer == (409, "BlobAlreadyExists")
    assert create(box, {"If-Match": first}).answer == (412, "ConditionNotMet")
    assert box.get().body == b"a"


def test_a_leased_append_blob_asks_for_its_lease_id(box: Box) -> None:
    # contract L3, race L5
    create(box)
    lease_id = box.acquire(15)
    assert append(box, b"a").answer == (412, "LeaseIdMissing")
    assert append(box, b"a", {"x-ms-lease-id": "11111111-1111-1111-1111-111111111111"}).answer == (
        412,
        "LeaseIdMismatchWithBlobOperation",
    )
    assert append(box, b"a", {"x-ms-lease-id": lease_id}).status == 201
    assert seal(box).answer == (412, "LeaseIdMissing")
    assert create(box).answer == (412, "LeaseIdMissing")
    assert create(box, {"x-ms-lease-id": lease_id}).status == 201
    assert box.head()["x-ms-lease-state"] == "leased"
    box.server.move_clock(16)
    assert append(box, b"b").status == 201
    assert box.lease("renew", {"x-ms-lease-id": lease_id}).answer == (409, "LeaseIdMismatchWithLeaseOperation")


def test_a_sealed_blob_takes_no_more_bytes_but_other_changes(box: Box) -> None:
    create(box)
    before = append(box, b"all")["ETag"]
    assert seal(box, {"x-ms-blob-condition-appendpos": "2"}).answer == (412, "AppendPositionConditionNotMet")
    sealed = seal(box, {"x-ms-blob-condition-appendpos": "3"})
    assert (sealed.status, sealed["x-ms-blob-sealed"]) == (200, "true")
    assert sealed["ETag"] != before
    assert box.head()["x-ms-blob-sealed"] == "true"
    refused = append(box, b"more")
    assert refused.answer == (409, "BlobIsSealed")
    message = refused.xml.findtext("Message") or ""
    assert message.startswith("The blob is sealed and its contents cannot be modified.\n")  # seen on Azure
    assert seal(box)["ETag"] == sealed["ETag"]
    assert box.blob("PUT", comp="metadata", headers={"x-ms-meta-a": "1"}).status == 200
    assert box.page().xml.findtext("Blobs/Blob/Properties/Sealed") == "true"
    assert create(box).status == 201
    assert "x-ms-blob-sealed" not in box.head()
    assert append(box, b"again").status == 201


def test_what_is_no_append_blob_is_refused_by_type(box: Box) -> None:
    assert append(box, b"a").answer == (404, "BlobNotFound")
    assert seal(box).answer == (404, "BlobNotFound")
    box.put()
    assert append(box, b"a").answer == (409, "InvalidBlobType")
    assert seal(box).answer == (409, "InvalidBlobType")
    create(box)
    assert box.blob("GET", comp="blocklist").answer == (409, "InvalidBlobType")
    assert box.put_block("MDAx").answer == (409, "InvalidBlobType")
    assert box.put_block_list("").answer == (409, "InvalidBlobType")
    assert box.blob("GET", comp="pagelist").answer == (409, "InvalidBlobType")


def test_an_empty_block_and_a_body_at_creation_are_refused(box: Box) -> None:
    assert create(box, body=b"x").answer == (400, "InvalidHeaderValue")
    create(box)
    assert append(box, b"").answer == (400, "InvalidHeaderValue")
    assert append(box, b"", chunked=True).answer == (400, "InvalidHeaderValue")
    assert append(box, b"in chunks", chunked=True).status == 201
    assert box.get().body == b"in chunks"


@pytest.mark.parametrize(("version", "limit"), [("2022-11-02", 100 << 20), ("2021-12-02", 4 << 20)])
def test_a_block_has_a_limit_that_depends_on_the_version(box: Box, version: str, limit: int) -> None:
    create(box)
    headers = [("x-ms-version", version), ("Content-Length", str(limit + 1)), ("Expect", "100-continue")]
    target = f"/{box.server.account}{box.path}/blob?comp=appendblock&{box.sas('a')}"
    reply = box.client.exchange("PUT", target, headers)
    assert (reply.answer, reply.detail("MaxLimit")) == ((413, "RequestBodyTooLarge"), str(limit))


def test_the_type_of_a_blob_may_change_unless_it_has_snapshots(box: Box) -> None:
    create(box)
    append(box, b"old")
    assert box.put(body=b"block").status == 201
    assert box.get().body == b"block"
    assert create(box).status == 201
    box.blob("PUT", comp="snapshot")
    assert box.put().answer == (409, "InvalidBlobType")
    assert create(box).status == 201


def test_a_snapshot_keeps_what_there_was_and_goes_alone(box: Box) -> None:
    # contract G3
    create(box)
    append(box, b"one")
    snapshot = box.blob("PUT", comp="snapshot")["x-ms-snapshot"]
    append(box, LARGE)
    kept = box.get(query={"snapshot": snapshot})
    assert (kept.body, kept["x-ms-blob-committed-block-count"]) == (b"one", "1")
    assert create(box).status == 201
    assert box.get(query={"snapshot": snapshot}).body == b"one"
    assert box.blob("DELETE").answer == (409, "SnapshotsPresent")
    assert box.blob("DELETE", query={"snapshot": snapshot}).status == 202
    assert box.get(query={"snapshot": snapshot}).answer == (404, "BlobNotFound")
    assert box.blob("DELETE").status == 202
    assert box.get().answer == (404, "BlobNotFound")


def test_add_permission_is_enough_to_append(box: Box) -> None:
    create(box)
    assert append(box, b"a", auth=box.sas("a", "blob")).status == 201
    assert append(box, b"a", auth=box.sas("rc", "blob")).status == 403
    assert create(box, auth=box.sas("c", "blob")).answer == (403, "UnauthorizedBlobOverwrite")


def test_the_number_of_blocks_has_a_limit(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verditer.services.blob.kinds.append.MAX_APPENDED_BLOCKS", 2)
    create(box)
    assert [append(box, b"x").answer for _ in range(3)] == [(201, None), (201, None), (409, "BlockCountExceedsLimit")]
    assert box.get().body == b"xx"


def test_an_append_blob_has_no_tier_to_be_given(box: Box) -> None:
    tier = {"x-ms-blob-type": "AppendBlob", "x-ms-access-tier": "Cool"}
    assert box.blob("PUT", headers=tier).answer == (400, "AccessTierNotSupportedForBlobType")
    assert box.names() == []
