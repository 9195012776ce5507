"""Get Page Ranges and the difference from a snapshot: ranges, paging, errors."""

from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.client import Box
from tests.rest.pages import MIB, PAGE, clear, create, ranges, ranges_in, resize, snapshot, write
from tests.rest.running import Running

A, B = b"a" * PAGE, b"b" * PAGE
ENGINES = ("sqlite", "postgres")


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


def pages(*numbers: int) -> list[tuple[int, int]]:
    return [(number * PAGE, (number + 1) * PAGE) for number in numbers]


def gone(*numbers: int) -> list[tuple[int, int]]:
    return [(-start, -end) for start, end in pages(*numbers)]


def test_the_answer_names_size_and_etag(box: Box) -> None:
    create(box, 4 * PAGE)
    etag = write(box, 0, A)["ETag"]
    reply = box.blob("GET", comp="pagelist")
    assert (reply.status, reply["ETag"], reply["x-ms-blob-content-length"]) == (200, etag, str(4 * PAGE))
    assert reply["Content-Type"] == "application/xml"
    assert reply.body.endswith(b"<PageList><PageRange><Start>0</Start><End>511</End></PageRange><NextMarker /></PageList>")
    assert box.blob("GET", comp="pagelist", headers={"If-None-Match": etag}).status == 304
    assert box.blob("GET", comp="pagelist", headers={"If-Match": '"0x1"'}).answer == (412, "ConditionNotMet")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-", [(0, 2 * PAGE), *pages(4, 6)]),
        ("bytes=512-1023", pages(1)),
        ("bytes=600-700", pages(1)),
        ("bytes=1024-2047", []),
        ("bytes=2048-99999", pages(4, 6)),
    ],
)
def test_a_range_limits_what_is_reported(box: Box, asked: str, expected: list[tuple[int, int]]) -> None:
    create(box, 8 * PAGE)
    write(box, 0, A * 2)
    for number in (4, 6):
        write(box, number * PAGE, A)
    assert ranges(box, {"x-ms-range": asked}) == expected


def test_a_range_behind_the_end_is_refused(box: Box) -> None:
    create(box, PAGE)
    reply = box.blob("GET", comp="pagelist", headers={"x-ms-range": "bytes=512-"})
    assert (reply.answer, reply["Content-Range"]) == ((416, "InvalidRange"), "bytes */512")


def test_ranges_come_in_pages_with_markers(box: Box) -> None:
    create(box, 20 * PAGE)
    for number in range(0, 20, 2):
        write(box, number * PAGE, A)
    found, marker, answers = [], "", 0
    while True:
        reply = box.blob("GET", comp="pagelist", query={"maxresults": "3", "marker": marker})
        found += ranges_in(reply)
        answers += 1
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            break
    assert (found, answers) == (pages(*range(0, 20, 2)), 4)
    assert box.blob("GET", comp="pagelist", query={"maxresults": "0"}).answer == (400, "OutOfRangeQueryParameterValue")
    assert box.blob("GET", comp="pagelist", query={"maxresults": "20000"}).status == 200
    assert box.blob("GET", comp="pagelist", query={"marker": "x"}).answer == (400, "InvalidQueryParameterValue")


def test_the_difference_to_a_snapshot_is_what_was_written_and_what_was_cleared(box: Box) -> None:
    create(box, 8 * PAGE)
    write(box, 0, A * 5)
    first = snapshot(box)
    write(box, PAGE, B)
    clear(box, 2 * PAGE, 3 * PAGE)
    write(box, 6 * PAGE, B)
    second = snapshot(box)
    clear(box, 0, PAGE)
    write(box, 7 * PAGE, A)
    clear(box, 7 * PAGE, 8 * PAGE)
    write(box, 2 * PAGE, B)
    assert ranges(box, prevsnapshot=first, snapshot=second) == [*pages(1), *gone(2), *pages(6)]
    assert ranges(box, prevsnapshot=first) == [*gone(0), (PAGE, 3 * PAGE), *pages(6), *gone(7)]
    assert ranges(box, prevsnapshot=second) == [*gone(0), *pages(2), *gone(7)]
    assert ranges(box, prevsnapshot=first, snapshot=first) == []
    assert ranges(box, {"x-ms-range": "bytes=512-1023"}, prevsnapshot=first) == pages(1)
    assert box.get(query={"snapshot": first}).body == A * 5 + bytes(3 * PAGE)
    assert box.get(query={"snapshot": second}).body == A + B + bytes(PAGE) + A * 2 + bytes(PAGE) + B + bytes(PAGE)


