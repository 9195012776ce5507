"""The collector: background removal of everything that no request can reach any more, in small transactions (`pacing.py`).

A round has these passes: soft-deleted records whose retention has passed, children of removed parents (`cascade.py`), intervals
that no view of their content sees, blocks that were not committed within a week, expired messages, and extents (`sweep.py`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from verditer.core.dates import seconds
from verditer.core.errors import StorageError
from verditer.core.limits import UNCOMMITTED_DAYS
from verditer.core.names import BlobName, QueueName
from verditer.core.records.blob import StagedBlob
from verditer.core.records.catalog import EXPIRING
from verditer.core.records.container import Container
from verditer.core.records.content import ClosedContentView
from verditer.core.records.file import ClosedShareView
from verditer.core.records.queue import FOREVER, Queue
from verditer.core.records.record import EVERY_KEY, Record, Span, key_of, span_of
from verditer.jobs.cascade import remove_children_of_tombstones
from verditer.jobs.pacing import PacedStep, run_paced, with_pause
from verditer.jobs.sweep import remove_garbage, sweep_extents
from verditer.partition.engine import Order, Scope, Transaction
from verditer.services.activity import ANNOUNCE_SECONDS
from verditer.services.blob.blobs import discard_staged
from verditer.services.content.views import SWEEP_START, SweepPosition, sweep
from verditer.services.context import Context
from verditer.services.file.snapshots import sweep_share_view
from verditer.services.queue.expired import due_runs, expired_span, remove_expired
from verditer.services.removal import expire

logger = logging.getLogger("verditer")
RECORDS_PER_SCAN = 100
OLD_BLOCKS_EVERY = seconds(3600)
SWEEP_EVERY = seconds(24 * 3600)


class Collector:
    def __init__(self, ctx: Context, every_seconds: float) -> None:
        self._ctx = ctx
        self._every_seconds = every_seconds
        self._looked_for_blocks = 0  # tick
        self._looked_for_expired: dict[int, int] = {}  # queue id → where the last round stopped
        self._swept = 0  # tick
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, *, collecting: bool = True) -> None:
        """To be called before the process serves requests: the first announcement is stored when this returns.

        Announcing has a task of its own, so that a long round does not delay it. Every worker of a store announces; one collects.
        """
        await self._attempt(self._announce, "announcing")
        work = [self._repeat(self._announce, "announcing", ANNOUNCE_SECONDS)]
        if collecting:
            work.append(self._repeat(self.collect, "collecting", self._every_seconds))
        self._tasks = [asyncio.get_running_loop().create_task(task) for task in work]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._tasks:
            with contextlib.suppress(Exception):
                await self._ctx.activity.withdraw(self._ctx.engine)

    async def collect(self) -> None:
        """One round of all passes. Blocks are examined every hour, extents swept every day, by the clock of the store."""
        horizon = await self._ctx.activity.announce(self._ctx.engine)
        now = self._ctx.now()
        for kind in EXPIRING:
            await self._expire(kind)
        await remove_children_of_tombstones(self._ctx.engine)
        await self._sweep_share_views()
        await self._sweep_intervals()
        if now - self._looked_for_blocks > OLD_BLOCKS_EVERY:
            await self._discard_old_blocks()
            self._looked_for_blocks = now
        await remove_garbage(self._ctx, horizon)
        await self._remove_expired_messages()
        if now - self._swept > SWEEP_EVERY:
            await sweep_extents(self._ctx, horizon)
            self._swept = now

    async def _repeat(self, work: Callable[[], Awaitable[None]], name: str, pause_seconds: float) -> None:
        while True:
            await asyncio.sleep(pause_seconds)
            await self._attempt(work, name)

    async def _attempt(self, work: Callable[[], Awaitable[None]], name: str) -> None:
        try:
            await work()
            logger.debug("%s is done", name)
        except StorageError as error:  # the store is unreachable or full
            logger.warning("%s failed and will be tried again: %s", name, error.reason or error.message)
        except Exception:
            logger.exception("%s failed; it will be tried again", name)

    async def _announce(self) -> None:
        await self._ctx.activity.announce(self._ctx.engine)

    async def _expire(self, kind: type[Record]) -> None:
        """Remove the records of a class whose retention has passed, each in its own scope: it may be restored at this moment."""
        engine = self._ctx.engine

        def due(tx: Transaction) -> list[Record]:
            return list(tx.scan(kind, Span(b"", key_of(tx.now + 1)), limit=RECORDS_PER_SCAN, order=Order.RANK))

        while records := await engine.read(("jobs",), due, long=True):
            await with_pause(asyncio.gather(*[engine.write([_scope_of(record)], _expiry_of(record)) for record in records]))

    async def _remove_expired_messages(self) -> None:
        queues = await self._ctx.engine.read(("jobs",), lambda tx: list(tx.scan(Queue, EVERY_KEY)), long=True)
        self._looked_for_expired = {queue.id: await self._remove_expired_of(queue) for queue in queues}

    async def _remove_expired_of(self, queue: Queue) -> int:
        """Returns where the next round goes on. The queue's own scope excludes requests that remove the same messages."""
        runs, last = await due_runs(self._ctx, queue, self._looked_for_expired.get(queue.id, FOREVER))
        for ttl_seconds in runs:
            span = expired_span(queue.id, ttl_seconds, self._ctx.now())
            await run_paced(self._ctx.engine, QueueName(queue.account, queue.name).scope, span, _message_expiry(queue))
        return last

    async def _sweep_share_views(self) -> None:
        """Former states of files that only a deleted share snapshot saw, in the scope of the share: a snapshot may be taken."""

        def closed_views(tx: Transaction) -> list[ClosedShareView]:
            return list(tx.scan(ClosedShareView, EVERY_KEY, limit=RECORDS_PER_SCAN))

        while views := await self._ctx.engine.read(("jobs",), closed_views, long=True):
            for view in views:
                await run_paced(self._ctx.engine, view.scope, span_of(view.share_id), _share_sweep(view))

    async def _sweep_intervals(self) -> None:
        """Each content in the scope of its blob, which may be written at this moment."""

        def closed_views(tx: Transaction) -> list[ClosedContentView]:
            return list(tx.scan(ClosedContentView, EVERY_KEY, limit=RECORDS_PER_SCAN))

        while views := await self._ctx.engine.read(("jobs",), closed_views, long=True):
            for view in views:
                await run_paced(self._ctx.engine, view.scope, SWEEP_START, _interval_sweep(view))

    async def _discard_old_blocks(self) -> None:
        """Remove blocks that were not committed within a week of the last one, in the scope of their blob: Put Block List may
        commit them at this moment."""
        for target, staged in await self._ctx.engine.read(("jobs",), _old_blocks, long=True):

            def commit(tx: Transaction, staged: StagedBlob = staged) -> None:
                if tx.get(StagedBlob, staged.container_id, staged.name) == staged:
                    discard_staged(tx, staged.container_id, staged.name)

            await with_pause(self._ctx.engine.write([target.scope], commit))


