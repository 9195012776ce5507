"""Reads on the event loop: the reads that wait share one snapshot of the database, taken in one round trip.
A body whose rows were not all fetched runs again on a newer snapshot, with all of its rows fetched anew: what one body reads
always belongs together. Reads take no locks and wait for no write (contract G3)."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import psycopg

from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.partition.postgres.batches.batch_services import BatchServices
from verditer.partition.postgres.batches.fetched import Fetched, Wants
from verditer.partition.postgres.batches.loop_transaction import LoopTransaction, TooLong
from verditer.partition.postgres.batches.pending import PendingBody
from verditer.partition.postgres.batches.pool import ConnectionPool
from verditer.partition.postgres.batches.waiting import WaitingBodies, is_of_connection, meaning_of_failure
from verditer.partition.postgres.database import Database
from verditer.partition.postgres.locking.locks import BEGIN_READ, TIME
from verditer.partition.postgres.pipeline import PipelineCall, PipelineConnection
from verditer.partition.postgres.wire_values import int_of

T = TypeVar("T")

MAX_BATCH = 64
_BEGIN, _TIME, _COMMIT = PipelineCall(BEGIN_READ), PipelineCall(TIME), PipelineCall(b"COMMIT")


class ReadBatches:
    def __init__(self, database: Database, size: int, services: BatchServices) -> None:
        self._services = services
        self._loop = asyncio.get_running_loop()
        self._waiting = WaitingBodies(self._dispatch)
        self._pool = ConnectionPool(
            database,
            size,
            deadline_seconds=services.deadline_seconds,
            on_free=self._dispatch,
            on_failure=self._waiting.fail,
        )

    def submit(self, body: Callable[[Transaction], T]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.add(PendingBody(body, future, self._loop.time() + self._services.deadline_seconds))
        return future

    def expire(self, now: float) -> None:
        queue = self._waiting.queue
        while queue and queue[0].expires < now:
            queue.popleft().fail(EngineUnavailable("every database connection is busy"))

    def drop_connections(self) -> None:
        self._pool.drop()

    async def close(self) -> None:
        await self._pool.close()
        self._waiting.fail(EngineUnavailable("the engine is closed"))

    def _dispatch(self) -> None:
        while self._waiting.queue and (connection := self._pool.take()) is not None:
            self._waiting.start(self._run(connection, self._next_batch()))

    def _next_batch(self) -> list[PendingBody]:
        queue = self._waiting.queue
        batch = [queue.popleft()]
        while queue and len(batch) < MAX_BATCH and not batch[0].alone and not queue[0].alone:
            batch.append(queue.popleft())
        return batch

    async def _run(self, connection: PipelineConnection, batch: list[PendingBody]) -> None:
        try:
            fetched = await self._fetch(connection, batch)
            self._pool.give_back(connection)
        except Exception as error:
            if isinstance(error, psycopg.Error):
                connection.close()  # its transaction has failed and is still open: every later statement would be refused
            self._pool.give_back(connection)
            self._recover(batch, error)
        else:
            self._answer(batch, fetched)

    async def _fetch(self, connection: PipelineConnection, batch: list[PendingBody]) -> Fetched:
        self._run_first_time(batch)
        fetched = Fetched(self._services.cache)
        if not batch:
            return fetched
        wants = Wants()
        for pending in batch:
            if pending.wants is not None:
                wants.add(pending.wants)
        fetches = fetched.plan(wants)
        calls = [_BEGIN, _TIME, *[fetch.call() for fetch in fetches], _COMMIT]
        results = await connection.run(calls, self._services.deadline_seconds)
        fetched.time = self._services.adjust_clock(int_of(results[1].get_value(0, 0)))
        for fetch, result in zip(fetches, results[2:-1], strict=True):
            fetch.take(fetched, result)
        return fetched

    def _run_first_time(self, batch: list[PendingBody]) -> None:
        """Find out what the bodies read."""
        tx = self._transaction(Fetched(self._services.cache))
        for pending in list(batch):
            if pending.wants is None:
                self._try(pending, tx, batch)

    def _try(self, pending: PendingBody, tx: LoopTransaction, batch: list[PendingBody]) -> bool:
        try:
            is_done = pending.run(tx)
        except TooLong:
            is_done = False
            pending.runs = 1 << 30
        if not is_done and pending.is_too_long:
            batch.remove(pending)
            self._services.run_in_thread(pending)
        return is_done

    def _answer(self, batch: list[PendingBody], fetched: Fetched) -> None:
        tx = self._transaction(fetched)
        for pending in list(batch):
            if self._try(pending, tx, batch):
                pending.answer()
            elif pending in batch:
                self._waiting.add(pending)

    def _transaction(self, fetched: Fetched) -> LoopTransaction:
        return LoopTransaction(
            fetched, {}, writable=False, estimated_now=self._services.now(), next_tick=self._services.issued_tick
        )

    def _recover(self, batch: list[PendingBody], error: Exception) -> None:
        if is_of_connection(error):
            self._services.drop_connections()
        self._waiting.recover(batch, meaning_of_failure(error), error)
