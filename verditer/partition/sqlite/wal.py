"""The write-ahead log of the embedded engine. SQLite writes commits into it; this module syncs and checkpoints it.

A commit is visible before it is synced, so that the next worker can write meanwhile. But no caller is answered before the sync:
neither the writer of a commit nor a reader that has seen it (invariant 6; docs/decisions/sync-after-the-write-lock.md).
"""

import asyncio
import contextlib
import logging
import os
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from verditer.partition.engine import EngineUnavailable
from verditer.partition.sqlite.shared import SharedStore, WriteLock

logger = logging.getLogger("verditer")
RESTART_PAGES = 2000  # 16 MB: a longer log is restarted from its beginning
CHECKPOINT_ROWS = 500  # rows written between two checkpoints; a row is mostly one page or less
CHECKPOINT_SECONDS = 0.02  # in which quick writers on a quick disk add some 4 MB
# How long a restart waits for readers, in proportion to the length of the log: a busy machine may suspend a short read. While a
# long read goes on, the log grows instead.
RESTART_MILLISECONDS = 5  # for a log of RESTART_PAGES
MAX_RESTART_MILLISECONDS = 20


class WriteAheadLog:
    """Closed after the process's last connection: SQLite removes the file with the last connection of all processes."""

    def __init__(self, shared: SharedStore, *, durable: bool, fdatasync: Callable[[int], None] = os.fdatasync) -> None:
        self._shared = shared
        self._durable = durable
        self._fdatasync = fdatasync
        self._file = os.open(shared.folder / "verditer.db-wal", os.O_RDONLY)
        self._thread = ThreadPoolExecutor(1, "verditer-wal")  # for short reads: writers and long reads sync in their own threads

    def close(self) -> None:
        self._thread.shutdown()
        os.close(self._file)

    def sync(self) -> None:
        """Put everything on the disk that any worker has committed so far.

        After a failed sync no other is tried: the kernel may have dropped the pages that it could not write, and would report
        success next time. The next start finds out what is on the disk, since SQLite verifies the checksums of the log.
        """
        commits = self._shared.commits & ~1  # a commit in progress may not be written yet
        try:
            self._fdatasync(self._file)
        except OSError as error:
            self._shared.mark_sync_failed()
            raise EngineUnavailable(f"the disk has failed to keep what was written: {error.strerror}") from error
        self.check()  # the sync of another worker may have failed meanwhile
        self._shared.set_synced(commits)

    def check(self) -> None:
        """Raise if a sync has failed."""
        if self._shared.sync_failed:
            raise EngineUnavailable("the disk has failed to keep what was written; the server has to be started anew")

    def is_behind(self, commits: int) -> bool:
        """Whether one of these commits has to be synced and is not. If a later one has to be, too, the answer may be yes without
        need."""
        synced = self._shared.synced_commits
        return commits > synced and self._shared.durable_commits > synced and self._durable

    async def wait_until_synced(self, commits: int) -> None:
        """For a reader on the event loop that has seen these commits. Readers that wait together share one sync or two."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self.sync_up_to, commits)

    def sync_up_to(self, commits: int) -> None:
        if self.is_behind(commits):
            self.sync()


class Checkpointer:
    """Copies committed pages from the log into the database file, in a thread of its own and not during a commit. Writers wait
    only while the log is restarted from its beginning; by then all but the last few pages have been copied."""

    def __init__(self, connection: sqlite3.Connection, shared: SharedStore) -> None:
        self._connection = connection
        self._shared = shared
        self._write_lock = WriteLock(shared.folder)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verditer-checkpointer")
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._connection.close()
        self._write_lock.close()

    def _run(self) -> None:
        copied = 0
        while not self._stopped.wait(CHECKPOINT_SECONDS) and not self._shared.sync_failed:
            rows = self._shared.rows_written
            if rows - copied >= CHECKPOINT_ROWS:
                copied = rows
                with contextlib.suppress(sqlite3.Error):  # such as a full disk: the log grows until there is space again
                    self._copy()

    def _copy(self) -> None:
        pages = self._checkpoint("PASSIVE")
        if pages > RESTART_PAGES:
            self._checkpoint("PASSIVE")  # what was committed during the first
            patience = min(RESTART_MILLISECONDS * pages // RESTART_PAGES, MAX_RESTART_MILLISECONDS)
            self._connection.execute(f"PRAGMA busy_timeout = {patience}")
            with self._write_lock.held():
                self._checkpoint("RESTART")

    def _checkpoint(self, mode: str) -> int:
        """The number of pages in the log. Readers continue meanwhile; RESTART waits for those that read from the log."""
        (_, pages, _) = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        logger.debug("checkpoint %s: the write-ahead log has %d pages", mode, pages)
        return int(pages)
