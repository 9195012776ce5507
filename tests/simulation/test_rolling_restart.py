"""A rolling restart behind a load balancer: each node reports that it is not ready, serves on, stops and comes back. No request
fails.
The load balancer asks every node for its readiness ten times a second, sends requests to ready nodes only, and repeats nothing.
"""

import asyncio
import itertools
from functools import partial
from pathlib import Path

from tests.contract.postgres import PostgresServer
from tests.simulation.client import Client
from tests.simulation.servers import Server, until

POLL_SECONDS = 0.1
DRAIN_SECONDS = 1.0
CLIENTS = 6


class Balancer:
    def __init__(self, nodes: list[Server]) -> None:
        self._nodes = nodes
        self._next = itertools.count()
        self.ready = [True for _ in nodes]
        self.stopped = False

    async def watch(self) -> None:
        while not self.stopped:
            states = await asyncio.gather(*[asyncio.to_thread(self._is_ready, node) for node in self._nodes])
            self.ready = list(states)
            await asyncio.sleep(POLL_SECONDS)

    def _is_ready(self, node: Server) -> bool:
        try:
            return node._admin("GET", "/health/ready") == 200
        except OSError:
            return False

    def port(self) -> int:
        ready = [node.port for node, is_ready in zip(self._nodes, self.ready, strict=True) if is_ready]
        assert ready, "no node is ready"
        return ready[next(self._next) % len(ready)]


async def write_on(balancer: Balancer, container: str, number: int) -> int:
    """How many writes were acknowledged. Every one has to be."""
    clients: dict[int, Client] = {}
    for count in itertools.count():
        if balancer.stopped:
            return count
        port = balancer.port()
        client = clients.setdefault(port, Client(port))
        answer = await client.put_blob(f"{container}/{number}-{count}", b"x" * (100 if count % 4 else 100_000))
        assert answer.status == 201, answer.outcome
    raise AssertionError


async def restart_one_after_another(balancer: Balancer, nodes: list[Server]) -> None:
    for number, node in enumerate(nodes):
        await asyncio.to_thread(node.stop)
        await asyncio.to_thread(node.start)
        await until(partial(_is_ready, balancer, number))
    balancer.stopped = True


def _is_ready(balancer: Balancer, number: int) -> bool:
    return balancer.ready[number]


def test_a_rolling_restart_fails_no_request(tmp_path: Path, databases: PostgresServer) -> None:
    flags = ("--location", str(tmp_path / "shared"), "--database", databases.make_database())
    nodes = [Server(tmp_path / f"node-{number}", *flags, "--drainSeconds", str(DRAIN_SECONDS)) for number in range(2)]

    async def run() -> list[int]:
        balancer = Balancer(nodes)
        creator = Client(nodes[0].port)
        assert (await creator.create_container("rolling")).status == 201
        creator.close()
        watching = asyncio.ensure_future(balancer.watch())
        writers = [write_on(balancer, "rolling", number) for number in range(CLIENTS)]
        *counts, _ = await asyncio.gather(*writers, restart_one_after_another(balancer, nodes))
        await watching
        return [count for count in counts if count is not None]

    try:
        for node in nodes:
            node.start()
        assert min(asyncio.run(run())) > 0
    finally:
        for node in nodes:
            if node.alive:
                node.kill()
