"""What the handler of a command receives and returns: a Call and a Reply. Handlers know nothing of
frames, credits or signatures."""

import asyncio
from collections.abc import Awaitable, Callable
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from verditer.smb.opens import Open, OpenFile, OpenPipe
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.header import Header

if TYPE_CHECKING:
    from verditer.smb.chain import Chain
    from verditer.smb.connection import SmbConnection
    from verditer.smb.pipes.pipe import Pipe
    from verditer.smb.sessions import Session, TreeConnection

T = TypeVar("T")
INTERIM_SECONDS = 0.01  # a request that takes longer than this in `Call.wait` is told that its answer comes later


class Reply(NamedTuple):
    """`body` begins with StructureSize; offsets inside it count from the header. `payload` follows the body: large bytes that
    should not be copied once more."""

    body: bytes
    status: int = Status.SUCCESS
    payload: bytes | memoryview = b""


class IoctlResult(NamedTuple):
    """What the function of a control code returns (`ioctls.py`)."""

    output: bytes = b""
    status: Status = Status.SUCCESS


CommandHandler = Callable[["Call"], Awaitable[Reply]]


class Needs(IntEnum):
    """What a request refers to. Each includes those before it."""

    NOTHING = 0
    SESSION = 1
    TREE = 2
    HANDLE = 3


class Call:
    """One request. `message` is its bytes, header included. `session`, `tree` and `open` are set as far as the command's row in
    `commands.py` needs them. `path` is what the request log shows."""

    __slots__ = (
        "_ended",
        "_waiting",
        "async_id",
        "chain",
        "connection",
        "ctx",
        "header",
        "message",
        "open",
        "path",
        "session",
        "tree",
    )

    session: "Session"
    tree: "TreeConnection"
    open: Open

    def __init__(self, connection: "SmbConnection", chain: "Chain", header: Header, message: memoryview) -> None:
        self.connection = connection
        self.ctx = connection.ctx
        self.chain = chain
        self.header = header
        self.message = message
        self.path = ""
        self.async_id = 0  # not 0: the client was told that the answer comes later
        self._waiting: asyncio.Task[object] | None = None
        self._ended: Status | None = None

    @property
    def file(self) -> OpenFile:
        """The file or directory of this request."""
        if not isinstance(self.open, OpenFile):
            raise SmbError(Status.INVALID_DEVICE_REQUEST)
        return self.open

    @property
    def pipe(self) -> "Pipe":
        if not isinstance(self.open, OpenPipe):
            raise SmbError(Status.INVALID_DEVICE_REQUEST)
        return self.open.pipe

    @property
    def closes_later(self) -> bool:
        """Whether a related CLOSE follows in this chain, and until then nothing that other clients have to know the open for."""
        return self.chain.closes_later()

    def opened(self, opened: Open) -> None:
        """Called by CREATE: the client owns a new open."""
        self.session.opens.add(opened)
        self.open = self.chain.open = opened

    def end(self, status: Status) -> None:
        """End `wait`, if it is running, with this status."""
        if self._waiting is not None and self._ended is None:
            self._ended = status
            self._waiting.cancel()

    async def wait(
        self, awaitable: Awaitable[T], *, closed: Status = Status.FILE_CLOSED, interim_seconds: float = INTERIM_SECONDS
    ) -> T:
        """For what may take long. The client gets an interim answer after a while. Ends with SmbError: CANCELLED when the
        client cancels, and `closed` when the open of this request ends meanwhile. What waits is cancelled then."""
        if self.header.message_id in self.chain.cancelled:
            asyncio.ensure_future(awaitable).cancel()
            raise SmbError(Status.CANCELLED)
        self._waiting = task = asyncio.current_task()
        opened, end, waiting = getattr(self, "open", None), partial(self.end, closed), self.connection.waiting
        if opened is not None:
            opened.waits.add(end)
        waiting[self.header.message_id] = self
        interim = asyncio.get_running_loop().call_later(interim_seconds, self.chain.send_interim, self)
        try:
            return await awaitable
        except asyncio.CancelledError:
            if self._ended is None or task is None:
                raise
            task.uncancel()
            raise SmbError(self._ended) from None
        finally:
            interim.cancel()
            self._waiting = None
            waiting.pop(self.header.message_id, None)
            if opened is not None:
                opened.waits.discard(end)
