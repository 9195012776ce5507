"""Ticks for many processes on one store: no two of them ever issue the same one, whatever happens to a process or a clock.

The store has a row for each of the 64 node numbers: the tick up to which that number's ticks are reserved. A process takes
the row that has been free longest, moves its bound ten seconds ahead, and issues ticks of that number below the bound. At
the bound it moves it on, provided the row is still as it left it; otherwise somebody else took the number while this process
was silent, and it takes another. So a process that lost its connection, slept, or was given up for dead can only use what it
had reserved, and nobody else gets those ticks. A database clock that runs backwards changes nothing: bounds only grow.
"""

import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.types.numeric import Int8

from verditer.core.clock import HybridClock
from verditer.core.dates import seconds
from verditer.partition.engine import EngineUnavailable

RESERVE = seconds(10)  # one statement per ten seconds of writing

Connect = Callable[[], "psycopg.Connection[tuple[Any, ...]]"]


class Ticks:
    """One per engine. Reservations are their own transactions, on a connection that is opened for each of them."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._node: int | None = None
        self._clock = HybridClock(_no_time)
        self._bound = 0

    @property
    def last(self) -> int:
        """The latest tick issued, or 0."""
        return self._clock.last if self._node is not None else 0

    def tick(self, after: int) -> int:
        with self._lock:
            tick = self._clock.tick(after)
            if self._node is None or tick >= self._bound:
                self._reserve(tick)
                tick = self._clock.tick(after)
            return tick

    def give_back(self) -> None:
        """Let go of what was reserved and not issued, so that a restart finds its number free."""
        with self._lock:
            if self._node is not None:
                with self._connect() as connection:
                    connection.execute(_MOVE, (Int8(self._clock.last), self._node, Int8(self._bound)))
            self._node = None

    def _reserve(self, tick: int) -> None:
        with self._connect() as connection:
            if self._node is None or not self._move_bound(connection, tick + RESERVE):
                self._take_node(connection, tick)

    def _move_bound(self, connection: "psycopg.Connection[tuple[Any, ...]]", bound: int) -> bool:
        moved = connection.execute(_MOVE, (Int8(bound), self._node, Int8(self._bound))).rowcount == 1
        if moved:
            self._bound = bound
        return moved

    def _take_node(self, connection: "psycopg.Connection[tuple[Any, ...]]", tick: int) -> None:
        """A number whose reservation has passed; when a clock went backwards there is none, and ticks go on behind one."""
        with connection.transaction():
            row = connection.execute(_FREE, (Int8(tick),)).fetchone() or connection.execute(_ANY).fetchone()
            if row is None:
                raise EngineUnavailable("every node number is being taken at this moment")
            node, reserved = row
            floor = max(tick, reserved)
            connection.execute(_MOVE, (Int8(floor + RESERVE), node, Int8(reserved)))
        self._clock = HybridClock(_no_time, node, floor)
        self._node = node
        self._bound = floor + RESERVE


_MOVE = "UPDATE node SET reserved = %s WHERE number = %s AND reserved = %s"
_FREE = "SELECT number, reserved FROM node WHERE reserved < %s ORDER BY reserved, number LIMIT 1 FOR UPDATE SKIP LOCKED"
_ANY = "SELECT number, reserved FROM node ORDER BY reserved, number LIMIT 1 FOR UPDATE SKIP LOCKED"


def _no_time() -> int:
    """The time comes with each transaction, as `after`."""
    return 0
