"""Group commit of the embedded engine: waiting writes run in one SQLite transaction and share one commit and one sync.

It relies on `WriteLock`, which lets one worker write at a time, and on `WriteAheadLog`, which syncs after the lock is released
(docs/decisions/sync-after-the-write-lock.md). Bodies run on the event loop (docs/decisions/bodies-on-the-loop.md).
"""

import asyncio
import contextlib
import itertools
import logging
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
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.partition.sqlite.shared import SharedStore, WriteLock
from verditer.partition.sqlite.transaction import MAX_RECORDS_ON_LOOP, UNLIMITED, SqliteTransaction, WriteTooLong
from verditer.partition.sqlite.wal import WriteAheadLog

logger = logging.getLogger("verditer")
T = TypeVar("T")

MAX_BATCH = 256  # bodies in one commit: bounds how long the first of them waits
FULL_BATCH = 64  # with so many bodies, a batch waits for no others: some milliseconds of reading requests
MAX_LOOP_SECONDS = 0.01  # that one batch may run on the event loop
MAX_TRIES_ON_LOOP = 4
QUICK_SYNC_SECONDS = 0.001  # a sync that takes no longer runs on the event loop
SLOW_SYNC_FACTOR = 20  # after a sync that took longer, syncs run in the thread for so many times as long
TICK_RESERVE = seconds(0.1)  # ticks are reserved so far ahead, so that a restarted process never issues one again


class PendingWrite:
    """A body that waits for its commit, and the future of its caller. `after_commit` is called before any other worker writes."""

    __slots__ = ("after_commit", "body", "error", "future", "result")

    def __init__(
        self, body: Callable[[Transaction], Any], future: "asyncio.Future[Any]", after_commit: Callable[[Any], None] | None
    ) -> None:
        self.body = body
        self.future = future
        self.after_commit = after_commit
        self.result: Any = None
        self.error: BaseException | None = None

    def answer(self) -> None:
        future, error = self.future, self.error
        del self.future, self.error  # the traceback of the error refers to this object: a reference cycle
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(self.result)


