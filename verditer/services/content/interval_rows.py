"""The rows of one interval map while a transaction changes them, together with the rows that are derived from them.

Derived are the index of inline intervals, the number of intervals in each extent, and the count of inline bytes in the owning
record. `intervals.py` explains the model.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

import msgspec

from verditer.core.limits import MIB
from verditer.core.records.content import (
    ContentView,
    ExtentReferences,
    FormerInterval,
    Garbage,
    InlineInterval,
    Interval,
    SharedContent,
    SharedGarbage,
)
from verditer.core.records.lifecycle import ExtentId
from verditer.core.records.record import Span, key_of, span_of
from verditer.partition.engine import Order, Transaction

replace = msgspec.structs.replace
SHORT_RANGE = 1 << 20  # bytes: a longer range seldom lies within one interval
UNINDEXED_BYTES = 4 * MIB  # at the start of a content: a small content has no index, and a large one little to read without it


class IntervalRows:
    """Adds and removes intervals of one content. `settle` ends a series of changes and updates the derived rows. Until then rows
    that were removed may still be stored, as an overwritten range often gets a row of the same key."""

    def __init__(self, tx: Transaction, content_id: int, group: int | None = None) -> None:
        self._tx = tx
        self._content_id = content_id
        self._group = group
        self._references: dict[ExtentId, int] = {}
        self.inline_bytes = 0  # how many more bytes than before are in current rows
        self.end = 0  # of the last current row that was added
        self._removed: dict[int, Interval] = {}  # current rows by their start, not deleted yet

    def put(self, row: Interval) -> None:
        self._tx.put(row)
        if row.extent is not None:
            self._references[row.extent] = self._references.get(row.extent, 0) + 1
        if type(row) is not Interval:
            return
        self.end = max(self.end, row.end)
        if row.data:
            self.inline_bytes += row.length
        former = self._removed.pop(row.start, None)
        if row.start >= UNINDEXED_BYTES:
            self._put_index(row, former)

    def _put_index(self, row: Interval, former: Interval | None) -> None:
        """`former` had the same key, and its entry in the index is still there."""
        was_inline = former is not None and bool(former.data)
        if row.data:
            if not was_inline or former is None or former.length != row.length:
                self._tx.put(InlineInterval(content_id=row.content_id, start=row.start, length=row.length))
        elif was_inline:
            self._tx.delete(InlineInterval, row.content_id, row.start)

    def remove(self, row: Interval) -> None:
        if row.extent is not None:
            self._references[row.extent] = self._references.get(row.extent, 0) - 1
        if type(row) is not Interval:
            self._tx.delete(type(row), *row.key_parts())
            return
        self.inline_bytes -= len(row.data)
        self._removed[row.start] = row

    def clear(self, start: int, end: int, epoch: int, *, marked: bool = False) -> None:
        """Remove the current bytes of a range. What a snapshot still sees of them becomes former intervals. `marked`: each
        interval leaves a mark."""
        views = _Views(self._tx, self._content_id, self._group, epoch)
        for row in list(current_intervals(self._tx, self._content_id, start, end)):
            self.remove(row)
            if row.start < start:
                self.put(clip(row, row.start, start))
            if end < row.end:
                self.put(clip(row, end, row.end))
            if views.see(row.epoch):
                self.put(FormerInterval(**msgspec.structs.asdict(clip(row, start, end)), replaced_in=epoch))
            if marked:
                self.put(replace(clip(row, start, end), epoch=epoch, data=b"", extent=None, offset=0))

    def settle(self) -> None:
        """An extent that no interval of this content is in any more becomes garbage."""
        for row in self._removed.values():
            self._tx.delete(Interval, row.content_id, row.start)
            if row.data and row.start >= UNINDEXED_BYTES:
                self._tx.delete(InlineInterval, row.content_id, row.start)
        self._removed.clear()
        for extent, change in self._references.items():
            if not change:
                continue
            references = self._tx.get(ExtentReferences, self._content_id, extent)
            count = (references.count if references is not None else 0) + change
            if count:
                self._tx.put(ExtentReferences(content_id=self._content_id, extent=extent, count=count))
            else:
                self._tx.delete(ExtentReferences, self._content_id, extent)
                shared = self._tx.get(SharedContent, self._content_id) is not None
                self._tx.put((SharedGarbage if shared else Garbage)(since=self._tx.now, extent=extent))


class _Views:
    """The views that see intervals replaced in `epoch`. They are read only when needed: most intervals are replaced in the epoch
    they were written in, and no view sees those."""

    def __init__(self, tx: Transaction, content_id: int, group: int | None, epoch: int) -> None:
        self._tx = tx
        self._content_id = content_id
        self._group = group
        self._epoch = epoch
        self._ticks: list[int] | None = None

    def see(self, written_in: int) -> bool:
        if written_in == self._epoch:
            return False
        if self._ticks is None:
            self._ticks = view_ticks(self._tx, self._content_id, self._group)
        return is_seen(self._ticks, written_in, self._epoch)


def view_ticks(tx: Transaction, content_id: int, group: int | None) -> list[int]:
    """The views that see the content, in order: its own and those of its group."""
    own = [row.view for row in tx.scan(ContentView, span_of(content_id))]
    return own if group is None else sorted([*own, *(row.view for row in tx.scan(ContentView, span_of(group)))])


def is_seen(views: Sequence[int], epoch: int, replaced_in: int) -> bool:
    """Whether one of these ordered views is later than `epoch` and not later than `replaced_in`."""
    first = bisect_right(views, epoch)
    return first < len(views) and views[first] <= replaced_in


def current_intervals(tx: Transaction, content_id: int, start: int, end: int) -> Iterator[Interval]:
    """The current intervals that overlap a range, in order. The last of them is often the only one."""
    first, low, high = key_of(content_id), key_of(content_id, start), key_of(content_id, end)
    if end - start <= SHORT_RANGE:
        last = next(tx.scan(Interval, Span(first, high), limit=1, order=Order.KEY_DESCENDING), None)
        if last is None or last.end <= start:
            return
        if last.start <= start:
            yield last
            return
    if start:
        before = tx.scan(Interval, Span(first, low), limit=1, order=Order.KEY_DESCENDING)
        yield from (row for row in before if row.end > start)
    yield from tx.scan(Interval, Span(low, high))


def clip(row: Interval, start: int, end: int) -> Interval:
    """The part of an interval that lies within a range."""
    if start <= row.start and row.end <= end:
        return row
    low, high = max(row.start, start), min(row.end, end)
    skipped = low - row.start
    if row.extent is None:
        return replace(row, start=low, length=high - low, data=row.data[skipped : high - row.start])
    return replace(row, start=low, length=high - low, offset=row.offset + skipped)
