"""Transactions of the embedded engine: records as rows of SQLite tables."""

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import starmap
from typing import Any, Generic, TypeVar

from verditer.core.clock import HybridClock
from verditer.core.records.record import KeyPart, Record, Span, key_of, span_of
from verditer.partition import schema
from verditer.partition.engine import Condition, Order
from verditer.partition.sqlite.prefilter import is_too_large, prefilter_sql, without_nul

R = TypeVar("R", bound=Record)

MAX_RECORDS_ON_LOOP = 256  # that one write body may touch on the event loop
UNLIMITED = 1 << 62

# For every bound value that is neither a number nor text sqlite3 looks for an adapter. Finding none costs an exception.
sqlite3.register_adapter(bytes, bytes)


class WriteTooLong(BaseException):
    """A body touched more records than it may on the event loop. It is no Exception: a body must not catch it."""


class _Statements(Generic[R]):
    """The SQL of one table and how its rows are written and read."""

    def __init__(self, kind: type[R]) -> None:
        table = kind.TABLE
        self.get = f"SELECT body FROM {table} WHERE key = ?"
        self.values = f"(?, {'?, ' if kind.RANK else ''}{'CAST(? AS TEXT)' if kind.DOCUMENT else '?'})"
        self.put = f"INSERT OR REPLACE INTO {table} VALUES {self.values}"
        self.delete = f"DELETE FROM {table} WHERE key = ?"
        self.delete_span = f"DELETE FROM {table} WHERE key >= ? AND key < ?"
        self.any = f"SELECT 1 FROM {table} LIMIT 1"
        self.nth = f"SELECT key FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT 1 OFFSET ?"
        self.scan = {
            Order.KEY: f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key LIMIT ?",
            Order.KEY_DESCENDING: f"SELECT body FROM {table} WHERE key >= ? AND key < ? ORDER BY key DESC LIMIT ?",
            Order.RANK: f"SELECT body FROM {table} WHERE rank >= ? AND rank < ? ORDER BY rank LIMIT ?",
        }
        self.too_large = f"SELECT 1 FROM {table} INDEXED BY {table}_large WHERE key >= ? AND key < ? AND {is_too_large} LIMIT 1"
        self.decode = schema.decoder(kind).decode
        self.row = _document_row if kind.DOCUMENT else schema.row_of
        self.is_durable = not kind.LIFECYCLE.volatile
        assert not kind.DOCUMENT or kind.__struct_fields__[0] == kind.DOCUMENT, "a document is the first field"


def _document_row(record: Record) -> tuple[bytes, ...]:
    row = schema.row_of(record)
    body = without_nul(row[-1])
    return row if body is row[-1] else (*row[:-1], body)


@cache
def _statements(kind: type[R]) -> _Statements[R]:
    return _Statements(kind)


CLOCK_OFFSET = "SELECT value FROM store WHERE name = 'clock_offset'"

RecordsInUse = dict[tuple[type[Record], tuple[KeyPart, ...]], Any]
"""Records (`IS_SHARED`) that were read in one SQLite transaction, for all bodies that share it; None: there is no such record.
Under an empty key it is noted whether the whole table is empty."""

_NOT_READ: Any = object()


