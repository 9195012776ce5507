"""Interval maps: contents that are written in place at any byte range (append blobs, page blobs, files). Called inside
transactions.

An `Interval` is a run of bytes from `start` on. Its bytes are in its row when they are few, otherwise in a slice of an extent.
Intervals never overlap. A range without an interval reads as zeros and costs nothing. Overwriting part of an interval cuts it:
the remainder keeps its bytes where they are.

**Snapshots** share the rows with the live record, so taking one is O(1): it opens a `ContentView` at its tick, and the intervals
written later carry that tick as their `epoch`. A view sees an interval when `epoch < view <= replaced_in`. Current intervals have
no `replaced_in` and count as `CURRENT_VIEW`. An interval that is overwritten is kept as a `FormerInterval` if a view still sees
it and is removed otherwise. At any view the visible intervals, current and former, are disjoint. What changed since a snapshot
carries the tick of the snapshot or a later one. A record that is deleted closes its view, and the collector removes in small
steps the intervals that no view sees (`views.py`), so deleting is O(1) as well.

**One state for a long download** (contract G3): a reader takes all intervals of its range in one transaction, slices by name and
inline intervals with their bytes. Extents never change and outlive their readers (`services/activity.py`), and the inline bytes
of a content are bounded: a write that finds more than `COMPACT_ABOVE_BYTES` of them moves them to an extent (`compaction.py`). So
a download holds a few megabytes and the list of slices in memory, whatever is written meanwhile.

An extent becomes garbage when no interval of its content is left in it (`ExtentReferences`); until then all of it stays.
"""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec

from verditer.core.limits import MIB
from verditer.core.records.content import (
    ContentView,
    ExtentReferences,
    FormerInterval,
    InlineInterval,
    Interval,
    IntervalMap,
    SharedContent,
)
from verditer.core.records.record import Span, key_of, span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.content.content import Content
from verditer.services.content.interval_rows import UNINDEXED_BYTES, IntervalRows, current_intervals
from verditer.stream.intake import Received

replace = msgspec.structs.replace

CURRENT_VIEW = 2**63 - 1  # the view of the live record: later than every tick
COMPACT_ABOVE_BYTES = 4 * MIB
MAX_INTERVAL_BYTES = 8 * MIB  # of what can be overwritten: a search for former intervals need not begin further ahead of a range
_by_start = attrgetter("start")


def new_interval_map(tx: Transaction, content_id: int, scope: Scope, *, group: int | None = None, epoch: int = 0) -> IntervalMap:
    """An empty content, for a record that the same transaction puts. `scope` is the lock under which the record changes. A
    content of a group is live until its `ContentEnd`, so it has no view of its own."""
    if group is None:
        tx.put(ContentView(content_id=content_id, view=CURRENT_VIEW, scope=scope))
    return IntervalMap(epoch=epoch, view=CURRENT_VIEW, group=group, end=0)


def copy_intervals(
    tx: Transaction, content_id: int, scope: Scope, rows: Iterable[Interval], *, group: int | None = None, epoch: int = 0
) -> IntervalMap:
    """A new content with the bytes of these intervals: inline bytes are copied, extents are named twice."""
    copies = IntervalRows(tx, content_id)
    intervals = new_interval_map(tx, content_id, scope, group=group, epoch=epoch)
    for row in rows:
        copies.put(
            Interval(
                content_id=content_id,
                start=row.start,
                length=row.length,
                epoch=epoch,
                data=row.data,
                extent=row.extent,
                offset=row.offset,
            )
        )
    tx.put(SharedContent(content_id=content_id))
    return _settled(intervals, copies)


def write_interval(tx: Transaction, content: Content, start: int, received: Received) -> IntervalMap:
    """Overwrite a range. Like every change here it returns the interval map that the owning record has to store."""
    assert received.size <= MAX_INTERVAL_BYTES
    intervals = interval_map_of(content)
    if intervals.end is not None and start >= intervals.end:
        return _put_behind(tx, intervals, _interval(content, start, received))
    changes = IntervalRows(tx, content.content_id, intervals.group)
    changes.clear(start, start + received.size, intervals.epoch)
    changes.put(_interval(content, start, received))
    return _settled(intervals, changes)


def append_interval(tx: Transaction, content: Content, received: Received) -> IntervalMap:
    """Write at the end of the content, where no interval is. Appended bytes are never overwritten, so there is no limit."""
    return _put_behind(tx, interval_map_of(content), _interval(content, content.size, received))


def clear_range(tx: Transaction, content: Content, start: int, end: int, *, marked: bool = False) -> IntervalMap:
    """The range reads as zeros from now on. `marked`: later differences to a snapshot show that it was cleared."""
    intervals = interval_map_of(content)
    changes = IntervalRows(tx, content.content_id, intervals.group)
    changes.clear(start, end, intervals.epoch, marked=marked and intervals.epoch > 0)
    return _settled(intervals, changes)


