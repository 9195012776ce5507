"""CPU time per operation of one and of two nodes on PostgreSQL, beside the embedded store: `python -m benchmarks.nodes`.

On a machine with few cores the rates of several nodes say how the cores are shared, and nothing about nodes. CPU time per
operation tells where the limit is when every node has a core and the database has its own: `limit` is the rate at which the
busier of a node and the database has used up one core. With `--share 0.2` each node may use a fifth of a core only, so that the
rates show what a second node adds while the database and the machine have time left.
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
from benchmarks.cases import entities, get_blob, messages, put_blob
from benchmarks.client import create_container
from benchmarks.cpu_share import CpuShare
from benchmarks.servers import CannotMeasure, Server, Side, ending
from benchmarks.shared_store import ONE_WORKER, embedded
from tests.contract.postgres import PostgresServer, running_server

CONNECTIONS = 16  # to each node
WARM_UP_SECONDS = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    service: str
    prepare: Callable[[Server], None]
    script: Callable[[], str]


OPERATIONS = {
    "put_blob_1k": Operation(service="blob", prepare=create_container, script=put_blob.script),
    "get_blob_1k": Operation(service="blob", prepare=get_blob.store, script=get_blob.script),
    "insert_entity": Operation(service="table", prepare=entities.create, script=entities.insert_script),
    "get_entity": Operation(service="table", prepare=entities.store, script=entities.get_script),
    "put_message": Operation(service="queue", prepare=messages.create, script=messages.put_script),
}


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

    def measure(self, operation: Operation, seconds: float) -> Round:
        load = Load(connections=CONNECTIONS, seconds=seconds)
        ours, database = self._cpu()
        with ThreadPoolExecutor(len(self.servers)) as threads:
            runs = list(threads.map(lambda server: wrk.run(server.at(operation.service), operation.script(), load), self.servers))
        ours_after, database_after = self._cpu()
        count = sum(run.requests for run in runs)
        return Round(
            per_second=sum(run.per_second for run in runs),
            ours=(ours_after - ours) / count * 1e6,
            database=(database_after - database) / count * 1e6,
        )

    @contextmanager
    def running(self) -> Iterator[None]:
        for server in self.servers:
            server.resume()
        yield
        for server in self.servers:
            server.pause()

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
def setups(arguments: argparse.Namespace) -> Iterator[list[Setup]]:
    """Each node has a folder of its own for nothing, and each setup a database of its own."""
    with ExitStack() as cleanup:

        def started(side: Side) -> Server:
            server = Server(side, arguments.folder)
            share = CpuShare(arguments.share) if arguments.share else None
            if share is not None:
                cleanup.callback(share.remove)
            cleanup.callback(server.discard)
            server.start()
            if share is not None:
                share.add(server.pid)
            return server

        def nodes(label: str, count: int, *options: str) -> Setup:
            database = cleanup.enter_context(running_server(fsync=True))
            side = sides.verditer(options=(*ONE_WORKER, "--database", database.make_database(), *options))
            return Setup(label=label, servers=[started(side) for _ in range(count)], database=database)

        measured = [
            Setup(label="embedded, one worker", servers=[started(embedded())]),
            nodes("one node", 1),
            nodes("two nodes", 2),
        ]
        if arguments.locks:
            measured.append(nodes("one node, lock rows", 1, "--postgres-locks", "rows"))
            measured.append(nodes("two nodes, lock rows", 2, "--postgres-locks", "rows"))
        yield measured


def measure(operation: Operation, arguments: argparse.Namespace) -> list[Setup]:
    """The setups alternate, so that what else happens on the machine falls on all of them."""
    with setups(arguments) as measured:
        for setup in measured:
            operation.prepare(setup.servers[0].at(operation.service))
            setup.measure(operation, min(WARM_UP_SECONDS, arguments.seconds))
            for server in setup.servers:
                server.pause()
        for _ in range(arguments.rounds):
            for setup in measured:
                with setup.running():
                    setup.rounds.append(setup.measure(operation, arguments.seconds))
        for setup in measured:
            for server in setup.servers:
                server.resume()
    return measured


def report(name: str, measured: Sequence[Setup]) -> None:
    """Ratios to the embedded store are medians of the ratios of the rounds."""
    print(f"\n| {name} | µs of a node | ratio | µs of PostgreSQL | measured per second | ratio | limit per second |")
    print("|---|---|---|---|---|---|---|")
    base = measured[0].rounds
    for setup in measured:
        ours, database, rate = (
            statistics.median(getattr(found, name) for found in setup.rounds) for name in ("ours", "database", "per_second")
        )
        cpu_ratio = statistics.median(found.ours / other.ours for found, other in zip(setup.rounds, base, strict=True))
        rate_ratio = statistics.median(
            found.per_second / other.per_second for found, other in zip(setup.rounds, base, strict=True)
        )
        limit = min(1e6 * len(setup.servers) / ours, 1e6 / database if database else float("inf"))
        numbers = f"{ours:.0f} | {cpu_ratio:.2f} | {database:.0f} | {rate:.0f} | {rate_ratio:.2f} | {limit:.0f}"
        print(f"| {setup.label} | {numbers} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.nodes", description="CPU time of nodes and of their database.")
    parser.add_argument("operations", nargs="*", help=f"of {', '.join(OPERATIONS)}; all by default")
    parser.add_argument("--seconds", type=float, default=5, help="length of a round")
    parser.add_argument("--rounds", type=int, default=3, help="odd, so that the median is a measured value")
    parser.add_argument("--share", type=float, help="the part of a core that each server may use; needs root")
    parser.add_argument("--locks", action="store_true", help="measure lock rows, too")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="a folder on the disk to measure")
    arguments = parser.parse_args()
    wrk.require_wrk()
    if unknown := set(arguments.operations) - OPERATIONS.keys():
        raise CannotMeasure(f"no such operation: {', '.join(sorted(unknown))}; there are {', '.join(OPERATIONS)}")
    for name in arguments.operations or OPERATIONS:
        report(name, measure(OPERATIONS[name], arguments))
    return 0


if __name__ == "__main__":
    sys.exit(ending(main))
