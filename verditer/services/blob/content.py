"""How a blob's bytes are attached to it, read, and let go. Called inside transactions; moves no bytes itself.

A content is either one `Inline` row or a row of slices of extents. One record owns one content (invariant 5). The content of
append and page blobs is kept by `pieces.py`; snapshots and deletion come through here for all types.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from verditer.core.records.blob import Blob, Block
from verditer.core.records.content import BlockRun, Garbage, Inline, Layout, SharedGarbage, Slice
from verditer.core.records.record import key_of, span_of
from verditer.partition.engine import Transaction
from verditer.services.blob.pieces import close_view, open_view

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
        start += sum(piece.length for piece in row)


def put_block_runs(tx: Transaction, content_id: int, blocks: Sequence[tuple[bytes, int]]) -> None:
    for first in range(0, len(blocks), BLOCKS_PER_ROW):
        tx.put(BlockRun(content_id=content_id, first=first, blocks=tuple(blocks[first : first + BLOCKS_PER_ROW])))


def inline_bytes(tx: Transaction, content_id: int) -> bytes:
    row = tx.get(Inline, content_id)
    return row.data if row is not None else b""


def slices_of(tx: Transaction, blob: Blob, start: int, length: int) -> list[Slice]:
    """The slices that hold `length` bytes from `start` on."""
    before = span_of(blob.content_id)._replace(high=key_of(blob.content_id, start) + b"\0")
    first = next(tx.scan(Layout, before, limit=1, reverse=True), None)
    assert first is not None, "invariant 5: a blob with bytes has a layout"
    found: list[Slice] = []
    end = start + length
    for row in tx.scan(Layout, span_of(blob.content_id).starting(first.key())):
        position = row.start
        for piece in row.slices:
            low, high = max(start, position), min(end, position + piece.length)
            if low < high:
                found.append(Slice(piece.extent, piece.offset + low - position, high - low))
            position += piece.length
        if position >= end:
            break
    return found


def blocks_of(tx: Transaction, blob: Blob) -> list[tuple[bytes, int]]:
    """The committed blocks, in blob order. Empty for a blob that Put Blob made."""
    return [block for run in tx.scan(BlockRun, span_of(blob.content_id)) for block in run.blocks]


def keep_content(tx: Transaction, blob: Blob, tick: int) -> tuple[Blob, dict[str, Any]]:
    """For a snapshot taken at `tick`: the blob as it goes on, and the fields in which the snapshot's content differs."""
    if blob.pieces is not None:
        blob_pieces, snapshot_pieces = open_view(tx, blob, tick)
        return msgspec.structs.replace(blob, pieces=blob_pieces), {"pieces": snapshot_pieces}
    copy_content(tx, blob, content_id=tick)
    shared = not blob.inline
    return msgspec.structs.replace(blob, shared=shared), {"content_id": tick, "shared": shared}


def copy_content(tx: Transaction, blob: Blob, content_id: int) -> None:
    """Give another record the same bytes: small ones are copied, extents are named twice."""
    if blob.inline:
        put_inline(tx, content_id, inline_bytes(tx, blob.content_id))
    else:
        for row in list(tx.scan(Layout, span_of(blob.content_id))):
            tx.put(Layout(content_id=content_id, start=row.start, slices=row.slices))
    put_block_runs(tx, content_id, blocks_of(tx, blob))


def extents_of(tx: Transaction, blob: Blob) -> set[str]:
    """The extents of a content that is made of slices."""
    if blob.inline or blob.pieces is not None:
        return set()
    return {piece.extent for row in tx.scan(Layout, span_of(blob.content_id)) for piece in row.slices}


def drop_content(tx: Transaction, blob: Blob, kept: Iterable[str] = ()) -> None:
    """Let go of a blob's bytes. Extents that only this content names become garbage, but for those in `kept`."""
    if blob.pieces is not None:
        close_view(tx, blob)
        return
    if blob.inline:
        tx.delete(Inline, blob.content_id)
    else:
        rows = list(tx.scan(Layout, span_of(blob.content_id)))
        for row in rows:
            tx.delete(Layout, row.content_id, row.start)
        extents = {piece.extent for row in rows for piece in row.slices}
        discard(tx, extents.difference(kept), shared=blob.shared)
    for run in list(tx.scan(BlockRun, span_of(blob.content_id))):
        tx.delete(BlockRun, run.content_id, run.first)


def drop_block(tx: Transaction, block: Block, *, kept: bool = False) -> None:
    """Remove a staged block. Its extent is garbage unless a committed blob took it over."""
    tx.delete(Block, block.container_id, block.name, block.block_id)
    if block.extent is None:
        tx.delete(Inline, block.content_id)
    elif not kept:
        discard(tx, (block.extent,))


def discard(tx: Transaction, extents: Iterable[str], *, shared: bool = False) -> None:
    """Whoever is about to name them too, by copying, began before now: the collector waits until that has ended."""
    kind = SharedGarbage if shared else Garbage
    for extent in extents:
        tx.put(kind(since=tx.now, extent=extent))
