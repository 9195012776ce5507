"""Acknowledged writes over SMB are durable (contract G6), and a killed worker takes the handles of its own clients along alone.

`tests/smb_judges/test_kill.py` does the same for longer and under load."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import smbclient
from azure.storage.fileshare import ShareClient, ShareServiceClient
from smbprotocol.exceptions import SMBException

from tests.simulation.servers import PATIENCE_SECONDS, Server
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

WRITES_BEFORE_THE_KILL = 30
BLOCK_BYTES = 3000
LOST = (SMBException, OSError, ValueError)  # smbprotocol raises any of these when its connection is gone


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data").start()
    yield server
    server.kill()
    assert "Traceback" not in server.log, server.log


@contextlib.contextmanager
def share_of(server: Server) -> Iterator[ShareClient]:
    endpoint = f"http://127.0.0.1:{server.ports['file']}/{DEVELOPMENT_ACCOUNT}"
    credential = {"account_name": DEVELOPMENT_ACCOUNT, "account_key": DEVELOPMENT_KEY}
    with ShareServiceClient(endpoint, credential, retry_total=0) as service:
        yield service.get_share_client("share")


def opened(server: Server, name: str) -> Any:
    """A new file, over a connection of its own, which shares nothing."""
    login = {"username": DEVELOPMENT_ACCOUNT, "password": DEVELOPMENT_KEY, "port": server.ports["smb"]}
    return smbclient.open_file(rf"\\127.0.0.1\share\{name}", mode="xb", buffering=0, connection_cache={}, **login)


def block(number: int) -> bytes:
    return f"{number:08d}".encode().ljust(BLOCK_BYTES, b"-")


def test_acknowledged_writes_survive_a_kill(server: Server) -> None:  # contract G6
    acknowledged, is_enough = 0, threading.Event()

    def write() -> None:
        nonlocal acknowledged
        with contextlib.suppress(*LOST), opened(server, "file") as file:
            while True:
                file.write(block(acknowledged))
                acknowledged += 1
                if acknowledged == WRITES_BEFORE_THE_KILL:
                    is_enough.set()

    with share_of(server) as share:
        share.create_share()
        writer = threading.Thread(target=write)
        writer.start()
        assert is_enough.wait(PATIENCE_SECONDS)
        server.kill()
        writer.join()
    server.start()
    with share_of(server) as share:
        stored = share.get_file_client("file").download_file().readall()
        blocks = [stored[at : at + BLOCK_BYTES] for at in range(0, len(stored), BLOCK_BYTES)]
        assert len(blocks) in (acknowledged, acknowledged + 1)  # one more may have arrived
        assert blocks == [block(number) for number in range(len(blocks))]
        assert list(share.get_file_client("file").list_handles()) == []
        share.get_file_client("file").delete_file()


def test_a_killed_worker_takes_the_handles_of_its_own_clients_along(server: Server) -> None:  # contract G6
    with share_of(server) as share:
        share.create_share()
    files: dict[str, Any] = {}
    workers: dict[str, int] = {}
    while set(workers.values()) != set(server.workers):  # until each serves a client
        name = f"file{len(files)}"
        files[name] = opened(server, name)
        workers[name] = worker_of(server, files[name])
    killed = workers["file0"]
    os.kill(killed, signal.SIGKILL)
    assert {name for name, file in files.items() if still_writes(file)} == {name for name in files if workers[name] != killed}
    with share_of(server) as share:  # over a new connection: the former may have been one of the killed worker
        expected = {handle_id(file) for name, file in files.items() if workers[name] != killed}
        end = time.monotonic() + PATIENCE_SECONDS
        while {int(handle.id) for handle in share.get_directory_client("").list_handles(recursive=True)} != expected:
            assert time.monotonic() < end  # the successor of the worker closes what the worker had open
        share.get_file_client("file0").delete_file()
    opened(server, "file0").close()  # its client goes on


def worker_of(server: Server, file: Any) -> int:
    """The process that has the other end of the connection of an open file."""
    client_port = file.fd.connection.transport._sock.getsockname()[1]
    ends = (f":{server.ports['smb']:04X}", f":{client_port:04X}")
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    [inode] = [row[9] for row in rows if (row[1][-5:], row[2][-5:]) == ends]
    [worker] = [worker for worker in server.workers if f"socket:[{inode}]" in open_files(worker)]
    return worker


def open_files(process: int) -> Iterator[str]:
    for link in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            yield os.readlink(link)


def still_writes(file: Any) -> bool:
    try:
        return bool(file.write(b"x"))
    except LOST:
        return False


def handle_id(file: Any) -> int:
    return int.from_bytes(file.fd.file_id[:8], "little")
