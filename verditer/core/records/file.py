"""Shares, and the files and directories in them.

A share's tree is stored under the share's id (`core/records/tree.py`), so deleting a share is one record and a new share of the
same name starts empty. Share snapshots are records of their own; they see the tree as it was at their tick.
"""

from typing import ClassVar

import msgspec

from verditer.core.lease import Lease
from verditer.core.names import ShareName
from verditer.core.records.container import AccessPolicy
from verditer.core.records.content import IntervalMap
from verditer.core.records.copy import CopyState, CopyStatus, PendingCopy
from verditer.core.records.lifecycle import Expiry, Lifecycle, Owned, Reset, Root
from verditer.core.records.record import Record
from verditer.core.records.tree import TreeEntry

NFS = "NFS"  # the protocol of shares with POSIX properties, links, and names that differ in case


class Provisioning(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Figures of a provisioned share, stored and returned as they were set. None where the request named none."""

    iops: int | None = None
    bandwidth_mibps: int | None = None
    paid_bursting: bool | None = None
    paid_bursting_iops: int | None = None
    paid_bursting_bandwidth_mibps: int | None = None


class Share(Record, tag=1, frozen=True, kw_only=True):
    """A file share. `epoch` is the tick of its newest snapshot: what is written from then on is unseen by that snapshot."""

    TABLE = "share"
    KEY: ClassVar[tuple[str, ...]] = ("account", "name")
    LIFECYCLE = Lifecycle(parent=Root.ACCOUNT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    account: str
    name: str
    id: int
    etag: int
    quota_gib: int
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    policies: tuple[AccessPolicy, ...] = ()
    lease: Lease | None = None
    access_tier: str = "TransactionOptimized"
    access_tier_changed: int | None = None
    protocols: str = "SMB"
    root_squash: str | None = None  # NFS shares
    snapshot_directory: bool | None = None  # NFS shares: whether .snapshots can be entered
    directory_lease: bool | None = None
    provisioning: Provisioning = Provisioning()
    epoch: int = 0

    @property
    def tags(self) -> None:
        """Shares have no tags."""
        return

    @property
    def copy_pending(self) -> bool:
        """Shares are not copied."""
        return False


class ShareSnapshot(Share, tag=1, frozen=True, kw_only=True):
    """A share as it was. `snapshot` is the time clients name it by; `view` is the tick at which it sees the tree."""

    TABLE = "share_snapshot"
    KEY = ("id", "snapshot")
    IS_PARENT = False  # what is stored under its id belongs to the share
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(Owned.SHARE_VIEW,), expiry=None, reset=Reset.REMOVED)

    snapshot: int
    view: int


class DeletedShare(Share, tag=1, frozen=True, kw_only=True):
    """A soft-deleted share. Its tree and its snapshots stay under its id until `expires`."""

    TABLE = "deleted_share"
    KEY = ("account", "name", "version")
    RANK = ("expires",)
    LIFECYCLE = Lifecycle(
        parent=Root.ACCOUNT, extents=None, owns=(), expiry=Expiry("expires", scope="scope"), reset=Reset.REMOVED
    )

    version: int  # the tick of the deletion
    expires: int

    @property
    def scope(self) -> tuple[str, ...]:
        return ShareName(self.account, self.name).scope


class ShareUsage(Record, tag=1, frozen=True, kw_only=True):
    """A part of the number of bytes that the files of a share have: the sum over all lanes is the whole."""

    TABLE = "share_usage"
    KEY = ("share_id", "lane")
    IS_COUNTER = True
    IS_READ_TOGETHER = True
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    share_id: int
    lane: int
    size_bytes: int


class ClosedShareView(Record, tag=1, frozen=True, kw_only=True):
    """A share snapshot that was deleted. The collector removes the former states that no other snapshot sees."""

    TABLE = "closed_share_view"
    KEY = ("share_id", "view")
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)

    share_id: int
    view: int
    scope: tuple[str, ...]


class FilePermission(Record, tag=1, frozen=True, kw_only=True):
    """A security descriptor of a share, in its self-relative binary form. Files and directories refer to it by `key_text`."""

    TABLE = "file_permission"
    KEY = ("share_id", "key_text")
    IS_SHARED = True
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    share_id: int
    key_text: str
    descriptor: bytes


class Posix(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a file or directory of an NFS share has instead of Windows attributes and a security descriptor."""

    mode: str
    owner: str = "0"
    group: str = "0"


class FileEntry(TreeEntry, tag=1, frozen=True, kw_only=True):
    """A file or directory of a share. Its ETag is the tick of its last change, and so is its Last-Modified."""

    TABLE = "file_entry"
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(Owned.CONTENT,), expiry=None, reset=Reset.REMOVED)

    etag: int
    created: int  # the three times are what clients set, and need not be ticks of this server
    written: int
    changed: int
    attributes: int = 0  # Windows attribute bits; `Directory` is added when they are shown
    permission_key: str | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    size: int = 0
    content_id: int = 0  # files only
    intervals: IntervalMap | None = None
    content_type: str = "application/octet-stream"
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    content_md5: bytes | None = None
    lease: Lease | None = None
    copy: CopyState | None = None
    posix: Posix | None = None
    link_text: str | None = None  # a symbolic link: where it points to, percent-encoded
    link_count: int = 1
    linked_node: int | None = None  # a hard link: the node whose entry in the directory of linked nodes holds the file
    accessed: int | None = None  # the last access time that an SMB client has set. None: that of the last write

    @property
    def tags(self) -> None:
        """Files have no tags."""
        return

    @property
    def copy_pending(self) -> bool:
        return self.copy is not None and self.copy.status is CopyStatus.PENDING

    @property
    def last_access(self) -> int:
        return self.written if self.accessed is None else self.accessed

    @property
    def inline(self) -> bool:
        """Files are made of intervals."""
        return False

    @property
    def shared(self) -> bool:
        """Interval maps note sharing in a record of their own."""
        return False


class FormerFileEntry(FileEntry, tag=1, frozen=True, kw_only=True):
    """A state of a file or directory that was changed or removed, and that a share snapshot still sees."""

    TABLE = "former_file_entry"
    KEY = ("tree_id", "parent_id", "folded", "died")
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(Owned.FORMER_CONTENT,), expiry=None, reset=Reset.REMOVED)


class PendingFileCopy(PendingCopy, tag=1, frozen=True, kw_only=True):
    """A copy into a file whose bytes are still being fetched. `directory_id` and `name` are the parent and the folded name of the
    entry that stores the file, so that the copy goes on when a directory above it is renamed."""

    TABLE = "pending_file_copy"
    KEY = ("parent_id", "directory_id", "name")
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(Owned.CONTENT,), expiry=None, reset=Reset.REMOVED)

    directory_id: int
