"""The embedded engine: one SQLite file in WAL mode, every acknowledged write synced.

One writer thread takes all bodies that wait, runs them one after another, commits once and answers all of them: a sync is
shared by whoever came while the last one ran (group commit). Short reads run inline on a connection of their own, which in
WAL mode is a snapshot that neither waits nor is waited for; long ones run on reader threads.
"""

import asyncio
import contextlib
import fcntl
import os
import queue
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from verditer.core.clock import HybridClock
from verditer.core.dates import seconds, system_ticks
from verditer.core.errors import Code, StorageError
from verditer.core.records.record import Part, Record, Span, key_of
from verditer.partition import schema
from verditer.partition.engine import EngineUnavailable, Scope, Transaction

R = TypeVar("R", bound=Record)
T = TypeVar("T")

SCHEMA_VERSION = 1
BATCH = 256  # bodies in one commit: a bound on how long the first of them waits
READERS = 2
TICK_RESERVE = seconds(0.1)  # ticks are reserved ahead this far, so a restart can never issue one again


class SqliteEngine:
    """`folder` None keeps everything in memory: a folder that is gone with the process."""

    def __init__(
        self, folder: Path | None, *, source: Callable[[], int] = system_ticks, records: Sequence[type[Record]] = schema.RECORDS
    ) -> None:
        self._folder = folder
        self._source = source
        self._records = records
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
        self._scratch: Path | None = None

    async def open(self) -> None:
        folder = self._folder or self._make_scratch()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock_file = _lock(folder / "verditer.lock")
        self._file = folder / "verditer.db"
        writer = self._connect()
        try:
            _prepare(writer, self._records)
        except BaseException:
            writer.close()
            os.close(self._lock_file)
            raise
        (floor,) = writer.execute("SELECT value FROM store WHERE name = 'tick'").fetchone()
        (offset,) = writer.execute("SELECT value FROM store WHERE name = 'clock_offset'").fetchone()
        self._clock = HybridClock(self._source, floor=floor)
        self._clock.offset = offset
        self._reader = self._connect()
        self._readers = ThreadPoolExecutor(READERS, "verditer-reader")
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = [self._reader]
        self._writer = threading.Thread(target=_Writer(writer, self._clock, self._waiting, floor).run, name="verditer-writer")
        self._writer.start()

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._writer.join)
        self._readers.shutdown()
        for connection in self._opened:
            connection.close()
        os.close(self._lock_file)
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def now(self) -> int:
        return self._clock.now()

    async def read(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return self._run_read(self._reader, body)

    async def scan(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._scan, body)

    async def write(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._waiting.put(_Work(body, done, loop))
        return await done

    async def move_clock(self, ticks: int) -> None:
        def move(tx: Transaction) -> None:
            assert isinstance(tx, _Transaction)
            self._clock.offset += ticks
            tx.set_store("clock_offset", self._clock.offset)

        await self.write((), move)

    def _make_scratch(self) -> Path:
        shared_memory = Path("/dev/shm")
        parent = shared_memory if os.access(shared_memory, os.W_OK) else None
        self._scratch = Path(tempfile.mkdtemp(prefix="verditer-", dir=parent))
        return self._scratch

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._file, isolation_level=None, check_same_thread=False, cached_statements=256)
        connection.execute("PRAGMA page_size = 8192")  # a 1 KiB blob stays on its page; see docs/decisions
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'OFF' if self._scratch else 'FULL'}")
        connection.execute("PRAGMA wal_autocheckpoint = 2000")
        connection.execute("PRAGMA cache_size = -16384")
        connection.execute("PRAGMA mmap_size = 268435456")
        return connection

    def _scan(self, body: Callable[[Transaction], T]) -> T:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            self._opened.append(connection)
        return self._run_read(connection, body)

    def _run_read(self, connection: sqlite3.Connection, body: Callable[[Transaction], T]) -> T:
        connection.execute("BEGIN")
        try:
            return body(_Transaction(connection, self._clock))
        finally:
            connection.execute("COMMIT")


