"""What deleted containers, queues and tables held: removed here, some time after they were deleted or cleared.

Children are stored under the id of their parent, and nobody writes under an id that was given up (`Forgotten`). So what is
found is all there will be, and it goes kind by kind in steps of their own.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from verditer.core.limits import MIB
from verditer.core.records.blob import (
    Blob,
    BlobVersion,
    Block,
    DeletedBlob,
    DeletedSnapshot,
    DeletedVersion,
    Snapshot,
    StagedBlob,
)
from verditer.core.records.container import Forgotten
from verditer.core.records.queue import Message
from verditer.core.records.record import Record, Span, span_of
from verditer.core.records.table import Entity
from verditer.jobs.steps import Step, in_steps, plainly, rested
from verditer.partition.engine import Engine, Transaction
from verditer.services.blob.content import drop_block, drop_content
from verditer.services.blob.tags import index_tags

R = TypeVar("R", bound=Record)

SCOPE = ("jobs", "forgotten")
ALL_IDS = Span(b"", b"\xff" * 9)


async def forget_containers(engine: Engine) -> None:
    while (forgotten := await engine.scan(("jobs",), _first)) is not None:
        await _forget(engine, forgotten.id)


def _first(tx: Transaction) -> Forgotten | None:
    return next(tx.scan(Forgotten, ALL_IDS, limit=1), None)


async def _forget(engine: Engine, id: int) -> None:
    span = span_of(id)
    for kind in await engine.scan(("jobs",), lambda tx: _kinds_in(tx, span)):
        await in_steps(engine, SCOPE, span, CHILDREN[kind])
    await rested(engine.write(SCOPE, lambda tx: _end(tx, id)))


def _kinds_in(tx: Transaction, span: Span) -> list[type[Record]]:
    return [kind for kind in CHILDREN if next(tx.scan(kind, span, limit=1), None) is not None]


def _end(tx: Transaction, id: int) -> None:
    tx.drop(id)
    tx.delete(Forgotten, id)


def _one_by_one(kind: type[R], remove: Callable[[Transaction, R], None], weight: Callable[[R], int]) -> Step[Span]:
    def step(tx: Transaction, span: Span, limit: int) -> Span | None:
        taken = some(tx.scan(kind, span, limit=limit), limit, weight)
        for record in taken:
            remove(tx, record)
        return span.after(taken[-1].key()) if taken else None

    return step


def some(records: Iterable[R], limit: int, weight: Callable[[R], int]) -> list[R]:
    """The first of them: at least one, and no more once they weigh enough for one transaction."""
    taken: list[R] = []
    total = 0
    for record in records:
        taken.append(record)
        total += weight(record)
        if total >= limit:
            break
    return taken


def _remove_blob(tx: Transaction, blob: Blob) -> None:
    index_tags(tx, blob, None)
    _remove_state(tx, blob)


def _remove_state(tx: Transaction, state: Blob) -> None:
    drop_content(tx, state)
    tx.delete(type(state), *[getattr(state, name) for name in state.KEY])


def _blob_weight(blob: Blob) -> int:
    """About how many rows go with it: the blocks of a large blob are some megabytes each. Pieces go in a pass of their own."""
    return 1 + (blob.size // MIB if blob.pieces is None else 0)


FORMER: tuple[type[Blob], ...] = (Snapshot, BlobVersion, DeletedBlob, DeletedSnapshot, DeletedVersion)
CHILDREN: dict[type[Record], Step[Span]] = {
    Message: plainly(Message),
    Entity: plainly(Entity),
    Blob: _one_by_one(Blob, _remove_blob, _blob_weight),
    **{kind: _one_by_one(kind, _remove_state, _blob_weight) for kind in FORMER},
    Block: _one_by_one(Block, drop_block, lambda block: 1),
    StagedBlob: plainly(StagedBlob),
}
