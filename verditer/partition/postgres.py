"""The shared engine: any number of processes on one PostgreSQL database.

Bodies are plain functions, so they run on worker threads, each with a connection of its own. Writers, readers and scans have
separate threads: a read never waits behind a write that waits for a lock (contract G3).

**Why READ COMMITTED is enough for a write.** A write first takes advisory locks: shared on every scope above its own, then
exclusive on its own. Whoever could change what the body decides on is thereby finished or waits, and every statement after
the lock sees all that was committed before it was granted. (REPEATABLE READ would be wrong: its snapshot is older than the
lock.) What lies outside the scope may move between two looks; a body decides on its scope and what is above it. Locks are
taken from the root downward, so no circle of waiting can form; if row locks ever make one, or the server cancels
a transaction for any other conflict, the body runs again. Reads use one REPEATABLE READ snapshot and lock nothing.

**Round trips.** Statements are pipelined: begin, locks, clock and the first `get` travel together, and so do all puts and the
commit. An error of any of them surfaces before `write` returns, for the server skips whatever follows a failed statement.
"""

import asyncio
import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8

from verditer.core.dates import TICKS_PER_SECOND, UNIX_EPOCH
from verditer.core.errors import Code, StorageError
from verditer.core.records.record import Part, Record, Span, key_of, span_of
from verditer.partition import migrations, schema
from verditer.partition.engine import EngineUnavailable, Mark, Scope, Transaction
from verditer.partition.ticks import Ticks

R = TypeVar("R", bound=Record)
Q = TypeVar("Q", bound=Record)
T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
Cursor = psycopg.Cursor[tuple[Any, ...]]

ATTEMPTS = 5  # of one body, when the server cancels it for a conflict or the connection breaks before the commit
BACKOFF_SECONDS = 0.01  # doubled with each attempt, at random below that
QUEUE_SECONDS = 5  # a body that found no free worker for so long is refused: the database is not keeping up
LANES = 64  # rows of a counter: connections that write at the same time mostly have rows of their own
FIRST_PAGE = 16  # records fetched at first, then twice as many each time: entities may be 3 MiB each, and one may be enough
SCAN_PAGE = 200  # at most
SCAN_BYTES = 1 << 20  # after a page of more than this, the next one is half as long


