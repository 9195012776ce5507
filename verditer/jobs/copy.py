"""Copies the sources of pending copies, a few at a time, chunk by chunk.

A process claims a copy and renews the claim while it copies. When the process dies, another one (or the same one, restarted)
claims the copy and continues at the last committed chunk. `services/copying/pending.py` has the transactions.
"""

import asyncio
import contextlib
import logging
import random
from typing import Any

from verditer.core.dates import seconds
from verditer.core.errors import ErrorClass
from verditer.core.limits import MAX_COPY_DAYS, MIB
from verditer.core.records.copy import PendingCopy
from verditer.partition.engine import EngineUnavailable
from verditer.services.blob.copying.pending import BLOB_TARGETS
from verditer.services.context import Context
from verditer.services.copying.pending import TargetKind, add_chunk, claim_copy, fail_copy, unclaimed_copies
from verditer.services.file.copying.pending import FILE_TARGETS
from verditer.services.outbound import OpenSource, SourceFailed, SourceProperties, SourceRequest
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, receive

logger = logging.getLogger("verditer")

KINDS: tuple[TargetKind[Any, Any], ...] = (BLOB_TARGETS, FILE_TARGETS)
_KIND_OF = {kind.record: kind for kind in KINDS}
AT_ONCE = 4  # copies that read their sources at the same time
MAX_CLAIMED = 64  # with those that pause before another attempt
CHUNK_BYTES = 8 * MIB  # at most `MAX_INTERVAL_BYTES` of `services/content/intervals.py`, for page blobs and files
LOOK_SECONDS = 2.0
RENEW_SECONDS = 5.0
ATTEMPTS = 8  # without a new chunk; the last ones are a minute apart
MAX_PAUSE_SECONDS = 60.0
MAX_AGE = seconds(MAX_COPY_DAYS * 86400)


