"""Query Entities: a page of the entities that a filter matches, in the order of the keys, and where the next page begins.

The planner gives the spans to scan. A page ends when it is full or when its time is up, and the next page begins at the first key
that was not examined, even if that entity has been deleted meanwhile. Each page is one committed state (contract G3).
"""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from operator import attrgetter

import msgspec

from verditer.core.caches import BoundedCache
from verditer.core.edm import Edm, datetime_text
from verditer.core.grant import Grant
from verditer.core.limits import MAX_QUERY_SECONDS, MAX_TABLE_PAGE, MIB
from verditer.core.names import TableName
from verditer.core.records.record import Span, key_of
from verditer.core.records.table import Entity
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.table.compare import System, compile_selection
from verditer.services.table.filter import Node
from verditer.services.table.planner import Plan, plan
from verditer.services.table.tables import require_table

CHUNK_ENTITIES = 32  # entities between two checks of the clock and of the size of the page
CHUNK_BYTES = 256 * 1024  # or as many bytes of them: a document may have 3 MiB
MAX_CACHED_FILTER = 4096  # characters of a filter whose plan is cached
MAX_PAGE_BYTES = 4 * MIB  # approximate: a page that has reached this size ends

Position = tuple[str, str]
Selection = Callable[[list[Entity]], list[Entity]]
"""Selects the entities that match."""

SYSTEM: System = {
    "PartitionKey": lambda entity: (entity.partition_key, None),
    "RowKey": lambda entity: (entity.row_key, None),
    "Timestamp": lambda entity: (datetime_text(entity.etag), Edm.DATETIME.value),
}


class QueryEntities(msgspec.Struct, frozen=True, kw_only=True):
    filter: Node | None = None
    select_bytes: int = 0  # the least that each entity adds to the size of the answer
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
    query_plan, matching = _prepared(request.filter)

    def look(tx: Transaction) -> EntityPage:
        deadline = ctx.monotonic() + MAX_QUERY_SECONDS
        spans = _spans(query_plan, require_table(tx, target).id, request, grant)
        entities = chain.from_iterable(tx.scan(Entity, span, conditions=query_plan.conditions) for span in spans)
        found, next = _page(entities, matching, request, lambda: ctx.monotonic() > deadline)
        return EntityPage(table=target.table, entities=found, next=next)

    return await ctx.engine.read(target.scope, look)


Prepared = tuple[Plan, Selection | None]
_PREPARED = BoundedCache[Node | None, Prepared](64)  # clients repeat the same queries


def _prepared(node: Node | None) -> Prepared:
    cached = _PREPARED.get(node)
    if cached is not None:
        return cached
    made = plan(node)
    prepared = made, None if made.residual is None else compile_selection(made.residual, SYSTEM, attrgetter("properties"))
    if len(repr(node)) <= MAX_CACHED_FILTER:
        _PREPARED.keep(node, prepared)
    return prepared


def _spans(query_plan: Plan, table_id: int, request: QueryEntities, grant: Grant) -> list[Span]:
    """The spans of the plan in this table, from the continuation on, limited to the keys that the caller may read."""
    prefix = key_of(table_id)
    spans = [Span(prefix + span.low, prefix + span.high) for span in query_plan.spans]
    if request.next_partition is not None:
        start = key_of(table_id, request.next_partition, request.next_row)
        spans = [span.starting(start) for span in spans]
    if grant.entities is not None:
        low, high = grant.entities.span(table_id)
        spans = [Span(max(span.low, low), min(span.high, high)) for span in spans]
    return [span for span in spans if span.low < span.high]


def _page(
    entities: Iterator[Entity], matching: Selection | None, request: QueryEntities, is_late: Callable[[], bool]
) -> tuple[list[Entity], Position | None]:
    """The entities, and where the next page begins."""
    found: list[Entity] = []
    top, bytes_left = request.top, MAX_PAGE_BYTES
    while top:
        seen, size = _chunk(entities, CHUNK_ENTITIES if matching is not None else min(CHUNK_ENTITIES, top - len(found) + 1))
        if not seen:
            break
        kept = seen if matching is None else matching(seen)
        found += kept
        if len(found) >= top:
            return found[:top], _position(_following(found[top - 1], seen, entities))
        bytes_left -= size if len(kept) == len(seen) else sum([len(entity.properties) for entity in kept])
        bytes_left -= len(kept) * request.select_bytes
        if bytes_left <= 0 or is_late():
            return found, _position(next(entities, None))
    return found, None


def _chunk(entities: Iterator[Entity], count: int) -> tuple[list[Entity], int]:
    """Up to `count` entities, fewer when they are large; and their size."""
    chunk: list[Entity] = []
    size = 0
    for entity in islice(entities, count):
        chunk.append(entity)
        size += len(entity.properties)
        if size > CHUNK_BYTES:
            break
    return chunk, size


def _following(last: Entity, seen: list[Entity], entities: Iterator[Entity]) -> Entity | None:
    """The entity that follows `last`, which is one of `seen`."""
    index = next(index for index, entity in enumerate(seen) if entity is last) + 1
    return seen[index] if index < len(seen) else next(entities, None)


def _position(entity: Entity | None) -> Position | None:
    return None if entity is None else (entity.partition_key, entity.row_key)
