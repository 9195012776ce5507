"""The shared engine: any number of processes on one PostgreSQL database.
Short reads and writes run on the event loop, in batches (`batches/`). Bodies that are too long for it,
and long reads, run in threads (`threads.py`). `locks.py` says how transactions exclude each other. Every call to the database has
a deadline: what is not answered in time fails with EngineUnavailable, and its connection is closed."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

import psycopg

from verditer.core.records.record import Record
from verditer.partition import schema
from verditer.partition.engine import EngineUnavailable, Scope, Transaction
from verditer.partition.postgres.batches.fetched import RecordCache
from verditer.partition.postgres.batches.pending import PendingBody
from verditer.partition.postgres.batches.read_batches import ReadBatches
from verditer.partition.postgres.batches.write_batches import WriteBatches
from verditer.partition.postgres.database import Database
from verditer.partition.postgres.locking.advisory_locks import AdvisoryLocks
from verditer.partition.postgres.locking.locks import Lock, Locking, begin_read, begin_write, locks_of
from verditer.partition.postgres.prepare import prepare
from verditer.partition.postgres.threads import Threads
from verditer.partition.postgres.ticks import TickIssuer
from verditer.partition.postgres.transaction import PostgresTransaction

T = TypeVar("T")

SWEEP_SECONDS = 0.5  # between two looks for what has waited too long


class PostgresEngine:
    """`conninfo` is a libpq connection string or URL; one database is one store. The engine uses up to `readers`, `writers` and
    `waiters` connections on the event loop, one for each thread, and one more. `locks` is the kind of locks that a new store
    gets, by its name in `LOCKINGS`; None takes that of the store. Without `makes_store`, a database without one is refused."""

    def __init__(
        self,
        conninfo: str,
        *,
        records: Sequence[type[Record]] = schema.RECORDS,
        readers: int = 2,
        writers: int = 2,
        waiters: int = 4,
        threads: int = 4,
        scanners: int = 2,
        lock_seconds: float = 10,
        deadline_seconds: float = 10,
        locks: str | None = None,
        makes_store: bool = True,
    ) -> None:
        self.cache = RecordCache()
        self.locking: Locking = AdvisoryLocks()  # until the store says which it has
        self.deadline_seconds = deadline_seconds
        self._database = Database(conninfo, lock_seconds)
        self._records = records
        self._asked_locks = locks
        self._makes_store = makes_store
        self._counts = (readers, writers, waiters)
        self._lock_seconds = lock_seconds
        self._threads = Threads(self._database, threads, scanners, lock_seconds, deadline_seconds)
        self._ticks = TickIssuer(self._threads.extra_connection)
        self._latest_time = 0
        self._clock_difference = 0  # the database's clock minus this machine's monotonic clock, in ticks
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        readers, writers, waiters = self._counts
        self._reads = ReadBatches(self._database, readers, self)
        self._writes = WriteBatches(self._database, writers, waiters, self, self._lock_seconds)
        self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)
        try:
            self.locking = await self._threads.call(self._prepare)
            self._latest_time = await self._threads.call(self._ticks.floor)
            await self.read((), lambda tx: tx.now)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await self._writes.close()
        await self._reads.close()
        while self._tasks:
            await asyncio.wait(self._tasks)
        with contextlib.suppress(psycopg.Error, EngineUnavailable):  # the reservation ends by itself
            await asyncio.to_thread(self._ticks.release)
        await self._threads.close()
        self._sweeping.cancel()

    def now(self) -> int:
        return max(_monotonic_ticks() + self._clock_difference, self._latest_time, self._ticks.last)

    async def read(self, scope: Scope, body: Callable[[Transaction], T], *, long: bool = False) -> T:
        return await (self._threads.call(lambda: self._read_in_thread(body), long=True) if long else self._reads.submit(body))

    def write(self, scopes: Sequence[Scope], body: Callable[[Transaction], T]) -> Awaitable[T]:
        return self._writes.submit(scopes, body)

    async def move_clock(self, ticks: int) -> None:
        def move(tx: Transaction) -> None:
            assert isinstance(tx, PostgresTransaction)
            tx.move_clock(ticks)

        locks = locks_of(self.locking, [()])
        await self._threads.call(lambda: self._write_in_thread(locks, move))
        await self.read((), lambda tx: tx.now)

    # What batches need.

    def adjust_clock(self, database_ticks: int) -> int:
        """The time of a transaction: the database's, but not before a time that this process has seen, nor a tick it has issued.
        The clock of a new primary may be behind that of the old one."""
        self._latest_time = max(self._latest_time, database_ticks)
        self._clock_difference = database_ticks - _monotonic_ticks()
        return max(self._latest_time, self._ticks.last)

    def issued_tick(self, after: int) -> int:
        return self._ticks.issued_tick(after)

    async def reserve_ticks(self, now: int) -> None:
        await self._threads.reserve(lambda: self._ticks.reserve(now))

    def run_in_thread(self, pending: PendingBody) -> None:
        task = self._loop.create_task(self._run_in_thread(pending))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def drop_connections(self) -> None:
        self._reads.drop_connections()
        self._writes.drop_connections()

    # In threads.

    async def _run_in_thread(self, pending: PendingBody) -> None:
        body, locks = pending.body, pending.locks
        try:
            if locks:
                pending.result = await self._threads.call(lambda: self._write_in_thread(locks, body))
            else:
                pending.result = await self._threads.call(lambda: self._read_in_thread(body))
            pending.error = None
        except Exception as error:
            pending.error = error
        pending.answer()

    def _read_in_thread(self, body: Callable[[Transaction], T]) -> T:
        return self._threads.transact(begin_read, body, writable=False, local_time=self.adjust_clock, next_tick=self._ticks.tick)

    def _write_in_thread(self, locks: Sequence[Lock], body: Callable[[Transaction], T]) -> T:
        begin = begin_write(self.locking, locks)
        return self._threads.transact(begin, body, writable=True, local_time=self.adjust_clock, next_tick=self._ticks.tick)

    def _sweep(self) -> None:
        now = self._loop.time()
        self._reads.expire(now)
        self._writes.expire(now)
        self._threads.cut_off_silent()
        self._sweeping = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _prepare(self) -> Locking:
        connect = self._threads.extra_connection
        return prepare(connect, partial(connect, is_migration=True), self._records, self._asked_locks, self._makes_store)


def _monotonic_ticks() -> int:
    return time.monotonic_ns() // 100
