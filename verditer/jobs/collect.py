"""The collector: removes what nothing names any more. Bytes go after the records that named them (invariant 2).

Seven passes, in small transactions so that nobody waits for them (`steps.py`): what was soft-deleted and whose retention has
passed, children of deleted containers, queues and tables (`forget.py`), pieces that no blob and no snapshot sees any more,
blocks that nobody committed, extents that a write let go, messages that have expired, and extents that no record ever named
because a process died in between.

Nothing is removed that a running read or upload, in this process or another on the same store, might still need. Every
process says how far back its work reaches (`services/activity.py`), and `horizon` is before all of it. An extent that was let
go before the horizon has no reader left, for a later read cannot find it. An extent that was made before the horizon and that
no record names now will never be named: whoever made it has ended, or is refused when it tries.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from verditer.core.dates import seconds
from verditer.core.limits import UNCOMMITTED_DAYS
from verditer.core.names import BlobName, QueueName
from verditer.core.records.blob import (
    Block,
    DeletedBlob,
    DeletedSnapshot,
    DeletedVersion,
    StagedBlob,
)
from verditer.core.records.container import Container, DeletedContainer
from verditer.core.records.content import ClosedView, ExtentUse, Garbage, Layout, SharedGarbage
from verditer.core.records.queue import FOREVER, Queue
from verditer.core.records.record import Record, Span, key_of
from verditer.jobs.forget import forget_containers
from verditer.jobs.steps import Step, in_steps, plainly, rested
from verditer.partition.engine import Scope, Transaction
from verditer.services.activity import ANNOUNCE_SECONDS
from verditer.services.blob.blobs import discard_staged
from verditer.services.blob.pieces import START, Place, sweep
from verditer.services.blob.undelete import expire_container, expire_state
from verditer.services.context import Context
from verditer.services.queue.expired import due_runs, expired_span, remove_expired

R = TypeVar("R", bound=Record)
T = TypeVar("T")

logger = logging.getLogger("verditer")
EVERYTHING = Span(b"", b"\xff" * 64)
AT_ONCE = 100  # records removed in one transaction, more or less
SWEPT_AT_ONCE = 50_000  # extents compared with all records in one go: about 10 MB
OLD_BLOCKS_EVERY = seconds(3600)
SWEEP_EVERY = seconds(24 * 3600)


class Collector:
    def __init__(self, ctx: Context, every_seconds: float) -> None:
        self._ctx = ctx
        self._every = every_seconds
        self._looked_for_blocks = 0
        self._looked_for_expired: dict[int, int] = {}  # queue id → where the last round stopped
        self._swept = 0
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, *, collecting: bool = True) -> None:
        """Announcing has a task of its own: however long a round takes, the process must not fall silent. Of the workers of one
        store each announces, and one collects."""
        work = [self._repeat(self._announce, "announcing", ANNOUNCE_SECONDS, at_once=True)]
        if collecting:
            work.append(self._repeat(self.collect, "collecting", self._every, at_once=False))
        self._tasks = [asyncio.get_running_loop().create_task(task) for task in work]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._tasks:
            with contextlib.suppress(Exception):
                await self._ctx.activity.retire(self._ctx.engine)

    async def collect(self) -> None:
        """One round of everything."""
        horizon = await self._ctx.activity.announce(self._ctx.engine)
        now = self._ctx.now()
        await self._expire(DeletedContainer, lambda deleted: (deleted.account, "blob", deleted.name), expire_container)
        await forget_containers(self._ctx.engine)
        for kind in (DeletedBlob, DeletedSnapshot, DeletedVersion):
            await self._expire(kind, lambda state: state.scope, expire_state)
        await self._sweep_pieces()
        if now - self._looked_for_blocks > OLD_BLOCKS_EVERY:
            await self._discard_old_blocks()
            self._looked_for_blocks = now
        await self._remove_garbage(horizon)
        await self._remove_expired_messages()
        if now - self._swept > SWEEP_EVERY:
            await self._sweep(horizon)
            self._swept = now

    async def _repeat(self, work: Callable[[], Awaitable[None]], name: str, pause: float, *, at_once: bool) -> None:
        if not at_once:
            await asyncio.sleep(pause)
        while True:
            try:
                await work()
            except Exception:
                logger.exception("%s failed; it will be tried again", name)
            await asyncio.sleep(pause)

    async def _announce(self) -> None:
        await self._ctx.activity.announce(self._ctx.engine)

    async def _expire(self, kind: type[R], scope_of: Callable[[R], Scope], expire: Callable[[Transaction, R], None]) -> None:
        """What was soft-deleted and is due, each in its own scope: it may be restored at this moment."""
        engine = self._ctx.engine
        while rows := await engine.scan(("jobs",), lambda tx: tx.ranked(kind, Span(b"", key_of(tx.now + 1)), AT_ONCE)):
            await rested(asyncio.gather(*[engine.write(scope_of(row), _expiring(expire, row)) for row in rows]))

    async def _remove_expired_messages(self) -> None:
        queues = await self._ctx.engine.scan(("jobs",), lambda tx: list(tx.scan(Queue, EVERYTHING)))
        self._looked_for_expired = {queue.id: await self._remove_expired_of(queue) for queue in queues}

    async def _remove_expired_of(self, queue: Queue) -> int:
        """Where to look on next time. In the queue's own scope: nobody else removes the same ones."""
        runs, last = await due_runs(self._ctx, queue, self._looked_for_expired.get(queue.id, FOREVER))
        for ttl_seconds in runs:
            span = expired_span(queue.id, ttl_seconds, self._ctx.now())
            await in_steps(self._ctx.engine, QueueName(queue.account, queue.name).scope, span, _expiring_of(queue))
        return last

    async def _sweep_pieces(self) -> None:
        """In the scope of the blob they belonged to, which may go on writing."""
        while closed := await self._ctx.engine.scan(("jobs",), lambda tx: list(tx.scan(ClosedView, EVERYTHING, limit=AT_ONCE))):
            for view in closed:
                await in_steps(self._ctx.engine, view.scope, START, _sweeping(view))

    async def _discard_old_blocks(self) -> None:
        """Blocks that nobody committed within a week of the last one."""
        for target, staged in await self._ctx.engine.scan(("jobs",), _old_blocks):

            def commit(tx: Transaction, staged: StagedBlob = staged) -> None:
                if tx.get(StagedBlob, staged.container_id, staged.name) == staged:
                    discard_staged(tx, staged.container_id, staged.name)

            await rested(self._ctx.engine.write(target.scope, commit))  # the blob's own scope: it may be committed right now

    async def _remove_garbage(self, horizon: int) -> None:
        span = Span(b"", key_of(max(horizon, 0)))
        while rows := await self._ctx.engine.scan(("jobs",), lambda tx: list(tx.scan(Garbage, span, limit=AT_ONCE))):
            for row in rows:
                await self._ctx.extents.delete(row.extent)

            def commit(tx: Transaction, rows: list[Garbage] = rows) -> None:
                for row in rows:
                    tx.delete(Garbage, row.since, row.extent)

            await rested(self._ctx.engine.write(("jobs", "garbage"), commit))

    async def _sweep(self, horizon: int) -> None:
        """Extents that no record names, made before everything that is still running: left by a crash, or once shared."""
        found: set[str] = set()
        async for extent, _ in self._ctx.extents.list():
            if int(extent[:16], 16) < horizon and not self._ctx.extents.is_writing(extent):
                found.add(extent)
                if len(found) >= SWEPT_AT_ONCE:
                    await self._remove_unnamed(found, horizon)
                    found = set()
        await self._remove_unnamed(found, horizon)
        await self._settle_shared(horizon)

    async def _remove_unnamed(self, extents: set[str], horizon: int) -> None:
        if extents:
            for extent in await self._ctx.engine.scan(("jobs",), lambda tx: extents.difference(_named_extents(tx, horizon))):
                await self._ctx.extents.delete(extent)

    async def _settle_shared(self, horizon: int) -> None:
        """The sweep has looked at every shared extent that was let go before the horizon: it is gone, or somebody names it."""
        span = Span(b"", key_of(max(horizon, 0)))
        await in_steps(self._ctx.engine, ("jobs", "garbage"), span, plainly(SharedGarbage))


