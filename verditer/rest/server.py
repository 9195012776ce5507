"""A listening port: it admits connections, keeps their clock and lets them finish when it stops.

What happens on a connection is in `connection.py`; certificates are in `tls.py`.
"""

import asyncio
from ssl import SSLContext
from time import monotonic

from verditer.rest.connection import Handler, HttpConnection
from verditer.rest.wire import HttpLimits

__all__ = ["Handler", "HttpLimits", "HttpServer"]

_BACKLOG = 1024


class HttpServer:
    """`name` is for people: logs and the start-up banner."""

    def __init__(
        self,
        handler: Handler,
        host: str,
        port: int,
        *,
        limits: HttpLimits | None = None,
        ssl: SSLContext | None = None,
        name: str = "",
    ) -> None:
        self.handler = handler
        self.limits = limits or HttpLimits()
        self.name = name
        self.stopping = False
        self._host = host
        self._asked_port = port
        self._ssl = ssl
        self._listener: asyncio.Server | None = None
        self._connections: set[HttpConnection] = set()
        self._emptied: asyncio.Future[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(
            lambda: HttpConnection(self),
            self._host,
            self._asked_port,
            ssl=self._ssl,
            backlog=_BACKLOG,
            ssl_handshake_timeout=self.limits.header_seconds if self._ssl else None,
        )
        self._enforce_time_limits(loop)

    @property
    def port(self) -> int:
        """The port that was bound, also when 0 asked for any."""
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self, grace_seconds: float) -> None:
        """Accept nothing more, let running requests finish, then cut off what is left."""
        if self._listener is None:
            return
        self.stopping = True
        self._listener.close()
        for connection in list(self._connections):
            connection.shut_down()
        await self._until_empty(grace_seconds)
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        for connection in list(self._connections):
            connection.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._listener.wait_closed()
        self._listener = None
        if self._sweep is not None:
            self._sweep.cancel()

    def admit(self, connection: HttpConnection) -> bool:
        self._connections.add(connection)
        return not self.stopping and len(self._connections) <= self.limits.max_connections

    def forget(self, connection: HttpConnection) -> None:
        """Its socket is gone and its handler, if any, has come to an end."""
        self._connections.discard(connection)
        if self._emptied is not None and not self._connections and not self._emptied.done():
            self._emptied.set_result(None)

    async def _until_empty(self, grace_seconds: float) -> None:
        if self._connections:
            self._emptied = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._emptied], timeout=grace_seconds)

    def _enforce_time_limits(self, loop: asyncio.AbstractEventLoop) -> None:
        now = monotonic()
        for connection in list(self._connections):
            connection.enforce_time_limits(now)
        self._sweep = loop.call_later(self._sweep_seconds, self._enforce_time_limits, loop)

    @property
    def _sweep_seconds(self) -> float:
        limits = self.limits
        shortest = min(
            limits.header_seconds,
            limits.idle_seconds,
            limits.body_stall_seconds,
            limits.write_stall_seconds,
            limits.linger_seconds,
        )
        return min(1.0, shortest / 4)
