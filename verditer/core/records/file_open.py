"""Sessions and open handles of SMB clients, what hangs on them, and the processes that serve them.

All of these are volatile: a handle ends with the process that serves it, so a crash of the machine may take the records with it.
Handles and locks are keyed by the node of their entry. A rename changes the path in them and nothing else.
"""

from typing import ClassVar

from verditer.core.names import FilePath
from verditer.core.records.file import Share
from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record


class FileOpen(Record, tag=1, frozen=True, kw_only=True):
    """An open handle. `access` is what of its access mask decides about conflicts (`core/files/share_modes.py`)."""

    TABLE = "file_open"
    KEY: ClassVar[tuple[str, ...]] = ("share_id", "node_id", "handle_id")
    IS_SELDOM_STORED = True
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(), expiry=None, reset=Reset.REMOVED, volatile=True)

    share_id: int
    node_id: int
    handle_id: int
    account: str
    share: str
    owner: str  # the key of the `FileOwner` that serves it
    access: int
    share_mode: int
    path: tuple[str, ...]
    folded_path: tuple[str, ...]
    parent_id: int
    session_id: int
    client: str
    opened: int
    delete_pending: bool = False  # the file is marked for deletion: true in all of its handles, or in none
    delete_on_close: bool = False  # closing this handle marks the file for deletion
    client_name: str = ""
    reconnected: int | None = None
    view: int = 0  # a handle on a share snapshot: the tick at which that sees the tree
    access_mask: int = 0
    oplock: int = 0  # an `OplockLevel`
    breaks_to: int | None = None  # the level of a break that the holder has not acknowledged
    break_began: int = 0  # the tick at which the break began

    @property
    def file_path(self) -> FilePath:
        return FilePath(self.account, self.share, self.path, self.folded_path)

    @property
    def folded(self) -> str:
        """The name of its entry as look-ups compare it. That of the root directory is empty."""
        return self.folded_path[-1] if self.folded_path else ""


class FileLock(Record, tag=1, frozen=True, kw_only=True):
    """A byte-range lock held by an open handle. One handle may lock the same range several times; their ids differ."""

    TABLE = "file_lock"
    KEY = ("share_id", "node_id", "handle_id", "lock_id")
    IS_SELDOM_STORED = True
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(), expiry=None, reset=Reset.REMOVED, volatile=True)

    share_id: int
    node_id: int
    handle_id: int
    lock_id: int
    start: int
    length: int
    exclusive: bool


class PendingDelete(Record, tag=1, frozen=True, kw_only=True):
    """An entry of a directory that is marked for deletion: what listings leave out. Its handles say the same."""

    TABLE = "pending_delete"
    KEY = ("share_id", "parent_id", "node_id")
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(), expiry=None, reset=Reset.REMOVED, volatile=True)

    share_id: int
    parent_id: int
    node_id: int


class DirectoryWatch(Record, tag=1, frozen=True, kw_only=True):
    """A handle on a directory that wants to know of changes in it, or anywhere below it (`is_deep`)."""

    TABLE = "directory_watch"
    KEY = ("share_id", "node_id", "handle_id")
    IS_SELDOM_STORED = True
    LIFECYCLE = Lifecycle(parent=Share, extents=None, owns=(), expiry=None, reset=Reset.REMOVED, volatile=True)

    share_id: int
    node_id: int
    handle_id: int
    owner: str
    folded_path: tuple[str, ...]
    is_deep: bool
    filter: int


class FileOwner(Record, tag=1, frozen=True, kw_only=True):
    """A process that serves handles. `instance` and `number` say which worker of which server it is."""

    TABLE = "file_owner"
    KEY = ("owner",)
    IS_SHARED = True
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT, volatile=True)

    owner: str
    instance: str
    number: int
    heartbeat: int
    is_dead: bool = False  # from now on it opens no handle, and others close those it has


class FileSession(Record, tag=1, frozen=True, kw_only=True):
    """A login of an SMB client. `details` is what another worker of the same server has to know of it, encrypted by the front end
    with a key that ends with the server."""

    TABLE = "file_session"
    KEY = ("session_id",)
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT, volatile=True)

    session_id: int
    owner: str  # the key of the `FileOwner` that serves it
    account: str
    details: bytes


class FileSignal(Record, tag=1, frozen=True, kw_only=True):
    """A message to the process that serves a handle or a session: an oplock is broken, a directory has changed, the handle was
    closed, or the session is to end."""

    TABLE = "file_signal"
    KEY = ("owner", "number")
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT, volatile=True)

    owner: str
    number: int
    handle_id: int  # or the id of the session
    kind: int  # a `SignalKind`
    level: int = 0  # the level that an oplock goes back to
    action: int = 0
    names: tuple[str, ...] = ()