def _expiring(expire: Callable[[Transaction, R], None], row: R) -> Callable[[Transaction], None]:
    return lambda tx: expire(tx, row)


def _expiring_of(queue: Queue) -> Step[Span]:
    return lambda tx, span, limit: remove_expired(tx, queue, span, limit)


def _sweeping(view: ClosedView) -> Step[Place]:
    return lambda tx, place, limit: sweep(tx, view, place, limit)


def _old_blocks(tx: Transaction) -> list[tuple[BlobName, StagedBlob]]:
    """Those of deleted containers are absent: they go with their container."""
    limit = tx.now - seconds(UNCOMMITTED_DAYS * 86400)
    old = [staged for staged in tx.scan(StagedBlob, EVERYTHING) if staged.touched < limit]
    containers = {container.id: container for container in tx.scan(Container, EVERYTHING)} if old else {}
    homes = [(containers.get(staged.container_id), staged) for staged in old]
    return [(BlobName(home.account, home.name, staged.name), staged) for home, staged in homes if home is not None]


def _named_extents(tx: Transaction, horizon: int) -> Iterable[str]:
    for row in tx.scan(Layout, EVERYTHING):
        yield from (piece.extent for piece in row.slices)
    for block in tx.scan(Block, EVERYTHING):
        if block.extent is not None:
            yield block.extent
    for use in tx.scan(ExtentUse, EVERYTHING):
        yield use.extent
    for garbage in tx.scan(Garbage, EVERYTHING):  # theirs is another pass
        yield garbage.extent
    for shared in tx.scan(SharedGarbage, Span(key_of(max(horizon, 0)), EVERYTHING.high)):
        yield shared.extent  # a copy that began before it was let go may be about to name it
