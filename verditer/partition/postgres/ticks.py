"""Unique ticks for many processes on one PostgreSQL store, whatever happens to a process or a clock.
The store has a row for each of the 64 node numbers: the tick up to which that number's ticks are reserved. A process takes the
row whose reservation ended first, moves its end ten seconds ahead, and issues ticks of that number before the end. At the end it
moves the end on, provided the row is as the process left it. Otherwise another process took the number while this one was silent,
and it takes another number. So a process that lost its connection or was suspended can only issue ticks that it had reserved, and
no other process issues those. A database clock that runs backwards changes nothing: reservations only grow.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import NamedTuple

from psycopg.types.numeric import Int8

from verditer.core.clock import HybridClock
from verditer.core.dates import seconds
from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.batches.loop_transaction import TicksUsedUp
from verditer.partition.postgres.connection import PostgresConnection

RESERVE = seconds(10)  # one statement per ten seconds of writing


class _Reservation(NamedTuple):
    """The ticks of one number before `end`. Replaced as a whole: the event loop issues ticks while a thread reserves."""

    clock: HybridClock
    node: int
    end: int


class TickIssuer:
    """One per engine. Reservations are transactions of their own, on a connection that is opened for each of them, in a
    thread."""

    def __init__(self, connect: Callable[[], AbstractContextManager[PostgresConnection]]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._reservation: _Reservation | None = None

    @property
    def last(self) -> int:
        """The latest tick that was issued, or 0."""
        reservation = self._reservation
        return reservation.clock.last if reservation is not None else 0

    def tick(self, after: int) -> int:
        with self._lock:
            try:
                return self.issued_tick(after)
            except TicksUsedUp:
                return self._reserve(max(after, self.last)).clock.tick(after)

    def issued_tick(self, after: int) -> int:
        """The same, on the event loop, which cannot wait. Raises TicksUsedUp."""
        reservation = self._reservation
        if reservation is None or (tick := reservation.clock.tick(after)) >= reservation.end:
            raise TicksUsedUp
        return tick

    def floor(self) -> int:
        """A time that was reached already, at most a reservation ago, even if the clock of the database says otherwise."""
        with self._connect() as connection:
            row = connection.execute("SELECT coalesce(max(reserved), 0) FROM node").fetchone()
        assert row is not None
        return int(row[0]) - RESERVE

    def reserve(self, after: int) -> None:
        with self._lock:
            tick = max(after, self.last)
            if self._reservation is None or tick >= self._reservation.end - RESERVE // 2:
                self._reserve(tick)

    def release(self) -> None:
        """Give up ticks that were reserved and not issued, so that a restarted process finds its number free."""
        with self._lock:
            if self._reservation is not None:
                clock, node, end = self._reservation
                with self._connect() as connection:
                    connection.execute(_MOVE, (Int8(clock.last), node, Int8(end)))
            self._reservation = None

    def _reserve(self, tick: int) -> _Reservation:
        with self._connect() as connection:
            self._reservation = self._extended(connection, tick + RESERVE) or self._taken(connection, tick)
        return self._reservation

    def _extended(self, connection: PostgresConnection, end: int) -> _Reservation | None:
        if self._reservation is None:
            return None
        clock, node, before = self._reservation
        is_extended = connection.execute(_MOVE, (Int8(end), node, Int8(before))).rowcount == 1
        return _Reservation(clock, node, end) if is_extended else None

    def _taken(self, connection: PostgresConnection, tick: int) -> _Reservation:
        """Take a number whose reservation has ended. After a clock went backwards there may be none; then any number is taken,
        and ticks continue after its reservation."""
        with connection.transaction():
            row = connection.execute(_ENDED, (Int8(tick),)).fetchone() or connection.execute(_ANY).fetchone()
            if row is None:
                raise EngineUnavailable("every node number is being taken at this moment")
            node, reserved = row
            floor = max(tick, reserved)
            connection.execute(_MOVE, (Int8(floor + RESERVE), node, Int8(reserved)))
        return _Reservation(HybridClock(_no_time, node, floor), node, floor + RESERVE)


_MOVE = "UPDATE node SET reserved = %s WHERE number = %s AND reserved = %s"
_ENDED = "SELECT number, reserved FROM node WHERE reserved < %s ORDER BY reserved, number LIMIT 1 FOR UPDATE SKIP LOCKED"
_ANY = "SELECT number, reserved FROM node ORDER BY reserved, number LIMIT 1 FOR UPDATE SKIP LOCKED"


def _no_time() -> int:
    """The time comes with each call of `tick`, as `after`."""
    return 0
