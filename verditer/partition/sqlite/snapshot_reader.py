"""Short reads of the embedded engine, which run on the event loop's thread.

A snapshot is a read transaction of SQLite in WAL mode: it waits for no writer. Reads of one iteration of the event loop share a
snapshot as long as no worker commits in between. A body that runs for too long is interrupted by SQLite's progress handler; the
engine then runs it again on a reader thread.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TypeVar

from verditer.core.clock import HybridClock
from verditer.partition.engine import Transaction
from verditer.partition.sqlite.shared import SharedStore
from verditer.partition.sqlite.transaction import CLOCK_OFFSET, UNLIMITED, RecordsInUse, SqliteTransaction

T = TypeVar("T")

MAX_SECONDS = 0.01  # of one body on the event loop
CHECK_EVERY = 500  # steps of SQLite's virtual machine between two checks of the time: about fifty records
NO_SNAPSHOT = -1


class ReadTooLong(Exception):
    """A body ran on the event loop for longer than MAX_SECONDS."""


class SnapshotReader:
    def __init__(self, connection: sqlite3.Connection, clock: HybridClock, shared: SharedStore) -> None:
        self._connection = connection
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._snapshot = NO_SNAPSHOT  # the number of commits when the snapshot was taken
        self.commits = 0  # the snapshot shows so many commits at most
        self._in_use: RecordsInUse = {}
        self._tx = SqliteTransaction(connection, clock, self._in_use, interruptible=True)
        self._deadline = inf
        connection.set_progress_handler(lambda: monotonic() > self._deadline, CHECK_EVERY)

    def run(self, body: Callable[[Transaction], T]) -> T:
        if self._snapshot != self._shared.commits:
            self._begin()
        self._deadline = monotonic() + MAX_SECONDS
        try:
            self._tx.begin(UNLIMITED)
            return body(self._tx)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise ReadTooLong from None
        finally:
            self._deadline = inf  # SQLite goes on counting steps, and may check the time in any later statement

    def _begin(self) -> None:
        """A snapshot is taken by its first read. If a worker committed meanwhile, it is unknown whether the snapshot shows that
        commit, and only the read that asked for the snapshot may use it."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        else:
            self._loop.call_soon(self.end)
        self._in_use.clear()
        commits = self._shared.commits
        self._connection.execute("BEGIN")
        self._connection.execute(CLOCK_OFFSET).fetchone()
        self.commits = self._shared.visible_commits
        self._snapshot = commits if commits == self.commits else NO_SNAPSHOT

    def end(self) -> None:
        """End the snapshot. An open snapshot keeps the write-ahead log from being restarted, so it ends soon."""
        self._snapshot = NO_SNAPSHOT
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