class Copier:
    def __init__(self, ctx: Context, *, pause_seconds: float = 1.0) -> None:
        self._ctx = ctx
        self._owner = ctx.new_guid()
        self._pause = pause_seconds  # before the second attempt; each later attempt waits twice as long
        self._looking: asyncio.Task[None] | None = None
        self._copying: set[asyncio.Task[None]] = set()
        self._pausing = 0

    def start(self) -> None:
        self._looking = asyncio.get_running_loop().create_task(self._look_for_work())

    async def stop(self) -> None:
        tasks = [*self._copying, *([self._looking] if self._looking is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look_for_work(self) -> None:
        while True:
            try:
                await self._begin()
            except EngineUnavailable:
                pass  # the store is unreachable; the copies stay pending
            except Exception:
                logger.exception("looking for pending copies failed; it will be tried again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):  # `wait_for` would swallow a cancellation that coincides with the event
                    await self._ctx.copy_started.wait()
            self._ctx.copy_started.clear()

    async def _begin(self) -> None:
        free = min(AT_ONCE - (len(self._copying) - self._pausing), MAX_CLAIMED - len(self._copying))
        for waiting in await unclaimed_copies(self._ctx, KINDS, free) if free > 0 else ():
            claimed = await claim_copy(self._ctx, _KIND_OF[type(waiting)], waiting, self._owner)
            if claimed is not None:
                task = asyncio.get_running_loop().create_task(self._copy(claimed))
                self._copying.add(task)
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._copying.discard(task)
        self._ctx.copy_started.set()  # another copy can begin
        if not task.cancelled() and (problem := task.exception()) is not None:
            logger.error("a pending copy stopped; its claim expires and the copy will be claimed again", exc_info=problem)

    async def _copy(self, pending: PendingCopy) -> None:
        """Copy until the end, while renewing the claim. Stops when another process or a client has ended the copy."""
        reading = asyncio.ensure_future(self._read_all(pending))
        try:
            while not reading.done():
                await asyncio.wait([reading], timeout=RENEW_SECONDS)
                if not reading.done() and await claim_copy(self._ctx, _KIND_OF[type(pending)], pending, self._owner) is None:
                    return
            await reading
        finally:
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await reading

    async def _read_all(self, pending: PendingCopy) -> None:
        """Transient failures are retried; the number of attempts counts from the last committed chunk."""
        failures = 0
        progress = _Progress(pending)
        while True:
            before = progress.pending.copied
            try:
                await self._read(progress)
                return
            except SourceFailed as failure:
                failures = failures + 1 if progress.pending.copied == before else 1
                if not failure.transient or failures >= ATTEMPTS:
                    await fail_copy(self._ctx, _KIND_OF[type(pending)], progress.pending, failure)
                    return
                pause = min(self._pause * 2 ** (failures - 1), MAX_PAUSE_SECONDS)
                await self._pause_before_retry(random.uniform(pause / 2, pause))

    async def _pause_before_retry(self, pause_seconds: float) -> None:
        """A source that cannot be read keeps no other copy waiting."""
        self._pausing += 1
        self._ctx.copy_started.set()
        try:
            await asyncio.sleep(pause_seconds)
        finally:
            self._pausing -= 1

    async def _read(self, progress: "_Progress") -> None:
        """Read from the last committed chunk to the end of the source."""
        pending = progress.pending
        request = SourceRequest(
            url=pending.url,
            access=pending.access,
            range=(pending.copied, None) if pending.copied else None,
            etag=pending.etag,
        )
        source = await self._ctx.source_reader.open(request, total_seconds=None)
        try:
            _check_unchanged(pending, source.properties)
            if pending.copied and not source.properties.is_range:
                await _skip(source, pending.copied)
            current: PendingCopy | None = pending
            while current is not None:
                if self._ctx.now() - current.started > MAX_AGE:
                    message = "The copy did not end within two weeks."
                    raise SourceFailed(ErrorClass.INTERNAL, "OperationCancelled", message)
                progress.pending = current
                current = await self._copy_chunk(current, source)
        finally:
            source.close()

    async def _copy_chunk(self, pending: PendingCopy, source: OpenSource) -> PendingCopy | None:
        chunk = _Chunk(source, min(CHUNK_BYTES, pending.total - pending.copied))
        whole = pending.total <= self._ctx.inline_limit
        with self._ctx.activity.begin(self._ctx.now()) as work:
            received = await self._receive(chunk, whole=whole)
            zeros = pending.intervals is not None and chunk.zeros
            if zeros and received.extent is not None:
                await self._ctx.extents.delete(received.extent)
            return await add_chunk(self._ctx, _KIND_OF[type(pending)], work, pending, received, zeros=zeros)

    async def _receive(self, chunk: "_Chunk", *, whole: bool) -> Received:
        """A chunk of a larger content becomes an extent, however short it is."""
        limit = self._ctx.inline_limit if whole or not chunk.length else 0
        return await receive(chunk, self._ctx.extents, limit=CHUNK_BYTES, inline_limit=limit, expected=Checksums())


class _Progress:
    """The state of the copy at its last committed chunk. It outlives an attempt that fails."""

    def __init__(self, pending: PendingCopy) -> None:
        self.pending = pending


class _Chunk:
    """The next `length` bytes of a source, as the body of a write."""

    ended = False

    def __init__(self, source: OpenSource, length: int) -> None:
        self.length = length
        self.zeros = True
        self._source = source
        self._left = length

    async def read(self) -> bytes:
        data = await self._source.read(self._left) if self._left else b""
        if self._left and not data:
            message = "The source ended before all of it had arrived."
            raise SourceFailed(ErrorClass.INTERNAL, "InternalError", message, transient=True)
        self._left -= len(data)
        self.zeros = self.zeros and data.count(0) == len(data)
        return data


def _check_unchanged(pending: PendingCopy, source: SourceProperties) -> None:
    """A source may ignore the ETag of the request."""
    length = None if source.length is None else source.length + (pending.copied if source.is_range else 0)
    if (length is not None and length != pending.total) or (pending.etag is not None and source.etag not in (None, pending.etag)):
        message = "The source changed while it was copied."
        raise SourceFailed(ErrorClass.PRECONDITION_FAILED, "PreconditionFailed", message)


async def _skip(source: OpenSource, length: int) -> None:
    """The source does not serve ranges, so the bytes that were copied before arrive again."""
    chunk = _Chunk(source, length)
    while await chunk.read():
        pass
