"""Removal of extents that no record names. Extents are removed after the records that named them (invariant 2).

A write that removes the last name of an extent notes it as `Garbage`, and the collector removes it from there. Two sorts of
extents have no such note: those that a killed process has written and never named, and those that several contents shared. The
sweep finds them. It compares all stored extents with all names; which records name extents is declared by their classes.

Nothing is removed that a running read or upload may need. Every one of them began after `horizon` (`services/activity.py`). An
extent that became garbage before the horizon has no reader left, since a later read cannot find it. An extent that was written
before the horizon and that no record names will never be named: its writer has ended, or is refused when it commits.
"""

from collections.abc import Iterator

from verditer.core.records.catalog import RECORDS
from verditer.core.records.content import Garbage, SharedGarbage
from verditer.core.records.lifecycle import ExtentId
from verditer.core.records.record import EVERY_KEY, Record, Span, key_of
from verditer.jobs.pacing import deletion_of, run_paced, with_pause
from verditer.partition.engine import Transaction
from verditer.services.context import Context

ROWS_PER_TRANSACTION = 100
EXTENTS_PER_SCAN = 50_000  # extents that are compared with all records at once: about 10 MB
_SCOPE = ("jobs", "garbage")


async def remove_garbage(ctx: Context, horizon: int) -> None:
    span = _before(horizon)
    while rows := await ctx.engine.read(
        ("jobs",), lambda tx: list(tx.scan(Garbage, span, limit=ROWS_PER_TRANSACTION)), long=True
    ):
        for row in rows:
            await ctx.extents.delete(row.extent)

        def commit(tx: Transaction, rows: list[Garbage] = rows) -> None:
            for row in rows:
                tx.delete(Garbage, row.since, row.extent)

        await with_pause(ctx.engine.write([_SCOPE], commit))


async def sweep_extents(ctx: Context, horizon: int) -> None:
    """Remove the extents that were written before the horizon and that no record names."""
    found: set[str] = set()
    async for extent, _ in ctx.extents.list():
        if int(extent[:16], 16) < horizon and not ctx.extents.is_writing(extent):
            found.add(extent)
            if len(found) >= EXTENTS_PER_SCAN:
                await _remove_unnamed(ctx, found, horizon)
                found = set()
    await _remove_unnamed(ctx, found, horizon)
    await run_paced(ctx.engine, _SCOPE, _before(horizon), deletion_of(SharedGarbage))  # the sweep has decided about all of them


async def _remove_unnamed(ctx: Context, extents: set[str], horizon: int) -> None:
    if extents:
        unnamed = await ctx.engine.read(("jobs",), lambda tx: extents.difference(named_extents(tx, horizon)), long=True)
        for extent in unnamed:
            await ctx.extents.delete(extent)


def named_extents(tx: Transaction, horizon: int) -> Iterator[ExtentId]:
    """Every extent that a record names, as the record classes declare it."""
    for kind in RECORDS:
        yield from _extents_named_by(tx, kind, horizon)


def _extents_named_by(tx: Transaction, kind: type[Record], horizon: int) -> Iterator[ExtentId]:
    names = kind.LIFECYCLE.extents
    if names is None or names.counted_in is not None:
        return
    span = EVERY_KEY if names.released is None else Span(key_of(max(horizon, 0)), EVERY_KEY.high)
    for record in tx.scan(kind, span):
        yield from names.of(record)


def _before(horizon: int) -> Span:
    """The keys of records that were released before the horizon."""
    return Span(b"", key_of(max(horizon, 0)))
