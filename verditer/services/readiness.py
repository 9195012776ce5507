"""Whether this process should be sent requests: its stores answer, and it is not about to stop.
The answer never waits for a store that is stopped or cut off: a probe has a time limit, and its outcome is remembered for a
moment. Without the extent store the process stays ready, because small bodies and everything without a body still work; the
answer says so."""

import asyncio
from collections.abc import Awaitable
from time import monotonic
from typing import NamedTuple

from verditer.core.errors import StorageError
from verditer.core.records.account import ServiceProperties
from verditer.services.context import Context

PROBE_SECONDS = 1.5
REMEMBERED_SECONDS = 1.0


class ReadyState(NamedTuple):
    records_answer: bool
    extents_answer: bool
    draining: bool

    @property
    def is_ready(self) -> bool:
        return self.records_answer and not self.draining


class Readiness:
    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self.draining = False  # the process is about to stop: a load balancer should send its requests elsewhere
        self._probed_at = float("-inf")
        self._records_answer = self._extents_answer = False
        self._probing: asyncio.Task[None] | None = None

    async def state(self) -> ReadyState:
        if monotonic() - self._probed_at > REMEMBERED_SECONDS:
            if self._probing is None or self._probing.done():
                self._probing = asyncio.get_running_loop().create_task(self._probe())
            await asyncio.shield(self._probing)
        return ReadyState(self._records_answer, self._extents_answer, self.draining)

    async def _probe(self) -> None:
        ctx = self._ctx
        records = ctx.engine.read((), lambda tx: tx.get(ServiceProperties, "", ""))
        self._records_answer, self._extents_answer = await asyncio.gather(_answers(records), _answers(ctx.extents.probe()))
        self._probed_at = monotonic()


async def _answers(call: Awaitable[object]) -> bool:
    try:
        await asyncio.wait_for(call, PROBE_SECONDS)
    except (StorageError, TimeoutError):
        return False
    return True
