"""Commits of the embedded engine: bodies in batches, one commit and one sync each, in turn with the other workers."""

import asyncio
import contextlib
import itertools
import queue
import sqlite3
import threading
from collections.abc import Callable
from math import inf
from time import perf_counter
from typing import Any, TypeVar

from verditer.core.clock import HybridClock
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.partition.engine import EngineUnavailable, TooLong, Transaction
from verditer.partition.shared import SharedStore, Turn
from verditer.partition.sqlite_log import Log
from verditer.partition.sqlite_rows import BRIEF, UNBOUND, RowTransaction

T = TypeVar("T")

BATCH = 256  # bodies in one commit: a bound on how long the first of them waits
GATHERED = 64  # bodies after which a batch waits for no others: some milliseconds of reading requests
LOOP_SECONDS = 0.01  # how long one batch may keep the loop
MAX_TRIES = 4  # on the loop
QUICK_SECONDS = 0.001  # a sync that takes no longer is waited for on the loop
SLOW_TIMES = 20  # after one that took longer, the next so many times as long are waited for in the thread
TICK_RESERVE = seconds(0.1)  # ticks are reserved ahead this far, so a restart can never issue one again


class Work:
    """A body that waits to be committed, and where its outcome goes. `committed` hears of it before any other worker writes."""

    __slots__ = ("body", "committed", "done", "error", "result")

    def __init__(
        self, body: Callable[[Transaction], Any], done: "asyncio.Future[Any]", committed: Callable[[Any], None] | None
    ) -> None:
        self.body = body
        self.done = done
        self.committed = committed
        self.result: Any = None
        self.error: BaseException | None = None

    def settle(self) -> None:
        done, error = self.done, self.error
        del self.done, self.error  # the error's traceback knows this work: a circle
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(self.result)


