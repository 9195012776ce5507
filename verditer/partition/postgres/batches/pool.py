"""The connections of the event loop: a few for each purpose, opened when they are needed and replaced when they break.
A connection that misses a deadline is closed, and so are all others: the server is stopped or cut off, and the next connections
look for the primary anew. While no connection can be opened, what waits is refused at once, and clients try again."""

import asyncio
import logging
from collections.abc import Callable

from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.database import Database
from verditer.partition.postgres.pipeline import PipelineConnection, open_pipeline

logger = logging.getLogger("verditer")

RETRY_SECONDS = 0.2  # after a connection could not be opened


class ConnectionPool:
    """`on_free` is called when a connection has become free, `on_failure` when none can be had."""

    def __init__(
        self,
        database: Database,
        size: int,
        *,
        deadline_seconds: float,
        on_free: Callable[[], None],
        on_failure: Callable[[EngineUnavailable], None],
    ) -> None:
        self._database = database
        self._size = size
        self._deadline_seconds = deadline_seconds
        self._on_free = on_free
        self._on_failure = on_failure
        self._free: list[PipelineConnection] = []
        self._open: set[PipelineConnection] = set()
        self._opening: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def take(self) -> PipelineConnection | None:
        """A free connection. If there is none, one more is opened, up to the size of the pool, and `on_free` is called later."""
        while self._free:
            connection = self._free.pop()
            if not self._database.is_newest(connection.lineage):
                connection.close()
            if not connection.closed:
                return connection
        if len(self._open) + len(self._opening) < self._size and not self._is_closed:
            task = asyncio.get_running_loop().create_task(self._open_one())
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        return None

    def give_back(self, connection: PipelineConnection) -> None:
        if not connection.closed:
            self._free.append(connection)
        self._on_free()

    def keep(self, connection: PipelineConnection) -> None:
        """Give back a connection that was not needed."""
        self._free.append(connection)

    def drop(self) -> None:
        """Close what is free. What is in use has a deadline of its own."""
        free, self._free = self._free, []
        for connection in free:
            connection.close()

    async def close(self) -> None:
        self._is_closed = True
        for task in list(self._opening):
            task.cancel()
        for connection in list(self._open):
            connection.close()

    async def _open_one(self) -> None:
        try:
            connection = await open_pipeline(self._database, self._deadline_seconds)
        except EngineUnavailable as error:
            logger.debug("no connection to the database: %s", error)
            if not self._open:
                self._on_failure(error)
            await asyncio.sleep(RETRY_SECONDS)
            asyncio.get_running_loop().call_soon(self._on_free)
            return
        self._open.add(connection)
        connection.on_close = lambda: self._open.discard(connection)
        asyncio.get_running_loop().call_soon(self.give_back, connection)
