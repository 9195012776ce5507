"""The content of one record for a second record: inline bytes are copied, extents are named twice, so no byte of an extent moves.

A write locks the scopes of its own records only, so source and target change in transactions of their own. The first transaction
marks the source as shared and captures its content in one state. A record that drops the source from then on leaves its extents
to the sweep. The sweep waits for work that began earlier (`services/activity.py`), and so for the second transaction, in which
the target names the extents too.
"""

from collections.abc import Iterator, Sequence

import msgspec

from verditer.core.records.content import Interval, IntervalMap, Layout, SharedContent
from verditer.core.records.record import span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.content.content import Content, ContentState, state_of
from verditer.services.content.interval_rows import clip
from verditer.services.content.intervals import MAX_INTERVAL_BYTES, copy_intervals, visible_intervals
from verditer.services.content.layout import blocks_of, put_block_runs, put_inline, read_inline


class CapturedContent(msgspec.Struct, frozen=True, kw_only=True):
    """All rows of a content in one state."""

    state: ContentState
    data: bytes = b""
    layout: Sequence[Layout] = ()
    blocks: Sequence[tuple[bytes, int]] = ()
    intervals: Sequence[Interval] = ()


def is_shareable(tx: Transaction, content: Content) -> bool:
    """Whether the content can be captured without `mark_shared`: it is inline, or was marked before."""
    if content.intervals is not None:
        return tx.get(SharedContent, content.content_id) is not None
    return content.inline or content.shared


def mark_shared(tx: Transaction, content: Content) -> bool:
    """Mark the content as shared. True: its record has to be put with `shared` set."""
    if content.intervals is not None:
        tx.put(SharedContent(content_id=content.content_id))
        return False
    return not content.inline


def capture(tx: Transaction, content: Content) -> CapturedContent:
    """The caller is announced work (`services/activity.py`) and commits `attach` before that work ends."""
    state = state_of(content)
    if content.intervals is not None:
        rows = visible_intervals(tx, content, 0, content.size)
        return CapturedContent(state=state, intervals=[clip(row, 0, content.size) for row in rows])
    blocks = blocks_of(tx, content.content_id)
    if content.inline:
        return CapturedContent(state=state, data=read_inline(tx, content.content_id), blocks=blocks)
    return CapturedContent(state=state, layout=list(tx.scan(Layout, span_of(content.content_id))), blocks=blocks)


def attach(tx: Transaction, captured: CapturedContent, content_id: int, scope: Scope) -> ContentState:
    """Put the same content under a new id, for a record in `scope`."""
    size = captured.state.size
    if captured.state.intervals is not None:
        intervals = copy_intervals(tx, content_id, scope, captured.intervals)
        return ContentState(content_id=content_id, size=size, intervals=intervals)
    if captured.state.inline:
        put_inline(tx, content_id, captured.data)
    for row in captured.layout:
        tx.put(Layout(content_id=content_id, start=row.start, slices=row.slices))
    put_block_runs(tx, content_id, captured.blocks)
    return ContentState(content_id=content_id, size=size, inline=captured.state.inline, shared=not captured.state.inline)


def attach_intervals(
    tx: Transaction, captured: CapturedContent, content_id: int, scope: Scope, *, group: int | None = None, epoch: int = 0
) -> IntervalMap:
    """Put the same bytes, however the source keeps them, under a new id as intervals that can be overwritten."""
    rows = captured.intervals if captured.state.intervals is not None else _as_intervals(captured)
    cut = (piece for row in rows for piece in _cut(row))
    return copy_intervals(tx, content_id, scope, cut, group=group, epoch=epoch)


def _as_intervals(captured: CapturedContent) -> Iterator[Interval]:
    """The rows of a content that was written once, as intervals."""
    if captured.data:
        yield Interval(content_id=0, start=0, length=len(captured.data), epoch=0, data=captured.data)
    for row in captured.layout:
        start = row.start
        for one in row.slices:
            yield Interval(content_id=0, start=start, length=one.length, epoch=0, extent=one.extent, offset=one.offset)
            start += one.length


def _cut(row: Interval) -> Iterator[Interval]:
    """Slices of layouts and appended intervals may be longer than what can be overwritten."""
    for start in range(row.start, row.end, MAX_INTERVAL_BYTES):
        yield clip(row, start, start + MAX_INTERVAL_BYTES)
