"""What the workers of one embedded store share: the folder's lock, taking turns at writing, and some words of memory.

It is made before the workers are forked, so all of them hold the same lock and see the same memory. The lock is free again when
the last of them is gone, however each came to its end; the memory is gone with them, so there is nothing stale in it.
"""

import contextlib
import fcntl
import mmap
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from verditer.partition.engine import EngineUnavailable

PATIENCE_SECONDS = 1.0  # workers whose parent was killed need a moment to follow it
_OFFSET, _LATEST, _COMMITS, _SYNCED, _FAILED, _ROWS = range(6)


class SharedStore:
    """One process alone has one too. Words are aligned and eight bytes long: nobody ever sees half of one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._lock = _lock(folder / "verditer.lock")
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")

    def close(self) -> None:
        """For this process only."""
        os.close(self._lock)

    def clock(self, source: Callable[[], int]) -> Callable[[], int]:
        """Time as all workers see it: moved by tests, and never before what any of them has committed."""
        words = self._words

        def time() -> int:
            now, latest = source() + words[_OFFSET], words[_LATEST]
            return now if now > latest else latest

        return time

    def move_clock_to(self, offset: int) -> None:
        self._words[_OFFSET] = offset

    def begin_at(self, now: int) -> None:
        """The first worker says from where time goes on; one that comes later finds it running."""
        if not self._words[_LATEST]:
            self._words[_LATEST] = now

    @property
    def commits(self) -> int:
        """Odd while somebody commits. Equal and even before and after: nothing was committed in between."""
        return self._words[_COMMITS]

    @property
    def visible(self) -> int:
        """How many commits somebody may have seen by now, the one on its way among them."""
        return (self._words[_COMMITS] + 1) & ~1

    @property
    def synced(self) -> int:
        """As many commits at least are on the disk."""
        return self._words[_SYNCED]

    def synced_up_to(self, commits: int) -> None:
        """Should another worker come in between, the number is too low for a moment: somebody syncs once more than he had to."""
        if commits > self._words[_SYNCED]:
            self._words[_SYNCED] = commits

    @property
    def failed(self) -> bool:
        """A sync did."""
        return self._words[_FAILED] != 0

    def fail(self) -> None:
        self._words[_FAILED] = 1

    @property
    def rows(self) -> int:
        """How many rows have been written so far."""
        return self._words[_ROWS]

    def committing(self) -> None:
        """Called by the writer whose turn it is. One that died in the middle left an odd number behind."""
        self._words[_COMMITS] |= 1

    def committed(self, now: int, rows: int) -> None:
        """Called by the writer whose turn it is, whether its commit went well or not."""
        if now > self._words[_LATEST]:
            self._words[_LATEST] = now
        self._words[_ROWS] += rows
        self._words[_COMMITS] = (self._words[_COMMITS] | 1) + 1


class Turn:
    """Writers of different workers take turns: one waits in the kernel until the other is done or dead."""

    def __init__(self, folder: Path) -> None:
        self._file = os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT, 0o600)  # of its own: forked ones are one

    @contextlib.contextmanager
    def taken(self) -> Iterator[None]:
        self.take()
        try:
            yield
        finally:
            self.pass_on()

    def take(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_take(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def pass_on(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)


def _lock(path: Path) -> int:
    """One server for each folder: clocks, ticks and turns are between its workers only."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(file)
                raise EngineUnavailable(f"{path.parent} is in use by another verditer process") from None
        time.sleep(0.01)
