"""The pace of background work: many short transactions with a pause after each, so that requests do not wait long for the writer.

How many records fit into a few milliseconds depends on the records, on the engine and on the load of the machine. So the first
transaction handles few records, and each further one as many as the duration of the last one suggests.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from verditer.core.records.record import Record, Span
from verditer.partition.engine import Engine, Scope, Transaction

P = TypeVar("P")
T = TypeVar("T")

FIRST_LIMIT = 100  # records in the first transaction
MIN_LIMIT = 50  # fewer are not worth a commit; on PostgreSQL, where round trips dominate, other writes do not wait for these
MAX_LIMIT = 1000  # the commit of so many writes some hundred pages, however quickly they were changed
TARGET_SECONDS = 0.004  # for the transaction body; the commit is not included
PAUSE_FACTOR = 2.0  # the pause is so many times as long as the transaction took


PacedStep = Callable[[Transaction, P, int], P | None]
"""A transaction body that handles up to a number of records from a position on. Returns the next position, None at the end."""


async def run_paced(engine: Engine, scope: Scope, start: P, step: PacedStep[P]) -> None:
    """Run a step from position to position until it has reached the end."""
    position: P | None = start
    limit = FIRST_LIMIT
    while position is not None:
        timed = _TimedStep(step, position, limit)
        position = await with_pause(engine.write([scope], timed.run))
        limit = next_limit(limit, timed.seconds)


async def with_pause(work: Awaitable[T]) -> T:
    """Wait for some work, then pause in proportion to its duration."""
    started = time.perf_counter()
    result = await work
    await asyncio.sleep(PAUSE_FACTOR * (time.perf_counter() - started))
    return result


def next_limit(limit: int, seconds: float) -> int:
    """The limit of the next transaction, given that this one took so long. It doubles at most: one quick step says little."""
    wanted = limit * TARGET_SECONDS / seconds if seconds else MAX_LIMIT
    return max(MIN_LIMIT, min(int(wanted), 2 * limit, MAX_LIMIT))


def deletion_of(kind: type[Record]) -> PacedStep[Span]:
    """A step that deletes records which own nothing and have no children."""
    return lambda tx, span, limit: tx.delete_span(kind, span, limit)[1]


class _TimedStep(Generic[P]):
    """A step as a transaction body that measures its own duration, without the wait for the writer and without the commit."""

    def __init__(self, step: PacedStep[P], position: P, limit: int) -> None:
        self._step = step
        self._position = position
        self._limit = limit
        self.seconds = 0.0

    def run(self, tx: Transaction) -> P | None:
        started = time.perf_counter()
        try:
            return self._step(tx, self._position, self._limit)
        finally:
            self.seconds = time.perf_counter() - started
