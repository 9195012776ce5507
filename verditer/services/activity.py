"""Which reads and uploads are running, here and in every other process of the store: the collector removes no bytes in use.

Each process announces how far back its work reaches (`Horizon`), often, and before it first names an extent. One that has
been silent for long is taken for dead. It may only have slept, and wake with an upload in hand whose extent was swept as
left over. So an extent is named only while the last announcement is fresh (`Work.write`), and never by work that began long
before a first one: such an upload is refused, and its client sends it again.
"""

import itertools
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TypeVar

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.records.activity import Horizon
from verditer.core.records.record import Span
from verditer.partition.engine import Engine, Scope, Transaction

T = TypeVar("T")

ANNOUNCE_SECONDS = 30.0
SILENT = seconds(600)  # a process that has not been heard of for this long is gone
MARGIN = seconds(60)  # what a commit may take, what clocks may disagree by, what passes before a new read is known
_EVERYBODY = Span(b"", b"\xff" * 64)
_SCOPE = ("jobs", "horizon")


class Activity:
    """One for each process. `process` changes when others gave this one up, and it begins anew."""

    def __init__(self) -> None:
        self.process = _new_process()
        self._announced = 0  # the time of the last announcement the store took; 0 before the first
        self._trusted_from = 0  # work that began earlier may have been swept before the first announcement
        self.running: dict[int, int] = {}
        self.numbers = itertools.count()

    def since(self, start: int) -> "Work":
        """Running from `start` (ticks) until the `with` block ends."""
        return Work(self, start)

    async def stream(self, start: int, pieces: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
        """The same pieces; running until the last one was taken or the reader gave up."""
        with self.since(start):
            async with aclosing(pieces):
                async for piece in pieces:
                    yield piece

    def oldest(self, now: int) -> int:
        return min(self.running.values(), default=now)

    async def announce(self, engine: Engine) -> int:
        """Say how far back this process reaches. The answer: what was let go or made before this, nobody uses any more."""
        process, first = self.process, not self._announced
        now = engine.now()
        oldest = min(now, self.oldest(now))

        def commit(tx: Transaction) -> tuple[int, int] | None:
            if not first and tx.get(Horizon, process) is None:
                return None
            tx.put(Horizon(process=process, oldest=oldest, seen=tx.now))
            return tx.now, min(oldest, _reach_of_others(tx, process)) - MARGIN

        outcome = await engine.write(_SCOPE, commit)
        if outcome is None:
            if self.process == process:
                self.process, self._announced = _new_process(), 0
            return await self.announce(engine)
        seen, horizon = outcome
        if self.process == process:
            if first:  # whoever swept until now left alone what was younger than MARGIN; half of it is for clocks
                self._trusted_from = seen - MARGIN // 2
            self._announced = max(self._announced, seen)
        return horizon

    async def retire(self, engine: Engine) -> None:
        """Nothing runs here any more."""
        process, self._announced = self.process, 0
        await engine.write(_SCOPE, lambda tx: tx.delete(Horizon, process))

    def vouches_for(self, start: int, now: int) -> bool:
        """Nobody can have swept, or will sweep within MARGIN from now, what work that began at `start` has made."""
        return start >= self._trusted_from and now < self._announced + SILENT - MARGIN


class Work:
    """A read or an upload, running inside of its `with` block."""

    __slots__ = ("_activity", "_number", "_start")

    def __init__(self, activity: Activity, start: int) -> None:
        self._activity = activity
        self._start = start

    def __enter__(self) -> "Work":
        self._number = next(self._activity.numbers)
        self._activity.running[self._number] = self._start
        return self

    def __exit__(self, *_: object) -> None:
        del self._activity.running[self._number]

    async def write(self, engine: Engine, scope: Scope, body: Callable[[Transaction], T]) -> T:
        """As `engine.write`, for a body that names an extent this work has written."""

        def vouched(tx: Transaction) -> T:
            if not self._activity.vouches_for(self._start, tx.now):
                raise _Unheard
            return body(tx)

        for _ in range(3):  # stale, given up; a third time when the clock jumps in between
            try:
                return await engine.write(scope, vouched)
            except _Unheard:
                await self._activity.announce(engine)
        raise StorageError(Code.ServerBusy)


class _Unheard(Exception):
    """The other processes may believe that this one is gone."""


def _reach_of_others(tx: Transaction, process: str) -> int:
    """How far back the other processes reach. Those that are gone are forgotten on the way."""
    oldest = tx.now
    for other in list(tx.scan(Horizon, _EVERYBODY)):
        if other.process == process:
            continue
        if other.seen < tx.now - SILENT:
            tx.delete(Horizon, other.process)
        else:
            oldest = min(oldest, other.oldest)
    return oldest


def _new_process() -> str:
    return str(uuid.uuid4())