def move_to_extent(tx: Transaction, content: Content, inline: Sequence[Interval], extent: str) -> IntervalMap:
    """The bytes of these intervals are now in an extent, in this order. Intervals that changed meanwhile are not moved."""
    changes = IntervalRows(tx, content.content_id)
    current = {row.start: row for row in _intervals_at(tx, inline)}
    moved: list[Interval] = []
    offset = 0
    for row in inline:
        if current.get(row.start) == row:
            changes.remove(row)
            _join(moved, replace(row, data=b"", extent=extent, offset=offset))
        offset += row.length
    for row in moved:
        changes.put(row)
    return _settled(interval_map_of(content), changes)


def inline_intervals(tx: Transaction, content_id: int) -> list[Interval]:
    """The current intervals that have their bytes in their rows, in order."""
    unindexed = Span(key_of(content_id), key_of(content_id, UNINDEXED_BYTES))
    found = [row for row in tx.scan(Interval, unindexed) if row.data]
    indexed = span_of(content_id).starting(unindexed.high)
    return found + _intervals_at(tx, [*tx.scan(InlineInterval, indexed)])


def visible_intervals(tx: Transaction, content: Content, start: int, end: int) -> Iterator[Interval]:
    """The intervals of a range that the owner sees, in order. The first and the last may reach beyond the range."""
    return (row for row in intervals_and_marks(tx, content, start, end) if row.data or row.extent is not None)


def intervals_and_marks(tx: Transaction, content: Content, start: int, end: int) -> Iterator[Interval]:
    """The same, with the marks of cleared ranges."""
    view = interval_map_of(content).view
    current = current_intervals(tx, content.content_id, start, end)
    if view == CURRENT_VIEW:
        return current
    current = (row for row in current if row.epoch < view)
    span = Span(key_of(content.content_id, max(0, start - MAX_INTERVAL_BYTES)), key_of(content.content_id, end))
    former = (row for row in tx.scan(FormerInterval, span) if row.epoch < view <= row.replaced_in and row.end > start)
    return heapq.merge(current, former, key=_by_start)


def spans(rows: Iterable[Interval], start: int, end: int) -> Iterator[tuple[int, int]]:
    """The start and end of each interval, cut at the borders of a range."""
    return ((max(row.start, start), min(row.end, end)) for row in rows)


def interval_map_of(content: Content) -> IntervalMap:
    assert content.intervals is not None, "invariant 5: contents that are written in place are made of intervals"
    return content.intervals


def _put_behind(tx: Transaction, intervals: IntervalMap, row: Interval) -> IntervalMap:
    """Add an interval behind all others, where nothing has to be looked for. If it has an extent, no other interval is in it."""
    tx.put(row)
    if row.extent is not None:
        tx.put(ExtentReferences(content_id=row.content_id, extent=row.extent, count=1))
    elif row.start >= UNINDEXED_BYTES:
        tx.put(InlineInterval(content_id=row.content_id, start=row.start, length=row.length))
    end = None if intervals.end is None else row.end
    return replace(intervals, inline_bytes=intervals.inline_bytes + len(row.data), end=end)


def _settled(intervals: IntervalMap, changes: IntervalRows) -> IntervalMap:
    changes.settle()
    end = None if intervals.end is None else max(intervals.end, changes.end)
    return replace(intervals, inline_bytes=intervals.inline_bytes + changes.inline_bytes, end=end)


def _interval(content: Content, start: int, received: Received) -> Interval:
    return Interval(
        content_id=content.content_id,
        start=start,
        length=received.size,
        epoch=interval_map_of(content).epoch,
        data=received.inline or b"",
        extent=received.extent,
    )


def _intervals_at(tx: Transaction, rows: Sequence[Interval | InlineInterval]) -> list[Interval]:
    """The current intervals that start where these do. Adjacent ones are read by one scan."""
    found: list[Interval] = []
    first = 0
    for number, row in enumerate(rows):
        following = rows[number + 1] if number + 1 < len(rows) else None
        if following is None or row.start + row.length != following.start:
            span = Span(key_of(row.content_id, rows[first].start), key_of(row.content_id, row.start) + b"\0")
            found += tx.scan(Interval, span)
            first = number + 1
    return found


def _join(rows: list[Interval], row: Interval) -> None:
    """Append an interval, or extend the last one when the new one continues it in the content and in the extent."""
    if rows:
        last = rows[-1]
        continues = last.end == row.start and last.epoch == row.epoch and last.offset + last.length == row.offset
        if continues and last.length + row.length <= MAX_INTERVAL_BYTES:
            rows[-1] = replace(last, length=last.length + row.length)
            return
    rows.append(row)
