"""One directory tree inside a transaction: entries are found, listed, put, removed and moved, now or as a snapshot saw them.

The functions work on any `TreeEntry` class and know no service. A caller that changes the tree holds the scopes of the paths it
changes (`scope_of`), so that a directory cannot be deleted or renamed while something is created in it.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from verditer.core.records.record import Span, key_of, span_of, successor, text_bytes
from verditer.core.records.tree import LIVE, ROOT, TreeEntry
from verditer.partition.engine import Transaction

E = TypeVar("E", bound=TreeEntry)


class Views(Protocol):
    """Which snapshots a tree has."""

    def sees(self, tx: Transaction, epoch: int, died: int) -> bool:
        """Whether a snapshot was taken after `epoch` and not after `died`, and still exists."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tree(Generic[E]):
    """A tree as it is now (`view` is LIVE) or as a snapshot saw it. `former` is the record class of former states."""

    kind: type[E]
    former: type[E]
    id: int
    epoch: int
    views: Views
    view: int = LIVE

    def child(self, tx: Transaction, parent_id: int, folded: str) -> E | None:
        """The entry of this name in a directory."""
        entry = tx.get(self.kind, self.id, parent_id, folded)
        if self.view == LIVE or (entry is not None and entry.epoch < self.view):
            return entry
        span = span_of(self.id, parent_id, folded).starting(key_of(self.id, parent_id, folded, self.view))
        former = next(tx.scan(self.former, span, limit=1), None)
        return former if former is not None and former.epoch < self.view else None

    def children(self, tx: Transaction, directory_id: int, *, prefix: str = "", start: bytes = b"") -> Iterator[E]:
        """The entries of a directory in the order of their folded names. `start` is the folded name to begin at, as key bytes."""
        low = key_of(self.id, directory_id)
        span = span_of(self.id, directory_id)
        if prefix:
            span = Span(low + text_bytes(prefix), successor(low + text_bytes(prefix)))
        else:
            span = Span(key_of(self.id, directory_id, "") + b"\0", span.high)  # the root directory's own entry has an empty name
        if start:
            span = span.starting(low + start)
        current = tx.scan(self.kind, span)
        if self.view == LIVE:
            return iter(current)
        seen = (entry for entry in current if entry.epoch < self.view)
        former = (entry for entry in tx.scan(self.former, span) if entry.epoch < self.view <= entry.died)
        return heapq.merge(seen, former, key=lambda entry: text_bytes(entry.folded))

    def is_empty(self, tx: Transaction, directory_id: int) -> bool:
        return next(self.children(tx, directory_id), None) is None

    def put(self, tx: Transaction, entry: E, before: E | None) -> E:
        """Create an entry, or replace its state `before`. Returns the entry as it was stored."""
        if before is not None:
            self._keep(tx, before)
        if entry.epoch != self.epoch:
            entry = msgspec.structs.replace(entry, epoch=self.epoch)
        tx.put(entry)
        return entry

    def remove(self, tx: Transaction, entry: E) -> bool:
        """Take an entry out of its directory. True: a snapshot still sees it, so what it owns stays."""
        kept = self._keep(tx, entry)
        tx.delete(self.kind, entry.tree_id, entry.parent_id, entry.folded)
        if entry.is_directory:
            self._note_rearrangement(tx)
        return kept

    def move(self, tx: Transaction, entry: E, moved: E) -> E:
        """Put an entry under another parent or name. What is below a directory moves with it, as it is keyed by its node id."""
        self.remove(tx, entry)
        return self.put(tx, moved, None)

    def _note_rearrangement(self, tx: Transaction) -> None:
        """Paths that were remembered before now may lead elsewhere (`paths.py`). No snapshot sees this note."""
        root = tx.get(self.kind, self.id, ROOT, "", for_update=True)
        assert root is not None, "every tree has a root"
        tx.put(msgspec.structs.replace(root, rearranged=tx.tick(root.rearranged)))

    def _keep(self, tx: Transaction, entry: E) -> bool:
        """Keep a state that is about to end, if a snapshot sees it."""
        if entry.epoch >= self.epoch or not self.views.sees(tx, entry.epoch, self.epoch):
            return False
        tx.put(self.former(**msgspec.structs.asdict(entry) | {"died": self.epoch}))
        return True