def _lock(path: Path) -> int:
    """One process per folder: the clock and the writer thread are this process's own."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        raise EngineUnavailable(f"{path.parent} is in use by another verditer process") from None
    return file


def _prepare(connection: sqlite3.Connection, records: Sequence[type[Record]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("CREATE TABLE IF NOT EXISTS store (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID")
    for name, value in (("schema", SCHEMA_VERSION), ("tick", 0), ("clock_offset", 0)):
        connection.execute("INSERT OR IGNORE INTO store VALUES (?, ?)", (name, value))
    (version,) = connection.execute("SELECT value FROM store WHERE name = 'schema'").fetchone()
    if version > SCHEMA_VERSION:
        raise EngineUnavailable(f"the store has schema version {version}; this verditer knows up to {SCHEMA_VERSION}")
    for kind in records:
        rank = "rank BLOB NOT NULL, " if kind.RANK else ""
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {kind.TABLE} (key BLOB PRIMARY KEY, {rank}body BLOB NOT NULL) WITHOUT ROWID"
        )
        if kind.RANK:
            connection.execute(f"CREATE INDEX IF NOT EXISTS {kind.TABLE}_rank ON {kind.TABLE} (rank)")
    connection.execute("COMMIT")


class _Statements(Generic[R]):
    """The SQL of one table, written once, and how its bodies are read."""

    __slots__ = ("claim", "decode", "delete", "get", "put", "scan", "scan_back")

    def __init__(self, kind: type[R]) -> None:
        table = kind.TABLE
        self.get = f"SELECT body FROM {table} WHERE key = ?"
        self.put = f"INSERT OR REPLACE INTO {table} VALUES ({'?, ?, ?' if kind.RANK else '?, ?'})"
        self.delete = f"DELETE FROM {table} WHERE key = ?"
        self.scan = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        self.scan_back = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?"
        self.claim = f"SELECT body FROM {table} WHERE rank >= ? AND rank < ? ORDER BY rank LIMIT ?"
        self.decode = schema.decoder(kind).decode


@cache
def _statements(kind: type[R]) -> _Statements[R]:
    return _Statements(kind)


class _Transaction:
    """Reads see the state at BEGIN. The first write opens a savepoint, so a body that raises takes only its own back."""

    def __init__(self, connection: sqlite3.Connection, clock: HybridClock) -> None:
        self._execute = connection.execute
        self._clock = clock
        self._written = False
        self.now = clock.now()
        self.tick = clock.tick

    def get(self, kind: type[R], *key: Part) -> R | None:
        sql = _statements(kind)
        row = self._execute(sql.get, (key_of(*key),)).fetchone()
        return sql.decode(row[0]) if row is not None else None

    def scan(self, kind: type[R], span: Span, *, limit: int | None = None, reverse: bool = False) -> Iterator[R]:
        sql = _statements(kind)
        rows = self._execute(sql.scan_back if reverse else sql.scan, (*span, -1 if limit is None else limit))
        decode = sql.decode
        return (decode(body) for (body,) in rows)

    def put(self, record: Record) -> None:
        self._begin()
        sql = _statements(type(record))
        if record.RANK:
            self._execute(sql.put, (record.key(), record.rank(), schema.encode(record)))
        else:
            self._execute(sql.put, (record.key(), schema.encode(record)))

    def delete(self, kind: type[Record], *key: Part) -> None:
        self._begin()
        self._execute(_statements(kind).delete, (key_of(*key),))

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        """Writers take turns here, so whatever a claim finds is this transaction's."""
        sql = _statements(kind)
        return [sql.decode(body) for (body,) in self._execute(sql.claim, (*span, limit))]

    def set_store(self, name: str, value: int) -> None:
        self._begin()
        self._execute("UPDATE store SET value = ? WHERE name = ?", (value, name))

    def keep(self) -> None:
        if self._written:
            self._execute("RELEASE body")

    def take_back(self) -> None:
        if self._written:
            self._execute("ROLLBACK TO body")
            self._execute("RELEASE body")

    def _begin(self) -> None:
        if not self._written:
            self._execute("SAVEPOINT body")
            self._written = True


class _Work:
    """A body that waits for the writer, and where its outcome goes."""

    __slots__ = ("body", "done", "error", "loop", "result")

    def __init__(self, body: Callable[[Transaction], Any], done: "asyncio.Future[Any]", loop: asyncio.AbstractEventLoop) -> None:
        self.body = body
        self.done = done
        self.loop = loop
        self.result: Any = None
        self.error: BaseException | None = None


class _Writer:
    """The writer thread: batch after batch, one commit each."""

    def __init__(
        self, connection: sqlite3.Connection, clock: HybridClock, waiting: "queue.SimpleQueue[_Work | None]", reserved: int
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._waiting = waiting
        self._reserved = reserved

    def run(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, last = self._gather(first)
            self._commit(batch)
            _answer(batch)
            if last:
                break
        self._store_tick(self._clock.last)
        self._connection.close()

    def _gather(self, first: _Work) -> tuple[list[_Work], bool]:
        batch = [first]
        with contextlib.suppress(queue.Empty):
            while len(batch) < BATCH:
                work = self._waiting.get_nowait()
                if work is None:
                    return batch, True
                batch.append(work)
        return batch, False

    def _commit(self, batch: list[_Work]) -> None:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for work in batch:
                self._run_body(work)
            reserved = self._reserved
            if self._clock.last > reserved:
                reserved = self._clock.last + TICK_RESERVE
                self._store_tick(reserved)
            self._connection.execute("COMMIT")
            self._reserved = reserved
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            for work in batch:
                work.error = _refusal(error)

    def _run_body(self, work: _Work) -> None:
        tx = _Transaction(self._connection, self._clock)
        try:
            work.result = work.body(tx)
            tx.keep()
        except Exception as error:
            work.error = _refusal(error) if isinstance(error, sqlite3.Error) else error
            tx.take_back()

    def _store_tick(self, tick: int) -> None:
        self._connection.execute("UPDATE store SET value = ? WHERE name = 'tick'", (tick,))


def _refusal(error: sqlite3.Error) -> Exception:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return StorageError(Code.InsufficientStorage)
    return EngineUnavailable(str(error))


def _answer(batch: list[_Work]) -> None:
    """Wake every loop once with all its outcomes."""
    loops: dict[asyncio.AbstractEventLoop, list[_Work]] = {}
    for work in batch:
        loops.setdefault(work.loop, []).append(work)
    for loop, works in loops.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_settle, works)


def _settle(works: list[_Work]) -> None:
    for work in works:
        if work.done.cancelled():
            continue
        if work.error is not None:
            work.done.set_exception(work.error)
        else:
            work.done.set_result(work.result)
