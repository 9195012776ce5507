"""Views of an interval map: taken by snapshots, closed with the record that owns them, swept by the collector.

`intervals.py` explains when a view sees an interval.
"""

import msgspec

from verditer.core.records.content import (
    ClosedContentView,
    ContentEnd,
    ContentView,
    FormerInterval,
    Interval,
    IntervalMap,
    SharedContent,
)
from verditer.core.records.record import span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.content.content import Content
from verditer.services.content.interval_rows import IntervalRows, current_intervals, is_seen, view_ticks
from verditer.services.content.intervals import CURRENT_VIEW, interval_map_of

replace = msgspec.structs.replace

SweepPosition = tuple[type[Interval], bytes]
"""How far a sweep has come: the record class of the intervals, and the key of the last one examined."""
SWEEP_START: SweepPosition = (Interval, b"")
NO_WRITERS: Scope = ("jobs", "content")
"""The lock for the sweep of a content without a live record: no request writes it."""


def open_view(tx: Transaction, content: Content, tick: int) -> tuple[IntervalMap, IntervalMap]:
    """For a snapshot taken at `tick`: the interval maps that the live record and the snapshot store from now on."""
    intervals = interval_map_of(content)
    own = tx.get(ContentView, content.content_id, intervals.view)
    assert own is not None, "invariant 5: a record sees its content through a view"
    tx.put(replace(own, view=tick))
    return replace(intervals, epoch=tick), replace(intervals, view=tick)


def join_group(tx: Transaction, content: Content, *, group: int, epoch: int) -> IntervalMap:
    """From now on the content is seen by the later views of a group. No view up to `epoch` sees it, whenever it was written."""
    intervals = interval_map_of(content)
    if intervals.epoch != epoch:
        for row in list(current_intervals(tx, content.content_id, 0, content.size)):
            tx.put(replace(row, epoch=epoch))
    tx.delete(ContentView, content.content_id, intervals.view)
    return replace(intervals, epoch=epoch, group=group)


def close_view(tx: Transaction, content: Content, *, ended: int | None = None) -> None:
    """The owning record is being deleted. The collector calls `sweep` later for the intervals that only this view sees.

    `ended` is the present epoch of the group whose views see the content besides. None: the whole group goes.
    """
    content_id, intervals = content.content_id, interval_map_of(content)
    view = tx.get(ContentView, content_id, intervals.view)
    if view is not None:
        tx.delete(ContentView, content_id, view.view)
        tx.put(ClosedContentView(content_id=content_id, view=view.view, scope=view.scope, group=view.group))
    elif intervals.group is not None:
        tx.put(ClosedContentView(content_id=content_id, view=intervals.view, scope=NO_WRITERS, group=intervals.group))
    if intervals.group is not None:
        tx.put(ContentEnd(content_id=content_id, epoch=CURRENT_VIEW if ended is None else ended))


def sweep_former_content(tx: Transaction, content: Content, scope: Scope = NO_WRITERS) -> None:
    """A former state of a record is removed: have the intervals removed that only snapshots of that state saw. `scope` is the
    lock under which the live record changes, if there may be one."""
    intervals = interval_map_of(content)
    tx.put(ClosedContentView(content_id=content.content_id, view=intervals.view, scope=scope, group=intervals.group))


def sweep(tx: Transaction, closed: ClosedContentView, after: SweepPosition, limit: int) -> SweepPosition | None:
    """Examine up to `limit` intervals and remove those that no view sees. Returns the next position, or None at the end."""
    views = view_ticks(tx, closed.content_id, closed.group)
    end = tx.get(ContentEnd, closed.content_id) if closed.group is not None else None
    if closed.group is not None and end is None:
        views.append(CURRENT_VIEW)  # of the live record
    current_until = CURRENT_VIEW if end is None else end.epoch
    kind, key = after
    span = span_of(closed.content_id)
    rows = list(tx.scan(kind, span.after(key) if key else span, limit=limit))
    changes = IntervalRows(tx, closed.content_id)
    for row in rows:
        if not is_seen(views, row.epoch, row.replaced_in if isinstance(row, FormerInterval) else current_until):
            changes.remove(row)
    changes.settle()
    if len(rows) == limit:
        return kind, rows[-1].key()
    if kind is Interval:
        return sweep(tx, closed, (FormerInterval, b""), limit)
    tx.delete(ClosedContentView, closed.content_id, closed.view)
    if not views:
        tx.delete(SharedContent, closed.content_id)
    if end is not None and all(next(tx.scan(kind, span, limit=1), None) is None for kind in (Interval, FormerInterval)):
        tx.delete(ContentEnd, closed.content_id)
        tx.delete(SharedContent, closed.content_id)
    return None
