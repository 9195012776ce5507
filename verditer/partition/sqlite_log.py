"""The embedded engine's log: SQLite writes commits into it, and here they are synced, and moved into the file later on.

A commit is visible before it is synced, so that the next worker can write meanwhile. But nobody is told of it before: neither
who wrote it, nor who has read it (invariant 6; docs/decisions/sync-after-the-turn.md).
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

from verditer.partition.engine import EngineUnavailable
from verditer.partition.shared import SharedStore, Turn

LOG_PAGES = 2000  # 16 MB: beyond that the log begins anew
KEEP_ROWS = 500  # a row written is a page at most, mostly
KEEP_SECONDS = 0.02  # in which a quick disk and quick writers add some 4 MB
READERS_MILLISECONDS = 5  # a long scan may go on for longer: then the log does too


class Log:
    """Open as long as one of this process's connections is: SQLite removes the file with the last of all connections."""

    def __init__(self, shared: SharedStore, *, durable: bool) -> None:
        self._shared = shared
        self._durable = durable
        self._file = os.open(shared.folder / "verditer.db-wal", os.O_RDONLY)
        self._thread = ThreadPoolExecutor(1, "verditer-log")  # for reads: writers and scans have threads of their own

    def close(self) -> None:
        self._thread.shutdown()
        os.close(self._file)

    def sync(self) -> None:
        """What anybody has committed before is on the disk afterwards.

        A sync that failed is the last one: the kernel may have dropped what it could not write, and would report the next one as
        a success. What is on the disk is found out at the next start, where SQLite looks at the checksums.
        """
        commits = self._shared.commits & ~1  # one that is on its way may not be written yet
        try:
            os.fdatasync(self._file)
        except OSError as error:
            self._shared.fail()
            raise EngineUnavailable(f"the disk has failed to keep what was written: {error.strerror}") from error
        self.check()  # another worker's may have failed meanwhile
        self._shared.synced_up_to(commits)

    def check(self) -> None:
        """Refuses where a sync has failed."""
        if self._shared.failed:
            raise EngineUnavailable("the disk has failed to keep what was written; the server has to be started anew")

    def is_behind(self, commits: int) -> bool:
        return commits > self._shared.synced and self._durable

    async def catch_up(self, commits: int) -> None:
        """For those who have seen so many commits. Many who wait at once wait for one sync or two."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self.catch_up_here, commits)

    def catch_up_here(self, commits: int) -> None:
        if self.is_behind(commits):
            self.sync()


class Keeper:
    """Moves what was committed from the log into the file, beside the writers and not in one of their commits. Only to begin the
    log anew do they have to stand still for a moment: by then all but the last few pages have been moved."""

    def __init__(self, connection: sqlite3.Connection, shared: SharedStore) -> None:
        self._connection = connection
        connection.execute(f"PRAGMA busy_timeout = {READERS_MILLISECONDS}")
        self._shared = shared
        self._turn = Turn(shared.folder)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="verditer-keeper")
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._connection.close()
        self._turn.close()

    def _run(self) -> None:
        moved = 0
        while not self._stopped.wait(KEEP_SECONDS) and not self._shared.failed:
            rows = self._shared.rows
            if rows - moved >= KEEP_ROWS:
                moved = rows
                with contextlib.suppress(sqlite3.Error):  # a full disk, say: the log grows until there is room again
                    self._move()

    def _move(self) -> None:
        if self._checkpoint("PASSIVE") > LOG_PAGES:
            self._checkpoint("PASSIVE")  # what came during the first
            with self._turn.taken():
                self._checkpoint("RESTART")

    def _checkpoint(self, how: str) -> int:
        """How many pages the log has. Readers go on meanwhile; for a new beginning those who read from the log have to end."""
        (_, pages, _) = self._connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        return int(pages)
