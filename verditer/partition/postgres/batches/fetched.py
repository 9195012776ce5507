"""What transaction bodies ask for (`Wants`) and the rows that were fetched for them (`Fetched`).
A body runs on the event loop and waits for nothing, so the rows it reads are fetched before it runs. What they are is found by
running it: a body that asks for a row which was not fetched goes on with a guess, its result is dropped, and it runs again when
the row is there. Guesses come from rows that were seen lately (`RecordCache`). A wrong guess costs a round trip and decides
nothing."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from psycopg.pq.abc import PGresult

from verditer.core.caches import BoundedCache
from verditer.core.records.record import Record, Span
from verditer.partition import schema
from verditer.partition.engine import Order
from verditer.partition.postgres.pipeline import PipelineCall
from verditer.partition.postgres.statements import batch_statements_of
from verditer.partition.postgres.wire_values import bytes_array, int_value

MAX_GUESSED_BYTES = 2048  # larger records hold bytes of clients; no further read depends on them
MAX_GUESSES = 8192

RecordKind = type[Record]
Row = tuple[bytes, Any]
"""The key or rank by which a scan is ordered, and the record."""


class RecordCache(BoundedCache[tuple[RecordKind, bytes], tuple[bytes, Any]]):
    """Records that were seen lately, by class and key, with the bytes they were decoded from. They may be stale."""

    def __init__(self) -> None:
        super().__init__(MAX_GUESSES)

    def record(self, kind: RecordKind, key: bytes, body: bytes) -> Any:
        known = self.get((kind, key))
        if known is not None and known[0] == body:
            return known[1]
        record = schema.decoder(kind).decode(body)
        self.add(kind, key, body, record)
        return record

    def add(self, kind: RecordKind, key: bytes, body: bytes, record: Record) -> None:
        if len(body) <= MAX_GUESSED_BYTES:
            self.keep((kind, key), (body, record))
        else:
            self.pop((kind, key), None)


class ScanEdge(NamedTuple):
    """Where a scan starts: the low end of its span, or the high end if it goes down."""

    kind: RecordKind
    order: Order
    edge: bytes


class ScanWant(NamedTuple):
    span: Span
    limit: int  # rows

    def wider(self, other: "ScanWant") -> "ScanWant":
        """Both start at the same edge: the longer span covers the other."""
        span = Span(min(self.span.low, other.span.low), max(self.span.high, other.span.high))
        return ScanWant(span, max(self.limit, other.limit))


class Page(NamedTuple):
    """The first rows of a span."""

    want: ScanWant
    rows: list[Row]
    size_bytes: int

    @property
    def is_complete(self) -> bool:
        return len(self.rows) < self.want.limit

    def covers(self, want: ScanWant) -> bool:
        span, wanted = self.want.span, want.span
        return span.low <= wanted.low and span.high >= wanted.high


class Wants:
    """The reads of one body, or of all bodies of a batch."""

    __slots__ = ("claims", "gets", "locked", "scans")

    def __init__(self) -> None:
        self.gets: dict[RecordKind, set[bytes]] = {}
        self.locked: dict[RecordKind, set[bytes]] = {}
        self.scans: dict[ScanEdge, ScanWant] = {}
        self.claims: dict[tuple[RecordKind, bytes], ScanWant] = {}

    def get(self, kind: RecordKind, key: bytes, *, locked: bool) -> None:
        (self.locked if locked else self.gets).setdefault(kind, set()).add(key)

    def scan(self, edge: ScanEdge, want: ScanWant) -> None:
        known = self.scans.get(edge)
        self.scans[edge] = want if known is None else known.wider(want)

    def claim(self, kind: RecordKind, want: ScanWant) -> None:
        known = self.claims.get((kind, want.span.low))
        self.claims[kind, want.span.low] = want if known is None else known.wider(want)

    def add(self, other: "Wants") -> None:
        """Two bodies that claim from the same span want different rows."""
        for kind, keys in other.gets.items():
            self.gets.setdefault(kind, set()).update(keys)
        for kind, keys in other.locked.items():
            self.locked.setdefault(kind, set()).update(keys)
        for edge, want in other.scans.items():
            self.scan(edge, want)
        for (kind, low), want in other.claims.items():
            known = self.claims.get((kind, low))
            both = want if known is None else ScanWant(known.wider(want).span, known.limit + want.limit)
            self.claims[kind, low] = both

    @property
    def count(self) -> int:
        keys = sum([len(keys) for keys in self.gets.values()]) + sum([len(keys) for keys in self.locked.values()])
        return keys + len(self.scans) + len(self.claims)


class Fetched:
    """The rows that one transaction has fetched so far. `time` is the time of the database, None before the first round."""

    __slots__ = ("_cache", "claims", "locked", "pages", "records", "time")

    def __init__(self, cache: RecordCache) -> None:
        self._cache = cache
        self.time: int | None = None
        self.records: dict[tuple[RecordKind, bytes], Any] = {}
        self.locked: set[tuple[RecordKind, bytes]] = set()
        self.pages: dict[ScanEdge, Page] = {}
        self.claims: dict[tuple[RecordKind, bytes], Page] = {}

    def guess(self, kind: RecordKind, key: bytes) -> Any:
        known = self._cache.get((kind, key))
        return known[1] if known is not None else None

    def plan(self, wants: Wants) -> "list[Fetch]":
        """What is wanted and not there yet. Locked rows come last, so that their state replaces what was read before the lock."""
        fetches: list[Fetch] = []
        for kind in _sorted(wants.gets):
            if keys := [key for key in wants.gets[kind] if (kind, key) not in self.records]:
                fetches.append(GetFetch(kind, keys, locked=False))
        fetches += [ScanFetch(edge, want) for edge, want in wants.scans.items() if not self._has(self.pages.get(edge), want)]
        for kind in _sorted(wants.locked):
            if keys := [key for key in wants.locked[kind] if (kind, key) not in self.locked]:
                fetches.append(GetFetch(kind, keys, locked=True))
        for (kind, low), want in wants.claims.items():
            if not self._has(self.claims.get((kind, low)), want):
                fetches.append(ClaimFetch(kind, low, want))
        return fetches

    def _has(self, page: Page | None, want: ScanWant) -> bool:
        return page is not None and page.covers(want) and (page.is_complete or page.want.limit >= want.limit)

    def take_keys(self, kind: RecordKind, keys: Iterable[bytes], result: PGresult, *, locked: bool) -> None:
        for key in keys:
            self.records[kind, key] = None
            if locked:
                self.locked.add((kind, key))
        cache, get_value = self._cache, result.get_value
        for row in range(result.ntuples):
            found, body = get_value(row, 0), get_value(row, 1)
            assert found is not None
            assert body is not None
            self.records[kind, found] = cache.record(kind, found, body)

    def take_rows(self, kind: RecordKind, want: ScanWant, result: PGresult) -> Page:
        decode, get_value = schema.decoder(kind).decode, result.get_value
        rows: list[Row] = []
        size_bytes = 0
        for row in range(result.ntuples):
            position, body = get_value(row, 0), get_value(row, 1)
            assert position is not None
            assert body is not None
            size_bytes += len(body)
            rows.append((position, decode(body)))
        return Page(want, rows, size_bytes)


class GetFetch(NamedTuple):
    kind: RecordKind
    keys: list[bytes]
    locked: bool

    def call(self) -> PipelineCall:
        statements = batch_statements_of(self.kind)
        return PipelineCall(statements.get_for_update if self.locked else statements.get, (bytes_array(self.keys),))

    def take(self, fetched: Fetched, result: PGresult) -> None:
        fetched.take_keys(self.kind, self.keys, result, locked=self.locked)


class ScanFetch(NamedTuple):
    edge: ScanEdge
    want: ScanWant

    def call(self) -> PipelineCall:
        statements = batch_statements_of(self.edge.kind)
        if self.edge.order is Order.RANK:
            statement = statements.scan_by_rank
        else:
            statement = statements.scan_descending if self.edge.order is Order.KEY_DESCENDING else statements.scan
        return PipelineCall(statement, (*self.want.span, int_value(self.want.limit)))

    def take(self, fetched: Fetched, result: PGresult) -> None:
        fetched.pages[self.edge] = fetched.take_rows(self.edge.kind, self.want, result)


class ClaimFetch(NamedTuple):
    kind: RecordKind
    low: bytes
    want: ScanWant

    def call(self) -> PipelineCall:
        return PipelineCall(batch_statements_of(self.kind).claim, (*self.want.span, int_value(self.want.limit)))

    def take(self, fetched: Fetched, result: PGresult) -> None:
        fetched.claims[self.kind, self.low] = fetched.take_rows(self.kind, self.want, result)


Fetch = GetFetch | ScanFetch | ClaimFetch


def _sorted(kinds: Iterable[RecordKind]) -> list[RecordKind]:
    """Rows are locked table by table, so that two transactions seldom wait for each other in a circle."""
    return sorted(kinds, key=lambda kind: kind.TABLE)
