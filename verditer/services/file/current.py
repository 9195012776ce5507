"""Finds the share or snapshot, the tree, and the entries on the path of a file operation. Raises the not-found errors."""

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.names import fold
from verditer.core.names import FilePath, ShareName
from verditer.core.records.content import ContentView
from verditer.core.records.file import NFS, FileEntry, FormerFileEntry, Share, ShareSnapshot
from verditer.core.records.record import Span, key_of
from verditer.core.records.tree import LIVE
from verditer.partition.engine import Transaction
from verditer.services.file.file_tree import FileTree
from verditer.services.tree.paths import Found, find, resolve, root_of

replace = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class ShareViews:
    """The snapshots of a share, as its tree asks for them."""

    share_id: int

    def sees(self, tx: Transaction, epoch: int, died: int) -> bool:
        span = Span(key_of(self.share_id, epoch + 1), key_of(self.share_id, died + 1))
        return next(iter(tx.scan(ContentView, span, limit=1)), None) is not None


class InShare(Protocol):
    """Something in the tree of a share."""

    @property
    def share(self) -> Share: ...

    @property
    def tree(self) -> FileTree: ...


class InTree(NamedTuple):
    """Where an entry was found."""

    share: Share
    tree: FileTree


class Located(NamedTuple):
    """What a path leads to. `name` is its last name as look-ups compare it. `directory_ids` are the nodes above `entry`, the root
    first, and `parent` is the last of them. The root directory has none, and is its own parent."""

    share: Share
    tree: FileTree
    name: str
    directory_ids: tuple[int, ...]
    parent: FileEntry
    entry: FileEntry | None


def require_share(tx: Transaction, target: ShareName | FilePath, snapshot: int | None = None) -> Share:
    """The share, or one of its snapshots."""
    share = tx.get(Share, target.account, target.share)
    if share is None:
        raise StorageError(Code.ShareNotFound)
    if snapshot is None:
        return share
    found = tx.get(ShareSnapshot, share.id, snapshot)
    if found is None:
        raise StorageError(Code.ShareSnapshotNotFound)
    return found


def tree_of(share: Share) -> FileTree:
    return _tree(share.id, share.epoch, share.view if isinstance(share, ShareSnapshot) else LIVE)


@lru_cache(maxsize=1024)
def _tree(share_id: int, epoch: int, view: int) -> FileTree:
    return FileTree(kind=FileEntry, former=FormerFileEntry, id=share_id, epoch=epoch, views=ShareViews(share_id), view=view)


def locate(tx: Transaction, target: FilePath, snapshot: int | None = None) -> Located:
    """For operations that may create the entry. Every directory above it has to exist."""
    share = require_share(tx, target, snapshot)
    tree = tree_of(share)
    return _located(tx, share, tree, compared_names(share, target))


def _located(tx: Transaction, share: Share, tree: FileTree, names: tuple[str, ...]) -> Located:
    if names:
        found = resolve(tx, tree, names)
    else:
        root = root_of(tx, tree)
        found = Found((), root, root)
    if found is None:
        raise StorageError(Code.ParentNotFound)
    return Located(
        share=share,
        tree=tree,
        name=names[-1] if names else "",
        directory_ids=found.directory_ids,
        parent=found.parent,
        entry=None if found.entry is None else seen(tree, tree.followed(tx, found.entry)),
    )


def seen(tree: FileTree, entry: FileEntry) -> FileEntry:
    """The entry with its content as the tree sees it: a snapshot sees an earlier one."""
    if entry.intervals is None or tree.view == LIVE:
        return entry
    return replace(entry, intervals=replace(entry.intervals, view=tree.view))


def compared_names(share: Share, target: FilePath) -> tuple[str, ...]:
    """The names of a path as look-ups in this share compare them: NFS shares distinguish upper and lower case, others do not."""
    return target.names if share.protocols == NFS else target.folded


def compared_prefix(share: Share, prefix: str) -> str:
    return prefix if share.protocols == NFS else fold(prefix)


def require_entry(tx: Transaction, target: FilePath, snapshot: int | None = None) -> tuple[InTree, FileEntry]:
    """A file or a directory."""
    share = require_share(tx, target, snapshot)
    tree = tree_of(share)
    names = compared_names(share, target)
    entry = find(tx, tree, names) if names else None
    if entry is not None:
        return InTree(share, tree), seen(tree, tree.followed(tx, entry))
    located = _located(tx, share, tree, names)
    if located.entry is None:
        raise StorageError(Code.ResourceNotFound)
    return InTree(share, tree), located.entry


def require_file(tx: Transaction, target: FilePath, snapshot: int | None = None) -> tuple[InTree, FileEntry]:
    located, entry = require_entry(tx, target, snapshot)
    if entry.is_directory:
        raise StorageError(Code.ResourceTypeMismatch)
    return located, entry


def require_directory(tx: Transaction, target: FilePath, snapshot: int | None = None) -> tuple[InTree, FileEntry]:
    located, entry = require_entry(tx, target, snapshot)
    if not entry.is_directory:
        raise StorageError(Code.ResourceTypeMismatch)
    return located, entry
