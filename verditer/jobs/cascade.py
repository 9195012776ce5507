"""Removal of the children of removed parents: blobs of deleted containers, messages of deleted or cleared queues, and so on.

Children are keyed by the id of their parent. When a parent is removed, its id becomes a `Tombstone` and no request writes below
that id any more, so a scan finds all children. They are removed class by class, in paced transactions. A child that is a parent
itself leaves a tombstone of its own, so chains of any depth are removed.
"""

from collections.abc import Iterable
from typing import TypeVar

from verditer.core.records.catalog import CHILDREN
from verditer.core.records.container import Tombstone
from verditer.core.records.record import EVERY_KEY, Record, Span, span_of
from verditer.jobs.pacing import PacedStep, deletion_of, run_paced, with_pause
from verditer.partition.engine import Engine, Transaction
from verditer.services.removal import remove, rows_removed

R = TypeVar("R", bound=Record)

SCOPE = ("jobs", "tombstone")


async def remove_children_of_tombstones(engine: Engine) -> None:
    while (tombstone := await engine.read(("jobs",), _first_tombstone, long=True)) is not None:
        await _remove_children(engine, tombstone.id)


def _first_tombstone(tx: Transaction) -> Tombstone | None:
    return next(tx.scan(Tombstone, EVERY_KEY, limit=1), None)


async def _remove_children(engine: Engine, id: int) -> None:
    span = span_of(id)
    for kind in await engine.read(("jobs",), lambda tx: _kinds_in(tx, span), long=True):
        await run_paced(engine, SCOPE, span, _removal_of(kind))
    await with_pause(engine.write([SCOPE], lambda tx: tx.delete(Tombstone, id)))


def _kinds_in(tx: Transaction, span: Span) -> list[type[Record]]:
    return [kind for kind in CHILDREN if next(tx.scan(kind, span, limit=1), None) is not None]


def _removal_of(kind: type[Record]) -> PacedStep[Span]:
    if not kind.LIFECYCLE.owns and not kind.IS_PARENT:
        return deletion_of(kind)

    def step(tx: Transaction, span: Span, limit: int) -> Span | None:
        records = first_of(tx.scan(kind, span, limit=limit), limit)
        for record in records:
            remove(tx, record)
        return span.after(records[-1].key()) if records else None

    return step


def first_of(records: Iterable[R], limit: int) -> list[R]:
    """The first records, at least one, whose removal touches about `limit` rows."""
    taken: list[R] = []
    rows = 0
    for record in records:
        taken.append(record)
        rows += rows_removed(record)
        if rows >= limit:
            break
    return taken
