"""Stands in for a connection while a large body arrives: its bytes land where they will be used, without being copied there."""

import asyncio
from typing import Protocol


class Connection(Protocol):
    """`HttpConnection`, as far as it is stood in for."""

    def landed(self, count: int) -> None: ...
    def eof_received(self) -> bool: ...
    def connection_lost(self, exc: Exception | None) -> None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...


class Ground(Protocol):
    """`RequestReader`, whose memory it is."""

    @property
    def room(self) -> memoryview: ...


class Landing(asyncio.BufferedProtocol):
    def __init__(self, connection: Connection, ground: Ground) -> None:
        self._connection = connection
        self._ground = ground

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._ground.room

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.landed(nbytes)

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
