"""Contents that are written once: how bytes are attached to a content id, found, and dropped. Called inside transactions.

Such a content is either one `Inline` row or a sequence of slices of extents. One record owns one content (invariant 5). Contents
that are written in place are interval maps (`intervals.py`); snapshots and deletion of either kind come through this module.
This module moves no bytes of extents.
"""

from collections.abc import Iterable, Sequence

from verditer.core.records.content import BlockRun, Garbage, Inline, Layout, SharedGarbage, Slice
from verditer.core.records.lifecycle import ExtentId
from verditer.core.records.record import key_of, span_of
from verditer.partition.engine import Order, Transaction
from verditer.services.content.content import Content, ContentState
from verditer.services.content.views import close_view, open_view

SLICES_PER_ROW = 1000  # a row of about 50 KB: a 50,000-block blob is 50 rows, and a range read decodes one or two
BLOCKS_PER_ROW = 5000


def put_inline(tx: Transaction, content_id: int, data: bytes) -> None:
    if data:
        tx.put(Inline(content_id=content_id, data=data))


def put_layout(tx: Transaction, content_id: int, slices: Sequence[Slice]) -> None:
    start = 0
    for first in range(0, len(slices), SLICES_PER_ROW):
        row = tuple(slices[first : first + SLICES_PER_ROW])
        tx.put(Layout(content_id=content_id, start=start, slices=row))
        start += sum(one.length for one in row)


def put_block_runs(tx: Transaction, content_id: int, blocks: Sequence[tuple[bytes, int]]) -> None:
    for first in range(0, len(blocks), BLOCKS_PER_ROW):
        tx.put(BlockRun(content_id=content_id, first=first, blocks=tuple(blocks[first : first + BLOCKS_PER_ROW])))


def read_inline(tx: Transaction, content_id: int) -> bytes:
    row = tx.get(Inline, content_id)
    return row.data if row is not None else b""


def slices_of(tx: Transaction, content_id: int, start: int, length: int) -> list[Slice]:
    """The slices that hold `length` bytes from `start` on."""
    before = span_of(content_id)._replace(high=key_of(content_id, start) + b"\0")
    first = next(tx.scan(Layout, before, limit=1, order=Order.KEY_DESCENDING), None)
    assert first is not None, "invariant 5: a content with bytes has a layout"
    found: list[Slice] = []
    end = start + length
    for row in tx.scan(Layout, span_of(content_id).starting(first.key())):
        position = row.start
        for one in row.slices:
            low, high = max(start, position), min(end, position + one.length)
            if low < high:
                found.append(Slice(one.extent, one.offset + low - position, high - low))
            position += one.length
        if position >= end:
            break
    return found


def blocks_of(tx: Transaction, content_id: int) -> list[tuple[bytes, int]]:
    """The committed blocks (id, size) in order. Empty for a content that was not made from blocks."""
    return [block for run in tx.scan(BlockRun, span_of(content_id)) for block in run.blocks]


def snapshot_content(tx: Transaction, content: Content, tick: int) -> tuple[ContentState, ContentState]:
    """For a snapshot taken at `tick`: what the live record and the snapshot's record store from now on."""
    size = content.size
    if content.intervals is not None:
        live, frozen = open_view(tx, content, tick)
        return (
            ContentState(content_id=content.content_id, size=size, intervals=live),
            ContentState(content_id=content.content_id, size=size, intervals=frozen),
        )
    _copy_content(tx, content, content_id=tick)
    shared = not content.inline
    return (
        ContentState(content_id=content.content_id, size=size, inline=content.inline, shared=shared),
        ContentState(content_id=tick, size=size, inline=content.inline, shared=shared),
    )


def _copy_content(tx: Transaction, content: Content, content_id: int) -> None:
    """Give a second content the same bytes: inline bytes are copied, extents are named twice."""
    if content.inline:
        put_inline(tx, content_id, read_inline(tx, content.content_id))
    else:
        for row in list(tx.scan(Layout, span_of(content.content_id))):
            tx.put(Layout(content_id=content_id, start=row.start, slices=row.slices))
    put_block_runs(tx, content_id, blocks_of(tx, content.content_id))


def extents_of(tx: Transaction, content: Content) -> set[ExtentId]:
    """The extents that a layout of slices names. Empty for other contents."""
    if content.inline or content.intervals is not None:
        return set()
    return {one.extent for row in tx.scan(Layout, span_of(content.content_id)) for one in row.slices}


def drop_content(tx: Transaction, content: Content, reused: Iterable[str] = ()) -> None:
    """Remove a content whose record is removed. Extents that no other content names become garbage, except those in `reused`."""
    if content.intervals is not None:
        close_view(tx, content)
        return
    if content.inline:
        tx.delete(Inline, content.content_id)
    else:
        rows = list(tx.scan(Layout, span_of(content.content_id)))
        for row in rows:
            tx.delete(Layout, row.content_id, row.start)
        extents = {one.extent for row in rows for one in row.slices}
        discard(tx, extents.difference(reused), shared=content.shared)
    for run in list(tx.scan(BlockRun, span_of(content.content_id))):
        tx.delete(BlockRun, run.content_id, run.first)


def discard(tx: Transaction, extents: Iterable[ExtentId], *, shared: bool = False) -> None:
    """Note extents as garbage. The collector waits for work that began earlier: it may be a copy that is about to name them."""
    kind = SharedGarbage if shared else Garbage
    for extent in extents:
        tx.put(kind(since=tx.now, extent=extent))
