"""Pending copies: fetches what Copy Blob was asked to copy from elsewhere, a few at a time, chunk by chunk.

A copy belongs to whoever claims it. The claim is renewed while the copy goes on; when a process dies, another one (or the same,
started again) takes the copy over at the last committed chunk. `services/blob/pending.py` has the steps.
"""

import asyncio
import contextlib
import logging
import random

from verditer.core.dates import seconds
from verditer.core.limits import MAX_COPY_DAYS, MIB
from verditer.core.records.copy import PendingCopy
from verditer.partition.engine import EngineUnavailable
from verditer.services.blob.pending import add_chunk, claim_copy, fail_copy, unclaimed_copies
from verditer.services.blob.sources import range_header
from verditer.services.context import Context
from verditer.services.fetch import Fetched, FetchFailed
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, receive

logger = logging.getLogger("verditer")

AT_ONCE = 4
CHUNK_BYTES = 8 * MIB  # no more, for the sake of page blobs: `pieces.MAX_FORMER`
LOOK_SECONDS = 2.0
RENEW_SECONDS = 5.0
ATTEMPTS = 8  # without a new chunk, the last ones a minute apart
MAX_PAUSE_SECONDS = 60.0
MAX_AGE = seconds(MAX_COPY_DAYS * 86400)


class Copier:
    def __init__(self, ctx: Context, *, pause_seconds: float = 1.0) -> None:
        self._ctx = ctx
        self._owner = ctx.new_guid()
        self._pause = pause_seconds  # before a second attempt; each further one waits twice as long
        self._looking: asyncio.Task[None] | None = None
        self._copying: set[asyncio.Task[None]] = set()

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
                pass  # the store is away; what waits keeps waiting
            except Exception:
                logger.exception("looking for pending copies failed; it will be tried again")
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):  # `wait_for` swallows a stop that comes together with the event
                    await self._ctx.copy_started.wait()
            self._ctx.copy_started.clear()

    async def _begin(self) -> None:
        room = AT_ONCE - len(self._copying)
        for waiting in await unclaimed_copies(self._ctx, room) if room > 0 else ():
            claimed = await claim_copy(self._ctx, waiting, self._owner)
            if claimed is not None:
                task = asyncio.get_running_loop().create_task(self._copy(claimed))
                self._copying.add(task)
                task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._copying.discard(task)
        self._ctx.copy_started.set()  # there is room for another
        if not task.cancelled() and (problem := task.exception()) is not None:
            logger.error("a pending copy stopped; its claim runs out and it will be taken up again", exc_info=problem)

    async def _copy(self, pending: PendingCopy) -> None:
        """Until it is done, has failed, or somebody else has ended it."""
        fetching = asyncio.ensure_future(self._fetch_all(pending))
        try:
            while not fetching.done():
                await asyncio.wait([fetching], timeout=RENEW_SECONDS)
                if not fetching.done() and await claim_copy(self._ctx, pending, self._owner) is None:
                    return
            await fetching
        finally:
            fetching.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await fetching

    async def _fetch_all(self, pending: PendingCopy) -> None:
        failures = 0
        current: PendingCopy | None = pending
        while current is not None:
            before = current.copied
            progress = _Progress(current)
            try:
                current = await self._fetch(current, progress)
            except FetchFailed as failure:
                current = progress.pending
                failures = failures + 1 if current.copied == before else 1
                if not failure.passing or failures >= ATTEMPTS:
                    await fail_copy(self._ctx, current, described(failure))
                    return
                pause = min(self._pause * 2 ** (failures - 1), MAX_PAUSE_SECONDS)
                await asyncio.sleep(random.uniform(pause / 2, pause))

    async def _fetch(self, pending: PendingCopy, progress: "_Progress") -> PendingCopy | None:
        """From where it stands to the end."""
        source_range = (pending.copied, None) if pending.copied else None
        strong = pending.etag is not None and not pending.etag.startswith("W/")  # a weak one matches nothing
        condition = {"If-Match": pending.etag or ""} if strong else {}
        headers = pending.headers | condition | range_header(source_range)
        fetched = await self._ctx.fetcher.open(pending.url, headers, total_seconds=None)
        try:
            _check_same(pending, fetched)
            if pending.copied and fetched.status == 200:
                await _skip(fetched, pending.copied)
            current: PendingCopy | None = pending
            while current is not None:
                if self._ctx.now() - current.started > MAX_AGE:
                    raise FetchFailed(500, "OperationCancelled", "The copy did not end within two weeks.")
                current = await self._fetch_chunk(current, fetched)
                if current is not None:
                    progress.pending = current
            return None
        finally:
            fetched.close()

    async def _fetch_chunk(self, pending: PendingCopy, fetched: Fetched) -> PendingCopy | None:
        chunk = _Chunk(fetched, min(CHUNK_BYTES, pending.total - pending.copied))
        whole = pending.total <= self._ctx.inline_limit
        with self._ctx.activity.since(self._ctx.now()) as work:
            received = await self._received(chunk, whole=whole)
            zeros = pending.pieces is not None and chunk.zeros
            if zeros and received.extent is not None:
                await self._ctx.extents.delete(received.extent)
            return await add_chunk(self._ctx, work, pending, received, zeros=zeros)

    async def _received(self, chunk: "_Chunk", *, whole: bool) -> Received:
        """Parts of a larger content are extents, however small."""
        limit = self._ctx.inline_limit if whole or not chunk.length else 0
        return await receive(chunk, self._ctx.extents, limit=CHUNK_BYTES, inline_limit=limit, expected=Checksums())


class _Progress:
    """How far a fetch came before it failed."""

    def __init__(self, pending: PendingCopy) -> None:
        self.pending = pending


class _Chunk:
    """The next `length` bytes of a source. What is read beyond them waits there for the chunk after."""

    ended = False

    def __init__(self, fetched: Fetched, length: int) -> None:
        self.length = length
        self.zeros = True
        self._fetched = fetched
        self._left = length

    async def read(self) -> bytes:
        piece = await self._fetched.read_up_to(self._left) if self._left else b""
        if self._left and not piece:
            raise FetchFailed(500, "InternalError", "The source ended before all of it had come.", passing=True)
        self._left -= len(piece)
        self.zeros = self.zeros and piece.count(0) == len(piece)
        return piece


def _check_same(pending: PendingCopy, fetched: Fetched) -> None:
    """Not every source heeds If-Match."""
    length = None if fetched.length is None else fetched.length + (pending.copied if fetched.status == 206 else 0)
    etag = fetched.headers.get("etag")
    if (length is not None and length != pending.total) or (pending.etag is not None and etag not in (None, pending.etag)):
        raise FetchFailed(412, "PreconditionFailed", "The source changed while it was copied.")


async def _skip(fetched: Fetched, length: int) -> None:
    """The source serves no ranges: what is here already comes again."""
    chunk = _Chunk(fetched, length)
    while await chunk.read():
        pass


def described(failure: FetchFailed) -> str:
    """x-ms-copy-status-description."""
    code = "PreconditionFailed" if failure.status == 412 else failure.code
    return f'{failure.status} {code} "Copy failed when reading the source. {failure.reason}"'
