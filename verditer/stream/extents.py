"""The contract of extent stores. An extent is an immutable run of bytes with an id. `local.py`, `memory.py`, `s3.py` have it.

A service writes an extent and then commits a record that names it (invariant 1). It deletes the record first and the extent
later (invariant 2). An extent store does not know what the bytes mean, and services do not know where they are stored.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from verditer.core.errors import Code, StorageError
from verditer.core.records.lifecycle import ExtentId

PIECE_BYTES = 1 << 20  # the most that a read yields at a time: few switches between threads, and several fit into memory

COPY_BYTES = 4 << 20  # the most that is copied from a file at a time: bounds how long a slow disk occupies a thread

NewId = Callable[[], str]  # 16 hexadecimal digits of the creation tick, then 16 random ones; no part comes from a client


Take = Callable[[int, int, int], int]
"""Takes bytes out of an open file, given its descriptor, the offset and the most to take. Returns how many it took."""


class ExtentMissing(Exception):
    """An extent is absent or shorter than its record says. A reader that lost a race with a delete reads the record again."""


class ExtentsUnavailable(StorageError):
    """The extent store cannot be reached for now. The caller may try again."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.ServerBusy)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class ExtentWriter(Protocol):
    """An extent that is being written. It ends with `commit` or `abort`; until then `is_writing` is true."""

    @property
    def id(self) -> ExtentId: ...

    async def write(self, pieces: Sequence[bytes | bytearray] | bytes) -> None:
        """Append, one call at a time. Raises InsufficientStorage when the store is full; the extent has then been removed."""

    async def commit(self) -> None:
        """Return when the bytes and the id survive a loss of power."""

    async def abort(self) -> None:
        """Remove the extent. May be called after any failure, after a cancelled call, and more than once."""


class ExtentFile(Protocol):
    """A range of an extent as a file, for a reader that lets the kernel copy it (sendfile)."""

    @property
    def left(self) -> int:
        """How many bytes have not been taken yet."""

    async def copy(self, take: Take) -> None:
        """Call `take` in a thread for up to COPY_BYTES of the remaining bytes. Raises ExtentMissing as `read` does."""

    def close(self) -> None:
        """May be called at any time, also while a cancelled `copy` still runs."""


class ExtentStore(Protocol):
    @property
    def is_remote(self) -> bool:
        """Whether the store may be away while this process runs. A reader then waits for the first piece before it promises
        any."""

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def probe(self) -> None:
        """Return when the store answers. Raises ExtentsUnavailable when it does not."""

    def new(self) -> ExtentWriter: ...

    def read(self, extent: str, offset: int, length: int) -> AsyncIterator[bytes]:
        """Exactly `length` bytes in pieces of up to PIECE_BYTES.

        A read that has begun survives `delete` where the store can do that. Where it cannot (S3), the collector's horizon helps:
        no extent is deleted while a read that began before is running.

        Raises ExtentMissing before the first piece when the extent is absent or too short.
        """

    def read_now(self, extent: str, offset: int, length: int) -> bytes | None:
        """The same bytes, up to PIECE_BYTES, if they can be had without waiting. None: ask `read`."""

    def file(self, extent: str, offset: int, length: int) -> ExtentFile | None:
        """The same bytes as a file, which the first `copy` opens and the caller closes. None where extents are not files."""

    async def delete(self, extent: str) -> None:
        """Delete an extent. Deleting an absent one does nothing, since the collector may do it twice."""

    def list(self) -> AsyncIterator[tuple[str, int]]:
        """(id, size) of every extent, including those that are being written and those that a crash left incomplete. The size of
        an incomplete one may be smaller than what was written."""

    def is_writing(self, extent: str) -> bool:
        """Whether this process is writing the extent. For other processes the collector relies on their announced horizon."""
