"""Extents: immutable runs of bytes, each named by an id. This is the contract; `local.py` and `memory.py` keep it.

A service writes an extent, then commits a record naming it (invariant 1); it deletes the record first and the bytes later
(invariant 2). Nothing here knows what the bytes mean; nothing above knows where they are.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

PIECE_BYTES = 1 << 20  # what a read yields at a time: large enough to make thread hops cheap, small enough to hold a few

COPY_BYTES = 4 << 20  # what is copied from a file at a time: fewer thread hops, and a slow disk holds a thread for no longer

NewId = Callable[[], str]  # 16 hex digits of the creation tick, then 16 random ones; never anything a client sent


Take = Callable[[int, int, int], int]
"""Takes bytes out of an open file: its descriptor, the offset, how many at most. The answer is how many it took."""


class ExtentMissing(Exception):
    """A record named bytes that are not here, or not all here. A reader that lost a race looks at the record again."""


class ExtentWriter(Protocol):
    """One extent while it is written. It ends with `commit` or `abort`; until then `is_writing` says so."""

    @property
    def id(self) -> str: ...

    async def write(self, pieces: Sequence[bytes | bytearray] | bytes) -> None:
        """Append. One call at a time. Raises InsufficientStorage when there is no room, and has then removed everything."""

    async def commit(self) -> None:
        """Returns once the bytes and their name survive a loss of power."""

    async def abort(self) -> None:
        """Remove what was written. Safe after any failure, after a cancelled call, and more than once."""


class ExtentFile(Protocol):
    """A stretch of an extent as a file, for a reader that has the kernel copy it."""

    @property
    def left(self) -> int:
        """How many bytes nobody has taken yet."""

    async def copy(self, take: Take) -> None:
        """Have `take` called in a thread, for up to COPY_BYTES of what is left. Raises ExtentMissing as `read` does."""

    def close(self) -> None:
        """At any time, also while a cancelled `copy` still runs."""


class ExtentStore(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    def new(self) -> ExtentWriter: ...

    def read(self, extent: str, offset: int, length: int) -> AsyncIterator[bytes]:
        """Exactly `length` bytes in pieces of up to PIECE_BYTES. A read that has begun survives `delete`.

        Raises ExtentMissing before the first piece when the extent is absent or too short.
        """

    def file(self, extent: str, offset: int, length: int) -> ExtentFile | None:
        """The same bytes, opened by the first `copy`, for whoever closes it again. None where extents are not files."""

    async def delete(self, extent: str) -> None:
        """Absent is fine: the collector may come twice."""

    def list(self) -> AsyncIterator[tuple[str, int]]:
        """(id, size) of every extent, also of those in flight and those a crash left half written."""

    def is_writing(self, extent: str) -> bool:
        """In flight in this process. What other processes write, only they know: the collector goes by what they announce."""