class GroupCommitter:
    """Commits batch after batch.

    Bodies run and commit on the event loop: a thread would wait for the interpreter lock at every statement while it holds the
    write lock. Only waiting is done in the writer thread: for the write lock, and for a slow disk. A quick sync runs on the event
    loop, since waking the thread and being woken by it takes longer. Long bodies run in the thread, too.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        clock: HybridClock,
        *,
        reserved: int,
        number: int,
        shared: SharedStore,
        write_lock: WriteLock,
        wal: WriteAheadLog,
        end_snapshot: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._reserved = reserved
        self._number = number
        self._shared = shared
        self._write_lock = write_lock
        self._wal = wal
        self._end_snapshot = end_snapshot
        self._loop = asyncio.get_running_loop()
        self._changes = connection.total_changes  # at the last commit
        self._durable = True  # the batch that is about to be committed has to be synced
        self._waiting: list[PendingWrite] = []
        self._busy = False  # a batch is running or about to
        self._disk_slow_until = 0.0
        self._idle = asyncio.Event()
        self._thread_jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run_thread, name="verditer-writer")
        self._thread.start()

    def submit(self, body: Callable[[Transaction], T], after_commit: Callable[[T], None] | None = None) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(PendingWrite(body, future, after_commit))
        if not self._busy:
            self._busy = True
            self._loop.call_soon(self._begin)  # after the other callbacks of this iteration, which may submit more
        return future

    async def close(self) -> None:
        """Return when everything that was submitted has been answered."""
        while self._busy:
            self._idle.clear()
            await self._idle.wait()
        self._thread_jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run_thread(self) -> None:
        while (job := self._thread_jobs.get()) is not None:
            job()
            del job  # and the batch it refers to
        with self._write_lock.held():
            self._store_reserved_tick(self._clock.last)
        self._connection.close()
        self._write_lock.close()

    # On the event loop.

    def _begin(self, seen: int = 0) -> None:
        """Wait as long as each iteration of the event loop brings more writes: together they cost one commit and one sync."""
        if seen < len(self._waiting) < FULL_BATCH:
            self._loop.call_soon(self._begin, len(self._waiting))
        elif self._write_lock.try_acquire():
            self._run()
        else:
            self._thread_jobs.put(self._wait_for_write_lock)

    def _run(self) -> None:
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        self._end_snapshot()  # it would be stale after the commit, and would keep the log from being restarted
        try:
            self._write(batch, MAX_RECORDS_ON_LOOP)
        except WriteTooLong:
            for write in batch:
                write.error = None
            self._thread_jobs.put(lambda: self._write_long(batch))
        else:
            finish = self._sync_in_thread if perf_counter() < self._disk_slow_until else self._sync_on_loop
            finish(batch)

    def _sync_in_thread(self, batch: list[PendingWrite]) -> None:
        self._thread_jobs.put(lambda: self._finish(batch))

    def _sync_on_loop(self, batch: list[PendingWrite]) -> None:
        began = perf_counter()
        self._sync(batch)
        took = perf_counter() - began
        if took > QUICK_SYNC_SECONDS:
            self._disk_slow_until = began + SLOW_SYNC_FACTOR * took
        self._answer(batch)

    def _answer(self, batch: list[PendingWrite]) -> None:
        for write in batch:
            write.answer()
        if self._waiting:
            self._loop.call_soon(self._begin)
        else:
            self._busy = False
            self._idle.set()

    # In the writer thread.

    def _wait_for_write_lock(self) -> None:
        self._write_lock.acquire()
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._run)

    def _write_long(self, batch: list[PendingWrite]) -> None:
        self._write(batch, UNLIMITED)
        self._finish(batch)

    def _finish(self, batch: list[PendingWrite]) -> None:
        self._sync(batch)
        with contextlib.suppress(RuntimeError):  # the event loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._answer, batch)

    # On either.

    def _sync(self, batch: list[PendingWrite]) -> None:
        try:
            self._wal.sync_up_to(self._shared.visible_commits)
        except EngineUnavailable as error:
            self._fail(batch, error)

    def _write(self, batch: list[PendingWrite], max_records: int) -> None:
        """Run and commit the batch with the write lock held. The lock is released before the sync."""
        try:
            self._wal.check()
            if self._run_bodies(batch, max_records):
                self._commit(batch)
        except EngineUnavailable as error:
            self._fail(batch, error)
        self._write_lock.release()

    def _commit(self, batch: list[PendingWrite]) -> None:
        try:
            reserved = self._reserved
            if self._clock.last > reserved:  # durable with the next commit that is: ticks of volatile records are lost with them
                reserved = self._clock.last + TICK_RESERVE
                self._store_reserved_tick(reserved)
            rows = changes_between(self._changes, self._connection.total_changes)
            if rows == 0:  # for example, all bodies were refused: there is nothing to see and nothing to sync
                self._connection.execute("COMMIT")
                return
            self._shared.begin_commit(durable=self._durable)
            try:
                self._connection.execute("COMMIT")
            finally:
                self._changes = self._connection.total_changes
                self._shared.end_commit(self._clock.now(), rows)
            self._reserved = reserved
            for write in batch:
                if write.after_commit is not None and write.error is None:
                    write.after_commit(write.result)
        except Exception as error:
            self._fail(batch, error)

    def _run_bodies(self, batch: list[PendingWrite], max_records: int) -> bool:
        """Run the batch in one transaction. When a body fails after it has written, the transaction is rolled back and the others
        run again without it. False when SQLite fails: then all writes of the batch have failed."""
        on_loop = max_records <= MAX_RECORDS_ON_LOOP
        try:
            for tries in itertools.count(1):
                self._roll_back()
                if on_loop and tries > MAX_TRIES_ON_LOOP:
                    raise WriteTooLong
                self._connection.execute("BEGIN IMMEDIATE")
                if self._try(batch, max_records, perf_counter() + MAX_LOOP_SECONDS if on_loop else inf):
                    return True
        except sqlite3.Error as error:
            self._fail(batch, error)
        except WriteTooLong:
            self._roll_back()
            raise
        return False

    def _try(self, batch: list[PendingWrite], max_records: int, deadline: float) -> bool:
        """Run the bodies that have not failed yet. At the deadline the rest of the batch is left for the next one."""
        tx = SqliteTransaction(self._connection, self._clock, {})
        for number, write in enumerate(batch):
            if number and perf_counter() > deadline:
                self._waiting[:0] = batch[number:]
                del batch[number:]
                break
            if write.error is None:
                tx.begin(max_records)
                if not self._run_body(write, tx):
                    return False
        tx.store_counters()
        self._durable = tx.durable
        return True

    def _run_body(self, write: PendingWrite, tx: SqliteTransaction) -> bool:
        """False when the body has failed and the transaction has to be rolled back, or SQLite has done so already."""
        try:
            write.result = write.body(tx)
        except Exception as error:
            write.error = _refusal(error)
            return not tx.written and self._connection.in_transaction
        return True

    def _roll_back(self) -> None:
        """After some errors SQLite has rolled back by itself."""
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def _fail(self, batch: list[PendingWrite], error: Exception) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._roll_back()
        logger.debug("a commit of %d writes failed", len(batch), exc_info=error)
        for write in batch:
            write.error = _refusal(error) if isinstance(error, sqlite3.Error) else EngineUnavailable(str(error))

    def _store_reserved_tick(self, tick: int) -> None:
        self._connection.execute("UPDATE node SET reserved = ? WHERE number = ?", (tick, self._number))


def changes_between(before: int, after: int) -> int:
    """SQLite counts changes in a signed integer of 32 bits, which overflows after a few days of writing."""
    return (after - before) & 0xFFFFFFFF


def _refusal(error: Exception) -> Exception:
    """What the caller gets. A future takes any exception but StopIteration."""
    if isinstance(error, StopIteration):
        return RuntimeError("a transaction body raised StopIteration")
    if not isinstance(error, sqlite3.Error):
        return error
    if getattr(error, "sqlite_errorname", "") == "SQLITE_FULL":
        return StorageError(Code.InsufficientStorage)
    return EngineUnavailable(str(error))
