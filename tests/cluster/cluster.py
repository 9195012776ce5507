"""The cluster: three nodes that hold nothing, on one PostgreSQL and one bucket."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cluster.patroni import Member, Postgres
from tests.contract.s3 import S3Server, running_s3_server
from tests.simulation.servers import Server

NODES = 3


class Node(Server):
    """A server without a folder of its own data."""

    def signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)


class Cluster:
    def __init__(self, folder: Path, postgres: Postgres, s3: S3Server) -> None:
        self.postgres = postgres
        self.s3 = s3
        self.hit: Member | None = None  # the member that a fault has hit
        location = s3.location("extents")
        flags = ("--database", postgres.url, "--extents", f"s3://{location.bucket}/{location.prefix}")
        self.nodes = [Node(folder / f"node-{number}", *flags) for number in range(NODES)]
        self.blob_ports: list[int] = []
        self.queue_ports: list[int] = []

    def note_ports(self) -> None:
        """A node that was started again has other ports."""
        self.blob_ports[:] = [node.ports["blob"] for node in self.nodes]
        self.queue_ports[:] = [node.ports["queue"] for node in self.nodes]


@asynccontextmanager
async def running_cluster() -> AsyncIterator[Cluster]:
    with tempfile.TemporaryDirectory(prefix="verditer-cluster-", dir="/tmp") as name, running_s3_server() as s3:
        folder = _prepared(Path(name))
        os.environ.update(s3.environment)
        postgres = Postgres(folder / "postgres")
        cluster = None
        try:
            await postgres.start()
            cluster = Cluster(folder, postgres, s3)
            for node in cluster.nodes:
                await asyncio.to_thread(node.start)
            cluster.note_ports()
            yield cluster
        finally:
            for node in cluster.nodes if cluster is not None else ():
                if node.alive:
                    node.signal(signal.SIGCONT)
                    node.kill()
            await postgres.stop()


def _prepared(folder: Path) -> Path:
    folder.chmod(0o755)  # PostgreSQL runs as another user
    (folder / "postgres").mkdir()
    return folder