def _scope_of(record: Record) -> Scope:
    assert record.LIFECYCLE.expiry is not None
    scope: Scope = getattr(record, record.LIFECYCLE.expiry.scope)
    return scope


def _expiry_of(record: Record) -> Callable[[Transaction], None]:
    return lambda tx: expire(tx, record)


def _message_expiry(queue: Queue) -> PacedStep[Span]:
    return lambda tx, span, limit: remove_expired(tx, queue, span, limit)


def _share_sweep(view: ClosedShareView) -> PacedStep[Span]:
    return lambda tx, span, limit: sweep_share_view(tx, view, span, limit)


def _interval_sweep(view: ClosedContentView) -> PacedStep[SweepPosition]:
    return lambda tx, position, limit: sweep(tx, view, position, limit)


def _old_blocks(tx: Transaction) -> list[tuple[BlobName, StagedBlob]]:
    """Those of existing containers. The others are removed with their container."""
    limit = tx.now - seconds(UNCOMMITTED_DAYS * 86400)
    old = [staged for staged in tx.scan(StagedBlob, EVERY_KEY) if staged.touched < limit]
    containers = {container.id: container for container in tx.scan(Container, EVERY_KEY)} if old else {}
    found = [(containers.get(staged.container_id), staged) for staged in old]
    return [
        (BlobName(container.account, container.name, staged.name), staged) for container, staged in found if container is not None
    ]
