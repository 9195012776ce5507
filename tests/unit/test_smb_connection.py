"""The time limits of an SMB connection, with a transport that says what it is told to."""

import asyncio
import socket
from collections.abc import Callable
from time import monotonic
from typing import Any, cast

import pytest

from verditer.smb.connection import SmbConnection
from verditer.smb.limits import SmbLimits
from verditer.smb.server import SmbServer


class Transport:
    """As much of a transport as a connection needs."""

    def __init__(self) -> None:
        self.unsent = 0
        self.is_aborted = self.is_reading = False
        self.socket = socket.socket()

    def get_extra_info(self, name: str) -> Any:
        return ("10.0.0.1", 50000) if name == "peername" else self.socket

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_reading = False

    def resume_reading(self) -> None:
        self.is_reading = True


class Server:
    ctx = None
    commands: dict[int, Any] = {}  # noqa: RUF012
    limits = SmbLimits(login_seconds=10, frame_seconds=20, write_stall_seconds=30)

    def admit(self, connection: object) -> bool:
        return True

    def forget(self, connection: object) -> None:
        pass


async def _connected() -> tuple[SmbConnection, Transport]:
    connection, transport = SmbConnection(cast(SmbServer, Server())), Transport()
    connection.connection_made(cast(asyncio.BaseTransport, transport))
    return connection, transport


def _is_cut(steps: Callable[[SmbConnection, Transport, float], None]) -> bool:
    async def run() -> bool:
        connection, transport = await _connected()
        steps(connection, transport, monotonic())
        if connection.task is not None:
            await connection.task
        transport.socket.close()
        return transport.is_aborted

    return asyncio.run(run())


@pytest.mark.parametrize(("seconds", "is_cut"), [(9, False), (11, True)])
def test_a_client_has_to_log_in_in_time(seconds: float, is_cut: bool) -> None:
    assert _is_cut(lambda connection, _, start: connection.enforce_time_limits(start + seconds)) is is_cut


def _logged_in(connection: SmbConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SmbConnection, "has_login", True)


@pytest.mark.parametrize(("seconds", "is_cut"), [(19, False), (21, True)])
def test_a_frame_has_to_go_on_arriving(seconds: float, is_cut: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(connection: SmbConnection, _: Transport, start: float) -> None:
        _logged_in(connection, monkeypatch)
        connection.get_buffer(-1)[:6] = b"\0\0\0\x50\xfeS"
        connection.buffer_updated(6)
        connection.enforce_time_limits(monotonic() + seconds)

    assert _is_cut(steps) is is_cut


def test_an_idle_client_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(connection: SmbConnection, _: Transport, start: float) -> None:
        _logged_in(connection, monkeypatch)
        connection.enforce_time_limits(start + 100_000)

    assert not _is_cut(steps)


@pytest.mark.parametrize(("taken", "is_cut"), [(1, False), (0, True)])
def test_a_client_that_takes_its_answers_slowly_is_not_one_that_takes_none(
    taken: int, is_cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def steps(connection: SmbConnection, transport: Transport, start: float) -> None:
        _logged_in(connection, monkeypatch)
        transport.unsent = 1000
        connection.pause_writing()
        assert not transport.is_reading
        for seconds in range(0, 200, 10):
            transport.unsent -= taken
            connection.enforce_time_limits(start + seconds)

    assert _is_cut(steps) is is_cut
