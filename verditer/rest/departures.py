"""When small answers leave: at once or, where requests come one upon the other, several of them together.

Each answer wakes its client, and the client's next request wakes us. Where many clients wait, waking is much of the work; those
whose answers leave together are woken together, and so are we (docs/decisions/answers-together.md).
"""

import asyncio
from collections.abc import Callable
from time import monotonic
from typing import Protocol

# Between clients of one turn of the loop lies a system call; who slept in between was away for longer.
_SAME_TURN_SECONDS = 0.00003
_BUSY = 2  # clients that followed upon others
_TOGETHER = 16
_PATIENCE_SECONDS = 0.002  # and the request that is in hand


class Traveller(Protocol):
    """`HttpConnection`, as far as it waits here."""

    def depart(self) -> None: ...


class Departures:
    """One for each listening port."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._waiting: list[Traveller] = []
        self._since = 0.0  # of the first of them
        self._followed = 0  # how many clients came each upon the one before
        self._several = False  # left together the last time
        self._free_since = 0.0

    def arrival(self, now: float) -> None:
        """Bytes of a client came."""
        self._followed = self._followed + 1 if now - self._free_since < _SAME_TURN_SECONDS else 0

    def arrived(self) -> None:
        """They were dealt with."""
        self._free_since = self._clock()

    @property
    def gathering(self) -> bool:
        """Whether an answer should wait for others."""
        return self._several or self._followed >= _BUSY

    def wait(self, traveller: Traveller) -> None:
        """It departs within this turn of the loop, or earlier if it cannot wait for so long."""
        now = self._clock()
        if not self._waiting:
            self._since = now
            asyncio.get_running_loop().call_soon(self._leave)
        self._waiting.append(traveller)
        if len(self._waiting) == _TOGETHER or now - self._since > _PATIENCE_SECONDS:
            self._leave()

    def _leave(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting:
            self._several = len(waiting) > 1
            for traveller in waiting:
                traveller.depart()
