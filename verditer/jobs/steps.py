"""The pace of background work: many short transactions with a rest after each, so that nobody who writes waits long for it.

How many records fit into a few milliseconds depends on what they are, on the engine and on what else the machine has to do. So
a piece of work begins with few, and goes on with as many as the time of the transaction before suggests.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from verditer.core.records.record import Record, Span
from verditer.partition.engine import Engine, Scope, Transaction

P = TypeVar("P")
T = TypeVar("T")

FIRST = 100  # records in the first transaction
LEAST = 50  # less is not worth a commit; on PostgreSQL, where round trips count, nobody waits for these transactions
MOST = 1000  # a commit writes some hundred pages then, however quickly they were changed
AIM_SECONDS = 0.004  # for the body; the commit comes on top
REST = 2.0  # times as long as the transaction took: whoever waits for a turn to write gets it


Step = Callable[[Transaction, P, int], P | None]
"""Handles up to so many records from a place on, and says where to go on; None when all is done."""


async def in_steps(engine: Engine, scope: Scope, start: P, step: Step[P]) -> None:
    """Work through something from place to place."""
    place: P | None = start
    limit = FIRST
    while place is not None:
        timed = _Timed(step, place, limit)
        place = await rested(engine.write(scope, timed.run))
        limit = fitting(limit, timed.seconds)


async def rested(work: Awaitable[T]) -> T:
    """Wait for some work, and then some more in proportion."""
    started = time.perf_counter()
    result = await work
    await asyncio.sleep(REST * (time.perf_counter() - started))
    return result


def fitting(limit: int, seconds: float) -> int:
    """The next limit, when this one took so long. It grows by leaps of two, so that one quick step says little."""
    wanted = limit * AIM_SECONDS / seconds if seconds else MOST
    return max(LEAST, min(int(wanted), 2 * limit, MOST))


def plainly(kind: type[Record]) -> Step[Span]:
    """Remove records that own nothing besides."""
    return lambda tx, span, limit: tx.delete_span(kind, span, limit)[1]


class _Timed(Generic[P]):
    """A step as a transaction body that knows how long it ran, without its wait for the writer and without the commit."""

    def __init__(self, step: Step[P], place: P, limit: int) -> None:
        self._step = step
        self._place = place
        self._limit = limit
        self.seconds = 0.0

    def run(self, tx: Transaction) -> P | None:
        started = time.perf_counter()
        try:
            return self._step(tx, self._place, self._limit)
        finally:
            self.seconds = time.perf_counter() - started