def test_pages_that_were_written_and_cleared_since_are_reported_as_cleared(box: Box) -> None:
    """Seen on Azure, although the snapshot had nothing there. Both kinds count together for `maxresults`."""
    create(box, 8 * PAGE)
    taken = snapshot(box)
    write(box, 0, A * 3)
    clear(box, PAGE, 2 * PAGE)
    assert ranges(box, prevsnapshot=taken) == [*pages(0), *gone(1), *pages(2)]
    reply = box.blob("GET", comp="pagelist", query={"maxresults": "2", "prevsnapshot": taken})
    assert ranges_in(reply) == [*pages(0), *gone(1)]
    marker = reply.xml.findtext("NextMarker") or ""
    rest = box.blob("GET", comp="pagelist", query={"maxresults": "2", "prevsnapshot": taken, "marker": marker})
    assert (ranges_in(rest), rest.xml.findtext("NextMarker")) == (pages(2), "")
    assert ranges(box) == pages(0, 2)
    later = snapshot(box)
    write(box, PAGE, B)
    assert ranges(box, prevsnapshot=taken) == [(0, 3 * PAGE)]
    assert ranges(box, prevsnapshot=taken, snapshot=later) == [*pages(0), *gone(1), *pages(2)]
    assert ranges(box, prevsnapshot=later) == pages(1)
    assert box.get(query={"snapshot": later}).body == A + bytes(PAGE) + A + bytes(5 * PAGE)


def test_the_difference_comes_in_pages_too(box: Box) -> None:
    create(box, 8 * PAGE)
    write(box, 0, A * 8)
    taken = snapshot(box)
    for number in range(0, 8, 2):
        clear(box, number * PAGE, (number + 1) * PAGE)
    write(box, PAGE, B)
    found, marker = [], ""
    while True:
        reply = box.blob("GET", comp="pagelist", query={"maxresults": "2", "marker": marker, "prevsnapshot": taken})
        found += ranges_in(reply)
        marker = reply.xml.findtext("NextMarker") or ""
        if not marker:
            break
    assert found == [*gone(0), *pages(1), *gone(2, 4, 6)]


def test_the_difference_survives_the_end_of_snapshots_in_between(box: Box) -> None:
    create(box, 4 * PAGE)
    write(box, 0, A * 4)
    first = snapshot(box)
    write(box, 0, B)
    second = snapshot(box)
    write(box, PAGE, B)
    assert box.blob("DELETE", query={"snapshot": second}).status == 202
    box.server.run(box.server.app.collector.collect())
    assert ranges(box, prevsnapshot=first) == [(0, 2 * PAGE)]
    assert box.get(query={"snapshot": first}).body == A * 4
    assert box.get().body == B * 2 + A * 2


def test_a_shrunk_blob_shows_what_it_still_has(box: Box) -> None:
    create(box, 4 * PAGE)
    write(box, 0, A * 4)
    taken = snapshot(box)
    resize(box, 2 * PAGE)
    assert ranges(box, prevsnapshot=taken) == []
    resize(box, 4 * PAGE)
    assert ranges(box, prevsnapshot=taken) == [(-2 * PAGE, -4 * PAGE)]


def test_a_previous_snapshot_has_to_be_one_of_this_blob(box: Box) -> None:
    create(box, PAGE)
    first, second = snapshot(box), snapshot(box)

    def answer(headers: dict[str, str] | None = None, **query: str) -> tuple[int, str | None]:
        return box.blob("GET", comp="pagelist", headers=headers, query=query).answer

    assert answer(prevsnapshot=second, snapshot=first) == (400, "PreviousSnapshotCannotBeNewer")
    assert answer(prevsnapshot="2020-01-01T00:00:00.0000000Z") == (409, "PreviousSnapshotNotFound")
    assert answer(prevsnapshot="yesterday") == (400, "InvalidQueryParameterValue")
    assert answer(prevsnapshot="") == (400, "MissingRequiredQueryParameter")
    assert answer({"x-ms-previous-snapshot-url": "http://127.0.0.1/a/b?snapshot=c"}) == (400, "UnsupportedHeader")
    create(box, PAGE)
    assert answer(prevsnapshot=first) == (409, "BlobOverwritten")
    assert answer(prevsnapshot=first, snapshot=second) == (200, None)


def test_pages_that_were_moved_to_an_extent_are_no_difference(box: Box) -> None:
    create(box, 8 * MIB)
    for number in range(60):
        write(box, number * 60 * 1024, A * 120)
    taken = snapshot(box)
    for number in range(60, 80):
        write(box, number * 60 * 1024, B * 120)
    assert ranges(box, prevsnapshot=taken) == [(60 * 60 * 1024, 80 * 60 * 1024)]
    assert ranges(box) == [(0, 80 * 60 * 1024)]
