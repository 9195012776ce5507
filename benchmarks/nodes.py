"""CPU time per operation of one and of two nodes on PostgreSQL, beside the embedded store: `python -m benchmarks.nodes`.

Rates of several nodes on a machine with few cores say how the cores are shared, and nothing about nodes. CPU time per operation
tells where the limit is when every node has a core and the database has its own: `limit` is the rate at which the busier of a
node and the database has used up one core.
"""

import argparse
import contextlib
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import sides, wrk
from benchmarks.benchmark import Load
from benchmarks.cases import get_blob, put_blob
from benchmarks.client import create_container
from benchmarks.servers import Server, ending
from benchmarks.shared_store import ONE_WORKER, embedded
from tests.contract.postgres import PostgresServer, running_server

CONNECTIONS = 16  # to each node
PREPARATIONS = {"put_blob_1k": create_container, "get_blob_1k": get_blob.store}
OPERATIONS: dict[str, Callable[[], str]] = {"put_blob_1k": put_blob.script, "get_blob_1k": get_blob.script}


@dataclass(frozen=True, kw_only=True, slots=True)
class Round:
    per_second: float
    ours: float  # microseconds of CPU per operation, user and system
    database: float


@dataclass(kw_only=True, slots=True)
class Setup:
    label: str
    servers: Sequence[Server]
    database: PostgresServer | None = None
    rounds: list[Round] = field(default_factory=list)

    def measure(self, script: Callable[[], str], seconds: float) -> Round:
        load = Load(connections=CONNECTIONS, seconds=seconds)
        ours, database = self._cpu()
        with ThreadPoolExecutor(len(self.servers)) as threads:
            runs = list(threads.map(lambda server: wrk.run(server, script(), load), self.servers))
        ours_after, database_after = self._cpu()
        count = sum(run.requests for run in runs)
        return Round(
            per_second=sum(run.per_second for run in runs),
            ours=(ours_after - ours) / count * 1e6,
            database=(database_after - database) / count * 1e6,
        )

    def _cpu(self) -> tuple[float, float]:
        return sum(server.cpu_seconds() for server in self.servers), cpu_seconds(self.database) if self.database else 0.0


def cpu_seconds(database: PostgresServer) -> float:
    """Of the server, its backends, and the backends that have ended."""
    parent = database.pid
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            is_parent = int(stat.parent.name) == parent
            if is_parent or int(fields[1]) == parent:
                ticks += sum(map(int, fields[11 : 15 if is_parent else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def setups(folder: Path) -> Iterator[list[Setup]]:
    with ExitStack() as cleanup:

        def started(*options: str, side: sides.Side | None = None) -> Server:
            server = Server(side or sides.verditer(options=(*ONE_WORKER, *options)), folder)
            cleanup.callback(server.discard)
            server.start()
            return server

        def nodes(label: str, count: int, *options: str) -> Setup:
            database = cleanup.enter_context(running_server(fsync=True))
            flags = ("--database", database.make_database(), *options)
            return Setup(label=label, servers=[started(*flags) for _ in range(count)], database=database)

        yield [
            Setup(label="embedded, one worker", servers=[started(side=embedded())]),
            nodes("one node", 1),
            nodes("two nodes", 2),
            nodes("one node, lock rows", 1, "--postgres-locks", "rows"),
            nodes("two nodes, lock rows", 2, "--postgres-locks", "rows"),
        ]


def measure(operation: str, arguments: argparse.Namespace) -> None:
    with setups(arguments.folder) as measured:
        for setup in measured:
            PREPARATIONS[operation](setup.servers[0])
            setup.measure(OPERATIONS[operation], arguments.seconds)  # warm
            for server in setup.servers:
                server.pause()
        for _ in range(arguments.rounds):
            for setup in measured:
                for server in setup.servers:
                    server.resume()
                setup.rounds.append(setup.measure(OPERATIONS[operation], arguments.seconds))
                for server in setup.servers:
                    server.pause()
        report(operation, measured)
        for setup in measured:
            for server in setup.servers:
                server.resume()


def report(operation: str, measured: Sequence[Setup]) -> None:
    print(f"\n| {operation} | µs of a node | µs of PostgreSQL | measured per second | limit per second |\n|---|---|---|---|---|")
    for setup in measured:
        ours, database, rate = (
            statistics.median(getattr(found, name) for found in setup.rounds) for name in ("ours", "database", "per_second")
        )
        limit = min(1e6 * len(setup.servers) / ours, 1e6 / database if database else float("inf"))
        print(f"| {setup.label} | {ours:.0f} | {database:.0f} | {rate:.0f} | {limit:.0f} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description="CPU time of nodes and of their database.")
    parser.add_argument("--seconds", type=float, default=5, help="length of a round")
    parser.add_argument("--rounds", type=int, default=3, help="odd, so that the median is a measured value")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="a folder on the disk to measure")
    arguments = parser.parse_args()
    wrk.require_wrk()
    for operation in OPERATIONS:
        measure(operation, arguments)
    return 0


if __name__ == "__main__":
    sys.exit(ending(main))
