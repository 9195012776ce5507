"""The removal of a record together with everything that its class declares (`core/records/lifecycle.py`).

A record takes along what it owns. What is stored below it follows later: its id becomes a `Tombstone`, and the collector removes
the children (`jobs/cascade.py`). So removing a parent is one small step, however much it holds.
"""

from collections.abc import Callable
from typing import Any

from verditer.core.limits import MIB
from verditer.core.names import ShareName
from verditer.core.records.blob import Blob, BlobExpiry, Block
from verditer.core.records.container import Tombstone
from verditer.core.records.content import ContentView, Inline
from verditer.core.records.file import ClosedShareView, FormerFileEntry, ShareSnapshot
from verditer.core.records.lifecycle import Owned
from verditer.core.records.record import Record
from verditer.partition.engine import Transaction
from verditer.services.blob.tags import index_tags
from verditer.services.content.content import Content
from verditer.services.content.layout import discard, drop_content
from verditer.services.content.views import sweep_former_content


def remove(tx: Transaction, record: Record) -> None:
    """Remove a record and what it owns, and have its children removed."""
    for owned in record.LIFECYCLE.owns:
        REMOVE_OWNED[owned](tx, record)
    if record.IS_PARENT:
        remove_children(tx, record)
    tx.delete(type(record), *record.key_parts())


def remove_children(tx: Transaction, parent: Record) -> None:
    """From now on no request finds a record below the parent's present id."""
    tx.put(Tombstone(id=parent.id))  # type: ignore[attr-defined]  # `tests/unit/test_records.py` checks that parents have one


def expire(tx: Transaction, record: Record) -> None:
    """Remove a record whose time has come, unless it was removed, changed or restored meanwhile."""
    if tx.get(type(record), *record.key_parts()) == record:
        remove(tx, record)


def rows_removed(record: Record) -> int:
    """About how many rows `remove` touches. A large content has a row for each block of some megabytes. The rows of interval maps
    are removed later, in a pass of their own."""
    if Owned.CONTENT not in record.LIFECYCLE.owns:
        return 1
    content: Content = record  # type: ignore[assignment]  # `tests/unit/test_records.py` checks it
    return 1 + (content.size // MIB if content.intervals is None else 0)


def _remove_block_bytes(tx: Transaction, block: Block) -> None:
    if block.extent is None:
        tx.delete(Inline, block.content_id)
    else:
        discard(tx, (block.extent,))


def _remove_expired_blob(tx: Transaction, expiry: BlobExpiry) -> None:
    """The blob may have been replaced, or was given another time."""
    blob = tx.get(Blob, expiry.container_id, expiry.name)
    if blob is not None and blob.rare is not None and blob.rare.expires == expiry.expires:
        remove(tx, blob)


def _sweep_former_content(tx: Transaction, entry: FormerFileEntry) -> None:
    if entry.intervals is not None:  # directories have no content
        sweep_former_content(tx, entry)


def _close_share_view(tx: Transaction, snapshot: ShareSnapshot) -> None:
    """The snapshot sees nothing any more; the collector removes the states that only it saw."""
    tx.delete(ContentView, snapshot.id, snapshot.view)
    scope = ShareName(snapshot.account, snapshot.name).scope
    tx.put(ClosedShareView(share_id=snapshot.id, view=snapshot.view, scope=scope))


REMOVE_OWNED: dict[Owned, Callable[[Transaction, Any], None]] = {
    Owned.CONTENT: drop_content,
    Owned.BLOCK_BYTES: _remove_block_bytes,
    Owned.EXPIRED_BLOB: _remove_expired_blob,
    Owned.TAG_INDEX: lambda tx, blob: index_tags(tx, blob, None),
    Owned.FORMER_CONTENT: _sweep_former_content,
    Owned.SHARE_VIEW: _close_share_view,
}