class SqliteTransaction:
    """Reads see the state at BEGIN and what this transaction has written since. Several bodies may share one SQLite transaction,
    one after another; each starts with `begin`. After the last one `store_counters` stores the counters that they have changed:
    once for all bodies, since two statements for each of them were a tenth of the cost of Put Message."""

    def __init__(
        self, connection: sqlite3.Connection, clock: HybridClock, in_use: RecordsInUse, *, interruptible: bool = False
    ) -> None:
        """`interruptible`: SQLite itself interrupts a statement of this transaction that takes too long."""
        connection.text_factory = bytes  # for the bodies that are stored as text; no other text is read
        self._execute = connection.execute
        self._in_use = in_use
        self._changed_counters: RecordsInUse = {}
        self._interruptible = interruptible
        self._clock = clock
        self.tick = clock.tick
        self.durable = False  # a body changed a record that is not volatile
        self.begin(UNLIMITED)

    def begin(self, max_records: int) -> None:
        """Start a body. `WriteTooLong` stops it when it touches more than `max_records`."""
        self._left = max_records
        self._now: int | None = None
        self.written = False

    @property
    def now(self) -> int:
        """Read from the clock when a body first asks, since many never do."""
        if self._now is None:
            self._now = self._clock.now()
        return self._now

    def _spend(self, records: int = 1) -> None:
        """`get` and `put` do the same without a call, because every request needs them."""
        self._left -= records
        if self._left < 0:
            raise WriteTooLong

    def get(self, kind: type[R], *key: KeyPart, for_update: bool = False) -> R | None:
        """`for_update` changes nothing here: only one write runs at a time."""
        if kind.IS_SHARED:
            known: R | None = self._in_use.get((kind, key), _NOT_READ)
            if known is not _NOT_READ:
                return known
        self._left -= 1
        if self._left < 0:
            raise WriteTooLong
        if kind.IS_READ_TOGETHER:
            return self._get_with_others(kind, key)
        sql = _statements(kind)
        row = self._execute(sql.get, (key_of(*key),)).fetchone()
        record = sql.decode(row[0]) if row is not None else None
        if kind.IS_SHARED:
            self._in_use[kind, key] = record
        return record

    def _get_with_others(self, kind: type[R], key: tuple[KeyPart, ...]) -> R | None:
        """One statement for all of them."""
        for (body,) in self._execute(_statements(kind).scan[Order.KEY], (*span_of(*key[:-1]), -1)):
            record = _statements(kind).decode(body)
            self._in_use.setdefault((kind, record.key_parts()), record)
        found: R | None = self._in_use.setdefault((kind, key), None)
        return found

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        if kind.IS_COUNTER:
            self.store_counters()
        self._spend(len(keys))
        sql = _statements(kind)
        decode = sql.decode
        if len(keys) <= 4:  # a statement for each takes less time than one with IN, for which SQLite sorts the keys
            found = [(key, self._execute(sql.get, (key,)).fetchone()) for key in keys]
            return {key: decode(row[0]) for key, row in found if row is not None}
        placeholders = ",".join("?" * len(keys))
        rows = self._execute(f"SELECT key, body FROM {kind.TABLE} WHERE key IN ({placeholders})", keys)
        return {key: decode(body) for key, body in rows}

    def scan(
        self,
        kind: type[R],
        span: Span,
        *,
        limit: int | None = None,
        order: Order = Order.KEY,
        conditions: Sequence[Condition] = (),
    ) -> Iterator[R]:
        if kind.IS_COUNTER:
            self.store_counters()
        elif kind.IS_SELDOM_STORED and self._is_empty(kind):
            return iter(())
        sql = _statements(kind)
        if conditions and order is not Order.RANK:
            rows = self._prefiltered_rows(kind, span, limit, order, conditions)
        else:
            rows = self._execute(sql.scan[order], (*span, -1 if limit is None else limit))
        return starmap(sql.decode, rows) if self._left > MAX_RECORDS_ON_LOOP else self._counted(sql.decode, rows)

    def _is_empty(self, kind: type[Record]) -> bool:
        """One statement answers this for all bodies of the transaction, until one of them puts such a record."""
        found: bool | None = self._in_use.get((kind, ()))
        if found is None:
            found = self._in_use[kind, ()] = self._execute(_statements(kind).any).fetchone() is None
        return found

    def _counted(self, decode: Callable[[bytes], R], rows: Iterator[tuple[bytes]]) -> Iterator[R]:
        for (body,) in rows:
            self._spend()
            yield decode(body)

    def _prefiltered_rows(
        self, kind: type[Record], span: Span, limit: int | None, order: Order, conditions: Sequence[Condition]
    ) -> Iterator[tuple[bytes]]:
        """SQLite skips records that fail the prefilter without calling Python. A caller that limits its time has to be called now
        and then, so one record in 128 passes anyway, except where SQLite checks the time itself."""
        expression, values = prefilter_sql(tuple(conditions))
        if self._execute(_statements(kind).too_large, span).fetchone() is not None:
            expression += f" OR {is_too_large}"
        if not self._interruptible:
            expression += " OR random() & 127 = 0"
        return self._execute(
            f"SELECT body FROM {kind.TABLE} WHERE key >= ? AND key < ? AND ({expression})"
            f" ORDER BY key {'DESC' if order is Order.KEY_DESCENDING else 'ASC'} LIMIT ?",
            (*span, *values, -1 if limit is None else limit),
        )

    def put(self, *records: Record) -> None:
        self._left -= len(records)
        if self._left < 0:
            raise WriteTooLong
        self.written = True
        if len(records) != 1:
            self._put_many(records)
            return
        (record,) = records
        if record.IS_COUNTER:
            kind_and_key = type(record), record.key_parts()
            self._in_use[kind_and_key] = self._changed_counters[kind_and_key] = record
            return
        kind = type(record)
        if kind.IS_SHARED:
            self._in_use.pop((kind, record.key_parts()), None)
            self._in_use[kind, ()] = False
        sql = _statements(kind)
        if sql.is_durable:
            self.durable = True
        self._execute(sql.put, sql.row(record))

    def store_counters(self) -> None:
        """Needed before any other statement about counters, and before COMMIT."""
        if self._changed_counters:
            changed, self._changed_counters = self._changed_counters, {}
            written, self.written = self.written, True  # if this fails, the changes of earlier bodies are lost
            self._put_many(list(changed.values()))
            self.written = written

    def _put_many(self, records: Sequence[Record]) -> None:
        """One statement for each kind: a statement costs as much as ten more rows."""
        self.store_counters()
        self._in_use.clear()
        for kind in {type(record) for record in records}:
            sql = _statements(kind)
            self.durable |= sql.is_durable
            rows = [sql.row(record) for record in records if type(record) is kind]
            placeholders = ",".join([sql.values] * len(rows))
            self._execute(f"INSERT OR REPLACE INTO {kind.TABLE} VALUES {placeholders}", [value for row in rows for value in row])

    def delete(self, kind: type[Record], *key: KeyPart) -> None:
        self._spend()
        self.written = True
        if kind.IS_SHARED:
            if kind.IS_COUNTER:
                self.store_counters()
            self._in_use.pop((kind, key), None)
        sql = _statements(kind)
        self.durable |= sql.is_durable
        self._execute(sql.delete, (key_of(*key),))

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        self._spend(limit)
        self.written, sql = True, _statements(kind)
        self.durable |= sql.is_durable
        self.store_counters()
        self._in_use.clear()
        row = self._execute(sql.nth, (*span, limit)).fetchone()
        deleted = self._execute(sql.delete_span, (span.low, row[0] if row is not None else span.high))
        return deleted.rowcount, span.starting(row[0]) if row is not None else None

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        """Only one write runs at a time: no other transaction has claimed anything."""
        assert not kind.IS_COUNTER, "counters have no rank"
        sql = _statements(kind)
        found = [sql.decode(body) for (body,) in self._execute(sql.scan[Order.RANK], (*span, limit))]
        self._spend(len(found))
        return found

    def move_clock(self, ticks: int) -> int:
        """Move the stored clock offset and return it."""
        self.written = self.durable = True
        self._execute("UPDATE store SET value = value + ? WHERE name = 'clock_offset'", (ticks,))
        return int(self._execute(CLOCK_OFFSET).fetchone()[0])
