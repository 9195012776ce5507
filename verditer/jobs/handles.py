"""Keeps the handles of SMB clients: renews the heartbeat of this process, closes the handles of dead ones, receives signals.

Signals of other processes are looked for often while a handle of this process has an oplock or watches a directory, and seldom
while it has sessions only (`services/file/handles/processes/signals.py`).
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from verditer.partition.engine import EngineUnavailable
from verditer.services.context import Context
from verditer.services.file.handles.closing import close_handles
from verditer.services.file.handles.processes.owners import (
    HEARTBEAT_SECONDS,
    OwnerWatch,
    beat,
    is_dead_at_start,
    owners,
    release,
    withdraw,
)
from verditer.services.file.handles.processes.signals import receive

logger = logging.getLogger("verditer")

# Between two looks at what other processes have done: none are there; workers on an embedded store; nodes on one database.
ALONE_SECONDS, WORKERS_SECONDS, NODES_SECONDS = 1.0, 0.01, 0.1
SESSIONS_SECONDS = 0.1  # between two looks when only sessions may get signals


class HandleMonitor:
    """`is_only_server`: the store serves no other server at the same time, so handles of earlier ones are dead. `has_workers`:
    this process is one of several."""

    def __init__(self, ctx: Context, *, number: int = 0, is_only_server: bool, has_workers: bool) -> None:
        self._ctx = ctx
        self._is_only_server = is_only_server
        self._is_alone = is_only_server and not has_workers
        ctx.handles.number = number
        ctx.handles.poll_seconds = ALONE_SECONDS if self._is_alone else WORKERS_SECONDS if is_only_server else NODES_SECONDS
        self._watch = OwnerWatch(ctx.monotonic)
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Close the handles that are known to be dead, and begin."""
        for owner in await owners(self._ctx):
            if is_dead_at_start(owner, self._ctx.handles, is_only_server=self._is_only_server):
                closed = await release(self._ctx, owner)
                logger.debug("closed %d handles of an earlier process", closed)
        work = [self._keep] if self._is_alone else [self._keep, self._receive]
        self._tasks = [asyncio.get_running_loop().create_task(_repeated(one)) for one in work]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with contextlib.suppress(EngineUnavailable):  # others find that this process has stopped
            await close_handles(self._ctx, self._ctx.handles.all())
            await withdraw(self._ctx)

    async def _keep(self) -> None:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        await self.keep()

    async def keep(self) -> None:
        """What is due every few seconds."""
        await beat(self._ctx)
        unclosed, self._ctx.handles.unclosed = self._ctx.handles.unclosed, []
        await close_handles(self._ctx, unclosed)
        others = [owner for owner in await owners(self._ctx) if owner.owner != self._ctx.handles.owner]
        for owner in self._watch.dead(others):
            if closed := await release(self._ctx, owner):
                logger.warning("closed %d handles of a process that has stopped", closed)

    async def _receive(self) -> None:
        handles = self._ctx.handles
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SESSIONS_SECONDS if handles.sessions else None):
                await handles.listening.wait()
        while await receive(self._ctx):
            pass
        if handles.listening.is_set() and not any(handle.oplock or handle.watched for handle in handles.all()):
            handles.listening.clear()
        await asyncio.sleep(handles.poll_seconds)


async def _repeated(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except EngineUnavailable:
            await asyncio.sleep(1)  # the store is unreachable
        except Exception:
            logger.exception("keeping the handles of SMB clients failed; it will be tried again")
            await asyncio.sleep(1)
