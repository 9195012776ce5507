"""A whole node on PostgreSQL and S3 while one of them is stopped: what its clients and its load balancer are told, and when."""

import asyncio
import http.client
import signal
from collections.abc import Awaitable, Iterator
from pathlib import Path
from time import monotonic

import pytest
from defusedxml.ElementTree import fromstring

from tests.contract.postgres import PostgresServer
from tests.contract.s3 import S3Server
from tests.simulation.client import Answer, Client
from tests.simulation.servers import Server, until

DEADLINE = 10.0  # of one call to either store
READY_DEADLINE = 2.0
SLACK = 8.0  # a busy machine
LARGE, SMALL = bytes(100_000), b"small"


@pytest.fixture
def node(
    tmp_path: Path, postgres_server: PostgresServer, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Server]:
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    server = Server(tmp_path / "node", "--database", postgres_server.make_database(), "--extents", str(s3_server.location()))
    server.start()
    yield server
    server.kill()


async def test_without_s3_large_bodies_are_refused_in_time_and_small_ones_go_on(node: Server, s3_server: S3Server) -> None:
    await stored(node)
    s3_server.signal(signal.SIGSTOP)
    try:
        large = (put(node, "new", LARGE), get(node, "large"))
        refused, written, read = await asyncio.gather(timed(*large), put(node, "tiny", SMALL), get(node, "small"))
        status, told = await ready(node)
    finally:
        s3_server.signal(signal.SIGCONT)
    expect_refusals(refused)
    assert (written.status, read.body) == (201, SMALL)
    assert (status, "large bodies" in told) == (200, True)
    assert (await put(node, "new", LARGE)).status == 201
    assert (await get(node, "large")).body == LARGE


async def test_without_the_database_everything_is_refused_in_time_and_the_node_is_not_ready(
    node: Server, postgres_server: PostgresServer
) -> None:
    await stored(node)
    postgres_server.pause()
    try:
        began = monotonic()
        while (await ready(node))[0] == 200:  # a probe of a moment ago
            pass
        assert monotonic() - began < READY_DEADLINE + SLACK
        refused = await timed(put(node, "new", SMALL), get(node, "small"), put(node, "new", LARGE))
    finally:
        postgres_server.resume()
    expect_refusals(refused)
    await until(lambda: node._admin("GET", "/health/ready") == 200)
    assert (await put(node, "new", LARGE)).status == 201
    assert (await get(node, "small")).body == SMALL


def expect_refusals(refused: list[tuple[Answer, float]]) -> None:
    for answer, seconds in refused:
        assert answer.outcome == "503 ServerBusy"
        assert [part.tag for part in fromstring(answer.body)] == ["Code", "Message"]
        assert int(answer.headers["retry-after"]) > 0
        assert seconds < DEADLINE + SLACK


async def timed(*calls: Awaitable[Answer]) -> list[tuple[Answer, float]]:
    began = monotonic()

    async def one(call: Awaitable[Answer]) -> tuple[Answer, float]:
        return await call, monotonic() - began

    return await asyncio.gather(*[one(call) for call in calls])


async def stored(node: Server) -> None:
    client = Client(node.port)
    assert (await client.create_container("box")).status == 201
    client.close()
    for name, body in (("large", LARGE), ("small", SMALL)):
        assert (await put(node, name, body)).status == 201


async def put(node: Server, name: str, body: bytes) -> Answer:
    return await answered(node, "PUT", name, body)


async def get(node: Server, name: str) -> Answer:
    return await answered(node, "GET", name, b"")


async def answered(node: Server, method: str, name: str, body: bytes) -> Answer:
    client = Client(node.port)
    try:
        return await client.call(method, f"box/{name}", headers={"x-ms-blob-type": "BlockBlob"}, body=body)
    finally:
        client.close()


async def ready(node: Server) -> tuple[int, str]:
    def ask() -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", node.admin_port, timeout=READY_DEADLINE + SLACK)
        connection.request("GET", "/health/ready")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()

    return await asyncio.to_thread(ask)
