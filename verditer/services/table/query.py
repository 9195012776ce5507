"""Query Entities: a page of what a filter matches, in the order of the keys, and where the next page begins.

The planner says where to look. A page ends when it is full or when its time is up, and the next one begins at the first key
that was not looked at, whether or not that entity is still there then. Each page is one committed state (contract G3).
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice

import msgspec

from verditer.core.dates import seconds
from verditer.core.edm import Edm, datetime_text
from verditer.core.grant import Grant
from verditer.core.limits import MAX_QUERY_SECONDS, MAX_TABLE_PAGE
from verditer.core.names import TableName
from verditer.core.records.record import Span, key_of, successor
from verditer.core.records.table import Entity
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.table.compare import System, compile_filter
from verditer.services.table.filter import Node
from verditer.services.table.planner import Plan, plan
from verditer.services.table.tables import LOOK_AT_CLOCK_EVERY, require_table

INLINE_ROWS = 128  # a query that can look at no more than this is answered on the event loop, a longer one beside it

Position = tuple[str, str]
Predicate = Callable[[Entity], bool]

SYSTEM: System = {
    "PartitionKey": lambda entity: (entity.partition_key, None),
    "RowKey": lambda entity: (entity.row_key, None),
    "Timestamp": lambda entity: (datetime_text(entity.etag), Edm.DATETIME.value),
}


class QueryEntities(msgspec.Struct, frozen=True, kw_only=True):
    filter: Node | None = None
    top: int = MAX_TABLE_PAGE
    next_partition: str | None = None
    next_row: str = ""


class EntityPage(msgspec.Struct, frozen=True, kw_only=True):
    """`table` is the name as the request spelled it."""

    table: str
    entities: list[Entity]
    next: Position | None = None


async def query_entities(ctx: Context, target: TableName, request: QueryEntities, grant: Grant) -> EntityPage:
    if grant.entities is not None:
        grant.entities.check_table(target.table)
    what, matches = _prepared(request.filter)
    deadline = ctx.now() + seconds(MAX_QUERY_SECONDS)

    def look(tx: Transaction) -> EntityPage:
        spans = _spans(what, require_table(tx, target).id, request, grant)
        found, next = _page(_scan(tx, spans, what), matches, request.top, lambda: ctx.now() > deadline)
        return EntityPage(table=target.table, entities=found, next=next)

    run = ctx.engine.read
    return await run(target.scope, look)


@lru_cache(maxsize=256)  # clients ask the same question again and again
def _prepared(node: Node | None) -> tuple[Plan, Predicate | None]:
    what = plan(node)
    return what, None if what.rest is None else compile_filter(what.rest, SYSTEM, _document)


def _document(entity: Entity) -> bytes:
    return entity.properties


def _spans(what: Plan, table_id: int, request: QueryEntities, grant: Grant) -> list[Span]:
    """The plan's spans in this table, from the continuation on, within what the caller may see."""
    prefix = key_of(table_id)
    spans = [Span(prefix + span.low, prefix + span.high) for span in what.spans]
    if request.next_partition is not None:
        start = key_of(table_id, request.next_partition, request.next_row)
        spans = [span.starting(start) for span in spans]
    if grant.entities is not None:
        low, high = grant.entities.span(table_id)
        spans = [Span(max(span.low, low), min(span.high, high)) for span in spans]
    return [span for span in spans if span.low < span.high]


def _scan(tx: Transaction, spans: list[Span], what: Plan) -> Iterator[Entity]:
    for span in spans:
        yield from tx.scan(Entity, span, sieve=what.marks)


def _page(
    entities: Iterator[Entity], matches: Predicate | None, top: int, is_late: Callable[[], bool]
) -> tuple[list[Entity], Position | None]:
    if top == 0:
        return [], None
    if matches is None:
        found = list(islice(entities, top))
        return found, _position(next(entities, None))
    found = []
    while seen := list(islice(entities, LOOK_AT_CLOCK_EVERY)):
        found += filter(matches, seen)
        if len(found) >= top:
            return found[:top], _position(_behind(found[top - 1], seen, entities))
        if is_late():
            return found, _position(next(entities, None))
    return found, None


def _behind(last: Entity, seen: list[Entity], entities: Iterator[Entity]) -> Entity | None:
    """The entity that follows `last`, one of those seen."""
    index = next(index for index, entity in enumerate(seen) if entity is last) + 1
    return seen[index] if index < len(seen) else next(entities, None)


def _position(entity: Entity | None) -> Position | None:
    return None if entity is None else (entity.partition_key, entity.row_key)


def _is_short(what: Plan, request: QueryEntities) -> bool:
    if what.rest is None and request.top <= INLINE_ROWS:
        return True
    return len(what.spans) <= INLINE_ROWS and all(_is_one_entity(span) for span in what.spans)


def _is_one_entity(span: Span) -> bool:
    """Two whole keys, each closed by a zero byte."""
    return span.high == successor(span.low) and span.low.endswith(b"\0") and span.low.count(b"\0") == 2
