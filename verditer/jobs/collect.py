"""The collector: removes what nothing names any more. Bytes go after the records that named them (invariant 2).

Three passes, each in small transactions so that nobody waits for them: children of deleted containers, extents that a write
let go, and extents that no record ever named because a process died in between. Nothing is removed that a running read or
upload, in this process or another on the same store, might still need: every process says how far back its work reaches
(`Horizon`), and only what was let go before the oldest of these is taken.
"""

import asyncio
import contextlib
import logging
import uuid

from verditer.core.dates import seconds
from verditer.core.limits import UNCOMMITTED_DAYS
from verditer.core.records.activity import Horizon
from verditer.core.records.blob import Blob, Block, Snapshot, StagedBlob
from verditer.core.records.container import Forgotten
from verditer.core.records.content import Garbage, Layout
from verditer.core.records.record import Span, key_of, span_of
from verditer.partition.engine import Transaction
from verditer.services.blob.blobs import discard_staged
from verditer.services.blob.content import drop_content
from verditer.services.context import Context

logger = logging.getLogger("verditer")
EVERYTHING = Span(b"", b"\xff" * 32)
AT_ONCE = 100  # records removed in one transaction
MARGIN = seconds(60)  # processes may disagree about the time by this much
SILENT = seconds(600)  # a process that has not been heard of for this long is gone
SWEEP_EVERY = seconds(24 * 3600)


class Collector:
    def __init__(self, ctx: Context, every_seconds: float) -> None:
        self._ctx = ctx
        self._every = every_seconds
        self._process = str(uuid.uuid4())
        self._swept = 0
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            with contextlib.suppress(Exception):
                await self._ctx.engine.write(("jobs", self._process), lambda tx: tx.delete(Horizon, self._process))

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self.collect()
            except Exception:
                logger.exception("collecting failed; it will be tried again")

    async def collect(self) -> None:
        """One round of everything."""
        await self._forget_containers()
        await self._discard_old_blocks()
        horizon = await self._horizon()
        await self._remove_garbage(horizon)
        if self._ctx.now() - self._swept > SWEEP_EVERY:
            self._swept = self._ctx.now()
            await self._sweep(horizon)

    async def _horizon(self) -> int:
        """Say how far back this process reaches, and learn how far back all of them do."""

        def commit(tx: Transaction) -> int:
            mine = Horizon(process=self._process, oldest=self._ctx.activity.oldest(tx.now), seen=tx.now)
            tx.put(mine)
            oldest = mine.oldest
            for other in list(tx.scan(Horizon, EVERYTHING)):
                if other.seen < tx.now - SILENT:
                    tx.delete(Horizon, other.process)
                else:
                    oldest = min(oldest, other.oldest)
            return oldest - MARGIN

        return await self._ctx.engine.write(("jobs",), commit)

    async def _forget_containers(self) -> None:
        def commit(tx: Transaction) -> bool:
            forgotten = next(tx.scan(Forgotten, EVERYTHING, limit=1), None)
            if forgotten is None:
                return False
            if not _remove_children(tx, forgotten.id):
                tx.delete(Forgotten, forgotten.id)
            return True

        while await self._ctx.engine.write(("jobs",), commit):
            pass

    async def _discard_old_blocks(self) -> None:
        """Blocks that nobody committed within a week of the last one."""

        def find(tx: Transaction) -> list[StagedBlob]:
            limit = tx.now - seconds(UNCOMMITTED_DAYS * 86400)
            return [staged for staged in tx.scan(StagedBlob, EVERYTHING) if staged.touched < limit]

        for staged in await self._ctx.engine.scan(("jobs",), find):

            def commit(tx: Transaction, staged: StagedBlob = staged) -> None:
                if tx.get(StagedBlob, staged.container_id, staged.name) == staged:
                    discard_staged(tx, staged.container_id, staged.name)

            await self._ctx.engine.write(("jobs",), commit)

    async def _remove_garbage(self, horizon: int) -> None:
        if horizon <= 0:
            return
        span = Span(b"", key_of(horizon))
        while rows := await self._ctx.engine.scan(("jobs",), lambda tx: list(tx.scan(Garbage, span, limit=AT_ONCE))):
            for row in rows:
                await self._ctx.extents.delete(row.extent)

            def commit(tx: Transaction, rows: list[Garbage] = rows) -> None:
                for row in rows:
                    tx.delete(Garbage, row.since, row.extent)

            await self._ctx.engine.write(("jobs",), commit)

    async def _sweep(self, horizon: int) -> None:
        """Extents that no record names, made before everything that is still running: left by a crash, or once shared."""
        stored = [extent async for extent, _ in self._ctx.extents.list() if int(extent[:16], 16) < horizon]
        if not stored:
            return
        named = await self._ctx.engine.scan(("jobs",), _named_extents)
        for extent in stored:
            if extent not in named and not self._ctx.extents.is_writing(extent):
                await self._ctx.extents.delete(extent)


def _remove_children(tx: Transaction, container_id: int) -> bool:
    """Remove some of what a deleted container held; False when there was nothing left."""
    span = span_of(container_id)
    blobs = list(tx.scan(Blob, span, limit=AT_ONCE))
    snapshots = list(tx.scan(Snapshot, span, limit=AT_ONCE))
    staged = list(tx.scan(StagedBlob, span, limit=AT_ONCE))
    for blob in blobs:
        drop_content(tx, blob)
        tx.delete(Blob, blob.container_id, blob.name)
    for snapshot in snapshots:
        drop_content(tx, snapshot)
        tx.delete(Snapshot, snapshot.container_id, snapshot.name, snapshot.snapshot)
    for one in staged:
        discard_staged(tx, one.container_id, one.name)
    return bool(blobs or snapshots or staged)


def _named_extents(tx: Transaction) -> set[str]:
    committed = {piece.extent for row in tx.scan(Layout, EVERYTHING) for piece in row.slices}
    staged = {block.extent for block in tx.scan(Block, EVERYTHING) if block.extent is not None}
    waiting = {row.extent for row in tx.scan(Garbage, EVERYTHING)}
    return committed | staged | waiting
