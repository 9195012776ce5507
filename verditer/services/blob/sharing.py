"""A blob's content for a second blob: small ones are copied, extents are named twice, so that no byte moves at any size.

A write locks its own scope only, so source and target change in transactions of their own. First the source is marked as
shared and read, in one state; whoever drops it from then on leaves its extents to the sweep. That waits for work that began
before (`services/activity.py`), and so for the commit in which the target names the extents too.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from verditer.core.records.blob import Blob
from verditer.core.records.content import Layout, Piece, SharedContent
from verditer.core.records.record import span_of
from verditer.partition.engine import Scope, Transaction
from verditer.services.blob.content import blocks_of, inline_bytes, put_block_runs, put_inline
from verditer.services.blob.current import require_blob
from verditer.services.blob.pieces import adopt_pieces, cut, visible
from verditer.services.blob.sources import LocalSource
from verditer.services.context import Context


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """A source in one state: its record and what its content is made of."""

    blob: Blob
    inline: bytes = b""
    rows: Sequence[Layout] = ()
    blocks: Sequence[tuple[bytes, int]] = ()
    pieces: Sequence[Piece] = ()


async def take(ctx: Context, source: LocalSource, check: Callable[[Blob, int], None]) -> Taken:
    """To be called by work that is announced, and that commits before it ends. `check` sees the source and the time."""

    def checked(tx: Transaction) -> Blob:
        blob = require_blob(tx, source.name, source.snapshot, source.version_id)
        source.guard.check(blob, tx.now)
        check(blob, tx.now)
        return blob

    def look(tx: Transaction) -> Taken | None:
        blob = checked(tx)
        return _taken(tx, blob) if _is_marked(tx, blob) else None

    def mark(tx: Transaction) -> Taken:
        blob = checked(tx)
        if blob.pieces is not None:
            tx.put(SharedContent(content_id=blob.content_id))
        elif not blob.inline:
            blob = msgspec.structs.replace(blob, shared=True)
            tx.put(blob)
        return _taken(tx, blob)

    taken = await ctx.engine.scan(source.name.scope, look)
    return taken if taken is not None else await ctx.engine.write(source.name.scope, mark)


def attach(tx: Transaction, taken: Taken, content_id: int, scope: Scope) -> dict[str, Any]:
    """Give a new record the same content: the fields that say so."""
    blob = taken.blob
    fields: dict[str, Any] = {"content_id": content_id, "inline": blob.inline, "size": blob.size}
    if blob.pieces is not None:
        return fields | {"pieces": adopt_pieces(tx, content_id, scope, taken.pieces), "shared": False}
    if blob.inline:
        put_inline(tx, content_id, taken.inline)
    for row in taken.rows:
        tx.put(Layout(content_id=content_id, start=row.start, slices=row.slices))
    put_block_runs(tx, content_id, taken.blocks)
    return fields | {"pieces": None, "shared": not blob.inline}


def _is_marked(tx: Transaction, blob: Blob) -> bool:
    if blob.pieces is not None:
        return tx.get(SharedContent, blob.content_id) is not None
    return blob.inline or blob.shared


def _taken(tx: Transaction, blob: Blob) -> Taken:
    if blob.pieces is not None:
        return Taken(blob=blob, pieces=[cut(row, 0, blob.size) for row in visible(tx, blob, 0, blob.size)])
    blocks = blocks_of(tx, blob)
    if blob.inline:
        return Taken(blob=blob, inline=inline_bytes(tx, blob.content_id), blocks=blocks)
    return Taken(blob=blob, rows=list(tx.scan(Layout, span_of(blob.content_id))), blocks=blocks)
