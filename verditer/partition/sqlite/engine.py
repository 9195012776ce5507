"""The embedded engine: one SQLite file in WAL mode. Every acknowledged write is synced.

All writes that are waiting run in one SQLite transaction and share one sync (group commit: `group_commit.py`, `wal.py`). Short
reads run on the event loop (`snapshot_reader.py`), long ones on reader threads. Several workers, forked by one process, may serve
one folder (`shared.py`): the write lock lets one of them write at a time, and each issues ticks of its own number.
"""

import asyncio
import logging
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from verditer.core.clock import HybridClock
from verditer.core.dates import system_ticks
from verditer.core.records.record import Record
from verditer.partition import migrations, schema
from verditer.partition.engine import Scope, Transaction
from verditer.partition.sqlite.group_commit import GroupCommitter
from verditer.partition.sqlite.shared import SharedStore, WriteLock
from verditer.partition.sqlite.snapshot_reader import ReadTooLong, SnapshotReader
from verditer.partition.sqlite.transaction import CLOCK_OFFSET, SqliteTransaction
from verditer.partition.sqlite.wal import Checkpointer, WriteAheadLog

logger = logging.getLogger("verditer")
T = TypeVar("T")

READER_THREADS = 2


class SqliteEngine:
    """With `folder` None, everything is kept in a temporary folder that is removed when the engine is closed. A worker passes its
    number and the state that it shares with the other workers. `fdatasync` is for tests that watch the disk."""

    def __init__(
        self,
        folder: Path | None,
        *,
        shared: SharedStore | None = None,
        worker: int = 0,
        source: Callable[[], int] = system_ticks,
        records: Sequence[type[Record]] = schema.RECORDS,
        fdatasync: Callable[[int], None] = os.fdatasync,
    ) -> None:
        self._folder = folder
        self._shared_with_workers = shared
        self._number = worker
        self._source = source
        self._records = records
        self._fdatasync = fdatasync
        self._temporary: Path | None = None

    async def open(self) -> None:
        self._shared = self._shared_with_workers or SharedStore(self._folder or self._make_temporary_folder())
        self._file = self._shared.folder / "verditer.db"
        write_lock = WriteLock(self._shared.folder)
        try:
            with write_lock.held():  # workers that start together must not create the tables together
                writer, floor = self._open_writer()
        except BaseException:
            write_lock.close()
            self._release_folder()
            raise
        self._clock = HybridClock(self._shared.clock(self._source), self._number, floor)
        self._wal = WriteAheadLog(self._shared, durable=self._temporary is None, fdatasync=self._fdatasync)
        self._wal.sync()  # a killed process may have left commits that were not synced
        self._snapshot_reader = SnapshotReader(self._connect(), self._clock, self._shared)
        self._reader_threads = ThreadPoolExecutor(READER_THREADS, "verditer-reader")
        self._thread_local = threading.local()
        self._thread_connections: list[sqlite3.Connection] = []
        self._committer = GroupCommitter(
            writer,
            self._clock,
            reserved=floor,
            number=self._number,
            shared=self._shared,
            write_lock=write_lock,
            wal=self._wal,
            end_snapshot=self._snapshot_reader.end,
        )
        self._checkpointer = Checkpointer(self._connect(), self._shared) if self._number == 0 else None
        logger.debug("the store in %s is open, worker %d", self._shared.folder, self._number)

    def _open_writer(self) -> tuple[sqlite3.Connection, int]:
        """The connection, and the highest tick that this worker number may have issued before."""
        writer = self._connect()
        writer.execute("PRAGMA mmap_size = 0")  # otherwise SQLite maps the file anew after each commit of another worker
        try:
            _migrate(writer, self._records)
            reserved = dict(writer.execute("SELECT number, reserved FROM node"))
            (offset,) = writer.execute(CLOCK_OFFSET).fetchone()
        except BaseException:
            writer.close()
            raise
        if self._shared.commits & 1:  # a worker died in a commit, since we hold the write lock: readers wait for its end
            self._shared.end_commit(0, 0)
        self._shared.set_clock_offset(offset)
        self._shared.start_clock_at(max(reserved.values()))
        return writer, reserved[self._number]

    async def close(self) -> None:
        await self._committer.close()
        if self._checkpointer is not None:
            await asyncio.to_thread(self._checkpointer.stop)
        self._reader_threads.shutdown()
        self._snapshot_reader.close()
        for connection in self._thread_connections:
            connection.close()
        self._wal.close()
        self._release_folder()
        logger.debug("the store in %s is closed, worker %d", self._shared.folder, self._number)

    def _release_folder(self) -> None:
        if self._shared_with_workers is None:
            self._shared.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def now(self) -> int:
        return self._clock.now()

    async def read(self, scope: Scope, body: Callable[[Transaction], T], *, long: bool = False) -> T:
        if not long:
            try:
                return self._snapshot_reader.run(body)
            except ReadTooLong:
                pass
            finally:  # an exception too depends on what was read
                if self._wal.is_behind(self._snapshot_reader.commits):
                    await self._wal.wait_until_synced(self._snapshot_reader.commits)
        return await asyncio.get_running_loop().run_in_executor(self._reader_threads, self._read_in_thread, body)

    def write(self, scopes: Sequence[Scope], body: Callable[[Transaction], T]) -> Awaitable[T]:
        """Scopes need no locks of their own: the write lock excludes all other writes."""
        return self._committer.submit(body)

    async def move_clock(self, ticks: int) -> None:
        def move(tx: Transaction) -> int:
            assert isinstance(tx, SqliteTransaction)
            return tx.move_clock(ticks)

        await self._committer.submit(move, after_commit=self._shared.set_clock_offset)

    def _read_in_thread(self, body: Callable[[Transaction], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._thread_local, "connection", None)
        if connection is None:
            connection = self._thread_local.connection = self._connect()
            self._thread_connections.append(connection)
        connection.execute("BEGIN")
        try:
            return body(SqliteTransaction(connection, self._clock, {}))
        finally:
            connection.execute("COMMIT")
            self._wal.sync_up_to(self._shared.visible_commits)

    def _make_temporary_folder(self) -> Path:
        shared_memory = Path("/dev/shm")
        parent = shared_memory if os.access(shared_memory, os.W_OK) else None
        self._temporary = Path(tempfile.mkdtemp(prefix="verditer-", dir=parent))
        return self._temporary

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, cached_statements=256)
        connection.execute("PRAGMA page_size = 8192")  # a blob of 1 KiB stays on its page (docs/decisions/inline-bodies.md)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'OFF' if self._temporary else 'NORMAL'}")  # `WriteAheadLog` syncs commits
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # `Checkpointer` does it
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA mmap_size = 268435456")
        return connection


def _migrate(connection: sqlite3.Connection, records: Sequence[type[Record]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    (version,) = connection.execute(migrations.VERSION_QUERY).fetchone() if "store" in tables else (0,)
    for statement in migrations.plan(version, tables, records, migrations.SQLITE):
        connection.execute(statement)
    connection.execute("COMMIT")
