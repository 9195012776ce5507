"""Transactions of the PostgreSQL engine on the event loop: reads from rows that were fetched before, changes that are sent later.
Several bodies may share one database transaction, one after another. Each sees the changes of those before it. A body that asks
for a row that was not fetched is told a guess and notes what it wanted; `missed` then says that its result is worthless."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from verditer.core.dates import seconds
from verditer.core.records.record import KeyPart, Record, Span, key_of
from verditer.partition.engine import Condition, Order
from verditer.partition.postgres.batches.changes import ChangedRecords
from verditer.partition.postgres.batches.fetched import Fetched, Page, RecordKind, Row, ScanEdge, ScanWant, Wants

R = TypeVar("R", bound=Record)

FIRST_PAGE = 16  # records that a scan fetches at first: an entity may be 3 MiB, and one may be enough
GROWTH = 4
MAX_ROWS = 256  # of a scan, and of changes of one body; more of them run in a thread
MAX_PAGE_BYTES = 4 << 20
GUESSED_DELAY = seconds(1)  # until a round trip has returned: spans that end now are fetched a little longer, and cut later


class TooLong(BaseException):
    """The body is too long for the event loop. It is no Exception: a body must not catch it."""


class TicksUsedUp(Exception):
    """The process has issued all ticks that it had reserved."""


class LoopTransaction:
    def __init__(
        self,
        fetched: Fetched,
        changes: ChangedRecords,
        *,
        writable: bool,
        estimated_now: int,
        next_tick: Callable[[int], int],
    ) -> None:
        self._fetched = fetched
        self._changes = changes
        self._writable = writable
        self._estimated_now = estimated_now
        self._next_tick = next_tick
        self._claimed: set[tuple[RecordKind, bytes]] = set()  # by the bodies before
        self.begin_body(Wants())

    def begin_body(self, wants: Wants) -> None:
        """Start a body. What it asks for is added to `wants`."""
        self.wants = wants
        self.missed = False
        self.needs_ticks = False
        self._undo: list[tuple[RecordKind, bytes, Record | None, bool]] = []
        self._own_claims: set[tuple[RecordKind, bytes]] = set()

    def keep_changes(self) -> None:
        """The body is done, and its changes are part of the transaction."""
        self._claimed |= self._own_claims

    def undo_changes(self) -> None:
        """The body was refused or runs again: it has changed nothing."""
        for kind, key, before, was_changed in reversed(self._undo):
            if was_changed:
                self._changes[kind][key] = before
            else:
                del self._changes[kind][key]

    @property
    def has_changes(self) -> bool:
        return bool(self._undo)

    @property
    def now(self) -> int:
        return self._estimated_now + GUESSED_DELAY if self._fetched.time is None else self._fetched.time

    def tick(self, after: int = 0) -> int:
        after = max(after, self.now - 1)
        if self._fetched.time is not None and not self.missed:
            try:
                return self._next_tick(after)
            except TicksUsedUp:
                self.missed = self.needs_ticks = True
        return after + 1

    def get(self, kind: type[R], *key: KeyPart, for_update: bool = False) -> R | None:
        return self._get(kind, key_of(*key), for_update and self._writable)  # type: ignore[no-any-return]

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        self._check_size(len(keys))
        found = {key: self._get(kind, key, False) for key in keys}
        return {key: record for key, record in found.items() if record is not None}

    def _get(self, kind: RecordKind, key: bytes, locked: bool) -> Any:
        changed = self._changes.get(kind)
        if changed is not None and key in changed:
            return changed[key]
        known = (kind, key)
        if known in (self._fetched.locked if locked else self._fetched.records):
            return self._fetched.records[known]
        self.missed = True
        self.wants.get(kind, key, locked=locked)
        return self._fetched.guess(kind, key)

    def scan(
        self,
        kind: type[R],
        span: Span,
        *,
        limit: int | None = None,
        order: Order = Order.KEY,
        conditions: Sequence[Condition] = (),
    ) -> Iterator[R]:
        """Conditions are not used: every record passes."""
        if limit == 0:
            return iter(())
        edge = ScanEdge(kind, order, span.high if order is Order.KEY_DESCENDING else span.low)
        want = ScanWant(span, FIRST_PAGE if limit is None else min(limit, FIRST_PAGE))
        page = self._fetched.pages.get(edge)
        if page is None or not page.covers(want):
            self.missed = True
            self.wants.scan(edge, want)
            page = Page(want._replace(limit=1), [], 0)
        return self._rows(edge, page, span, limit)

    def _rows(self, edge: ScanEdge, page: Page, span: Span, limit: int | None) -> Iterator[Any]:
        rows, is_complete = self._merged(edge, page, span)
        for _, record in rows[:limit]:
            yield record
        if not is_complete and (limit is None or len(rows) < limit):
            self.missed = True
            longer = page.want.limit * GROWTH
            if longer > MAX_ROWS or page.size_bytes * GROWTH > MAX_PAGE_BYTES:
                raise TooLong
            self.wants.scan(edge, page.want._replace(limit=longer))

    def _merged(self, edge: ScanEdge, page: Page, span: Span) -> tuple[list[Row], bool]:
        """The rows of a span, changed as this transaction has changed them, and whether these are all."""
        is_down, by_rank = edge.order is Order.KEY_DESCENDING, edge.order is Order.RANK
        low, high = span
        rows = [row for row in page.rows if low <= row[0] < high]
        last = None if page.is_complete else page.rows[-1][0]
        is_complete = last is None or (last < low if is_down else last >= high)
        if changed := self._changes.get(edge.kind):
            rows = [row for row in rows if (row[1].key() if by_rank else row[0]) not in changed]
            for key, record in changed.items():
                if record is not None:
                    position = record.rank() if by_rank else key
                    is_fetched = last is None or (position >= last if is_down else position <= last)
                    if low <= position < high and is_fetched:
                        rows.append((position, record))
            rows.sort(key=_position, reverse=is_down)
        return rows, is_complete

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        assert self._writable, "a read claims nothing"
        self._check_size(limit)
        want = ScanWant(span, limit)
        page = self._fetched.claims.get((kind, span.low))
        if page is None or not page.covers(want):
            self.missed = True
            self.wants.claim(kind, want)
            return []
        rows, is_complete = self._merged(ScanEdge(kind, Order.RANK, span.low), page, span)
        free = [(key, record) for _, record in rows if (key := (kind, record.key())) not in self._claimed][:limit]
        if len(free) < limit and not is_complete:
            self.missed = True
            self.wants.claim(kind, ScanWant(page.want.span, page.want.limit + limit))
        self._own_claims.update([key for key, _ in free])
        return [record for _, record in free]

    def put(self, *records: Record) -> None:
        for record in records:
            self._change(type(record), record.key(), record)

    def delete(self, kind: type[Record], *key: KeyPart) -> None:
        self._change(kind, key_of(*key), None)

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        raise TooLong

    def _change(self, kind: RecordKind, key: bytes, record: Record | None) -> None:
        assert self._writable, "a read changes nothing"
        self._check_size(len(self._undo) + 1)
        changed = self._changes.setdefault(kind, {})
        self._undo.append((kind, key, changed.get(key), key in changed))
        changed[key] = record

    def _check_size(self, records: int) -> None:
        if records > MAX_ROWS:
            raise TooLong


def _position(row: Row) -> bytes:
    return row[0]