class Writer:
    """Batch after batch, one commit each, in turn with the other workers' writers.

    Bodies run on the loop, and are committed there: in a thread beside it they would wait for the interpreter at every
    statement, with the turn in hand. What waits for others does so in the thread: for the turn, and for a disk that is slow.
    For one that is quick the loop waits itself, as that takes less than to wake the thread and be woken by it. Long bodies run
    in the thread too.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: HybridClock,
        reserved: int,
        number: int,
        shared: SharedStore,
        turn: Turn,
        log: Log,
        end_snapshot: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._reserved = reserved
        self._number = number
        self._shared = shared
        self._turn = turn
        self._log = log
        self._end_snapshot = end_snapshot
        self._loop = asyncio.get_running_loop()
        self._changes = connection.total_changes  # when last committed
        self._waiting: list[Work] = []
        self._busy = False  # a batch is on its way, or about to be
        self._disk_slow_until = 0.0
        self._idle = asyncio.Event()
        self._orders: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._follow_orders, name="verditer-writer")
        self._thread.start()

    def add(self, body: Callable[[Transaction], T], committed: Callable[[T], None] | None = None) -> "asyncio.Future[T]":
        done: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(Work(body, done, committed))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._begin)  # behind whoever else comes in this turn of the loop
        return done

    async def close(self) -> None:
        """When everything that was added has its outcome."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()
        self._orders.put(None)
        await asyncio.to_thread(self._thread.join)

    def _follow_orders(self) -> None:
        while (order := self._orders.get()) is not None:
            order()
            del order  # and the batch it knows
        with self._turn.taken():
            self._store_tick(self._clock.last)
        self._connection.close()
        self._turn.close()

    # On the loop.

    def _begin(self, seen: int = 0) -> None:
        """As long as each turn of the loop brings others they are waited for: together they cost one commit and one sync."""
        if seen < len(self._waiting) < GATHERED:
            self._loop.call_soon(self._begin, len(self._waiting))
        elif self._turn.try_take():
            self._run()
        else:
            self._orders.put(self._wait_for_turn)

    def _run(self) -> None:
        batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
        self._end_snapshot()  # nobody can use it afterwards, and it would keep the log from beginning anew
        try:
            self._write(batch, BRIEF)
        except TooLong:
            for work in batch:
                work.error = None
            self._orders.put(lambda: self._write_long(batch))
        else:
            finish = self._finish_beside if perf_counter() < self._disk_slow_until else self._finish_here
            finish(batch)

    def _finish_beside(self, batch: list[Work]) -> None:
        self._orders.put(lambda: self._finish(batch))

    def _finish_here(self, batch: list[Work]) -> None:
        began = perf_counter()
        self._sync(batch)
        took = perf_counter() - began
        if took > QUICK_SECONDS:
            self._disk_slow_until = began + SLOW_TIMES * took
        self._settle(batch)

    def _settle(self, batch: list[Work]) -> None:
        for work in batch:
            work.settle()
        if self._waiting:
            self._loop.call_soon(self._begin)
        else:
            self._busy = False
            self._idle.set()

    # In the thread.

    def _wait_for_turn(self) -> None:
        self._turn.take()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._run)

    def _write_long(self, batch: list[Work]) -> None:
        self._write(batch, UNBOUND)
        self._finish(batch)

    def _finish(self, batch: list[Work]) -> None:
        self._sync(batch)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, batch)

    # On either.

    def _sync(self, batch: list[Work]) -> None:
        try:
            self._log.catch_up_here(self._shared.visible)
        except EngineUnavailable as error:
            self._fail(batch, error)

    def _write(self, batch: list[Work], records: int) -> None:
        """With the turn in hand, which is passed on before the sync."""
        try:
            self._log.check()
            if self._run_bodies(batch, records):
                self._commit(batch)
        except EngineUnavailable as error:
            self._fail(batch, error)
        self._turn.pass_on()

    def _commit(self, batch: list[Work]) -> None:
        try:
            reserved = self._reserved
            if self._clock.last > reserved:
                reserved = self._clock.last + TICK_RESERVE
                self._store_tick(reserved)
            rows = changes_between(self._changes, self._connection.total_changes)
            if rows == 0:  # all were refused, say: there is nothing to see, and nothing to sync
                self._connection.execute("COMMIT")
                return
            self._shared.committing()
            try:
                self._connection.execute("COMMIT")
            finally:
                self._changes = self._connection.total_changes
                self._shared.committed(self._clock.now(), rows)
            self._reserved = reserved
            self._tell_workers(batch)
        except Exception as error:
            self._fail(batch, error)

    def _run_bodies(self, batch: list[Work], records: int) -> bool:
        """One transaction for the batch. A body that fails after it wrote spoils it: the others run again without that one.
        False when the store is to blame: then all have failed."""
        brief = records <= BRIEF
        try:
            for tries in itertools.count(1):
                self._roll_back()
                if brief and tries > MAX_TRIES:
                    raise TooLong
                self._connection.execute("BEGIN IMMEDIATE")
                if self._try(batch, records, perf_counter() + LOOP_SECONDS if brief else inf):
                    return True
        except sqlite3.Error as error:
            self._fail(batch, error)
        except TooLong:
            self._roll_back()
            raise
        return False

    def _try(self, batch: list[Work], records: int, until: float) -> bool:
        """Where time is up, the rest of the batch is left for the next one."""
        tx = RowTransaction(self._connection, self._clock, {})
        for number, work in enumerate(batch):
            if number and perf_counter() > until:
                self._waiting[:0] = batch[number:]
                del batch[number:]
                break
            if work.error is None:
                tx.begin(records)
                if not self._run_body(work, tx):
                    return False
        return True

    def _run_body(self, work: Work, tx: RowTransaction) -> bool:
        """False when what the body wrote has to be taken back, or SQLite has done so already."""
        try:
            work.result = work.body(tx)
        except Exception as error:
            work.error = _refusal(error)
            return not tx.written and self._connection.in_transaction
        return True

    def _roll_back(self) -> None:
        """After some errors SQLite has done it by itself."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _fail(self, batch: list[Work], error: Exception) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._roll_back()
        for work in batch:
            work.error = _refusal(error) if isinstance(error, sqlite3.Error) else EngineUnavailable(str(error))

    def _tell_workers(self, batch: list[Work]) -> None:
        for work in batch:
            if work.committed is not None and work.error is None:
                work.committed(work.result)

    def _store_tick(self, tick: int) -> None:
        self._connection.execute("UPDATE node SET reserved = ? WHERE number = ?", (tick, self._number))


def changes_between(before: int, after: int) -> int:
    """SQLite counts changes in 32 bits, with a sign: a few days of writing."""
    return (after - before) & 0xFFFFFFFF


def _refusal(error: Exception) -> Exception:
    """What the caller is told. A future takes any exception but StopIteration."""
    if isinstance(error, StopIteration):
        return RuntimeError("a body ran out of something")
    if not isinstance(error, sqlite3.Error):
        return error
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return StorageError(Code.InsufficientStorage)
    return EngineUnavailable(str(error))
