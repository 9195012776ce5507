"""Records as rows of SQLite tables: the transaction that bodies are given."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import starmap
from typing import Any, Generic, TypeVar

from verditer.core.clock import HybridClock
from verditer.core.records.record import Part, Record, Span, key_of
from verditer.partition import schema
from verditer.partition.engine import Mark, TooLong
from verditer.partition.migrations import SQLITE
from verditer.partition.sqlite_sieve import sieve_of

R = TypeVar("R", bound=Record)
Q = TypeVar("Q", bound=Record)

BRIEF = 256  # records a body may touch on the loop
UNBOUND = 1 << 62

# Every value that is bound and not a number or a text is asked for how to adapt it, and `bytes` says so by an exception.
sqlite3.register_adapter(bytes, bytes)


class _Statements(Generic[R]):
    """The SQL of one table, written once, and how its bodies are read."""

    def __init__(self, kind: type[R]) -> None:
        table = kind.TABLE
        self.get = f"SELECT body FROM {table} WHERE key = ?"
        self.values = f"(?, {'?, ' if kind.RANK else ''}{'CAST(? AS TEXT)' if kind.SIFTED else '?'})"
        self.put = f"INSERT OR REPLACE INTO {table} VALUES {self.values}"
        self.insert = f"INSERT OR IGNORE INTO {table} VALUES {self.values}"
        self.delete = f"DELETE FROM {table} WHERE key = ?"
        self.delete_span = f"DELETE FROM {table} WHERE key >= ? AND key < ?"
        self.nth = f"SELECT key FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT 1 OFFSET ?"
        self.scan = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        self.scan_back = f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?"
        self.ranked = f"SELECT body FROM {table} WHERE rank >= ? AND rank < ? ORDER BY rank LIMIT ?"
        self.unsifted = (
            f"SELECT 1 FROM {table} INDEXED BY {table}_unsifted WHERE key >= ? AND key < ? AND {SQLITE.unsifted} LIMIT 1"
        )
        self.decode = schema.decoder(kind).decode


OFFSET = "SELECT value FROM store WHERE name = 'clock_offset'"
_ADD = "INSERT INTO counter VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = value + excluded.value"


@cache
def _statements(kind: type[R]) -> _Statements[R]:
    return _Statements(kind)


@cache
def _both(one: type[Record], other: type[Record]) -> str:
    return f"SELECT (SELECT body FROM {one.TABLE} WHERE key = ?1), (SELECT body FROM {other.TABLE} WHERE key = ?1)"


Parents = dict[tuple[type[Record], tuple[Part, ...]], Any]
"""What was looked up already in one SQLite transaction, for the bodies that share it."""


class RowTransaction:
    """Reads see the state at BEGIN, and what this transaction has written since. Bodies that share one begin one by one."""

    def __init__(
        self, connection: sqlite3.Connection, clock: HybridClock, parents: Parents, watch: Callable[[], None] | None = None
    ) -> None:
        """`watch` is called before a sieve is at work, where SQLite itself looks at the clock then."""
        connection.text_factory = bytes  # of records that are stored as text; no other text is asked for
        self._execute = connection.execute
        self._parents = parents
        self._watch = watch
        self._clock = clock
        self.tick = clock.tick
        self.begin(UNBOUND)

    def begin(self, records: int) -> None:
        """A body that touches more than `records` of them is stopped there by `TooLong`, and runs again in a thread."""
        self._left = records
        self._now: int | None = None
        self.written = False

    @property
    def now(self) -> int:
        """The same for the whole body. Many never ask."""
        if self._now is None:
            self._now = self._clock.now()
        return self._now

    def _spend(self, records: int = 1) -> None:
        self._left -= records
        if self._left < 0:
            raise TooLong

    def get(self, kind: type[R], *key: Part) -> R | None:
        if kind.PARENT and (kind, key) in self._parents:
            known: R = self._parents[kind, key]
            return known
        self._spend()
        sql = _statements(kind)
        row = self._execute(sql.get, (key_of(*key),)).fetchone()
        record = sql.decode(row[0]) if row is not None else None
        if kind.PARENT:
            self._parents[kind, key] = record
        return record

    def get_both(self, one: type[R], other: type[Q], *key: Part) -> tuple[R | None, Q | None]:
        self._spend(2)
        sql, others = _statements(one), _statements(other)
        found, beside = self._execute(_both(one, other), (key_of(*key),)).fetchone()
        return sql.decode(found) if found is not None else None, others.decode(beside) if beside is not None else None

    def hold(self, kind: type[R], *key: Part) -> R | None:
        return self.get(kind, *key)  # writers take turns

    def scan(
        self, kind: type[R], span: Span, *, limit: int | None = None, reverse: bool = False, sieve: Sequence[Mark] = ()
    ) -> Iterator[R]:
        sql = _statements(kind)
        if sieve:
            return self._sift(kind, span, limit, reverse, sieve)
        rows = self._execute(sql.scan_back if reverse else sql.scan, (*span, -1 if limit is None else limit))
        return self._records(sql.decode, rows)

    def _records(self, decode: Callable[[bytes], R], rows: Iterator[tuple[bytes]]) -> Iterator[R]:
        if self._left > BRIEF:
            return starmap(decode, rows)
        return self._counted(decode, rows)

    def _counted(self, decode: Callable[[bytes], R], rows: Iterator[tuple[bytes]]) -> Iterator[R]:
        for (body,) in rows:
            self._spend()
            yield decode(body)

    def _sift(self, kind: type[R], span: Span, limit: int | None, reverse: bool, sieve: Sequence[Mark]) -> Iterator[R]:
        """What fails the sieve is passed over inside SQLite, without waking Python. One record in some hundred passes anyway,
        so that the reader gets to look at the clock; unless SQLite does so itself."""
        sql = _statements(kind)
        condition, values = sieve_of(tuple(sieve))
        if self._execute(sql.unsifted, span).fetchone() is not None:
            condition += f" OR {SQLITE.unsifted}"
        if self._watch is None:
            condition += " OR random() & 127 = 0"
        else:
            self._watch()
        rows = self._execute(
            f"SELECT body FROM {kind.TABLE} WHERE key >= ? AND key < ? AND ({condition})"
            f" ORDER BY key {'DESC' if reverse else 'ASC'} LIMIT ?",
            (*span, *values, -1 if limit is None else limit),
        )
        return self._records(sql.decode, rows)

    def put(self, record: Record) -> None:
        self._spend()
        self.written = True
        if record.PARENT:
            self._parents.clear()
        self._execute(_statements(type(record)).put, schema.row_of(record))

    def insert(self, record: Record) -> bool:
        self._spend()
        if self._execute(_statements(type(record)).insert, schema.row_of(record)).rowcount == 0:
            return False
        self.written = True
        if record.PARENT:
            self._parents.clear()
        return True

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        self._spend(len(keys))
        decode = _statements(kind).decode
        marks = ",".join("?" * len(keys))
        rows = self._execute(f"SELECT key, body FROM {kind.TABLE} WHERE key IN ({marks})", keys)
        return {key: decode(body) for key, body in rows}

    def put_many(self, records: Sequence[Record]) -> None:
        """One statement for all: each costs as much as ten more rows."""
        self._spend(len(records))
        self.written, kind = True, type(records[0])
        self._parents.clear()
        marks = ",".join([_statements(kind).values] * len(records))
        values = [value for each in records for value in schema.row_of(each)]
        self._execute(f"INSERT OR REPLACE INTO {kind.TABLE} VALUES {marks}", values)

    def delete(self, kind: type[Record], *key: Part) -> None:
        self._spend()
        self.written = True
        if kind.PARENT:
            self._parents.clear()
        self._execute(_statements(kind).delete, (key_of(*key),))

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        self._spend(limit)
        self.written, sql = True, _statements(kind)
        self._parents.clear()
        row = self._execute(sql.nth, (*span, limit)).fetchone()
        gone = self._execute(sql.delete_span, (span.low, row[0] if row is not None else span.high))
        return gone.rowcount, span.starting(row[0]) if row is not None else None

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        return self.ranked(kind, span, limit)  # writers take turns

    def ranked(self, kind: type[R], span: Span, limit: int) -> list[R]:
        sql = _statements(kind)
        found = [sql.decode(body) for (body,) in self._execute(sql.ranked, (*span, limit))]
        self._spend(len(found))
        return found

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
