"""The embedded engine: one SQLite file in WAL mode, every acknowledged write synced.

One writer thread takes all bodies that wait, runs them one after another, commits once and answers all of them: a sync is
shared by whoever came while the last one ran (group commit). Short reads run inline on a connection of their own, which in
WAL mode is a snapshot that neither waits nor is waited for (`_Reader`); long ones run on reader threads.

Several workers, forked by one process, may serve one folder (`shared.py`): their writers take turns, batch by batch, and each
issues ticks of its own number.
"""

import asyncio
import contextlib
import os
import queue
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, Generic, TypeVar

from verditer.core.clock import HybridClock
from verditer.core.dates import seconds, system_ticks
from verditer.core.errors import Code, StorageError
from verditer.core.records.record import Part, Record, Span, key_of
from verditer.partition import migrations, schema
from verditer.partition.engine import EngineUnavailable, Mark, Scope, Transaction
from verditer.partition.shared import SharedStore, Turn

R = TypeVar("R", bound=Record)
T = TypeVar("T")

BATCH = 256  # bodies in one commit: a bound on how long the first of them waits
READERS = 2
NO_SNAPSHOT = -1
TICK_RESERVE = seconds(0.1)  # ticks are reserved ahead this far, so a restart can never issue one again


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
        self._waiting: queue.SimpleQueue[_Work | None] = queue.SimpleQueue()
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
        self._reader = _Reader(self._connect(), self._clock, self._shared)
        self._readers = ThreadPoolExecutor(READERS, "verditer-reader")
        self._local = threading.local()
        self._opened: list[sqlite3.Connection] = []
        work = _Writer(writer, self._clock, self._waiting, floor, self._number, self._shared, turn)
        self._writer = threading.Thread(target=work.run, name="verditer-writer")
        self._writer.start()

    def _open_writer(self) -> tuple[sqlite3.Connection, int]:
        """The connection, and the highest tick this number may have issued before."""
        writer = self._connect()
        try:
            _prepare(writer, self._records)
            reserved = dict(writer.execute("SELECT number, reserved FROM node"))
            (offset,) = writer.execute(_OFFSET).fetchone()
        except BaseException:
            writer.close()
            raise
        self._shared.move_clock_to(offset)
        self._shared.begin_at(max(reserved.values()))
        return writer, reserved[self._number]

    async def close(self) -> None:
        self._waiting.put(None)
        await asyncio.to_thread(self._writer.join)
        self._readers.shutdown()
        self._reader.close()
        for connection in self._opened:
            connection.close()
        self._let_go()

    def _let_go(self) -> None:
        if self._given is None:
            self._shared.close()
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def now(self) -> int:
        return self._clock.now()

    async def read(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return self._reader.run(body)

    async def scan(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._scan, body)

    async def write(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return await self._enqueue(body, None)

    async def move_clock(self, ticks: int) -> None:
        def move(tx: Transaction) -> int:
            assert isinstance(tx, _Transaction)
            return tx.move_offset(ticks)

        await self._enqueue(move, self._shared.move_clock_to)

    async def _enqueue(self, body: Callable[[Transaction], T], committed: Callable[[T], None] | None) -> T:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()
        self._waiting.put(_Work(body, done, loop, committed))
        return await done

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
        connection.execute("BEGIN")
        try:
            return body(_Transaction(connection, self._clock))
        finally:
            connection.execute("COMMIT")


def _prepare(connection: sqlite3.Connection, records: Sequence[type[Record]]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    (version,) = connection.execute(migrations.VERSION_QUERY).fetchone() if "store" in tables else (0,)
    for statement in migrations.plan(version, tables, records, migrations.SQLITE):
        connection.execute(statement)
    connection.execute("COMMIT")


class _Statements(Generic[R]):
    """The SQL of one table, written once, and how its bodies are read."""

    __slots__ = ("decode", "delete", "delete_span", "get", "nth", "put", "ranked", "scan", "scan_back")

    def __init__(self, kind: type[R]) -> None:
        table = kind.TABLE
        self.get = f"SELECT body FROM {table} WHERE key = ?"
        self.put = f"INSERT OR REPLACE INTO {table} VALUES ({'?, ?, ?' if kind.RANK else '?, ?'})"
        self.delete = f"DELETE FROM {table} WHERE key = ?"
        self.delete_span = f"DELETE FROM {table} WHERE key >= ? AND key < ?"
        self.nth = f"SELECT key FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT 1 OFFSET ?"
        self.scan = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        self.scan_back = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?"
        self.ranked = f"SELECT body FROM {table} WHERE rank >= ? AND rank < ? ORDER BY rank LIMIT ?"
        self.decode = schema.decoder(kind).decode


def _sieve_of(mark: Mark) -> tuple[str, tuple[bytes | float, ...]]:
    """A condition on the bytes of a body, and its values. A number may stand in quotes. `"Infinity"` reads as 0, so where the
    bounds are open on one side and without 0, everything in quotes that is infinite or negative passes."""
    if mark.values:
        follows = f"substr(body, instr(body, ?) + {len(mark.text)}, {len(mark.values[0])})"
        return f"{follows} IN ({','.join('?' * len(mark.values))})", (mark.text, *mark.values)
    if mark.bounds is None:
        return "instr(body, ?) > 0", (mark.text,)
    low, high = mark.bounds
    behind = f"substr(body, instr(body, ?) + {len(mark.text)}, "
    number = f"CAST(ltrim(CAST({behind}26) AS TEXT), '\"') AS REAL) BETWEEN ? AND ?"
    if low <= 0 <= high or (isfinite(low) and isfinite(high)):
        return number, (mark.text, low, high)
    return f"({number} OR {behind}2) IN (x'2249', x'222D'))", (mark.text, low, high, mark.text)


_OFFSET = "SELECT value FROM store WHERE name = 'clock_offset'"
_ADD = "INSERT INTO counter VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value"


@cache
def _statements(kind: type[R]) -> _Statements[R]:
    return _Statements(kind)


class _Transaction:
    """Reads see the state at BEGIN, and what this transaction has written since."""

    def __init__(self, connection: sqlite3.Connection, clock: HybridClock) -> None:
        self._execute = connection.execute
        self._clock = clock
        self.written = False
        self.now = clock.now()
        self.tick = clock.tick

    def get(self, kind: type[R], *key: Part) -> R | None:
        sql = _statements(kind)
        row = self._execute(sql.get, (key_of(*key),)).fetchone()
        return sql.decode(row[0]) if row is not None else None

    def hold(self, kind: type[R], *key: Part) -> R | None:
        return self.get(kind, *key)  # writers take turns

    def scan(
        self, kind: type[R], span: Span, *, limit: int | None = None, reverse: bool = False, sieve: Sequence[Mark] = ()
    ) -> Iterator[R]:
        sql = _statements(kind)
        if sieve:
            return self._sift(kind, span, limit, reverse, sieve)
        rows = self._execute(sql.scan_back if reverse else sql.scan, (*span, -1 if limit is None else limit))
        decode = sql.decode
        return (decode(body) for (body,) in rows)

    def _sift(self, kind: type[R], span: Span, limit: int | None, reverse: bool, sieve: Sequence[Mark]) -> Iterator[R]:
        """What fails the sieve is passed over inside SQLite, without waking Python. One record in some thousand passes
        anyway, so that the reader gets to look at the clock."""
        marks = [_sieve_of(mark) for mark in sieve]
        values = [value for _, arguments in marks for value in arguments]
        rows = self._execute(
            f"SELECT body FROM {kind.TABLE} WHERE key >= ? AND key < ?"
            f" AND ({' AND '.join(condition for condition, _ in marks)} OR random() & 4095 = 0)"
            f" ORDER BY key {'DESC' if reverse else 'ASC'} LIMIT ?",
            (*span, *values, -1 if limit is None else limit),
        )
        decode = _statements(kind).decode
        return (decode(body) for (body,) in rows)

    def put(self, record: Record) -> None:
        self.written = True
        sql = _statements(type(record))
        if record.RANK:
            self._execute(sql.put, (record.key(), record.rank(), schema.encode(record)))
        else:
            self._execute(sql.put, (record.key(), schema.encode(record)))

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        decode = _statements(kind).decode
        marks = ",".join("?" * len(keys))
        rows = self._execute(f"SELECT key, body FROM {kind.TABLE} WHERE key IN ({marks})", keys)
        return {key: decode(body) for key, body in rows}

    def put_many(self, records: Sequence[Record]) -> None:
        """One statement: each hands the interpreter to whoever waits for it, and has to get it back."""
        self.written, kind = True, type(records[0])
        marks = ",".join(["(?, ?, ?)" if kind.RANK else "(?, ?)"] * len(records))
        rows = [(each.key(), each.rank(), schema.encode(each)) for each in records]
        values = [value for row in rows for value in row if value is not None]
        self._execute(f"INSERT OR REPLACE INTO {kind.TABLE} VALUES {marks}", values)

    def delete(self, kind: type[Record], *key: Part) -> None:
        self.written = True
        self._execute(_statements(kind).delete, (key_of(*key),))

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        self.written, sql = True, _statements(kind)
        row = self._execute(sql.nth, (*span, limit)).fetchone()
        gone = self._execute(sql.delete_span, (span.low, row[0] if row is not None else span.high))
        return gone.rowcount, span.starting(row[0]) if row is not None else None

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        return self.ranked(kind, span, limit)  # writers take turns

    def ranked(self, kind: type[R], span: Span, limit: int) -> list[R]:
        sql = _statements(kind)
        return [sql.decode(body) for (body,) in self._execute(sql.ranked, (*span, limit))]

    def add(self, amount: int, *counter: Part) -> None:
        self.written = True
        self._execute(_ADD, (key_of(*counter), amount))

    def total(self, *counter: Part) -> int:
        row = self._execute("SELECT value FROM counter WHERE key = ?", (key_of(*counter),)).fetchone()
        return int(row[0]) if row is not None else 0

    def drop(self, *counter: Part) -> None:
        self.written = True
        self._execute("DELETE FROM counter WHERE key = ?", (key_of(*counter),))

    def move_offset(self, ticks: int) -> int:
        self.written = True
        self._execute("UPDATE store SET value = value + ? WHERE name = 'clock_offset'", (ticks,))
        return int(self._execute(_OFFSET).fetchone()[0])


class _Work:
    """A body that waits for the writer, and where its outcome goes. `committed` hears of it before any other worker writes."""

    __slots__ = ("body", "committed", "done", "error", "loop", "result")

    def __init__(
        self,
        body: Callable[[Transaction], Any],
        done: "asyncio.Future[Any]",
        loop: asyncio.AbstractEventLoop,
        committed: Callable[[Any], None] | None,
    ) -> None:
        self.body = body
        self.done = done
        self.loop = loop
        self.committed = committed
        self.result: Any = None
        self.error: BaseException | None = None


class _Reader:
    """Short reads, on the loop's thread. Those of one turn of the loop share a snapshot, as long as nobody commits meanwhile."""

    def __init__(self, connection: sqlite3.Connection, clock: HybridClock, shared: SharedStore) -> None:
        self._connection = connection
        self._clock = clock
        self._shared = shared
        self._snapshot = NO_SNAPSHOT  # the number of commits it was taken at

    def run(self, body: Callable[[Transaction], T]) -> T:
        if self._snapshot != self._shared.commits:
            self._begin()
        return body(_Transaction(self._connection, self._clock))

    def _begin(self) -> None:
        """A snapshot begins with its first read. One during which somebody committed, perhaps before and perhaps after, may be
        used by the read that asked for it and by no other."""
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")
        else:
            asyncio.get_running_loop().call_soon(self._end)
        commits = self._shared.commits
        self._connection.execute("BEGIN")
        self._connection.execute(_OFFSET).fetchone()
        self._snapshot = commits if commits == self._shared.commits and not commits & 1 else NO_SNAPSHOT

    def _end(self) -> None:
        """Soon, since a snapshot keeps the log from beginning anew."""
        self._snapshot = NO_SNAPSHOT
        if self._connection.in_transaction:
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class _Writer:
    """The writer thread: batch after batch, one commit each, in turn with the other workers' writers."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: HybridClock,
        waiting: "queue.SimpleQueue[_Work | None]",
        reserved: int,
        number: int,
        shared: SharedStore,
        turn: Turn,
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._waiting = waiting
        self._reserved = reserved
        self._number = number
        self._shared = shared
        self._turn = turn
        self._stopping = False

    def run(self) -> None:
        while not self._stopping and (first := self._waiting.get()) is not None:
            batch = [first]
            with self._turn.taken():
                self._commit(batch)
            _answer(batch)
        with self._turn.taken():
            self._store_tick(self._clock.last)
        self._connection.close()
        self._turn.close()

    def _gather(self, batch: list[_Work]) -> None:
        """Whoever has come meanwhile shares the sync."""
        while len(batch) < BATCH and not self._stopping and not self._waiting.empty():
            work = self._waiting.get()
            if work is None:
                self._stopping = True
            else:
                batch.append(work)

    def _commit(self, batch: list[_Work]) -> None:
        """One transaction for the batch. A body that fails after it wrote spoils it: the others run again without that one."""
        if not self._try(batch, self._gather):
            while not self._try([work for work in batch if work.error is None]):
                pass

    def _try(self, batch: list[_Work], gather: Callable[[list[_Work]], None] | None = None) -> bool:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            for work in batch:
                if self._run_body(work):
                    self._connection.execute("ROLLBACK")
                    return False
                if gather is not None and work is batch[-1]:
                    gather(batch)  # which this loop then comes to
            reserved = self._reserved
            if self._clock.last > reserved:
                reserved = self._clock.last + TICK_RESERVE
                self._store_tick(reserved)
            self._shared.committing()
            try:
                self._connection.execute("COMMIT")
            finally:
                self._shared.committed(self._clock.now())
            self._reserved = reserved
            self._tell_workers(batch)
        except sqlite3.Error as error:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
            for work in batch:
                work.error = _refusal(error)
        return True

    def _run_body(self, work: _Work) -> bool:
        """True when what the body wrote has to be taken back."""
        tx = _Transaction(self._connection, self._clock)
        work.error = None
        try:
            work.result = work.body(tx)
        except Exception as error:
            work.error = _refusal(error) if isinstance(error, sqlite3.Error) else error
            return tx.written
        return False

    def _tell_workers(self, batch: list[_Work]) -> None:
        for work in batch:
            if work.committed is not None and work.error is None:
                work.committed(work.result)

    def _store_tick(self, tick: int) -> None:
        self._connection.execute("UPDATE node SET reserved = ? WHERE number = ?", (tick, self._number))


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
