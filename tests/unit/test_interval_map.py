"""Interval maps within one transaction: compaction that other writers overtook, and what remains of a clipped interval."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import msgspec
import pytest

from verditer.core.records.content import ExtentReferences, Garbage, InlineInterval, Interval
from verditer.core.records.lifecycle import ExtentId
from verditer.core.records.record import Span, span_of
from verditer.partition.engine import Transaction
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.services.content.content import ContentState
from verditer.services.content.interval_rows import UNINDEXED_BYTES, clip
from verditer.services.content.intervals import (
    inline_intervals,
    move_to_extent,
    new_interval_map,
    visible_intervals,
    write_interval,
)
from verditer.services.content.views import open_view
from verditer.stream.intake import Received

T = TypeVar("T")
EXTENT = ExtentId("0" * 32)


def in_a_store(body: Callable[[Transaction], T]) -> T:
    async def run() -> T:
        engine = SqliteEngine(None)
        await engine.open()
        try:
            return await engine.write([()], body)
        finally:
            await engine.close()

    return asyncio.run(run())


def new_content(tx: Transaction) -> ContentState:
    return ContentState(content_id=1, size=100, intervals=new_interval_map(tx, 1, ("scope",)))


def written(tx: Transaction, content: ContentState, start: int, data: bytes) -> ContentState:
    received = Received(size=len(data), md5=b"", crc64=b"", inline=data)
    return msgspec.structs.replace(content, intervals=write_interval(tx, content, start, received))


def shown(tx: Transaction, content: ContentState) -> list[tuple[int, bytes | tuple[int, int]]]:
    """Start, and the bytes of an inline interval or the part of the extent that contains them."""
    rows = visible_intervals(tx, content, 0, content.size)
    return [(row.start, row.data if row.extent is None else (row.offset, row.length)) for row in rows]


@pytest.mark.parametrize("first", [0, UNINDEXED_BYTES - 3, UNINDEXED_BYTES])
def test_an_interval_that_was_written_again_is_not_moved(first: int) -> None:
    """Whether the index names all of the intervals, some or none."""

    def body(tx: Transaction) -> None:
        content = msgspec.structs.replace(new_content(tx), size=first + 100)
        for start, data in ((0, b"aa"), (2, b"bb"), (4, b"cc"), (6, b"dd"), (10, b"ee")):
            content = written(tx, content, first + start, data)
        small = inline_intervals(tx, 1)
        assert [interval.data for interval in small] == [b"aa", b"bb", b"cc", b"dd", b"ee"]
        content = written(tx, content, first + 2, b"BB")  # as long as the previous one, and in the same epoch
        content = msgspec.structs.replace(content, intervals=move_to_extent(tx, content, small, EXTENT))
        found = [(start - first, what) for start, what in shown(tx, content)]
        assert found == [(0, (0, 2)), (2, b"BB"), (4, (4, 4)), (10, (8, 2))]
        assert content.intervals is not None
        assert content.intervals.inline_bytes == 2
        assert [interval.data for interval in inline_intervals(tx, 1)] == [b"BB"]
        indexed = [row.start - first for row in tx.scan(InlineInterval, span_of(1))]
        assert indexed == ([2] if first + 2 >= UNINDEXED_BYTES else [])
        use = tx.get(ExtentReferences, 1, EXTENT)
        assert use is not None
        assert use.count == 3

    in_a_store(body)


def test_intervals_of_different_epochs_stay_apart_when_they_are_moved() -> None:
    def body(tx: Transaction) -> None:
        content = written(tx, new_content(tx), 0, b"aa")
        live_map, snapshot_map = open_view(tx, content, 5)
        snapshot = msgspec.structs.replace(content, intervals=snapshot_map)
        content = written(tx, msgspec.structs.replace(content, intervals=live_map), 2, b"bb")
        content = msgspec.structs.replace(content, intervals=move_to_extent(tx, content, inline_intervals(tx, 1), EXTENT))
        assert shown(tx, content) == [(0, (0, 2)), (2, (2, 2))]
        assert shown(tx, snapshot) == [(0, (0, 2))]

    in_a_store(body)


def test_an_extent_becomes_garbage_with_its_last_interval() -> None:
    def body(tx: Transaction) -> None:
        content = written(tx, written(tx, new_content(tx), 0, b"aaaa"), 8, b"bbbb")
        content = msgspec.structs.replace(content, intervals=move_to_extent(tx, content, inline_intervals(tx, 1), EXTENT))
        let_go = []
        for start in (1, 8, 0, 2):  # the middle of the first, the second, and the rest of the first
            content = written(tx, content, start, b"x" if start < 2 else b"xx" if start == 2 else b"xxxx")
            let_go.append([row.extent for row in tx.scan(Garbage, Span(b"", b"\xff" * 64))])
        assert let_go == [[], [], [], [EXTENT]]
        assert tx.get(ExtentReferences, 1, EXTENT) is None
        assert b"".join(row.data for row in tx.scan(Interval, span_of(1))) == b"xxxxxxxx"

    in_a_store(body)


def test_a_clipped_interval_has_the_bytes_it_had() -> None:
    small = Interval(content_id=1, start=10, length=6, epoch=0, data=b"abcdef")
    large = Interval(content_id=1, start=10, length=6, epoch=0, extent=EXTENT, offset=100)
    assert clip(small, 0, 99) is small
    assert (clip(small, 12, 14).start, clip(small, 12, 14).data) == (12, b"cd")
    assert (clip(small, 0, 11).start, clip(small, 0, 11).data) == (10, b"a")
    assert (clip(large, 12, 99).start, clip(large, 12, 99).offset, clip(large, 12, 99).length) == (12, 102, 4)


def test_a_map_of_an_earlier_release_has_no_end_and_its_ranges_are_overwritten_all_the_same() -> None:
    def body(tx: Transaction) -> None:
        content = written(tx, new_content(tx), 10, b"old bytes")
        assert content.intervals is not None
        assert content.intervals.end == 19
        content = msgspec.structs.replace(content, intervals=msgspec.structs.replace(content.intervals, end=None))
        content = written(tx, content, 12, b"new")
        assert shown(tx, content) == [(10, b"ol"), (12, b"new"), (15, b"ytes")]
        assert content.intervals is not None
        assert content.intervals.end is None

    in_a_store(body)


def test_the_end_of_a_map_is_that_of_the_last_range_ever_written() -> None:
    def body(tx: Transaction) -> None:
        content = new_content(tx)
        for start, data in ((40, b"later"), (0, b"first"), (43, b"overlapping"), (20, b"between")):
            content = written(tx, content, start, data)
            assert content.intervals is not None
            assert content.intervals.end == max(row.end for row in visible_intervals(tx, content, 0, content.size))
        assert shown(tx, content) == [(0, b"first"), (20, b"between"), (40, b"lat"), (43, b"overlapping")]

    in_a_store(body)
