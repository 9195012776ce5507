"""Records as rows of SQLite tables: the transaction that bodies are given."""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from math import isfinite
from typing import Any, Generic, TypeVar

from verditer.core.clock import HybridClock
from verditer.core.records.record import Part, Record, Span, key_of
from verditer.partition import schema
from verditer.partition.engine import Mark

R = TypeVar("R", bound=Record)

BRIEF = 256  # records a body may touch on the loop


class _Statements(Generic[R]):
    """The SQL of one table, written once, and how its bodies are read."""

    __slots__ = ("decode", "delete", "delete_span", "get", "nth", "put", "ranked", "scan", "scan_back")

    def __init__(self, kind: type[R]) -> None:
        table = kind.TABLE
        self.get = f"SELECT body FROM {table} WHERE key = ?"
        self.put = f"INSERT OR REPLACE INTO {table} VALUES ({'?, ?, ?' if kind.RANK else '?, ?'})"
        self.delete = f"DELETE FROM {table} WHERE key = ?"
        self.delete_span = f"DELETE FROM {table} WHERE key >= ? AND key < ?"
        self.nth = f"SELECT key FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT 1 OFFSET ?"
        self.scan = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        self.scan_back = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?"
        self.ranked = f"SELECT body FROM {table} WHERE rank >= ? AND rank < ? ORDER BY rank LIMIT ?"
        self.decode = schema.decoder(kind).decode


def _sieve_of(mark: Mark) -> tuple[str, tuple[bytes | float, ...]]:
    """A condition on the bytes of a body, and its values. A number may stand in quotes. `"Infinity"` reads as 0, so where the
    bounds are open on one side and without 0, everything in quotes that is infinite or negative passes."""
    if mark.values:
        follows = f"substr(body, instr(body, ?) + {len(mark.text)}, {len(mark.values[0])})"
        return f"{follows} IN ({','.join('?' * len(mark.values))})", (mark.text, *mark.values)
    if mark.bounds is None:
        return "instr(body, ?) > 0", (mark.text,)
    low, high = mark.bounds
    behind = f"substr(body, instr(body, ?) + {len(mark.text)}, "
    number = f"CAST(ltrim(CAST({behind}26) AS TEXT), '\"') AS REAL) BETWEEN ? AND ?"
    if low <= 0 <= high or (isfinite(low) and isfinite(high)):
        return number, (mark.text, low, high)
    return f"({number} OR {behind}2) IN (x'2249', x'222D'))", (mark.text, low, high, mark.text)


OFFSET = "SELECT value FROM store WHERE name = 'clock_offset'"
_ADD = "INSERT INTO counter VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value"


@cache
def _statements(kind: type[R]) -> _Statements[R]:
    return _Statements(kind)


Parents = dict[tuple[type[Record], tuple[Part, ...]], Any]
"""What was looked up already in one SQLite transaction, for the bodies that share it."""


