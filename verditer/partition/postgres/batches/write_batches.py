"""Writes on the event loop: the writes that wait share one transaction, two round trips and one sync of the database (group
commit).
The first round trip begins the transaction, takes the locks of all bodies and fetches what they read. The second sends their
changes and commits. A batch takes only locks that are free; a write whose scope another process holds leaves the batch and waits
in a transaction of its own. Writes of this process that exclude each other run one after another: in one batch, or in the next
one. docs/decisions/postgres-batches.md argues why this keeps the contract of scopes."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import psycopg

from verditer.partition.engine import EngineUnavailable, Scope, Transaction
from verditer.partition.postgres.batches.batch_services import BatchServices
from verditer.partition.postgres.batches.changes import COMMIT, ChangedRecords, cache_written, calls_of, commit_of
from verditer.partition.postgres.batches.fetched import Fetched, Wants
from verditer.partition.postgres.batches.loop_transaction import LoopTransaction, TooLong
from verditer.partition.postgres.batches.pending import PendingBody
from verditer.partition.postgres.batches.pool import ConnectionPool
from verditer.partition.postgres.batches.waiting import WaitingBodies, is_of_connection, meaning_of_failure
from verditer.partition.postgres.database import Database
from verditer.partition.postgres.locking.local_locks import LocalLocks
from verditer.partition.postgres.locking.locks import BEGIN_WRITE, TIME, locks_of, merged
from verditer.partition.postgres.pipeline import ConnectionLost, PipelineCall, PipelineConnection
from verditer.partition.postgres.wire_values import int_of

T = TypeVar("T")

MAX_BATCH = 64  # bounds how long the first body waits for the others
_BEGIN, _TIME, _ROLLBACK = PipelineCall(BEGIN_WRITE), PipelineCall(TIME), PipelineCall(b"ROLLBACK")


class CommitFailed(Exception):
    """What was sent with COMMIT failed; `__cause__` says how."""


class WriteBatches:
    def __init__(self, database: Database, size: int, waiters: int, services: BatchServices, lock_seconds: float) -> None:
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._lock_seconds = lock_seconds
        self._deadline_seconds = services.deadline_seconds
        self._waiting = WaitingBodies(self._dispatch)
        pool = partial(ConnectionPool, database, deadline_seconds=services.deadline_seconds)
        self._pool = pool(size, on_free=self._dispatch, on_failure=self._waiting.fail)
        self._waiters = pool(waiters, on_free=self._dispatch_contended, on_failure=self._fail_contended)
        self._contended: deque[PendingBody] = deque()  # another process holds one of their scopes
        self._running = LocalLocks()  # of the transactions of this process

    def submit(self, scopes: Sequence[Scope], body: Callable[[Transaction], T]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        expires = self._loop.time() + max(self._deadline_seconds, self._lock_seconds)
        self._waiting.add(PendingBody(body, future, expires, locks_of(self._services.locking, scopes)))
        return future

    def expire(self, now: float) -> None:
        for queue in (self._waiting.queue, self._contended):
            for pending in [pending for pending in queue if pending.expires < now]:
                queue.remove(pending)
                if queue is self._contended:
                    self._running.remove(pending.locks)
                pending.fail(EngineUnavailable("every database connection is busy, or another write holds the scope"))
        self._dispatch()  # others may have waited for what these would have locked

    def drop_connections(self) -> None:
        self._pool.drop()
        self._waiters.drop()

    async def close(self) -> None:
        """Return when everything that was submitted has been answered."""
        while self._waiting.tasks:
            await asyncio.wait(self._waiting.tasks)
        await self._pool.close()
        await self._waiters.close()
        self._waiting.fail(EngineUnavailable("the engine is closed"))
        self._fail_contended(EngineUnavailable("the engine is closed"))

    # Which writes run next.

    def _dispatch(self) -> None:
        while self._waiting.queue and (connection := self._pool.take()) is not None:
            batch = self._next_batch()
            if not batch:
                self._pool.keep(connection)
                return
            for pending in batch:
                self._running.add(pending.locks)
            self._waiting.start(self._run(self._pool, connection, batch, wait=False))

    def _next_batch(self) -> list[PendingBody]:
        """The first writes that exclude no running one. A write does not overtake one that excludes it."""
        batch: list[PendingBody] = []
        passed_over = LocalLocks()
        left: deque[PendingBody] = deque()
        for pending in self._waiting.queue:
            if pending.future.done():  # cancelled
                continue
            has_room = not batch or (len(batch) < MAX_BATCH and not pending.alone and not batch[0].alone)
            if has_room and not self._running.conflict(pending.locks) and not passed_over.conflict(pending.locks):
                batch.append(pending)
            else:
                passed_over.add(pending.locks)
                left.append(pending)
        self._waiting.queue = left
        return batch

    def _dispatch_contended(self) -> None:
        while self._contended and (connection := self._waiters.take()) is not None:
            self._waiting.start(self._run(self._waiters, connection, [self._contended.popleft()], wait=True))

    def _fail_contended(self, error: EngineUnavailable) -> None:
        while self._contended:
            pending = self._contended.popleft()
            self._running.remove(pending.locks)
            pending.fail(EngineUnavailable(error.reason))

    # One batch.

    async def _run(self, pool: ConnectionPool, connection: PipelineConnection, batch: list[PendingBody], *, wait: bool) -> None:
        locked = list(batch)  # bodies whose locks end with this transaction
        try:
            contended = await self._transact(connection, batch, wait=wait)
            for pending in contended:
                locked.remove(pending)
            self._contended.extend(contended)
        except Exception as error:
            await self._roll_back(connection)
            self._recover(batch, error)
        finally:
            for pending in locked:
                self._running.remove(pending.locks)
            pool.give_back(connection)
            self._dispatch()
            self._dispatch_contended()

    async def _transact(self, connection: PipelineConnection, batch: list[PendingBody], *, wait: bool) -> list[PendingBody]:
        """Run the batch and answer it. Returns the writes that did not get their locks."""
        self._run_first_time(batch)
        if not batch:
            return []
        fetched, changes = Fetched(self._services.cache), ChangedRecords()
        contended = await self._begin(connection, batch, fetched, wait=wait)
        tx = self._transaction(fetched, changes)
        done: list[PendingBody] = []
        left = [pending for pending in batch if pending not in contended]
        while left:
            left = await self._run_bodies(connection, left, fetched, tx, done, batch)
        calls, encoded = calls_of(changes)
        if not calls:  # for example, all bodies were refused
            await self._end_unchanged(connection)
        else:
            connection.check()
            try:
                await connection.run([*calls, *commit_of(changes)], self._deadline_seconds)
            except (psycopg.Error, ConnectionLost) as error:
                raise CommitFailed from error
            cache_written(self._services.cache, encoded)
        _answer(done)  # not before the locks have been released: a consumer would pass over the messages that a body has claimed
        return contended

    async def _end_unchanged(self, connection: PipelineConnection) -> None:
        """Release the locks. Nothing depends on the outcome."""
        try:
            await connection.run([COMMIT], self._deadline_seconds)
        except (psycopg.Error, ConnectionLost):
            connection.close()

    def _run_first_time(self, batch: list[PendingBody]) -> None:
        """Find out what the bodies read. Each is alone here, so what it reads of another's changes is not known."""
        for pending in list(batch):
            if pending.wants is None:
                try:
                    pending.run(self._transaction(Fetched(self._services.cache), {}))
                except TooLong:
                    self._to_thread(pending, batch)
                else:
                    if pending.is_too_long:
                        self._to_thread(pending, batch)

    async def _begin(
        self, connection: PipelineConnection, batch: list[PendingBody], fetched: Fetched, *, wait: bool
    ) -> list[PendingBody]:
        locking, locks = self._services.locking, merged([pending.locks for pending in batch])
        lock = locking.wait_for(locks) if wait else locking.take_free(locks)
        fetches = fetched.plan(_wants_of(batch))
        calls = [_BEGIN, *lock, _TIME, *[fetch.call() for fetch in fetches]]
        results = await connection.run(calls, self._deadline_seconds + (self._lock_seconds if wait else 0))
        locked, (time, *rows) = results[1 : 1 + len(lock)], results[1 + len(lock) :]
        fetched.time = self._services.adjust_clock(int_of(time.get_value(0, 0)))
        for fetch, result in zip(fetches, rows, strict=True):
            fetch.take(fetched, result)
        if wait:
            return []
        free = locking.taken(locks, locked)
        return [pending for pending in batch if not all(key in free for key, _ in pending.locks)]

    async def _run_bodies(
        self,
        connection: PipelineConnection,
        bodies: list[PendingBody],
        fetched: Fetched,
        tx: LoopTransaction,
        done: list[PendingBody],
        batch: list[PendingBody],
    ) -> list[PendingBody]:
        """Returns the bodies that have to run again. What they asked for has been fetched."""
        left: list[PendingBody] = []
        needs_ticks = False
        for pending in bodies:
            try:
                is_done = pending.run(tx)
            except TooLong:
                self._to_thread(pending, batch)
                continue
            needs_ticks = needs_ticks or tx.needs_ticks
            if is_done:
                done.append(pending)
            elif pending.is_too_long:
                self._to_thread(pending, batch)
            else:
                left.append(pending)
        if needs_ticks:
            assert fetched.time is not None
            await self._services.reserve_ticks(fetched.time)
        if left and (fetches := fetched.plan(_wants_of(left))):
            results = await connection.run([fetch.call() for fetch in fetches], self._deadline_seconds + self._lock_seconds)
            for fetch, result in zip(fetches, results, strict=True):
                fetch.take(fetched, result)
        return left

    def _to_thread(self, pending: PendingBody, batch: list[PendingBody]) -> None:
        batch.remove(pending)
        self._services.run_in_thread(pending)

    def _transaction(self, fetched: Fetched, changes: ChangedRecords) -> LoopTransaction:
        return LoopTransaction(
            fetched, changes, writable=True, estimated_now=self._services.now(), next_tick=self._services.issued_tick
        )

    # What went wrong.

    async def _roll_back(self, connection: PipelineConnection) -> None:
        if not connection.closed:
            try:
                await connection.run([_ROLLBACK], self._deadline_seconds)
            except (psycopg.Error, ConnectionLost):
                connection.close()

    def _recover(self, batch: list[PendingBody], error: Exception) -> None:
        committing = isinstance(error, CommitFailed)
        cause = error.__cause__ if isinstance(error, CommitFailed) and error.__cause__ is not None else error
        if is_of_connection(cause):
            self._services.drop_connections()
        meaning = meaning_of_failure(cause, committing=committing)
        self._waiting.recover(batch, meaning, cause)


def _wants_of(batch: list[PendingBody]) -> Wants:
    wants = Wants()
    for pending in batch:
        if pending.wants is not None:
            wants.add(pending.wants)
    return wants


def _answer(done: list[PendingBody]) -> None:
    for pending in done:
        pending.answer()
