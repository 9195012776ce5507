"""Which reads and uploads are running, in this process and in every other process of the store.

The collector removes no bytes that a running operation may need. Each process announces the start of its oldest running operation
(`Horizon`) every `ANNOUNCE_SECONDS`, and before it first commits a record that names an extent. The minimum over all processes,
less `MARGIN`, is the horizon. Extents that were released, or written and never named, before the horizon are unused.

A process that stops announcing is taken for dead, and its operations no longer count. The other processes judge this by how long
they have seen its heartbeat unchanged, each by its own monotonic clock. The clock of the store plays no part in it: tests move
that clock, and a jump must not make a live process look dead (`docs/decisions/collector-horizon.md`). A process that only slept
may wake with an upload whose extent was swept meanwhile. `ActiveOperation.write` therefore commits a record that names an extent
only while the process's own `Horizon` is stored and fresh. Otherwise the upload is refused and its client sends it again.
"""

import itertools
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import NamedTuple, TypeVar

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.records.activity import Horizon
from verditer.core.records.record import EVERY_KEY
from verditer.partition.engine import Engine, Scope, Transaction

T = TypeVar("T")

ANNOUNCE_SECONDS = 30.0
DEAD_AFTER_SECONDS = 600.0  # a process whose heartbeat has not changed for this long is dead
COUNTED_SECONDS = (
    2 * ANNOUNCE_SECONDS
)  # counted between two looks at most: while the observer slept, the others may have slept too
COMMIT_SECONDS = 60.0  # how long the commit of a record that names an extent may take
MARGIN = seconds(60)  # ticks: how long a commit may take, and how much the clocks of two processes may disagree
_SCOPE = ("jobs", "horizon")


class Activity:
    """The running operations of one process, and what it has seen of the other processes.

    `process` is the key of its `Horizon`. It changes when another process has taken this one for dead.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.process = _new_process_id()
        self.running: dict[int, int] = {}  # operation number → tick of its start
        self.numbers = itertools.count()
        self._monotonic = monotonic
        self._announced: float | None = None  # monotonic time of the last announcement; None before the first
        self._trusted_from = (
            0  # a tick: extents of operations that began earlier may have been swept before the first announcement
        )
        self._heartbeats: dict[str, _Heartbeat] = {}  # of the other processes
        self._looked = monotonic()  # when this process last looked at the heartbeats

    def begin(self, start: int) -> "ActiveOperation":
        """Register an operation that began at tick `start`. It is running until its `with` block ends."""
        return ActiveOperation(self, start)

    def oldest(self, now: int) -> int:
        return min(self.running.values(), default=now)

    async def announce(self, engine: Engine) -> int:
        """Store the horizon of this process. Returns the horizon of the whole store, in ticks."""
        process, first = self.process, self._announced is None
        looked = self._monotonic()
        now = engine.now()
        oldest = min(now, self.oldest(now))

        def commit(tx: Transaction) -> tuple[int, int, list[Horizon]] | None:
            if not first and tx.get(Horizon, process) is None:
                return None
            tx.put(Horizon(process=process, oldest=oldest, heartbeat=tx.tick()))
            others = [other for other in tx.scan(Horizon, EVERY_KEY) if other.process != process]
            alive = [other for other in others if self._silent_seconds(other, looked) < DEAD_AFTER_SECONDS]
            for dead in {other.process for other in others} - {other.process for other in alive}:
                tx.delete(Horizon, dead)
            return tx.now, min([oldest, tx.now, *(other.oldest for other in alive)]) - MARGIN, alive

        outcome = await engine.write([_SCOPE], commit)
        if outcome is None:
            if self.process == process:
                self.process, self._announced = _new_process_id(), None
            return await self.announce(engine)
        stored, horizon, alive = outcome
        self._observe(alive, looked)
        if self.process == process:
            if first:  # sweeps up to now have left alone what was younger than MARGIN; half of it is for clocks that disagree
                self._trusted_from = stored - MARGIN // 2
            self._announced = max(self._announced or looked, looked)
        return horizon

    async def withdraw(self, engine: Engine) -> None:
        """Remove the announcement: this process stops, and no operation is running."""
        process, self._announced = self.process, None
        await engine.write([_SCOPE], lambda tx: tx.delete(Horizon, process))

    def may_name_extents(self, tx: Transaction, start: int) -> bool:
        """Whether extents written since `start` are still stored, and stay so until the transaction is committed.

        The stored `Horizon` proves that no process has taken this one for dead so far. Its age proves that none will do so during
        the commit.
        """
        if self._announced is None or start < self._trusted_from:
            return False
        fresh = self._monotonic() < self._announced + DEAD_AFTER_SECONDS - COMMIT_SECONDS
        return fresh and tx.get(Horizon, self.process) is not None

    def _silent_seconds(self, other: Horizon, looked: float) -> float:
        """For how long this process has seen the heartbeat of another one unchanged. Time in which it did not look counts little:
        a machine that was suspended wakes one process before the other."""
        known = self._heartbeats.get(other.process)
        if known is None or known.value != other.heartbeat:
            return 0.0
        return known.silent_seconds + min(max(looked - self._looked, 0.0), COUNTED_SECONDS)

    def _observe(self, others: list[Horizon], looked: float) -> None:
        self._heartbeats = {other.process: _Heartbeat(other.heartbeat, self._silent_seconds(other, looked)) for other in others}
        self._looked = max(self._looked, looked)


class _Heartbeat(NamedTuple):
    value: int
    silent_seconds: float


class ActiveOperation:
    """A running read or upload. It ends with its `with` block."""

    __slots__ = ("_activity", "_number", "start")

    def __init__(self, activity: Activity, start: int) -> None:
        self._activity = activity
        self._number = next(activity.numbers)
        self.start = start
        activity.running[self._number] = start

    def __enter__(self) -> "ActiveOperation":
        return self

    def __exit__(self, *_: object) -> None:
        self._activity.running.pop(self._number, None)

    def end(self) -> None:
        """For an operation that does not end with a block. It may have ended already."""
        self._activity.running.pop(self._number, None)

    async def during(self, chunks: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """The same chunks. The operation ends after the last one, or when the reader gives up."""
        with self:
            async with aclosing(chunks):
                async for chunk in chunks:
                    yield chunk

    async def write(self, engine: Engine, scope: Scope, body: Callable[[Transaction], T]) -> T:
        """As `engine.write`, for a body that names an extent which this operation has written."""

        def checked(tx: Transaction) -> T:
            if not self._activity.may_name_extents(tx, self.start):
                raise _NotAnnounced
            return body(tx)

        for _ in range(3):  # the announcement is missing or old; another process has removed it; it is removed once more
            try:
                return await engine.write([scope], checked)
            except _NotAnnounced:
                await self._activity.announce(engine)
        raise StorageError(Code.ServerBusy)


class _NotAnnounced(Exception):
    """The other processes may take this one for dead."""


def _new_process_id() -> str:
    return str(uuid.uuid4())
