"""Page blobs: create, write, clear, resize; sequence numbers; responses and errors."""

from collections.abc import Callable, Iterator

import pytest

from tests.conftest import watched
from tests.rest.checksums import crc64, md5
from tests.rest.client import Box, Reply
from tests.rest.history import settled
from tests.rest.pages import KIB, MIB, PAGE, TIB, clear, create, ranges, resize, snapshot, write
from tests.rest.running import Running

A, B, C = (letter * PAGE for letter in (b"a", b"b", b"c"))
LARGE = b"0123456789abcdef" * 64 * KIB  # 1 MiB: an extent
ENGINES = ("sqlite", "postgres")


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def test_a_new_page_blob_is_all_zeros(box: Box) -> None:
    reply = create(box, 2 * PAGE, {"x-ms-blob-sequence-number": "7", "x-ms-meta-A": "1", "x-ms-tags": "t=1"})
    assert (reply.status, reply["x-ms-request-server-encrypted"]) == (201, "true")
    head = box.head()
    assert (head["Content-Length"], head["x-ms-blob-type"], head["x-ms-blob-sequence-number"]) == ("1024", "PageBlob", "7")
    assert (head.metadata, head["x-ms-tag-count"]) == ({"A": "1"}, "1")
    assert "x-ms-access-tier" not in head
    assert box.get().body == bytes(2 * PAGE)
    assert box.page().xml.findtext("Blobs/Blob/Properties/x-ms-blob-sequence-number") == "7"
    assert ranges(box) == []


@pytest.mark.parametrize(
    ("size", "answer"),
    [
        ("0", (201, None)),
        ("512", (201, None)),
        (str(8 * TIB), (201, None)),
        ("513", (400, "InvalidHeaderValue")),
        ("-512", (400, "InvalidHeaderValue")),
        ("x", (400, "InvalidHeaderValue")),
        ("", (400, "MissingRequiredHeader")),
        (str(8 * TIB + 512), (413, "RequestBodyTooLarge")),
    ],
)
def test_a_size_is_whole_pages(box: Box, size: str, answer: tuple[int, str | None]) -> None:
    assert create(box, 0, {"x-ms-blob-content-length": size}).answer == answer


def test_an_etag_that_does_not_match_creates_no_page_blob(box: Box) -> None:
    # race E3
    assert create(box, PAGE, {"If-Match": '"0x1"'}).answer == (412, "ConditionNotMet")
    assert box.get().answer == (404, "BlobNotFound")
    create(box, PAGE)
    assert create(box, PAGE, {"If-None-Match": "*"}).answer == (409, "BlobAlreadyExists")


def test_pages_are_written_over_cut_and_cleared_in_place(box: Box) -> None:
    create(box, 8 * PAGE)
    write(box, 0, A * 6)
    write(box, PAGE, B * 2)
    assert clear(box, 4 * PAGE, 5 * PAGE).status == 201
    write(box, 7 * PAGE, C)
    expected = A + B + B + A + bytes(PAGE) + A + bytes(PAGE) + C
    assert box.get().body == expected
    assert ranges(box) == [(0, 4 * PAGE), (5 * PAGE, 6 * PAGE), (7 * PAGE, 8 * PAGE)]
    for start, end in ((0, 1), (500, 600), (PAGE, 3 * PAGE), (2000, 4096), (3 * PAGE + 7, 8 * PAGE - 1)):
        assert box.get(headers={"Range": f"bytes={start}-{end - 1}"}).body == expected[start:end]


