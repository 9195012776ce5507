"""Bodies that wait for a connection, and what becomes of them when their transaction fails: what batches of reads and batches of
writes have in common."""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import psycopg

from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.batches.pending import PendingBody
from verditer.partition.postgres.connection import TryAgain, is_wrong_server, meaning_of, unknown_outcome
from verditer.partition.postgres.pipeline import ConnectionLost, DeadlinePassed

ATTEMPTS = 5  # when the server cancels a transaction for a conflict, or the connection breaks
BACKOFF_SECONDS = 0.01  # the upper bound of the first random pause; it doubles with each attempt


class WaitingBodies:
    """`dispatch` takes bodies from `queue` and starts a task for each batch of them."""

    def __init__(self, dispatch: Callable[[], None]) -> None:
        self.queue: deque[PendingBody] = deque()
        self.tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._dispatch = dispatch
        self._is_scheduled = False

    def add(self, pending: PendingBody) -> None:
        self.queue.append(pending)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._dispatch_scheduled)  # after the other callbacks of this iteration, which may add more

    def _dispatch_scheduled(self) -> None:
        self._is_scheduled = False
        self._dispatch()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def fail(self, error: EngineUnavailable) -> None:
        while self.queue:
            self.queue.popleft().fail(EngineUnavailable(error.reason))

    def recover(self, batch: list[PendingBody], meaning: Exception, cause: BaseException) -> None:
        """The transaction of a batch has failed, and nothing happened, or its outcome is unknown and `meaning` says so."""
        for pending in batch:
            if len(batch) > 1 and not isinstance(cause, ConnectionLost | EngineUnavailable):
                pending.alone = True  # the error may be that of one body only, or of one record
                self.add(pending)
            else:
                self._retry_or_fail(pending, meaning, cause)

    def _retry_or_fail(self, pending: PendingBody, meaning: Exception, cause: BaseException) -> None:
        pending.attempts += 1
        if isinstance(meaning, TryAgain) and pending.attempts < ATTEMPTS:
            self._loop.call_later(random.uniform(0, BACKOFF_SECONDS * 2**pending.attempts), self.add, pending)
        elif isinstance(meaning, TryAgain):
            pending.fail(EngineUnavailable(f"given up after {ATTEMPTS} attempts: {cause}"))
        else:
            pending.fail(_copy_of(meaning))


def is_of_connection(cause: BaseException) -> bool:
    """Whether every other connection to the server is as useless: it is stopped, or not the primary any more."""
    return isinstance(cause, DeadlinePassed) or is_wrong_server(cause)


def meaning_of_failure(cause: BaseException, *, committing: bool = False) -> Exception:
    """What the failure of a transaction means to the callers of its bodies."""
    if isinstance(cause, psycopg.Error):
        return meaning_of(cause, closed=False, committing=committing)
    if isinstance(cause, ConnectionLost):
        if committing:
            return unknown_outcome()
        return EngineUnavailable(str(cause)) if isinstance(cause, DeadlinePassed) else TryAgain()
    assert isinstance(cause, Exception)
    return cause


def _copy_of(error: Exception) -> Exception:
    """Each caller gets an exception of its own: a traceback is part of it."""
    return EngineUnavailable(error.reason) if isinstance(error, EngineUnavailable) else error
