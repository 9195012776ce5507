"""Transactions of the PostgreSQL engine in a thread: records as rows of tables.

Statements are pipelined: they are sent as they come, and the transaction waits only for results that the body asks for. BEGIN,
locks, time and the first `get` travel together, and so do all puts and the COMMIT. An error of any of them is raised before
`write` returns, since the server skips everything that follows a failed statement.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from psycopg.types.numeric import Int8

from verditer.core.records.record import KeyPart, Record, Span, key_of
from verditer.partition import schema
from verditer.partition.engine import Condition, Order
from verditer.partition.postgres.connection import Cursor, PostgresConnection
from verditer.partition.postgres.statements import statements_of

R = TypeVar("R", bound=Record)

FIRST_PAGE = (
    16  # records that a scan fetches at first, then twice as many each time: an entity may be 3 MiB, and one may be enough
)
MAX_PAGE = 200
LARGE_PAGE_BYTES = 1 << 20  # after a larger page, the next one has half as many records


class PostgresTransaction:
    """`time` is the cursor whose row is the time of the database, not fetched yet. `local_time` turns that into the time of the
    transaction, and `next_tick` issues ticks. `progress` is called with every statement."""

    def __init__(
        self,
        connection: PostgresConnection,
        time: Cursor,
        *,
        writable: bool,
        local_time: Callable[[int], int],
        next_tick: Callable[[int], int],
        progress: Callable[[], None],
    ) -> None:
        self._connection = connection
        self._progress = progress
        self._time = time
        self._writable = writable
        self._local_time = local_time
        self._next_tick = next_tick
        self._changed = False
        self._durable = False
        self._now: int | None = None

    def _execute(self, statement: bytes, values: Sequence[Any] = (), *, binary: bool = False) -> Cursor:
        self._progress()  # the answers before this one have come, or need not be waited for
        return self._connection.execute(statement, values, binary=binary)

    @property
    def now(self) -> int:
        if self._now is None:
            row = self._time.fetchone()
            assert row is not None
            self._now = self._local_time(row[0])
        return self._now

    def tick(self, after: int = 0) -> int:
        return self._next_tick(max(after, self.now - 1))

    def get(self, kind: type[R], *key: KeyPart, for_update: bool = False) -> R | None:
        statements = statements_of(kind)
        statement = statements.get_for_update if for_update and self._writable else statements.get
        row = self._execute(statement, (key_of(*key),), binary=True).fetchone()
        return schema.decoder(kind).decode(row[0]) if row is not None else None

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        decode = schema.decoder(kind).decode
        return {key: decode(body) for key, body in self._execute(statements_of(kind).get_many, (list(keys),), binary=True)}

    def scan(
        self,
        kind: type[R],
        span: Span,
        *,
        limit: int | None = None,
        order: Order = Order.KEY,
        conditions: Sequence[Condition] = (),
    ) -> Iterator[R]:
        """Conditions are not used: every record passes. A scan by rank fetches all its records at once."""
        if order is Order.RANK:
            return iter(self._by_rank(statements_of(kind).scan_by_rank, kind, span, limit))
        return self._by_key(kind, span, limit, descending=order is Order.KEY_DESCENDING)

    def _by_key(self, kind: type[R], span: Span, limit: int | None, *, descending: bool) -> Iterator[R]:
        statements, decode = statements_of(kind), schema.decoder(kind).decode
        query = statements.scan_descending if descending else statements.scan
        page = FIRST_PAGE
        while limit is None or limit > 0:
            page = page if limit is None else min(limit, page)
            rows = self._execute(query, (span.low, span.high, Int8(page)), binary=True).fetchall()
            yield from (decode(body) for _, body in rows)
            if len(rows) < page:
                return
            span = Span(span.low, rows[-1][0]) if descending else span.after(rows[-1][0])
            limit = None if limit is None else limit - page
            is_large = sum([len(body) for _, body in rows]) > LARGE_PAGE_BYTES
            page = max(1, page // 2) if is_large else min(MAX_PAGE, page * 2)

    def _by_rank(self, query: bytes, kind: type[R], span: Span, limit: int | None) -> list[R]:
        decode = schema.decoder(kind).decode
        most = Int8(limit) if limit is not None else None
        return [decode(body) for (body,) in self._execute(query, (span.low, span.high, most), binary=True)]

    def put(self, *records: Record) -> None:
        if len(records) == 1:
            self._change(type(records[0]), statements_of(type(records[0])).put, schema.row_of(records[0]))
            return
        for kind in {type(record) for record in records}:
            columns = zip(*[schema.row_of(record) for record in records if type(record) is kind], strict=True)
            self._change(kind, statements_of(kind).put_many, [list(column) for column in columns])

    def delete(self, kind: type[Record], *key: KeyPart) -> None:
        self._change(kind, statements_of(kind).delete, (key_of(*key),))

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        statements = statements_of(kind)
        end = self._execute(statements.nth, (*span, Int8(limit))).fetchone()
        row = self._change(kind, statements.delete_span, (span.low, end[0] if end is not None else span.high)).fetchone()
        assert row is not None
        return row[0], span.starting(end[0]) if end is not None else None

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        assert self._writable, "a read claims nothing"
        return self._by_rank(statements_of(kind).claim, kind, span, limit)

    def move_clock(self, ticks: int) -> None:
        self._change(None, b"UPDATE store SET value = value + %s WHERE name = 'clock_offset'", (Int8(ticks),))

    def cancel(self) -> None:
        """End without a change. A body that changed nothing, such as one that was refused, commits: that travels with the
        pipeline.

        Otherwise the rollback has to be psycopg's own: it then forgets prepared statements. With a ROLLBACK of ours in a
        pipeline, it would tell the server too late, when the next transaction has already prepared some.
        """
        if self._changed:
            self._connection.rollback()
        else:
            self._connection.execute("COMMIT")

    def end(self) -> Cursor:
        """Commit. Nobody waits for the disk when only volatile records were changed."""
        if self._changed and not self._durable:
            self._execute(b"SET LOCAL synchronous_commit = off")
        return self._execute(b"COMMIT")

    def _change(self, kind: type[Record] | None, statement: bytes, row: Sequence[Any]) -> Cursor:
        assert self._writable, "a read changes nothing"
        self._changed = True
        self._durable |= kind is None or not kind.LIFECYCLE.volatile
        return self._execute(statement, row)
