"""The tree of a share: a directory tree whose files may have several names, as hard links of NFS shares give them.

A file with several names is stored in one entry of its own. The parent of that entry is the node `LINKED_FILES`, which no path
leads to, and its name is the node id of the file. Each name is a second entry, which holds the name and `linked_node`. Callers
see a whole file under every name (`followed`) and change it through `put`, `move` and `remove_name`. All of these are ordinary
entries, so snapshots see them as they see others. Writers that come by different names hold different scopes. The record of the
file is therefore read with a lock.
"""

import msgspec

from verditer.core.records.file import FileEntry
from verditer.core.records.tree import LIVE
from verditer.partition.engine import Transaction
from verditer.services.tree.tree import Tree

replace = msgspec.structs.replace
LINKED_FILES = 1  # other node ids are ticks, or 0 for the root


class FileTree(Tree[FileEntry]):
    __slots__ = ()

    def followed(self, tx: Transaction, entry: FileEntry) -> FileEntry:
        """The entry that was found under a name, with the state of the file where that is stored apart."""
        if entry.linked_node is None:
            return entry
        if self.view == LIVE:
            state = tx.get(self.kind, self.id, LINKED_FILES, str(entry.linked_node), for_update=True)
        else:
            state = self.child(tx, LINKED_FILES, str(entry.linked_node))
        assert state is not None, "a file exists as long as one of its names"
        return _named(state, entry)

    def put(self, tx: Transaction, entry: FileEntry, before: FileEntry | None) -> FileEntry:
        """A file that replaces one with several names, replaces it under each of them."""
        if before is None or before.linked_node is None:
            return super().put(tx, entry, before)
        entry = replace(entry, linked_node=before.linked_node, link_count=before.link_count)
        return _named(super().put(tx, _state_of(entry), _state_of(before)), entry)

    def overwrite(self, tx: Transaction, entry: FileEntry) -> None:
        """Store a change that is not part of any snapshot: of a lease, or of where the bytes are stored."""
        tx.put(entry if entry.linked_node is None else _state_of(entry))

    def move(self, tx: Transaction, entry: FileEntry, moved: FileEntry) -> FileEntry:
        if entry.linked_node is None:
            return super().move(tx, entry, moved)
        self.remove(tx, self._stored_name(tx, entry))
        super().put(tx, _name_of(moved), None)
        return self.put(tx, moved, entry)

    def add_name(self, tx: Transaction, entry: FileEntry, parent_id: int, folded: str, name: str) -> FileEntry:
        """Give a file one more name. With the second name its state moves into an entry of its own."""
        changed = replace(
            entry,
            linked_node=entry.node_id,
            link_count=entry.link_count + 1,
            etag=tx.tick(entry.etag),
            changed=tx.now,
        )
        if entry.linked_node is None:
            super().put(tx, _name_of(changed), entry)
            super().put(tx, _state_of(changed), None)
        else:
            super().put(tx, _state_of(changed), _state_of(entry))
        added = replace(changed, parent_id=parent_id, folded=folded, name=name)
        super().put(tx, _name_of(added), None)
        return added

    def remove_name(self, tx: Transaction, entry: FileEntry) -> bool:
        """Take a file out of its directory. True: it has no other name, so its content goes with it."""
        if entry.linked_node is None:
            self.remove(tx, entry)
            return True
        self.remove(tx, self._stored_name(tx, entry))
        state = _state_of(entry)
        if state.link_count == 1:
            self.remove(tx, state)
            return True
        rest = replace(state, link_count=state.link_count - 1, etag=tx.tick(state.etag), changed=tx.now)
        super().put(tx, rest, state)
        return False

    def _stored_name(self, tx: Transaction, entry: FileEntry) -> FileEntry:
        name = tx.get(self.kind, self.id, entry.parent_id, entry.folded)
        assert name is not None, "the caller holds the scope of the name"
        return name


def stored_at(entry: FileEntry) -> tuple[int, str]:
    """The parent and the folded name under which the state of a file is stored, whichever of its names it was found by."""
    state = entry if entry.linked_node is None else _state_of(entry)
    return state.parent_id, state.folded


def _named(state: FileEntry, name: FileEntry) -> FileEntry:
    """A linked file as it is seen under one of its names."""
    return replace(state, parent_id=name.parent_id, folded=name.folded, name=name.name, linked_node=name.linked_node)


def _state_of(entry: FileEntry) -> FileEntry:
    """The entry that stores a linked file."""
    return replace(entry, parent_id=LINKED_FILES, folded=str(entry.linked_node), name="", linked_node=None)


def _name_of(entry: FileEntry) -> FileEntry:
    """The entry that stores one name of a linked file. It owns no content."""
    return replace(entry, size=0, content_id=0, intervals=None, metadata={}, lease=None, copy=None)
