"""A listening port: it admits connections, keeps their clock and lets them finish when it stops.

What happens on a connection is in `connection.py`; certificates are in `tls.py`.
"""

import asyncio
import os
import socket
from collections.abc import Sequence
from ssl import SSLContext
from time import monotonic
from typing import Any

from verditer.rest.accept import Acceptor, Member
from verditer.rest.connection import Handler, HttpConnection
from verditer.rest.departures import Departures
from verditer.rest.wire import HttpLimits

__all__ = ["Handler", "HttpLimits", "HttpServer"]

_BACKLOG = 1024


def listening_sockets(host: str, port: int) -> list[socket.socket]:
    """One for each address of the host; for processes that are going to share them."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return [_bound(family, address) for family, address in dict.fromkeys((family, address) for family, *_, address in found)]


def _bound(family: int, address: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        made.bind(address)
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        reason = os.strerror(error.errno or 0).lower()
        raise OSError(error.errno, f"error while attempting to bind on address {address!r}: {reason}") from None
    return made


class HttpServer:
    """`name` is for people: logs and the start-up banner. A member of a crew of workers
    brings the sockets that all of them listen on; alone, a server opens its own."""

    def __init__(
        self,
        handler: Handler,
        host: str,
        port: int,
        *,
        limits: HttpLimits | None = None,
        ssl: SSLContext | None = None,
        name: str = "",
        sockets: Sequence[socket.socket] = (),
        member: Member | None = None,
    ) -> None:
        self.handler = handler
        self.limits = limits or HttpLimits()
        self.name = name
        self.departures = Departures()
        self.stopping = False
        self._host = host
        self._asked_port = port
        self._ssl = ssl
        self._sockets = sockets
        self._member = member
        self._listener: asyncio.Server | None = None
        self._acceptors: list[Acceptor] = []
        self._connections: set[HttpConnection] = set()
        self._emptied: asyncio.Future[None] | None = None
        self._sweep: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        if self._member is not None:
            self._acceptors = [Acceptor(given, self._member, self._serve) for given in self._sockets]
        else:
            self._listener = await loop.create_server(
                lambda: HttpConnection(self), self._host, self._asked_port, backlog=_BACKLOG, **self._tls
            )
        self._enforce_time_limits(loop)

    @property
    def _tls(self) -> dict[str, Any]:
        return {"ssl": self._ssl, "ssl_handshake_timeout": self.limits.header_seconds} if self._ssl is not None else {}

    async def _serve(self, taken: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(lambda: HttpConnection(self), taken, **self._tls)
        except BaseException as error:
            assert self._member is not None
            self._member.add(-1)
            if not isinstance(error, OSError):  # no TLS, or gone already
                raise

    @property
    def port(self) -> int:
        """The port that was bound, also when 0 asked for any."""
        if self._acceptors:
            return self._acceptors[0].port
        assert self._listener is not None
        return int(self._listener.sockets[0].getsockname()[1])

    async def stop(self, grace_seconds: float) -> None:
        """Accept nothing more, let running requests finish, then cut off what is left."""
        if self._listener is None and not self._acceptors:
            return
        self.stopping = True
        for listener in (self._listener, *self._acceptors):
            if listener is not None:
                listener.close()
        for connection in list(self._connections):
            connection.shut_down()
        await self._until_empty(grace_seconds)
        await asyncio.sleep(0)  # whoever came in this very moment takes a first step, and can be told
        for connection in list(self._connections):
            connection.abort()
        await self._cut_off()
        if self._listener is not None:
            await self._listener.wait_closed()
        self._listener = None
        self._acceptors.clear()
        if self._sweep is not None:
            self._sweep.cancel()

    async def _cut_off(self) -> None:
        """Each answer is told once, and has the time it needs to put things in order. What it waited for may have been there
        in the same moment: then it is told where it waits next."""
        told: set[HttpConnection] = set()
        while running := [(connection, connection.task) for connection in self._connections if connection.task is not None]:
            for connection, task in running:
                if connection not in told and task.cancel():
                    told.add(connection)
            await asyncio.gather(*[task for _, task in running], return_exceptions=True)
            await asyncio.sleep(0)

    def admit(self, connection: HttpConnection) -> bool:
        self._connections.add(connection)
        return not self.stopping and len(self._connections) <= self.limits.max_connections

    def forget(self, connection: HttpConnection) -> None:
        """Its socket is gone and its handler, if any, has come to an end."""
        if connection in self._connections:
            self._connections.discard(connection)
            if self._member is not None:
                self._member.add(-1)
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
