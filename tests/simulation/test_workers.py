"""Two workers behind one port: clients do not notice that there are two, nor that one of them dies."""

import asyncio
import http.client
import os
import re
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.simulation.client import Client, Gone, connected, numbered_bytes, together
from tests.simulation.servers import PATIENCE_SECONDS, Server, until


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data").start()
    yield server
    if server.alive:
        server.kill()


def replaced(server: Server, worker: int) -> bool:
    return worker not in server.workers and len(server.workers) == 2


async def test_a_killed_worker_takes_nothing_with_it(server: Server, container: str) -> None:  # contract G6
    written: dict[str, bytes] = {}
    lost = 0
    done = asyncio.Event()

    def more_than(count: int) -> bool:
        return len(written) > count

    async with connected([server.port], 8) as clients:
        await clients[0].create_container(container)

        async def write(client: Client, number: int) -> None:
            nonlocal lost
            count = 0
            while not done.is_set():
                count += 1
                path, data = f"{container}/{number}-{count}", numbered_bytes(count, [100, 80_000][count % 2])
                try:
                    answer = await client.put_blob(path, data)
                except Gone:
                    lost += 1
                    client.close()
                    continue
                assert answer.status == 201, answer.outcome
                written[path] = data

        writing = asyncio.ensure_future(together(clients, write))
        for number, victim in enumerate((0, 1, 0)):
            await until(partial(more_than, 20 * number))
            worker = server.workers[victim]
            os.kill(worker, signal.SIGKILL)
            await until(partial(replaced, server, worker))
        await until(partial(more_than, 60))
        done.set()
        await writing
        for path, data in written.items():
            assert (await clients[0].get_blob(path)).body == data
    assert lost > 0
    assert len(written) > 50
    assert server.log.count("another takes its place") == 3
    assert server.stop() == 0
    assert "Traceback" not in server.log


async def test_the_parents_death_ends_the_workers(server: Server) -> None:
    workers = server.workers
    server.kill()
    await until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    server.start()


async def test_metrics_are_of_all_workers(server: Server, container: str) -> None:
    async with connected([server.port], 8) as clients:
        await clients[0].create_container(container)
        for client in clients:
            await client.put_blob(f"{container}/b", b"data")

    def put_blobs() -> int:
        connection = http.client.HTTPConnection("127.0.0.1", server.admin_port, timeout=PATIENCE_SECONDS)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        found = re.search(r'^verditer_requests_total\{operation="PutBlob",service="blob",status="201"\} ([\d.]+)', text, re.M)
        return int(float(found[1])) if found is not None else 0

    for _ in range(4):  # by either worker
        await until(lambda: put_blobs() == 8)


async def test_the_clock_is_moved_for_all_workers(server: Server, container: str) -> None:  # contract L7
    async with connected([server.port], 8) as clients:
        await clients[0].create_container(container)
        await clients[0].put_blob(f"{container}/b", b"data")
        first = "11111111-1111-1111-1111-111111111111"
        assert (await clients[0].acquire(f"{container}/b", first, 15)).status == 201
        for client in clients:
            assert (await client.put_blob(f"{container}/b", b"data")).status == 412
        server.move_clock(16)
        for client in clients:
            assert (await client.put_blob(f"{container}/b", b"data")).status == 201
