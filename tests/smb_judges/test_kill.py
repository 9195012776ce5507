"""kill -9 of the server and of one worker while SMB clients write: every write that was acknowledged is there afterwards."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import smbclient
from azure.storage.fileshare import ShareServiceClient
from smbprotocol.exceptions import SMBException

from tests.simulation.servers import Server
from tests.smb_judges.conftest import connection_string, verditer_target
from tests.smb_judges.target import HOST, Target

pytestmark = pytest.mark.verditer

WRITERS = 3
WRITES_BEFORE_THE_KILL = 40
PATIENCE_SECONDS = 60.0


class Writer(threading.Thread):
    """Writes blocks one after the other into its file, until the connection breaks. `acknowledged` counts the answers."""

    def __init__(self, target: Target, name: str, block_bytes: int) -> None:
        super().__init__(name=name)
        self.acknowledged = 0
        self.block_bytes = block_bytes
        self._target = target

    def block(self, number: int) -> bytes:
        return f"{self.name} {number:08d} ".encode().ljust(self.block_bytes, b"-")

    def run(self) -> None:
        try:
            with opened(self._target, self.name, "wb") as file:
                while True:
                    file.write(self.block(self.acknowledged))
                    self.acknowledged += 1
        except (SMBException, OSError, ValueError):  # the connection is gone; smbprotocol raises any of these
            return


def opened(target: Target, name: str, mode: str):  # type: ignore[no-untyped-def]  # smbprotocol has no types
    login = {"username": target.account, "password": target.key, "port": target.port}
    path = rf"\\{HOST}\{target.share}\{name}"
    return smbclient.open_file(path, mode=mode, buffering=0, share_access="rwd", connection_cache={}, **login)


@pytest.fixture
def fragile(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data").start()
    yield server
    if server.alive:
        server.kill()


def start_writers(target: Target) -> list[Writer]:
    writers = [Writer(target, f"file{number}", size) for number, size in enumerate((100, 4096, 300_000)[:WRITERS])]
    for writer in writers:
        writer.start()
    end = time.monotonic() + PATIENCE_SECONDS
    while any(writer.acknowledged < WRITES_BEFORE_THE_KILL for writer in writers):
        assert all(writer.is_alive() for writer in writers)
        assert time.monotonic() < end, [writer.acknowledged for writer in writers]
        time.sleep(0.01)
    return writers


def assert_nothing_is_lost(server: Server, target: Target, writers: list[Writer]) -> None:
    """Whole blocks of every acknowledged write; at most one more write may have arrived."""
    with ShareServiceClient.from_connection_string(connection_string(server)) as service:
        share = service.get_share_client(target.share)
        for writer in writers:
            stored = share.get_file_client(writer.name).download_file().readall()
            blocks = [stored[at : at + writer.block_bytes] for at in range(0, len(stored), writer.block_bytes)]
            assert len(blocks) in (writer.acknowledged, writer.acknowledged + 1)
            assert blocks == [writer.block(number) for number in range(len(blocks))]


def test_a_killed_server_has_every_acknowledged_write(fragile: Server, tmp_path: Path) -> None:
    # contract G6
    target = verditer_target(fragile, tmp_path)
    writers = start_writers(target)
    fragile.kill()
    for writer in writers:
        writer.join(PATIENCE_SECONDS)
    fragile.start()
    assert_nothing_is_lost(fragile, target, writers)
    with ShareServiceClient.from_connection_string(connection_string(fragile)) as service:
        share = service.get_share_client(target.share)
        assert list(share.get_directory_client("").list_handles(recursive=True)) == []
        share.get_file_client("file0").delete_file()  # no handle of the killed process is left


def test_a_killed_worker_loses_the_handles_of_its_clients_alone(fragile: Server, tmp_path: Path) -> None:
    # contract G6
    target = verditer_target(fragile, tmp_path)
    writers = start_writers(target)
    for worker in fragile.workers[:1]:
        os.kill(worker, signal.SIGKILL)
    fresh = Writer(target, "after", 4096)
    fresh.start()
    end = time.monotonic() + PATIENCE_SECONDS
    while fresh.acknowledged < WRITES_BEFORE_THE_KILL:  # a client that connects again goes on
        assert time.monotonic() < end
        if not fresh.is_alive():
            fresh = Writer(target, "after", 4096)
            fresh.start()
        time.sleep(0.01)
    survivors = [writer for writer in writers if writer.is_alive()]
    before = [writer.acknowledged for writer in survivors]
    while [writer.acknowledged for writer in survivors] == before and survivors:
        assert time.monotonic() < end
        time.sleep(0.01)
    fragile.kill()
    for writer in [*writers, fresh]:
        writer.join(PATIENCE_SECONDS)
    fragile.start()
    assert_nothing_is_lost(fragile, target, writers)
