"""Receives a large request body without copying it: the transport writes the bytes into the buffer they are later read from.

It replaces the connection as the protocol of the transport while such a body arrives.
"""

import asyncio
from typing import Protocol


class BufferedConnection(Protocol):
    """The part of `HttpConnection` that this protocol calls."""

    def body_bytes_received(self, count: int) -> None: ...
    def eof_received(self) -> bool: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class BodyBuffer(Protocol):
    """The part of `RequestParser` that provides the memory."""

    @property
    def buffer_space(self) -> memoryview: ...


class BodyBufferProtocol(asyncio.BufferedProtocol):
    def __init__(self, connection: BufferedConnection, buffer: BodyBuffer) -> None:
        self._connection = connection
        self._buffer = buffer

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.buffer_space

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.body_bytes_received(nbytes)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
