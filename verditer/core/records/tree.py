"""Directory trees: what every entry of a tree has in common, whichever service the tree belongs to.

A directory is a node with an id. An entry is stored under (tree, parent node, folded name) and is itself the node: a file or a
directory with its properties. Renaming or moving a directory rewrites its one entry; everything below it is keyed by its node id.

Snapshots of a whole tree cost one record. `epoch` is the tick of the newest snapshot at the time the entry was written. When an
entry is changed or removed and a snapshot still sees it, the former state is kept with the epoch in which it ended (`died`). A
snapshot taken at tick `view` sees a state when `epoch < view <= died`.
"""

from typing import ClassVar

from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record

ROOT = 0  # the node id of the root directory, whose own entry has itself as parent and an empty name
LIVE = 2**63 - 1  # the view of the tree as it is now: later than every snapshot


class TreeEntry(Record, frozen=True, kw_only=True):
    """A file or directory in its parent directory. `folded` is the name as look-ups compare it."""

    KEY: ClassVar[tuple[str, ...]] = ("tree_id", "parent_id", "folded")
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)

    tree_id: int
    parent_id: int
    folded: str
    name: str
    node_id: int
    is_directory: bool
    epoch: int
    died: int = LIVE  # the epoch in which this state ended; former states have it in their key
    rearranged: int = 0  # the root directory: the tick at which a directory of the tree was last renamed or removed
