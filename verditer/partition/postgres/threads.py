"""Transactions in threads: bodies that read or change too many records for the event loop. Each thread has a connection of its
own.
A statement that is not answered in time ends its connection: the event loop shuts the socket down, because the thread itself
waits inside libpq. A long body may take as long as it likes, as long as its statements are answered."""

import asyncio
import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import psycopg

from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.partition.postgres.batches.waiting import ATTEMPTS, BACKOFF_SECONDS
from verditer.partition.postgres.connection import (
    PostgresConnection,
    TryAgain,
    is_wrong_server,
    leave_transaction,
    meaning_of,
)
from verditer.partition.postgres.database import Database, Lineage
from verditer.partition.postgres.locking.locks import Begin
from verditer.partition.postgres.transaction import PostgresTransaction

T = TypeVar("T")

MAX_QUEUE_SECONDS = 5  # a body that found no free thread for so long is refused: the database does not keep up


class WatchedConnection:
    """A connection of a thread, and since when its current statement has been waiting. `limit_seconds` is how long it may."""

    def __init__(self, connection: PostgresConnection, limit_seconds: float) -> None:
        self.connection = connection
        self.lineage: Lineage | None = None
        self.limit_seconds = limit_seconds
        self.waiting_since: float | None = None
        self.is_cut_off = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        self.progress()
        try:
            yield
        finally:
            self.waiting_since = None

    def progress(self) -> None:
        self.waiting_since = time.monotonic()

    def cut_off(self) -> None:
        """From another thread: the wait for the server ends with an error."""
        self.is_cut_off = True
        with (
            contextlib.suppress(psycopg.Error, OSError),
            socket.socket(fileno=os.dup(self.connection.pgconn.socket)) as duplicate,
        ):
            duplicate.shutdown(socket.SHUT_RDWR)


class Threads:
    """Short bodies and long reads have separate threads: a long read never keeps a write from its thread. Ticks are reserved in
    one more."""

    def __init__(self, database: Database, workers: int, scanners: int, lock_seconds: float, deadline_seconds: float) -> None:
        self._database = database
        self._lock_seconds = lock_seconds
        self._deadline_seconds = deadline_seconds
        self._connections: dict[int, WatchedConnection] = {}  # by thread
        self._extra: set[WatchedConnection] = set()
        self._workers = ThreadPoolExecutor(workers, "verditer-postgres")
        self._scanners = ThreadPoolExecutor(scanners, "verditer-postgres-scan")
        self._reserver = ThreadPoolExecutor(1, "verditer-postgres-ticks")

    async def call(self, work: Callable[[], T], *, long: bool = False) -> T:
        queued = time.monotonic()

        def start() -> T:
            if time.monotonic() - queued > MAX_QUEUE_SECONDS:
                raise EngineUnavailable("every database connection is busy")
            return work()

        return await asyncio.get_running_loop().run_in_executor(self._scanners if long else self._workers, start)

    async def reserve(self, work: Callable[[], T]) -> T:
        """For what a batch of writes waits for while it holds its locks: bodies in threads may wait for these."""
        return await asyncio.get_running_loop().run_in_executor(self._reserver, work)

    def cut_off_silent(self) -> None:
        """End the connections whose server has not answered in time. Called now and then on the event loop."""
        now = time.monotonic()
        for watched in [*self._connections.values(), *self._extra]:
            since = watched.waiting_since
            if since is not None and now - since > watched.limit_seconds:
                watched.cut_off()

    async def close(self) -> None:
        for threads in (self._workers, self._scanners, self._reserver):
            await asyncio.to_thread(threads.shutdown)
        for watched in self._connections.values():
            watched.connection.close()

    @contextlib.contextmanager
    def extra_connection(self, *, is_migration: bool = False) -> Iterator[PostgresConnection]:
        """A connection beside that of the thread, for a short transaction beside the one that is open. A migration takes as long
        as it takes."""
        watched = WatchedConnection(self._database.connect(), self._deadline_seconds)
        self._extra.add(watched)
        try:
            with watched.watched(), watched.connection as connection:
                self._database.set_up(connection)
                if is_migration:
                    connection.execute("SET statement_timeout = 0")
                    watched.waiting_since = None
                yield connection
        except psycopg.OperationalError as error:
            raise EngineUnavailable(str(error)) from error
        finally:
            self._extra.discard(watched)

    def thread_connection(self) -> WatchedConnection:
        """The connection of this thread; a new one if it broke."""
        watched = self._connections.get(threading.get_ident())
        if watched is not None and not self._database.is_newest(watched.lineage):
            watched.connection.close()
        if watched is None or watched.connection.closed:
            watched = WatchedConnection(self._database.connect(), self._deadline_seconds)
            self._connections[threading.get_ident()] = watched
            try:
                with watched.watched():
                    watched.lineage = self._database.set_up(watched.connection)
            except (psycopg.OperationalError, EngineUnavailable) as error:
                watched.connection.close()
                raise EngineUnavailable(str(error)) from error
        return watched

    def transact(
        self,
        begin: Begin,
        body: Callable[[Transaction], T],
        *,
        writable: bool,
        local_time: Callable[[int], int],
        next_tick: Callable[[int], int],
    ) -> T:
        """Run a body as one transaction, again where nothing has happened and another attempt may help."""
        for attempt in range(ATTEMPTS):
            try:
                watched = self.thread_connection()
                watched.limit_seconds = self._deadline_seconds + (self._lock_seconds if writable else 0)  # a write may wait
                with watched.watched():
                    return _attempt(watched, begin, body, writable, local_time, next_tick)
            except TryAgain as failure:
                reason = failure.__cause__
                time.sleep(random.uniform(0, BACKOFF_SECONDS * 2**attempt))
        raise EngineUnavailable(f"given up after {ATTEMPTS} attempts") from reason


def _attempt(
    watched: WatchedConnection,
    begin: Begin,
    body: Callable[[Transaction], T],
    writable: bool,
    local_time: Callable[[int], int],
    next_tick: Callable[[int], int],
) -> T:
    connection, committing = watched.connection, False
    try:
        with connection.pipeline():
            tx = PostgresTransaction(
                connection,
                begin(connection),
                writable=writable,
                local_time=local_time,
                next_tick=next_tick,
                progress=watched.progress,
            )
            result = _run_body(body, tx)
            committing = writable
            watched.progress()
            outcome = tx.end()
    except psycopg.Error as error:
        closed = connection.closed
        if watched.is_cut_off and not committing:
            raise EngineUnavailable(f"the database did not answer within {watched.limit_seconds:g} s") from error
        if is_wrong_server(error):
            connection.close()
        raise meaning_of(error, closed=closed, committing=committing) from error
    finally:
        leave_transaction(connection)
    # COMMIT of a failed transaction answers ROLLBACK, without an error: a body must not catch what a statement raised.
    assert outcome.statusmessage == "COMMIT", outcome.statusmessage
    return result


def _run_body(body: Callable[[Transaction], T], tx: PostgresTransaction) -> T:
    try:
        return body(tx)
    except Exception:
        with contextlib.suppress(psycopg.Error):
            tx.cancel()
        raise
