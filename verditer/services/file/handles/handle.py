"""Handles of this process: the part of an open that lives in memory. Its record is `FileOpen`.

A handle follows renames: its path is what its record last said. Other processes reach a handle through its record and through
signals (`processes/signals.py`), which end in the methods of its listener.
"""

import asyncio
import contextlib
import secrets
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from verditer.core.files.oplocks import OplockLevel
from verditer.core.names import FilePath, ShareName

NodeKey = tuple[int, int]
"""A share and a node of its tree."""

INSTANCE = str(uuid.uuid4())  # of this server: its forked workers inherit it
SECRET = secrets.token_bytes(32)  # as well: what these workers keep from all others that use the store
MAX_CHANGES = 1024  # that are kept for a handle until its client asks for them


class NotifyAction:
    """What happened to an entry of a watched directory. The values are those of MS-FSCC 2.7.1."""

    DELETE_PENDING = 0  # not an action of an entry: the watched directory itself is marked for deletion
    ADDED = 1
    REMOVED = 2
    MODIFIED = 3
    RENAMED_OLD_NAME = 4
    RENAMED_NEW_NAME = 5


class DirectoryChange(msgspec.Struct, frozen=True, array_like=True):
    """`names` lead from the watched directory to the entry."""

    action: int
    names: tuple[str, ...]


class HandleListener(Protocol):
    """The front end's side of a handle. The methods are called on the event loop and must not wait."""

    def oplock_broken(self, level: OplockLevel) -> None:
        """The holder has to be told. From EXCLUSIVE or BATCH it has to acknowledge (`acknowledge_break`)."""

    def changed(self) -> None:
        """`Handle.take_changes` has something, or `Handle.overflowed` was set."""

    def closed(self) -> None:
        """The handle was closed by REST or because its process was taken for dead. Every further use raises HandleClosed."""


@dataclass(eq=False, kw_only=True, slots=True)
class Handle:
    """An open file or directory. `access` is an access mask; `snapshot` is the share snapshot that it reads, or None.
    `reserved_bytes`: its client has said that the file is going to be so large; this handle shows them as allocated."""

    share: ShareName
    share_id: int
    node_id: int
    handle_id: int
    parent_id: int
    path: FilePath
    access: int
    share_mode: int
    is_directory: bool
    is_transient: bool
    delete_on_close: bool
    snapshot: int | None = None
    reserved_bytes: int = 0
    oplock: OplockLevel = OplockLevel.NONE
    listener: HandleListener | None = None
    is_closed: bool = False
    frozen: set[str] = field(default_factory=set)  # values of FreezableTime
    watched: tuple[bool, int] | None = None  # whether it watches all that is below its directory, and the filter
    overflowed: bool = False  # more changes were seen than are kept: the client has to list the directory
    changes: "deque[DirectoryChange]" = field(default_factory=deque)

    def note_change(self, change: DirectoryChange) -> None:
        if len(self.changes) < MAX_CHANGES:
            self.changes.append(change)
        else:
            self.changes.clear()
            self.overflowed = True

    def take_changes(self) -> tuple[list[DirectoryChange], bool]:
        """The changes seen since the last call, and whether some were dropped because there were too many."""
        found, overflowed = list(self.changes), self.overflowed
        self.changes.clear()
        self.overflowed = False
        return found, overflowed


class NodeWaiter:
    """Waits until something happens to the handles of a node. It counts from its creation, so nothing is missed."""

    def __init__(self, table: "HandleTable", node: NodeKey) -> None:
        self._table = table
        self._node = node
        self._happened = asyncio.Event()

    def __enter__(self) -> "NodeWaiter":
        self._table.waiters.setdefault(self._node, []).append(self)
        return self

    def __exit__(self, *_: object) -> None:
        waiters = self._table.waiters[self._node]
        waiters.remove(self)
        if not waiters:
            del self._table.waiters[self._node]

    def wake(self) -> None:
        self._happened.set()

    async def wait(self) -> None:
        """Return when something has happened in this process, or when it is time to look whether it has in another one."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._table.poll_seconds):
                await self._happened.wait()
        self._happened.clear()


class HandleTable:
    """The handles of one process, and who waits for them. `owner` names the process in the records of its handles. `sessions` are
    the logins of its clients, each with a function that ends it."""

    def __init__(self) -> None:
        self.owner = str(uuid.uuid4())
        self.instance = INSTANCE
        self.secret = SECRET
        self.number = 0
        self.is_registered = False  # the owner's record was stored
        self.poll_seconds = 0.01  # between two looks at what other processes have done
        self.waiters: dict[NodeKey, list[NodeWaiter]] = {}
        self.listening = asyncio.Event()  # a handle has an oplock or watches a directory: other processes may send signals
        self.unclosed: list[Handle] = []  # handles whose client is gone and whose record could not be removed yet
        self.sessions: dict[int, Callable[[], None]] = {}
        self._handles: dict[int, Handle] = {}

    def add(self, handle: Handle) -> None:
        self._handles[handle.handle_id] = handle

    def remove(self, handle: Handle) -> None:
        handle.is_closed = True
        self._handles.pop(handle.handle_id, None)

    def find(self, handle_id: int) -> Handle | None:
        return self._handles.get(handle_id)

    def all(self) -> list[Handle]:
        return list(self._handles.values())

    def waiter(self, share_id: int, node_id: int) -> NodeWaiter:
        return NodeWaiter(self, (share_id, node_id))

    def touch(self, share_id: int, node_id: int) -> None:
        """Something has happened to the handles of a node: wake those who wait for it, in the order in which they came."""
        for waiter in self.waiters.get((share_id, node_id), ()):
            waiter.wake()

    def start_again(self) -> None:
        """Another process has taken this one for dead and closed its handles. Its clients have to log in again."""
        self.owner = str(uuid.uuid4())
        self.is_registered = False
        for handle in self.all():
            self.lose(handle)
        for session_id in list(self.sessions):
            self.end_session(session_id)

    def end_session(self, session_id: int) -> None:
        end = self.sessions.get(session_id)
        if end is not None:
            end()

    def lose(self, handle: Handle) -> None:
        """The record of a handle is gone: another process has closed it."""
        if handle.is_closed:
            return
        self.remove(handle)
        self.touch(handle.share_id, handle.node_id)
        if handle.listener is not None:
            handle.listener.closed()
