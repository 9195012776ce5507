"""Paths to entries: the walk from the root, one read per component, or one read in all when the way is known.

The node ids on the way to a directory seldom change. `PathCache` remembers them per process, together with the tick at which a
directory of the tree was last renamed or removed. While the root still names that tick, the way is right, and only the root, the
last directory and the entry are read, in one statement, however deep the path is. Otherwise all components are read with the
remembered ids and checked one by one. A stale cache entry costs a second read and can never give a wrong answer.
"""

from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from verditer.core.caches import BoundedCache
from verditer.core.records.record import key_of
from verditer.core.records.tree import LIVE, ROOT, TreeEntry
from verditer.partition.engine import Transaction
from verditer.services.tree.tree import Tree

E = TypeVar("E", bound=TreeEntry)

_MAX_PATHS = 4096
_MAX_PATH_LENGTH = 1024


class Way(NamedTuple):
    """The directories on a path, below the root, as they were when `rearranged` was the latest rearrangement of the tree."""

    node_ids: tuple[int, ...]
    rearranged: int


PathCache = BoundedCache[tuple[int, tuple[str, ...]], Way]
"""(tree, names of directories as look-ups compare them) → the way to the last of them."""

_known = PathCache(_MAX_PATHS)


class Found(NamedTuple, Generic[E]):
    """Where a path leads. `directory_ids` are the nodes above the entry, the root first; `parent` is the last of them."""

    directory_ids: tuple[int, ...]
    parent: E
    entry: E | None


def root_of(tx: Transaction, tree: Tree[E]) -> E:
    root = tree.child(tx, ROOT, "")
    assert root is not None, "every tree has a root"
    return root


def resolve(tx: Transaction, tree: Tree[E], names: Sequence[str]) -> Found[E] | None:
    """What is at the end of a path of at least one name. None: a directory above it is missing, or is no directory."""
    if tree.view != LIVE:
        return _walk(tx, tree, names)
    directories = tuple(names[:-1])
    way = _known.get((tree.id, directories)) if directories else Way((), 0)
    if way is None:
        return _walk(tx, tree, names)
    return _read_last(tx, tree, way, names) or _read_all(tx, tree, way, names) or _walk(tx, tree, names)


def find(tx: Transaction, tree: Tree[E], names: Sequence[str]) -> E | None:
    """The entry at the end of a path, for callers that do not need its directory. None: there may be one, ask `resolve`.

    The directory need not be read: one with an entry in it exists, and node ids are never used twice.
    """
    if tree.view != LIVE:
        return None
    if len(names) == 1:
        return tree.child(tx, ROOT, names[0])
    way = _known.get((tree.id, tuple(names[:-1])))
    if way is None:
        return None
    root_key, key = key_of(tree.id, ROOT, ""), key_of(tree.id, way.node_ids[-1], names[-1])
    rows = tx.get_many(tree.kind, [root_key, key])
    return rows.get(key) if rows[root_key].rearranged == way.rearranged else None


def _read_last(tx: Transaction, tree: Tree[E], way: Way, names: Sequence[str]) -> Found[E] | None:
    """The root, the last directory and the entry, in one read. None: a directory was renamed or removed meanwhile, or the way was
    remembered from a transaction that was not committed. Its rearrangement and its new directories then do not exist."""
    ids = (ROOT, *way.node_ids)
    keys = [key_of(tree.id, ROOT, ""), key_of(tree.id, ids[-1], names[-1])]
    if way.node_ids:
        keys.append(key_of(tree.id, ids[-2], names[-2]))
    rows = tx.get_many(tree.kind, keys)
    root, parent = rows[keys[0]], rows.get(keys[-1] if way.node_ids else keys[0])
    if parent is None or parent.node_id != ids[-1] or (way.node_ids and root.rearranged != way.rearranged):
        return None
    return Found(ids, parent, rows.get(keys[1]))


def _read_all(tx: Transaction, tree: Tree[E], way: Way, names: Sequence[str]) -> Found[E] | None:
    """All components in one read, by the node ids remembered. None: one of these is no longer right."""
    ids = (ROOT, *way.node_ids)
    keys = [key_of(tree.id, ROOT, ""), *(key_of(tree.id, parent, name) for parent, name in zip(ids, names, strict=True))]
    rows = tx.get_many(tree.kind, keys)
    directories = [rows.get(key) for key in keys[:-1]]
    for directory, expected in zip(directories, ids, strict=True):
        if directory is None or not directory.is_directory or directory.node_id != expected:
            return None
    root, parent = directories[0], directories[-1]
    assert root is not None
    assert parent is not None
    _known.keep((tree.id, tuple(names[:-1])), Way(way.node_ids, root.rearranged))
    return Found(ids, parent, rows.get(keys[-1]))


def _walk(tx: Transaction, tree: Tree[E], names: Sequence[str]) -> Found[E] | None:
    root = directory = root_of(tx, tree)
    ids = [ROOT]
    for name in names[:-1]:
        child = tree.child(tx, directory.node_id, name)
        if child is None or not child.is_directory:
            return None
        directory = child
        ids.append(child.node_id)
    if tree.view == LIVE and len(names) > 1 and sum(map(len, names)) <= _MAX_PATH_LENGTH:
        _known.keep((tree.id, tuple(names[:-1])), Way(tuple(ids[1:]), root.rearranged))
    return Found(tuple(ids), directory, tree.child(tx, directory.node_id, names[-1]))