def test_large_and_small_writes_cut_each_other(box: Box) -> None:
    create(box, 4 * MIB)
    write(box, MIB, LARGE)
    write(box, MIB + 100 * PAGE, A)
    write(box, 0, B * 16)
    write(box, MIB // 2, LARGE)
    expected = bytearray(4 * MIB)
    expected[MIB : 2 * MIB] = LARGE
    expected[MIB + 100 * PAGE : MIB + 101 * PAGE] = A
    expected[0 : 16 * PAGE] = B * 16
    expected[MIB // 2 : MIB // 2 + MIB] = LARGE
    assert box.get().body == expected
    assert ranges(box) == [(0, 16 * PAGE), (MIB // 2, 2 * MIB)]


def test_a_huge_blob_costs_its_pages_and_reads_zeros_between(box: Box) -> None:
    create(box, TIB)
    for start in (0, TIB // 2, TIB - PAGE):
        assert write(box, start, A).status == 201
    assert ranges(box) == [(0, PAGE), (TIB // 2, TIB // 2 + PAGE), (TIB - PAGE, TIB)]
    around = box.get(headers={"x-ms-range": f"bytes={TIB // 2 - 3 * MIB}-{TIB // 2 + 3 * MIB - 1}"})
    assert around.body == bytes(3 * MIB) + A + bytes(3 * MIB - PAGE)
    assert around["Content-Range"].endswith(f"/{TIB}")
    taken = snapshot(box)
    clear(box, 0, TIB)
    assert ranges(box) == []
    assert ranges(box, snapshot=taken) == [(0, PAGE), (TIB // 2, TIB // 2 + PAGE), (TIB - PAGE, TIB)]
    assert resize(box, PAGE).status == 200
    assert box.get().body == bytes(PAGE)


def test_many_small_writes_move_to_an_extent_and_stay_what_they_were(box: Box) -> None:
    create(box, 16 * MIB)
    expected = bytearray(16 * MIB)
    taken, kept = "", b""
    for number in range(90):
        start = number * 37 % 250 * 64 * KIB
        data = bytes([number + 1]) * (60 * KIB)
        write(box, start, data)
        expected[start : start + len(data)] = data
        if number == 40:
            taken, kept = snapshot(box), bytes(expected)
    assert box.get().body == expected
    assert box.get(query={"snapshot": taken}).body == kept


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        ({"x-ms-range": "bytes=0-511"}, (201, None)),
        ({"x-ms-range": "", "Range": "bytes=512-1023"}, (201, None)),
        ({"x-ms-range": ""}, (400, "MissingRequiredHeader")),
        ({"x-ms-range": "bytes=0-"}, (400, "InvalidHeaderValue")),
        ({"x-ms-range": "pages=0-511"}, (400, "InvalidHeaderValue")),
        ({"x-ms-range": "bytes=0-510"}, (416, "InvalidPageRange")),
        ({"x-ms-range": "bytes=1-512"}, (416, "InvalidPageRange")),
        ({"x-ms-range": "bytes=1024-1535"}, (416, "InvalidPageRange")),
        ({"x-ms-range": "bytes=0-1023"}, (400, "InvalidHeaderValue")),
        ({"x-ms-page-write": ""}, (400, "MissingRequiredHeader")),
        ({"x-ms-page-write": "erase"}, (400, "InvalidHeaderValue")),
        ({"x-ms-page-write": "clear"}, (400, "InvalidHeaderValue")),
    ],
)
def test_a_write_names_whole_pages_inside_the_blob(box: Box, sent: dict[str, str], answer: tuple[int, str | None]) -> None:
    create(box, 2 * PAGE)
    assert write(box, 0, A, sent).answer == answer


def test_a_write_is_at_most_four_mebibytes_and_as_long_as_it_says(box: Box) -> None:
    create(box, 8 * MIB)
    assert write(box, 0, LARGE * 4).status == 201
    too_much = write(box, 0, LARGE * 4 + A)
    assert (too_much.answer, too_much.detail("MaxLimit")) == ((413, "RequestBodyTooLarge"), str(4 * MIB))
    short = {"x-ms-range": f"bytes=0-{2 * MIB - 1}"}
    assert write(box, 0, LARGE, short, chunked=True).answer == (400, "InvalidHeaderValue")
    assert write(box, 0, LARGE, chunked=True).status == 201
    assert clear(box, 0, 8 * MIB).status == 201


def test_checksums_of_pages_are_verified_and_answered(box: Box) -> None:
    create(box, PAGE)
    plain = write(box, 0, A)
    assert plain["x-ms-content-crc64"] == crc64(A)
    assert "Content-MD5" not in plain
    assert write(box, 0, A, {"Content-MD5": md5(A)})["Content-MD5"] == md5(A)
    assert write(box, 0, B, {"Content-MD5": md5(A)}).answer == (400, "Md5Mismatch")
    assert write(box, 0, B, {"x-ms-content-crc64": crc64(A)}).answer == (400, "Crc64Mismatch")
    assert clear(box, 0, PAGE, {"Content-MD5": md5(b"")}).answer == (400, "InvalidHeaderValue")
    reply = box.get(headers={"x-ms-range": "bytes=0-99", "x-ms-range-get-content-crc64": "true"})
    assert (reply.body, reply["x-ms-content-crc64"]) == (A[:100], crc64(A[:100]))


def test_every_change_has_an_etag_of_its_own_and_checks_the_one_it_is_given(box: Box) -> None:
    # contract B1, G4
    etags = [create(box, 2 * PAGE)["ETag"]]
    number = {"x-ms-sequence-number-action": "increment"}
    changes: list[Callable[[dict[str, str]], Reply]] = [
        lambda given: write(box, 0, A, given),
        lambda given: clear(box, 0, PAGE, given),
        lambda given: resize(box, PAGE, given),
        lambda given: box.blob("PUT", comp="properties", headers=number | given),
    ]
    for change in changes:
        assert change({"If-Match": '"0x1"'}).answer == (412, "ConditionNotMet")
        assert change({"If-None-Match": etags[-1]}).answer == (412, "ConditionNotMet")
        reply = change({"If-Match": etags[-1]})
        assert reply.status in (200, 201)
        assert reply["ETag"] == box.head()["ETag"]
        etags.append(reply["ETag"])
    assert len(set(etags)) == len(etags)


def test_a_leased_page_blob_is_written_with_its_lease_id_only(box: Box) -> None:
    # contract L3, race L5
    create(box, 2 * PAGE)
    lease = {"x-ms-lease-id": box.acquire(15)}
    number = {"x-ms-sequence-number-action": "increment"}
    assert write(box, 0, A).answer == (412, "LeaseIdMissing")
    assert clear(box, 0, PAGE).answer == (412, "LeaseIdMissing")
    assert resize(box, PAGE).answer == (412, "LeaseIdMissing")
    assert box.blob("PUT", comp="properties", headers=number).answer == (412, "LeaseIdMissing")
    assert create(box, PAGE).answer == (412, "LeaseIdMissing")
    assert write(box, 0, A, lease).status == 201
    assert write(box, 0, A, {"x-ms-lease-id": "11111111-1111-1111-1111-111111111111"}).answer == (
        412,
        "LeaseIdMismatchWithBlobOperation",
    )
    assert clear(box, PAGE, 2 * PAGE, lease).status == 201
    assert resize(box, PAGE, lease).status == 200
    assert box.blob("PUT", comp="properties", headers=number | lease).status == 200
    assert box.head()["x-ms-lease-state"] == "leased"
    assert create(box, PAGE, lease).status == 201


@pytest.mark.parametrize(
    ("conditions", "met"),
    [
        ({"le": "5"}, True),
        ({"le": "4"}, False),
        ({"lt": "6"}, True),
        ({"lt": "5"}, False),
        ({"eq": "5"}, True),
        ({"eq": "4"}, False),
        ({"le": "9", "eq": "6"}, False),
        ({"le": "5", "lt": "6", "eq": "5"}, True),
    ],
)
def test_pages_are_written_when_the_sequence_number_allows(box: Box, conditions: dict[str, str], met: bool) -> None:
    create(box, PAGE, {"x-ms-blob-sequence-number": "5"})
    headers = {f"x-ms-if-sequence-number-{name}": value for name, value in conditions.items()}
    expected = (201, None) if met else (412, "SequenceNumberConditionNotMet")
    reply = write(box, 0, A, headers)
    assert reply.answer == expected
    assert clear(box, 0, PAGE, headers).answer == expected
    if met:
        assert reply["x-ms-blob-sequence-number"] == "5"


@pytest.mark.parametrize(
    ("action", "number", "outcome"),
    [
        ("update", "3", "3"),
        ("update", "9", "9"),
        ("max", "3", "5"),
        ("Max", "9", "9"),
        ("increment", "", "6"),
        ("increment", "9", "InvalidHeaderValue"),
        ("update", "", "MissingRequiredHeader"),
        ("", "9", "MissingRequiredHeader"),
        ("double", "9", "InvalidHeaderValue"),
        ("update", str(2**63), "InvalidHeaderValue"),
    ],
)
def test_a_sequence_number_is_set_raised_or_counted(box: Box, action: str, number: str, outcome: str) -> None:
    create(box, PAGE, {"x-ms-blob-sequence-number": "5"})
    sent = {"x-ms-sequence-number-action": action, "x-ms-blob-sequence-number": number}
    reply = box.blob("PUT", comp="properties", headers={name: value for name, value in sent.items() if value})
    assert (reply.header("x-ms-error-code") or reply["x-ms-blob-sequence-number"]) == outcome
    assert box.head()["x-ms-blob-sequence-number"] == (outcome if outcome.isdigit() else "5")


def test_a_sequence_number_does_not_overflow(box: Box) -> None:
    create(box, PAGE, {"x-ms-blob-sequence-number": str(2**63 - 1)})
    reply = box.blob("PUT", comp="properties", headers={"x-ms-sequence-number-action": "increment"})
    assert reply.answer == (409, "SequenceNumberIncrementTooLarge")


def test_length_and_number_leave_the_http_headers_unless_one_is_sent(box: Box) -> None:
    create(box, PAGE, {"x-ms-blob-content-type": "text/plain", "x-ms-blob-cache-control": "no-cache"})
    reply = resize(box, 2 * PAGE, {"x-ms-sequence-number-action": "update", "x-ms-blob-sequence-number": "4"})
    assert (reply.status, reply["x-ms-blob-sequence-number"]) == (200, "4")
    head = box.head()
    assert (head["Content-Length"], head["Content-Type"], head["Cache-Control"]) == ("1024", "text/plain", "no-cache")
    resize(box, 3 * PAGE, {"x-ms-blob-content-type": "text/html"})
    head = box.head()
    assert (head["Content-Length"], head["Content-Type"]) == ("1536", "text/html")
    assert "Cache-Control" not in head
    plain = box.blob("PUT", comp="properties", headers={"x-ms-blob-content-type": "text/css"})
    assert plain["x-ms-blob-sequence-number"] == "4"


def test_what_is_cut_off_does_not_come_back(box: Box) -> None:
    create(box, 4 * PAGE)
    write(box, 0, A * 4)
    assert resize(box, 2 * PAGE).status == 200
    assert box.get().body == A * 2
    resize(box, 4 * PAGE)
    assert box.get().body == A * 2 + bytes(2 * PAGE)
    assert ranges(box) == [(0, 2 * PAGE)]


def test_what_is_no_page_blob_is_refused_by_type(box: Box) -> None:
    assert write(box, 0, A).answer == (404, "BlobNotFound")
    box.put(body=A)
    assert write(box, 0, A).answer == (409, "InvalidBlobType")
    assert clear(box, 0, PAGE).answer == (409, "InvalidBlobType")
    assert box.blob("GET", comp="pagelist").answer == (409, "InvalidBlobType")
    assert resize(box, PAGE).answer == (400, "UnsupportedHeader")
    create(box, PAGE)
    assert box.blob("PUT", comp="appendblock", body=b"a").answer == (409, "InvalidBlobType")
    assert box.put_block("MDAx").answer == (409, "InvalidBlobType")


def test_pages_need_write_permission(box: Box) -> None:
    create(box, PAGE)
    assert write(box, 0, A, auth=box.sas("w", "blob")).status == 201
    assert write(box, 0, A, auth=box.sas("rac", "blob")).status == 403
    assert box.blob("GET", comp="pagelist", auth=box.sas("r", "blob")).status == 200


def test_a_premium_tier_is_kept_where_the_account_has_them(box: Box) -> None:
    tier = {"x-ms-access-tier": "p10"}
    assert create(box, PAGE, tier).answer == (400, "BlobAccessTierNotSupportedForAccountType")
    with settled(box.server, sku="Premium_LRS"):
        assert create(box, PAGE, tier).status == 201
        assert box.head()["x-ms-access-tier"] == "P10"
        assert create(box, PAGE, {"x-ms-access-tier": "Hot"}).answer == (400, "InvalidHeaderValue")
        assert create(box, TIB, tier).answer == (409, "BlobTierInadequateForContentLength")
        assert box.put("block", headers={"x-ms-access-tier": "Hot"}).answer == (400, "BlobAccessTierNotSupportedForAccountType")
