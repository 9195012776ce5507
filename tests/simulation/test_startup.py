"""Start and stop: at any moment, with running requests, and never two servers on one folder."""

import asyncio
import random
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.simulation.client import Client, Gone, connected, numbered_bytes, together
from tests.simulation.servers import PATIENCE_SECONDS, Server, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data")
    yield server
    if server.alive:
        server.kill()


async def begin_upload(client: Client, path: str, size: int, beginning: bytes) -> None:
    """The server has requested the body and gets the beginning of it."""
    head = {"x-ms-blob-type": "BlockBlob", "Content-Length": str(size), "Expect": "100-continue"}
    await client.send("PUT", path, headers=head)
    assert (await client.receive_head())[0] == 100
    assert client.writer is not None
    client.writer.write(beginning)
    await client.writer.drain()


def listens(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), PATIENCE_SECONDS).close()
    except ConnectionRefusedError:
        return False
    return True


async def test_it_may_be_stopped_at_any_moment_of_its_start(server: Server, container: str, chance: random.Random) -> None:
    # race G5
    for _ in range(20):
        server.spawn()
        await asyncio.sleep(chance.uniform(0, 0.4))
        server.terminate()
        assert server.wait() in (0, -15)  # before the signal handler is installed, the signal ends the process
    server.start()
    async with connected([server.port], 1) as [client]:
        assert (await client.create_container(container)).status == 201
    assert server.stop() == 0
    assert "Traceback" not in server.log, server.log


async def test_stopping_lets_running_requests_finish(server: Server, container: str) -> None:
    server.start()
    data = numbered_bytes(7, 500_000)
    async with connected([server.port], 4) as [client, *uploaders]:
        await client.create_container(container)
        for number, uploader in enumerate(uploaders):
            await begin_upload(uploader, f"{container}/{number}", len(data), data[:200_000])
        server.terminate()
        await until(lambda: not listens(server))
        with pytest.raises(Gone):
            await Client(server.port).create_container("late")
        for uploader in uploaders:
            assert uploader.writer is not None
            uploader.writer.write(data[200_000:])
            assert (await uploader.receive()).status == 201
    assert server.wait() == 0
    server.start()
    async with connected([server.port], 1) as [client]:
        for number in range(len(uploaders)):
            assert (await client.get_blob(f"{container}/{number}")).body == data
    assert "Traceback" not in server.log, server.log


async def test_stopping_under_load_loses_nothing_that_was_answered(server: Server, container: str) -> None:
    # contract G6
    server.start()
    written: list[str] = []
    async with connected([server.port], 8) as clients:
        await clients[0].create_container(container)

        async def write(client: Client, number: int) -> None:
            for count in range(1_000_000):
                path = f"{container}/{number}-{count}"
                try:
                    answer = await client.put_blob(path, numbered_bytes(count, [100, 80_000][count % 2]))
                except Gone:
                    return
                assert answer.status == 201, answer.outcome
                written.append(path)

        writing = asyncio.ensure_future(together(clients, write))
        await until(lambda: len(written) > 20)
        server.terminate()
        await writing
    assert server.wait() == 0
    assert len(written) > 20
    server.start()
    async with connected([server.port], 1) as [client]:
        for path in written:
            assert (await client.call("HEAD", path)).status == 200
    assert "Traceback" not in server.log, server.log


def test_a_second_process_on_the_same_folder_is_refused(server: Server) -> None:
    server.start()
    second = Server(server.folder)
    second.spawn()
    assert second.wait() == 1
    assert "is in use by another verditer process" in server.log
    assert "Traceback" not in server.log
    assert server.alive


async def test_a_second_signal_ends_it_without_waiting_for_slow_requests(server: Server, container: str) -> None:
    server.start()
    async with connected([server.port], 2) as [client, uploader]:
        await client.create_container(container)
        await begin_upload(uploader, f"{container}/b", 500_000, b"x")
        server.terminate()
        await until(lambda: not listens(server))
        assert server.alive, "it waits for the upload"
        server.terminate()
        assert server.wait() == 0
    assert "Traceback" not in server.log, server.log


def test_a_folder_that_cannot_hold_extents_is_refused(server: Server) -> None:
    server.folder.mkdir()
    (server.folder / "extents").write_text("in the way")
    server.spawn()
    try:
        assert server.wait() == 1
    except subprocess.TimeoutExpired:
        pytest.fail("it neither serves nor ends")
    assert "verditer: " in server.log
    assert "Traceback" not in server.log
