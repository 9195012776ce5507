"""What the workers of one embedded store share: the lock on its folder, the write lock, and a few integers in shared memory.

The parent process creates it before it forks the workers, so that all of them hold the same folder lock and map the same memory.
The lock is released when the last of them ends, in whatever way it ends. The memory goes with them, so it is never stale.
"""

import contextlib
import fcntl
import mmap
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from verditer.partition.engine import EngineUnavailable

FOLDER_LOCK_SECONDS = 1.0  # workers whose parent was killed need a moment to end
_CLOCK_OFFSET, _LATEST_TIME, _COMMITS, _SYNCED, _SYNC_FAILED, _ROWS, _DURABLE = range(7)


class SharedStore:
    """A single process has one, too. The integers are aligned and eight bytes long, so no process ever sees half of one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self._lock = _lock_folder(folder / "verditer.lock")
        self._words = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")

    def close(self) -> None:
        """Close this process's handle on the folder lock."""
        os.close(self._lock)

    def clock(self, source: Callable[[], int]) -> Callable[[], int]:
        """The time that all workers agree on: moved by tests, and never before the time of a commit of any worker."""
        words = self._words

        def time() -> int:
            now, latest = source() + words[_CLOCK_OFFSET], words[_LATEST_TIME]
            return now if now > latest else latest

        return time

    def set_clock_offset(self, offset: int) -> None:
        self._words[_CLOCK_OFFSET] = offset

    def start_clock_at(self, now: int) -> None:
        """Called by every worker when it starts; only the first call has an effect."""
        if not self._words[_LATEST_TIME]:
            self._words[_LATEST_TIME] = now

    @property
    def commits(self) -> int:
        """Twice the number of commits so far, plus one while a worker is committing. When two looks give the same even number, no
        worker has committed in between."""
        return self._words[_COMMITS]

    @property
    def visible_commits(self) -> int:
        """The value of `commits` that covers everything a reader may have seen by now, including a commit in progress."""
        return (self._words[_COMMITS] + 1) & ~1

    @property
    def synced_commits(self) -> int:
        """At least the commits up to this value of `commits` are on the disk."""
        return self._words[_SYNCED]

    @property
    def durable_commits(self) -> int:
        """The value of `commits` after the last commit that has to be synced, or is about to be made. Later commits changed only
        volatile records."""
        return self._words[_DURABLE]

    def set_synced(self, commits: int) -> None:
        """Two workers may race here and leave the lower value. Then somebody syncs once more than necessary."""
        if commits > self._words[_SYNCED]:
            self._words[_SYNCED] = commits

    @property
    def sync_failed(self) -> bool:
        return self._words[_SYNC_FAILED] != 0

    def mark_sync_failed(self) -> None:
        self._words[_SYNC_FAILED] = 1

    @property
    def rows_written(self) -> int:
        return self._words[_ROWS]

    def begin_commit(self, *, durable: bool = True) -> None:
        """Called with the write lock held. A worker that died in a commit has left an odd number. A reader that sees the commit
        must find it announced as durable, so that comes first."""
        if durable:
            self._words[_DURABLE] = (self._words[_COMMITS] | 1) + 1
        self._words[_COMMITS] |= 1

    def end_commit(self, now: int, rows: int) -> None:
        """Called with the write lock held, whether the commit succeeded or not."""
        if now > self._words[_LATEST_TIME]:
            self._words[_LATEST_TIME] = now
        self._words[_ROWS] += rows
        self._words[_COMMITS] = (self._words[_COMMITS] | 1) + 1


class WriteLock:
    """Lets one worker write at a time. The kernel releases the lock of a worker that dies."""

    def __init__(self, folder: Path) -> None:
        # Each worker opens the file itself: forked processes that inherit one open file also share its lock.
        self._file = os.open(folder / "writer.lock", os.O_RDWR | os.O_CREAT, 0o600)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def acquire(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        fcntl.flock(self._file, fcntl.LOCK_UN)

    def close(self) -> None:
        os.close(self._file)


class StoreInUse(EngineUnavailable):
    """Another server has the folder open."""


def _lock_folder(path: Path) -> int:
    """One server for each folder, since clock, ticks and write lock are shared between its own workers only."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    end = time.monotonic() + FOLDER_LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(file)
                raise StoreInUse(f"{path.parent} is in use by another verditer process") from None
        time.sleep(0.01)
