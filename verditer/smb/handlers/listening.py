"""What reaches a client outside of its own requests: broken oplocks, changes in watched directories, handles that were closed."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from verditer.core.files.oplocks import OplockLevel
from verditer.services.file.handles.handle import DirectoryChange, Handle
from verditer.smb.wire.locks import build_oplock_break

if TYPE_CHECKING:
    from verditer.smb.connection import SmbConnection
    from verditer.smb.opens import OpenFile
    from verditer.smb.sessions import Session

ReportedChanges = tuple[list[DirectoryChange], bool]


class ChangeQueue:
    """The CHANGE_NOTIFY requests that wait on one directory. Each change goes to the one that has waited longest."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._waiting: deque[asyncio.Future[ReportedChanges]] = deque()

    def wait(self) -> asyncio.Future[ReportedChanges]:
        future: asyncio.Future[ReportedChanges] = asyncio.get_running_loop().create_future()
        self._waiting.append(future)
        self.deliver()
        return future

    def deliver(self) -> None:
        while self._waiting and self._waiting[0].done():  # cancelled
            self._waiting.popleft()
        if self._waiting and (self._handle.changes or self._handle.overflowed):
            self._waiting.popleft().set_result(self._handle.take_changes())


class OpenListener:
    """Implements `HandleListener` for one open. A break that comes before the answer of CREATE is kept until then."""

    def __init__(self, connection: "SmbConnection", session: "Session") -> None:
        self._connection = connection
        self._session = session
        self._open: OpenFile | None = None
        self._early_break: OplockLevel | None = None

    def attach(self, opened: "OpenFile") -> None:
        self._open = opened
        if self._early_break is not None:
            asyncio.get_running_loop().call_soon(self.oplock_broken, self._early_break)

    def oplock_broken(self, level: OplockLevel) -> None:
        if self._open is None:
            self._early_break = level
        else:
            self._connection.send_notification(self._session, build_oplock_break(level, self._open.file_id))

    def changed(self) -> None:
        if self._open is not None and self._open.notify is not None:
            self._open.notify.deliver()

    def closed(self) -> None:
        if self._open is not None:
            self._session.opens.remove(self._open)