class RowTransaction:
    """Reads see the state at BEGIN, and what this transaction has written since."""

    def __init__(self, connection: sqlite3.Connection, clock: HybridClock, parents: Parents) -> None:
        self._execute = connection.execute
        self._clock = clock
        self._parents = parents
        self.written = False
        self.now = clock.now()
        self.tick = clock.tick

    def get(self, kind: type[R], *key: Part) -> R | None:
        if kind.PARENT and (kind, key) in self._parents:
            known: R = self._parents[kind, key]
            return known
        sql = _statements(kind)
        row = self._execute(sql.get, (key_of(*key),)).fetchone()
        record = sql.decode(row[0]) if row is not None else None
        if kind.PARENT:
            self._parents[kind, key] = record
        return record

    def hold(self, kind: type[R], *key: Part) -> R | None:
        return self.get(kind, *key)  # writers take turns

    def scan(
        self, kind: type[R], span: Span, *, limit: int | None = None, reverse: bool = False, sieve: Sequence[Mark] = ()
    ) -> Iterator[R]:
        sql = _statements(kind)
        if sieve:
            return self._sift(kind, span, limit, reverse, sieve)
        rows = self._execute(sql.scan_back if reverse else sql.scan, (*span, -1 if limit is None else limit))
        decode = sql.decode
        return (decode(body) for (body,) in rows)

    def _sift(self, kind: type[R], span: Span, limit: int | None, reverse: bool, sieve: Sequence[Mark]) -> Iterator[R]:
        """What fails the sieve is passed over inside SQLite, without waking Python. One record in some hundred passes anyway,
        so that the reader gets to look at the clock."""
        marks = [_sieve_of(mark) for mark in sieve]
        values = [value for _, arguments in marks for value in arguments]
        rows = self._execute(
            f"SELECT body FROM {kind.TABLE} WHERE key >= ? AND key < ?"
            f" AND ({' AND '.join(condition for condition, _ in marks)} OR random() & 127 = 0)"
            f" ORDER BY key {'DESC' if reverse else 'ASC'} LIMIT ?",
            (*span, *values, -1 if limit is None else limit),
        )
        decode = _statements(kind).decode
        return (decode(body) for (body,) in rows)

    def put(self, record: Record) -> None:
        self.written = True
        if record.PARENT:
            self._parents.clear()
        sql = _statements(type(record))
        if record.RANK:
            self._execute(sql.put, (record.key(), record.rank(), schema.encode(record)))
        else:
            self._execute(sql.put, (record.key(), schema.encode(record)))

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        decode = _statements(kind).decode
        marks = ",".join("?" * len(keys))
        rows = self._execute(f"SELECT key, body FROM {kind.TABLE} WHERE key IN ({marks})", keys)
        return {key: decode(body) for key, body in rows}

    def put_many(self, records: Sequence[Record]) -> None:
        """One statement for all: each costs as much as ten more rows."""
        self.written, kind = True, type(records[0])
        self._parents.clear()
        marks = ",".join(["(?, ?, ?)" if kind.RANK else "(?, ?)"] * len(records))
        rows = [(each.key(), each.rank(), schema.encode(each)) for each in records]
        values = [value for row in rows for value in row if value is not None]
        self._execute(f"INSERT OR REPLACE INTO {kind.TABLE} VALUES {marks}", values)

    def delete(self, kind: type[Record], *key: Part) -> None:
        self.written = True
        if kind.PARENT:
            self._parents.clear()
        self._execute(_statements(kind).delete, (key_of(*key),))

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        self.written, sql = True, _statements(kind)
        self._parents.clear()
        row = self._execute(sql.nth, (*span, limit)).fetchone()
        gone = self._execute(sql.delete_span, (span.low, row[0] if row is not None else span.high))
        return gone.rowcount, span.starting(row[0]) if row is not None else None

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        return self.ranked(kind, span, limit)  # writers take turns

    def ranked(self, kind: type[R], span: Span, limit: int) -> list[R]:
        sql = _statements(kind)
        return [sql.decode(body) for (body,) in self._execute(sql.ranked, (*span, limit))]

    def add(self, amount: int, *counter: Part) -> None:
        self.written = True
        self._execute(_ADD, (key_of(*counter), amount))

    def total(self, *counter: Part) -> int:
        row = self._execute("SELECT value FROM counter WHERE key = ?", (key_of(*counter),)).fetchone()
        return int(row[0]) if row is not None else 0

    def drop(self, *counter: Part) -> None:
        self.written = True
        self._execute("DELETE FROM counter WHERE key = ?", (key_of(*counter),))

    def move_offset(self, ticks: int) -> int:
        self.written = True
        self._execute("UPDATE store SET value = value + ? WHERE name = 'clock_offset'", (ticks,))
        return int(self._execute(OFFSET).fetchone()[0])


class BriefTransaction(RowTransaction):
    """On the loop: a body that turns out to be long is stopped there, and runs again in a thread."""

    def __init__(self, connection: sqlite3.Connection, clock: HybridClock, parents: Parents) -> None:
        super().__init__(connection, clock, parents)
        self._left = BRIEF

    def _spend(self, records: int = 1) -> None:
        self._left -= records
        if self._left < 0:
            raise TooLong

    def get(self, kind: type[R], *key: Part) -> R | None:
        self._spend()
        return super().get(kind, *key)

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        self._spend(len(keys))
        return super().get_many(kind, keys)

    def scan(
        self, kind: type[R], span: Span, *, limit: int | None = None, reverse: bool = False, sieve: Sequence[Mark] = ()
    ) -> Iterator[R]:
        for record in super().scan(kind, span, limit=limit, reverse=reverse, sieve=sieve):
            self._spend()
            yield record

    def ranked(self, kind: type[R], span: Span, limit: int) -> list[R]:
        found = super().ranked(kind, span, limit)
        self._spend(len(found))
        return found

    def put(self, record: Record) -> None:
        self._spend()
        super().put(record)

    def put_many(self, records: Sequence[Record]) -> None:
        self._spend(len(records))
        super().put_many(records)

    def delete(self, kind: type[Record], *key: Part) -> None:
        self._spend()
        super().delete(kind, *key)

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        self._spend(limit)
        return super().delete_span(kind, span, limit)


class TooLong(BaseException):
    """No business of the body that it passes through."""
