"""The HTTP server of one listening port. What happens on a connection is in `connection.py`; admitting connections, their time
limits and stopping are in `serving/server.py`."""

import socket
from collections.abc import Sequence
from ssl import SSLContext

from verditer.rest.http.connection import Handler, HttpConnection
from verditer.rest.http.response_batcher import ResponseBatcher
from verditer.rest.http.wire import HttpLimits
from verditer.serving.accept import WorkerConnections
from verditer.serving.server import ConnectionServer

__all__ = ["Handler", "HttpLimits", "HttpServer"]


class HttpServer(ConnectionServer):
    """`connections` is this worker's count when several worker processes listen on the same sockets."""

    def __init__(
        self,
        handler: Handler,
        sockets: Sequence[socket.socket],
        *,
        limits: HttpLimits | None = None,
        tls: SSLContext | None = None,
        connections: WorkerConnections | None = None,
    ) -> None:
        self.handler = handler
        self.limits = limits or HttpLimits()
        self.response_batcher = ResponseBatcher()
        super().__init__(
            lambda: HttpConnection(self),
            sockets,
            max_connections=self.limits.max_connections,
            sweep_seconds=_sweep_seconds(self.limits),
            handshake_seconds=self.limits.header_seconds,
            tls=tls,
            connections=connections,
        )


def _sweep_seconds(limits: HttpLimits) -> float:
    """Often enough for the shortest limit."""
    shortest = min(
        limits.header_seconds,
        limits.idle_seconds,
        limits.body_stall_seconds,
        limits.write_stall_seconds,
        limits.linger_seconds,
    )
    return min(1.0, shortest / 4)
