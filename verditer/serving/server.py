"""A server of any connection-oriented protocol: it admits connections, applies their time limits, and drains them when it stops.

The protocol of a connection is a factory that the front end passes. Sockets come from `sockets.py`.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable, Sequence
from ssl import SSLContext
from time import monotonic
from typing import Any, Protocol

from verditer.serving.accept import Acceptor, ConnectionCounts, WorkerConnections


class Connection(Protocol):
    """What the server needs of a front end's connection."""

    task: asyncio.Task[None] | None  # of the request that is running

    def shut_down(self) -> None:
        """Close now when idle, else after the running request."""

    def abort(self) -> None:
        """Close the socket without waiting for anything."""

    def enforce_time_limits(self, now: float) -> None:
        """Called every `sweep_seconds`: one timer for all connections instead of one for each request."""


class ConnectionServer:
    """Listens on `sockets` from `start` to `stop`. `connections` is this worker's count when several share the sockets."""

    def __init__(
        self,
        make_connection: Callable[[], asyncio.BaseProtocol],
        sockets: Sequence[socket.socket],
        *,
        max_connections: int,
        sweep_seconds: float,
        handshake_seconds: float,
        tls: SSLContext | None = None,
        connections: WorkerConnections | None = None,
    ) -> None:
        self.stopping = False
        self.draining = False  # every response is the last one of its connection
        self._make_connection = make_connection
        self._sockets = sockets
        self._max_connections = max_connections
        self._sweep_seconds = sweep_seconds
        self._tls: dict[str, Any] = {} if tls is None else {"ssl": tls, "ssl_handshake_timeout": handshake_seconds}
        self._count = connections or ConnectionCounts(1).of_worker(0)
        self._acceptors: list[Acceptor] = []
        self._connections: set[Connection] = set()
        self._grace_ended = asyncio.Event()
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        self._acceptors = [Acceptor(listening, self._count, self._serve) for listening in self._sockets]
        self._enforce_time_limits(asyncio.get_running_loop())

    @property
    def port(self) -> int:
        """The port that was bound, also when the configuration asked for any free one."""
        return int(self._sockets[0].getsockname()[1])

    async def _serve(self, accepted: socket.socket) -> None:
        await asyncio.get_running_loop().connect_accepted_socket(self._make_connection, accepted, **self._tls)

    def admit(self, connection: Connection) -> bool:
        """Called by every connection when it is made. False: it has to close at once, and still calls `forget`."""
        self._connections.add(connection)
        return not self.stopping and len(self._connections) <= self._max_connections

    def forget(self, connection: Connection) -> None:
        """Called when the socket of a connection is closed and its request, if any, has ended."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._count.add(-1)
        if self.stopping and not self._connections:
            self._grace_ended.set()

    async def stop(self, grace_seconds: float) -> None:
        """Accept nothing more, let running requests finish, then cut off what is left. May be called more than once."""
        self.stopping = True
        for acceptor in self._acceptors:
            acceptor.close()
        for listening in self._sockets:  # those of a server that was never started
            listening.close()
        for connection in list(self._connections):
            connection.shut_down()
        if self._connections:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace_seconds):
                    await self._grace_ended.wait()
        for acceptor in self._acceptors:
            await acceptor.abort_starting()
        for connection in list(self._connections):
            connection.abort()
        await self._cancel_requests()
        if self._sweep is not None:
            self._sweep.cancel()

    def end_grace(self) -> None:
        """Cut off running requests now instead of at the end of `grace_seconds`."""
        self._grace_ended.set()

    async def _cancel_requests(self) -> None:
        """Cancel every running request and wait for its clean-up."""
        await asyncio.sleep(0)  # a task that is cancelled before its first step would not run its clean-up
        tasks = [connection.task for connection in self._connections if connection.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _enforce_time_limits(self, loop: asyncio.AbstractEventLoop) -> None:
        now = monotonic()
        for connection in list(self._connections):
            connection.enforce_time_limits(now)
        self._sweep = loop.call_later(self._sweep_seconds, self._enforce_time_limits, loop)