class PostgresEngine:
    """`conninfo` is a libpq connection string or URL; one database is one store. Uses up to the sum of its workers, plus one,
    of the server's connections."""

    def __init__(
        self,
        conninfo: str,
        *,
        records: Sequence[type[Record]] = schema.RECORDS,
        writers: int = 8,
        readers: int = 4,
        scanners: int = 2,
        lock_seconds: float = 10,
    ) -> None:
        self._conninfo = conninfo
        self._records = records
        self._statements = {kind: _statements_of(kind) for kind in records}
        self._workers = (writers, readers, scanners)
        self._settings = _SETTINGS.format(lock_ms=int(lock_seconds * 1000)).encode()
        self._ticks = Ticks(self.connect)
        self._drift = 0  # the database's clock minus this machine's monotonic one, in ticks

    async def open(self) -> None:
        self._connections: dict[int, Connection] = {}  # by thread
        self._writers, self._readers, self._scanners = (ThreadPoolExecutor(n, "verditer-postgres") for n in self._workers)
        try:
            await self._on(self._writers, self._migrate)
            await self.read((), lambda tx: tx.now)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        for workers in (self._writers, self._readers, self._scanners):
            await asyncio.to_thread(workers.shutdown)
        with contextlib.suppress(psycopg.Error, EngineUnavailable):  # the reservation runs out by itself
            await asyncio.to_thread(self._ticks.give_back)
        for connection in self._connections.values():
            connection.close()

    def now(self) -> int:
        return max(_local_ticks() + self._drift, self._ticks.last)

    async def read(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return await self._on(self._readers, lambda: self._perform(_begin_read, body))

    async def scan(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return await self._on(self._scanners, lambda: self._perform(_begin_read, body))

    async def write(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        return await self._on(self._writers, lambda: self._perform(_begin_write(scope), body, writable=True))

    async def move_clock(self, ticks: int) -> None:
        def move(tx: Transaction) -> None:
            assert isinstance(tx, _Transaction)
            tx.move_clock(ticks)

        await self.write((), move)
        await self.read((), lambda tx: tx.now)

    async def _on(self, workers: ThreadPoolExecutor, work: Callable[[], T]) -> T:
        queued = time.monotonic()

        def start() -> T:
            if time.monotonic() - queued > QUEUE_SECONDS:
                raise EngineUnavailable("every database connection is busy")
            return work()

        return await asyncio.get_running_loop().run_in_executor(workers, start)

    def _perform(self, begin: "Begin", body: Callable[[Transaction], T], *, writable: bool = False) -> T:
        """Run a body as one transaction, again where nothing can have happened and trying again may help."""
        for attempt in range(ATTEMPTS):
            try:
                return self._attempt(self._connection(), begin, body, writable)
            except _TryAgain as failure:
                reason = failure.__cause__
                time.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
        raise EngineUnavailable(f"given up after {ATTEMPTS} attempts") from reason

    def _attempt(self, connection: Connection, begin: "Begin", body: Callable[[Transaction], T], writable: bool) -> T:
        committing = False
        try:
            with connection.pipeline():
                tx = _Transaction(connection, begin(connection), self, writable)
                result = _run(body, tx)
                committing = writable
                outcome = connection.execute("COMMIT")
        except psycopg.Error as error:
            raise _verdict(error, connection, committing) from error
        finally:
            _leave_transaction(connection)
        # COMMIT of a transaction that has failed answers ROLLBACK and no error: a body must not swallow what a statement raised.
        assert outcome.statusmessage == "COMMIT", outcome.statusmessage
        return result

    def _connection(self) -> Connection:
        """This thread's connection, a new one if it broke."""
        connection = self._connections.get(threading.get_ident())
        if connection is None or connection.closed:
            connection = self._connections[threading.get_ident()] = self.connect()
        return connection

    def connect(self) -> Connection:
        try:
            conninfo = make_conninfo("", **{**_CONNECT, **conninfo_to_dict(self._conninfo)})
            connection = psycopg.connect(conninfo, autocommit=True, prepare_threshold=0)
            connection.prepared_max = None  # the statements are few: a handful for each record class
            connection.execute(self._settings, prepare=False)
        except psycopg.OperationalError as error:
            raise EngineUnavailable(str(error)) from error
        return connection

    def _migrate(self) -> None:
        """Processes that start together take turns; the second finds nothing to do."""
        connection = self._connection()
        try:
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s, %s)", _MIGRATION_LOCK)
                tables = {name for (name,) in connection.execute(_TABLES)}
                found = connection.execute(migrations.VERSION_QUERY.encode()).fetchone() if "store" in tables else None
                for statement in migrations.plan(found[0] if found else 0, tables, self._records, migrations.POSTGRES):
                    connection.execute(statement.encode(), prepare=False)
        except psycopg.OperationalError as error:
            raise EngineUnavailable(str(error)) from error

    def saw_clock(self, database_ticks: int) -> int:
        """The time of a transaction: the database's, but not before a tick this process already issued."""
        self._drift = database_ticks - _local_ticks()
        return max(database_ticks, self._ticks.last)

    def tick(self, after: int) -> int:
        return self._ticks.tick(after)

    def statements(self, kind: type[Record]) -> "Statements":
        return self._statements[kind]


class _Transaction:
    """Sends statements as they come and waits only for what the body asks to see."""

    def __init__(self, connection: Connection, clock: Cursor, engine: PostgresEngine, writable: bool) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._clock = clock
        self._engine = engine
        self._writable = writable
        self._changed = False
        self._lane = connection.info.backend_pid % LANES
        self._now: int | None = None

    @property
    def now(self) -> int:
        if self._now is None:
            row = self._clock.fetchone()
            assert row is not None
            self._now = self._engine.saw_clock(row[-1])
        return self._now

    def tick(self, after: int = 0) -> int:
        return self._engine.tick(max(after, self.now - 1))

    def get(self, kind: type[R], *key: Part) -> R | None:
        row = self._execute(self._engine.statements(kind).get, (key_of(*key),), binary=True).fetchone()
        return schema.decoder(kind).decode(row[0]) if row is not None else None

    def get_both(self, one: type[R], other: type[Q], *key: Part) -> tuple[R | None, Q | None]:
        keys = (key_of(*key),) * 2
        row = self._execute(_both(one, other), keys, binary=True).fetchone()
        assert row is not None
        found, beside = row
        return (
            schema.decoder(one).decode(found) if found is not None else None,
            schema.decoder(other).decode(beside) if beside is not None else None,
        )

    def hold(self, kind: type[R], *key: Part) -> R | None:
        assert self._writable, "a read holds nothing"
        row = self._execute(self._engine.statements(kind).hold, (key_of(*key),), binary=True).fetchone()
        return schema.decoder(kind).decode(row[0]) if row is not None else None

    def scan(
        self, kind: type[R], span: Span, *, limit: int | None = None, reverse: bool = False, sieve: Sequence[Mark] = ()
    ) -> Iterator[R]:
        statements = self._engine.statements(kind)
        query = statements.scan_back if reverse else statements.scan
        decode = schema.decoder(kind).decode
        page = FIRST_PAGE
        while limit is None or limit > 0:
            page = page if limit is None else min(limit, page)
            rows = self._execute(query, (span.low, span.high, Int8(page)), binary=True).fetchall()
            yield from (decode(body) for _, body in rows)
            if len(rows) < page:
                return
            span = Span(span.low, rows[-1][0]) if reverse else span.after(rows[-1][0])
            limit = None if limit is None else limit - page
            is_large = sum([len(body) for _, body in rows]) > SCAN_BYTES
            page = max(1, page // 2) if is_large else min(SCAN_PAGE, page * 2)

    def put(self, record: Record) -> None:
        self._change(self._engine.statements(type(record)).put, schema.row_of(record))

    def insert(self, record: Record) -> bool:
        return self._change(self._engine.statements(type(record)).insert, schema.row_of(record)).fetchone() is not None

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        decode = schema.decoder(kind).decode
        rows = self._execute(self._engine.statements(kind).get_many, (list(keys),), binary=True)
        return {key: decode(body) for key, body in rows}

    def put_many(self, records: Sequence[Record]) -> None:
        columns = [[record.key() for record in records], [schema.encode(record) for record in records]]
        if records[0].RANK:
            columns.insert(1, [record.rank() for record in records])
        self._change(self._engine.statements(type(records[0])).put_many, columns)

    def delete(self, kind: type[Record], *key: Part) -> None:
        self._change(self._engine.statements(kind).delete, (key_of(*key),))

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        statements = self._engine.statements(kind)
        end = self._execute(statements.nth, (*span, Int8(limit))).fetchone()
        row = self._change(statements.delete_span, (span.low, end[0] if end is not None else span.high)).fetchone()
        assert row is not None
        return row[0], span.starting(end[0]) if end is not None else None

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        assert self._writable, "a claim belongs to a write"
        return self._by_rank(self._engine.statements(kind).claim, kind, span, limit)

    def ranked(self, kind: type[R], span: Span, limit: int) -> list[R]:
        return self._by_rank(self._engine.statements(kind).ranked, kind, span, limit)

    def _by_rank(self, query: bytes, kind: type[R], span: Span, limit: int) -> list[R]:
        decode = schema.decoder(kind).decode
        return [decode(body) for (body,) in self._execute(query, (span.low, span.high, Int8(limit)), binary=True)]

    def add(self, amount: int, *counter: Part) -> None:
        """A counter is many rows, and a connection adds to one of them: neighbours rarely meet in the same row."""
        self._change(_ADD, (key_of(*counter, self._lane), Int8(amount)))

    def total(self, *counter: Part) -> int:
        row = self._execute(_TOTAL, span_of(*counter)).fetchone()
        assert row is not None
        return int(row[0])

    def drop(self, *counter: Part) -> None:
        self._change(b"DELETE FROM counter WHERE key >= %b AND key < %b", span_of(*counter))

    def take_back(self) -> None:
        """End without a trace. A body that changed nothing, as one that was refused, just ends; that travels with the pipeline.

        ROLLBACK has to be psycopg's own: it forgets prepared statements then, and in a pipeline a statement of ours would let
        it tell the server too late, when the next transaction has already prepared some.
        """
        if self._changed:
            self._connection.rollback()
        else:
            self._execute("COMMIT")

    def _change(self, statement: bytes, row: Sequence[Any]) -> Cursor:
        assert self._writable, "a read writes nothing"
        self._changed = True
        return self._execute(statement, row)

    def move_clock(self, ticks: int) -> None:
        self._change(b"UPDATE store SET value = value + %s WHERE name = 'clock_offset'", (Int8(ticks),))


class Statements(NamedTuple):
    """What one record class needs, as the server prepares it."""

    get: bytes
    hold: bytes
    scan: bytes
    scan_back: bytes
    put: bytes
    insert: bytes
    delete: bytes
    delete_span: bytes
    nth: bytes
    ranked: bytes
    claim: bytes
    get_many: bytes
    put_many: bytes


@cache
def _both(one: type[Record], other: type[Record]) -> bytes:
    return f'SELECT (SELECT body FROM "{one.TABLE}" WHERE key = %b), (SELECT body FROM "{other.TABLE}" WHERE key = %b)'.encode()


def _statements_of(kind: type[Record]) -> Statements:
    table = f'"{kind.TABLE}"'
    columns = ("key", "rank", "body") if kind.RANK else ("key", "body")
    changes = ", ".join(f"{column} = EXCLUDED.{column}" for column in columns[1:])
    insert = f"INSERT INTO {table} ({', '.join(columns)})"
    replace = f"ON CONFLICT (key) DO UPDATE SET {changes}"
    values = ", ".join("%b" for _ in columns)
    lists = ", ".join("%b::bytea[]" for _ in columns)
    span = f"SELECT key, body FROM {table} WHERE key >= %b AND key < %b ORDER BY key"
    get = f"SELECT body FROM {table} WHERE key = %b"
    ranked = f"SELECT body FROM {table} WHERE rank >= %b AND rank < %b ORDER BY rank LIMIT %b"
    texts = (
        get,
        f"{get} FOR UPDATE",
        f"{span} LIMIT %b",
        f"{span} DESC LIMIT %b",
        f"{insert} VALUES ({values}) {replace}",
        f"{insert} VALUES ({values}) ON CONFLICT (key) DO NOTHING RETURNING 1",
        f"DELETE FROM {table} WHERE key = %b",
        f"WITH gone AS (DELETE FROM {table} WHERE key >= %b AND key < %b RETURNING 1) SELECT count(*) FROM gone",
        f"SELECT key FROM {table} WHERE key >= %b AND key < %b ORDER BY key LIMIT 1 OFFSET %b",
        ranked,
        f"{ranked} FOR UPDATE SKIP LOCKED",
        f"SELECT key, body FROM {table} WHERE key = ANY(%b::bytea[])",
        f"{insert} SELECT * FROM unnest({lists}) {replace}",
    )
    return Statements(*[text.encode() for text in texts])


_ADD = b"INSERT INTO counter (key, value) VALUES (%b, %b) ON CONFLICT (key) DO UPDATE SET value = counter.value + EXCLUDED.value"
_TOTAL = b"SELECT coalesce(sum(value), 0)::bigint FROM counter WHERE key >= %b AND key < %b"

Begin = Callable[[Connection], Cursor]
"""Begins a transaction and gives the cursor whose row ends with the database's time, not yet waited for."""

_CLOCK = (
    f"(extract(epoch FROM clock_timestamp()) * {TICKS_PER_SECOND})::bigint + {UNIX_EPOCH}"
    " + (SELECT value FROM store WHERE name = 'clock_offset')"
)


def _begin_read(connection: Connection) -> Cursor:
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    return connection.execute(f"SELECT {_CLOCK}".encode())


def _begin_write(scope: Scope) -> Begin:
    keys = [_lock_key(scope[:depth]) for depth in range(len(scope) + 1)]
    shared = "pg_advisory_xact_lock_shared(%b), " * len(scope)

    def begin(connection: Connection) -> Cursor:
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        return connection.execute(f"SELECT {shared}pg_advisory_xact_lock(%b), {_CLOCK}".encode(), keys)

    return begin


def _lock_key(scope: Scope) -> Int8:
    """Two scopes with one key would only wait for each other without need."""
    return Int8(int.from_bytes(blake2b(key_of(*scope), digest_size=8).digest(), "big", signed=True))


def _run(body: Callable[[Transaction], T], tx: _Transaction) -> T:
    try:
        return body(tx)
    except Exception:
        with contextlib.suppress(psycopg.Error):
            tx.take_back()
        raise


class _TryAgain(Exception):
    """Nothing happened, and the same body may well succeed."""


def _verdict(error: psycopg.Error, connection: Connection, committing: bool) -> Exception:
    """What a failed statement means to whoever asked."""
    if isinstance(error, errors.SerializationFailure | errors.DeadlockDetected):
        return _TryAgain()
    if connection.closed:
        return EngineUnavailable("the connection broke during a commit; its outcome is unknown") if committing else _TryAgain()
    if isinstance(error, errors.DiskFull):
        return StorageError(Code.InsufficientStorage)
    if isinstance(error, errors.ProgramLimitExceeded):  # an index takes keys of 2704 bytes
        return StorageError(Code.OutOfRangeInput, message="The name is too long for the database behind this server.")
    if isinstance(error, errors.ReadOnlySqlTransaction):
        connection.close()  # a standby, or a primary that was demoted: the next connection looks for the new one
        return EngineUnavailable(str(error))
    if isinstance(error, psycopg.OperationalError):
        return EngineUnavailable(str(error))
    return error


def _leave_transaction(connection: Connection) -> None:
    """However a transaction ended, its connection serves the next one or is closed."""
    try:
        if connection.info.transaction_status is not TransactionStatus.IDLE:
            connection.rollback()
    except psycopg.Error:
        connection.close()


def _local_ticks() -> int:
    return time.monotonic_ns() // 100


_CONNECT: dict[str, str | int | None] = {
    "application_name": "verditer",
    "target_session_attrs": "read-write",
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}

# Acknowledged means durable (contract G6), whatever the server's default; a stricter one stays. No wait is without end.
_SETTINGS = """
    SET lock_timeout = {lock_ms};
    SET statement_timeout = '30s';
    SET idle_in_transaction_session_timeout = '60s';
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') <> 'remote_apply'
"""

_MIGRATION_LOCK = (0x5645, 1)  # two-part keys never meet the one-part keys of scopes
_TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
