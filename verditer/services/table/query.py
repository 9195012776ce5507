"""Query Entities: a page of what a filter matches, in the order of the keys, and where the next page begins.

The planner says where to look. A page ends when it is full or when its time is up, and the next one begins at the first key
that was not looked at, whether or not that entity is still there then. Each page is one committed state (contract G3).
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from operator import attrgetter

import msgspec

from verditer.core.caches import Kept
from verditer.core.edm import Edm, datetime_text
from verditer.core.grant import Grant
from verditer.core.limits import MAX_QUERY_SECONDS, MAX_TABLE_PAGE, MIB
from verditer.core.names import TableName
from verditer.core.records.record import Span, key_of
from verditer.core.records.table import Entity
from verditer.partition.engine import TooLong, Transaction
from verditer.services.context import Context
from verditer.services.table.compare import System, compile_selection
from verditer.services.table.filter import Node
from verditer.services.table.planner import Plan, plan
from verditer.services.table.tables import require_table

INLINE_SECONDS = 0.01  # a page that takes longer is begun again beside the event loop, where it has its five seconds
AT_ONCE = 32  # entities between two looks at the clock and at the size of the page
AT_ONCE_BYTES = 256 * 1024  # or so much of them: a document may be 3 MiB
LONGEST_KEPT = 4096  # characters of a filter that is kept with all that was made of it
MAX_PAGE_BYTES = 4 * MIB  # about: a page that has grown so large is sent, and the next one goes on

Position = tuple[str, str]
Selection = Callable[[list[Entity]], list[Entity]]
"""Those of some entities that match."""

SYSTEM: System = {
    "PartitionKey": lambda entity: (entity.partition_key, None),
    "RowKey": lambda entity: (entity.row_key, None),
    "Timestamp": lambda entity: (datetime_text(entity.etag), Edm.DATETIME.value),
}


class QueryEntities(msgspec.Struct, frozen=True, kw_only=True):
    filter: Node | None = None
    select_bytes: int = 0  # which each entity takes up in the answer at least
    top: int = MAX_TABLE_PAGE
    next_partition: str | None = None
    next_row: str = ""


class EntityPage(msgspec.Struct, frozen=True, kw_only=True):
    """`table` is the name as the request spelled it."""

    table: str
    entities: list[Entity]
    next: Position | None = None
    is_late: bool = False  # it ended because its time was up


async def query_entities(ctx: Context, target: TableName, request: QueryEntities, grant: Grant) -> EntityPage:
    if grant.entities is not None:
        grant.entities.check_table(target.table)
    what, matching = _prepared(request.filter)

    def look(limit_seconds: float, tx: Transaction) -> EntityPage:
        deadline = ctx.monotonic() + limit_seconds
        spans = _spans(what, require_table(tx, target).id, request, grant)
        entities = chain.from_iterable(tx.scan(Entity, span, sieve=what.marks) for span in spans)
        found, next, late = _page(entities, matching, request, lambda: ctx.monotonic() > deadline)
        return EntityPage(table=target.table, entities=found, next=next, is_late=late)

    with suppress(TooLong):
        page = await ctx.engine.read(target.scope, partial(look, INLINE_SECONDS))
        if not page.is_late:
            return page
    return await ctx.engine.scan(target.scope, partial(look, MAX_QUERY_SECONDS))


Prepared = tuple[Plan, Selection | None]
_PREPARED = Kept[Node | None, Prepared](64)  # clients ask the same question again and again


def _prepared(node: Node | None) -> Prepared:
    known = _PREPARED.get(node)
    if known is not None:
        return known
    what = plan(node)
    prepared = what, None if what.rest is None else compile_selection(what.rest, SYSTEM, attrgetter("properties"))
    if len(repr(node)) <= LONGEST_KEPT:
        _PREPARED.keep(node, prepared)
    return prepared


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


def _page(
    entities: Iterator[Entity], matching: Selection | None, request: QueryEntities, is_late: Callable[[], bool]
) -> tuple[list[Entity], Position | None, bool]:
    """The entities, where the next page begins, and whether time was up."""
    found: list[Entity] = []
    top, room_bytes = request.top, MAX_PAGE_BYTES
    while top:
        seen, size = _some(entities, AT_ONCE if matching is not None else min(AT_ONCE, top - len(found) + 1))
        if not seen:
            break
        kept = seen if matching is None else matching(seen)
        found += kept
        if len(found) >= top:
            return found[:top], _position(_behind(found[top - 1], seen, entities)), False
        room_bytes -= size if len(kept) == len(seen) else sum([len(entity.properties) for entity in kept])
        room_bytes -= len(kept) * request.select_bytes
        late = is_late()
        if late or room_bytes <= 0:
            return found, _position(next(entities, None)), late
    return found, None, False


def _some(entities: Iterator[Entity], count: int) -> tuple[list[Entity], int]:
    """So many, or fewer where they are large; and how large they are."""
    some: list[Entity] = []
    size = 0
    for entity in islice(entities, count):
        some.append(entity)
        size += len(entity.properties)
        if size > AT_ONCE_BYTES:
            break
    return some, size


def _behind(last: Entity, seen: list[Entity], entities: Iterator[Entity]) -> Entity | None:
    """The entity that follows `last`, one of those seen."""
    index = next(index for index, entity in enumerate(seen) if entity is last) + 1
    return seen[index] if index < len(seen) else next(entities, None)


def _position(entity: Entity | None) -> Position | None:
    return None if entity is None else (entity.partition_key, entity.row_key)
