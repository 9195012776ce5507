"""Bodies that wait for a connection: what batches of reads and batches of writes have in common."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.pending import PendingBody


class WaitingBodies:
    """`dispatch` takes bodies from `queue` and starts a task for each batch of them."""

    def __init__(self, dispatch: Callable[[], None]) -> None:
        self.queue: deque[PendingBody] = deque()
        self.tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._dispatch = dispatch
        self._is_scheduled = False

    def add(self, pending: PendingBody) -> None:
        self.queue.append(pending)
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._dispatch_scheduled)  # after the other callbacks of this iteration, which may add more

    def _dispatch_scheduled(self) -> None:
        self._is_scheduled = False
        self._dispatch()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def fail(self, error: EngineUnavailable) -> None:
        while self.queue:
            self.queue.popleft().fail(EngineUnavailable(error.reason))
