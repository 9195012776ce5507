"""The embedded engine: one SQLite file in WAL mode, every acknowledged write synced.

All bodies that wait run one after another, are committed at once, synced and then answered: a sync is shared by whoever came
while the last one ran (group commit, `sqlite_commit.py`, `sqlite_log.py`). Short reads run inline on a connection of their own,
which in WAL mode is a snapshot that waits for nothing but the sync of what it shows (`_Reader`); long ones run on reader threads.

Several workers, forked by one process, may serve one folder (`shared.py`): their writers take turns, batch by batch, and each
issues ticks of its own number.
"""

import asyncio
import math
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic
from typing import TypeVar

from verditer.core.clock import HybridClock
from verditer.core.dates import system_ticks
from verditer.core.records.record import Record
from verditer.partition import migrations, schema
from verditer.partition.engine import Scope, TooLong, Transaction
from verditer.partition.shared import SharedStore, Turn
from verditer.partition.sqlite_commit import Writer
from verditer.partition.sqlite_log import Keeper, Log
from verditer.partition.sqlite_rows import OFFSET, UNBOUND, Parents, RowTransaction

T = TypeVar("T")

READERS = 2
SIFTING_SECONDS = 0.01  # on the loop: a sieve that passes over records for longer belongs beside it
LOOK_AT_CLOCK_EVERY = 500  # steps of SQLite, about fifty records
NO_SNAPSHOT = -1


class SqliteEngine:
    """`folder` None keeps everything in memory: a folder that is gone with the process. Workers have a number each, and bring
    what they share."""

    def __init__(
        self,
        folder: Path | None,
        *,
        shared: SharedStore | None = None,
        worker: int = 0,
        source: Callable[[], int] = system_ticks,
        records: Sequence[type[Record]] = schema.RECORDS,
    ) -> None:
        self._folder = folder
        self._given = shared
        self._number = worker
        self._source = source
        self._records = records
        self._scratch: Path | None = None

    async def open(self) -> None:
        self._shared = self._given or SharedStore(self._folder or self._make_scratch())
        self._file = self._shared.folder / "verditer.db"
        turn = Turn(self._shared.folder)
        try:
            with turn.taken():  # two that start at once would meet at making the tables
                writer, floor = self._open_writer()
        except BaseException:
            turn.close()
            self._let_go()
            raise
        self._clock = HybridClock(self._shared.clock(self._source), self._number, floor)
        self._log = Log(self._shared, durable=self._scratch is None)
        self._log.sync()  # who was killed may have left what is not
        self._reader = _Reader(self._connect(), self._clock, self._shared)
        self._readers = ThreadPoolExecutor(READERS, "verditer-reader")
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        self._writer = Writer(writer, self._clock, floor, self._number, self._shared, turn, self._log, self._reader.end)
        self._keeper = Keeper(self._connect(), self._shared) if self._number == 0 else None

    def _open_writer(self) -> tuple[sqlite3.Connection, int]:
        """The connection, and the highest tick this number may have issued before."""
        writer = self._connect()
        writer.execute("PRAGMA mmap_size = 0")  # each commit of another worker would have it mapped anew
        try:
            _prepare(writer, self._records)
            reserved = dict(writer.execute("SELECT number, reserved FROM node"))
            (offset,) = writer.execute(OFFSET).fetchone()
        except BaseException:
            writer.close()
            raise
        if self._shared.commits & 1:  # by somebody who is dead, as it is our turn: whoever reads would wait for its end
            self._shared.committed(0, 0)
        self._shared.move_clock_to(offset)
        self._shared.begin_at(max(reserved.values()))
        return writer, reserved[self._number]

    async def close(self) -> None:
        await self._writer.close()
        if self._keeper is not None:
            await asyncio.to_thread(self._keeper.stop)
        self._readers.shutdown()
        self._reader.close()
        for connection in self._opened:
            connection.close()
        self._log.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._given is None:
            self._shared.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def now(self) -> int:
        return self._clock.now()

    async def read(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        try:
            return self._reader.run(body)
        finally:
            if self._log.is_behind(self._reader.seen):
                await self._log.catch_up(self._reader.seen)

    async def scan(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._scan, body)

    def write(self, scope: Scope, body: Callable[[Transaction], T]) -> Awaitable[T]:
        return self._writer.add(body)

    async def move_clock(self, ticks: int) -> None:
        def move(tx: Transaction) -> int:
            assert isinstance(tx, RowTransaction)
            return tx.move_offset(ticks)

        await self._writer.add(move, self._shared.move_clock_to)

    def _make_scratch(self) -> Path:
        shared_memory = Path("/dev/shm")
        parent = shared_memory if os.access(shared_memory, os.W_OK) else None
        self._scratch = Path(tempfile.mkdtemp(prefix="verditer-", dir=parent))
        return self._scratch

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, cached_statements=256)
        connection.execute("PRAGMA page_size = 8192")  # a 1 KiB blob stays on its page; see docs/decisions
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'OFF' if self._scratch else 'NORMAL'}")  # commits are synced by `Log`
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # and moved by `Keeper`
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA mmap_size = 268435456")
        return connection

    def _scan(self, body: Callable[[Transaction], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            self._opened.append(connection)
        connection.execute("BEGIN")
        try:
            return body(RowTransaction(connection, self._clock, {}))
        finally:
            connection.execute("COMMIT")
            self._log.catch_up_here(self._shared.visible)


def _prepare(connection: sqlite3.Connection, records: Sequence[type[Record]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    (version,) = connection.execute(migrations.VERSION_QUERY).fetchone() if "store" in tables else (0,)
    for statement in migrations.plan(version, tables, records, migrations.SQLITE):
        connection.execute(statement)
    connection.execute("COMMIT")


class _Reader:
    """Short reads, on the loop's thread. Those of one turn of the loop share a snapshot, as long as nobody commits meanwhile."""

    def __init__(self, connection: sqlite3.Connection, clock: HybridClock, shared: SharedStore) -> None:
        self._connection = connection
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._snapshot = NO_SNAPSHOT  # the number of commits it was taken at
        self.seen = 0  # there may be so many commits in it
        self._parents: Parents = {}
        self._tx = RowTransaction(connection, clock, self._parents, self._watch)
        self._until = math.inf  # when a sieve has been at work for too long
        connection.set_progress_handler(lambda: monotonic() > self._until, LOOK_AT_CLOCK_EVERY)

    def run(self, body: Callable[[Transaction], T]) -> T:
        if self._snapshot != self._shared.commits:
            self._begin()
        try:
            self._tx.begin(UNBOUND)
            return body(self._tx)
        except sqlite3.OperationalError as problem:
            if problem.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                raise
            raise TooLong from None
        finally:
            self._until = math.inf  # SQLite counts on: it may look at the clock in any later statement

    def _watch(self) -> None:
        """The time of one body, however many spans it scans."""
        if self._until == math.inf:
            self._until = monotonic() + SIFTING_SECONDS

    def _begin(self) -> None:
        """A snapshot begins with its first read. One during which somebody committed, perhaps before and perhaps after, may be
        used by the read that asked for it and by no other."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        else:
            self._loop.call_soon(self.end)
        self._parents.clear()
        commits = self._shared.commits
        self._connection.execute("BEGIN")
        self._connection.execute(OFFSET).fetchone()
        self.seen = self._shared.visible
        self._snapshot = commits if commits == self.seen else NO_SNAPSHOT

    def end(self) -> None:
        """Soon, since a snapshot keeps the log from beginning anew."""
        self._snapshot = NO_SNAPSHOT
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
