"""Does the client or the server limit a scan of a whole table? `python -m benchmarks.scanning [--entities COUNT]`

Fills Verditer with a million entities in transactions of a hundred and lists all of them with azure-data-tables, a thousand per
page. Prints the elapsed time of the client and the CPU time of both: if the server is busy for a small part of the time, the
client is the limit.
"""

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks import driver, sides, wrk
from benchmarks.cases import entities, upserts
from benchmarks.servers import Server, ending, require_disk


@dataclass(frozen=True, kw_only=True, slots=True)
class Scan:
    found: int
    wall_seconds: float
    client_cpu_seconds: float
    server_cpu_seconds: float

    def __str__(self) -> str:
        busy = self.server_cpu_seconds / self.wall_seconds
        return (
            f"{self.found} entities listed by azure-data-tables: {self.wall_seconds:.1f} s by the wall,"
            f" {self.found / self.wall_seconds:.0f}/s\n"
            f"CPU: client {self.client_cpu_seconds:.1f} s, server {self.server_cpu_seconds:.1f} s; the server is busy for"
            f" {busy:.0%} of the time, the client for {self.client_cpu_seconds / self.wall_seconds:.0%}"
        )


def main() -> int:
    arguments = parse_arguments()
    wrk.require_wrk()
    require_disk(arguments.folder)
    with driver.running([sides.verditer()], arguments.folder, "table") as (server,):
        entities.fill(server, arguments.entities)
        scan = measured(server, lambda: count_entities(server))
    print(scan)
    return int(scan.found != entities.partitions_of(server) * entities.IN_BATCH)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scanning", description="Scan a table by the official SDK.")
    parser.add_argument("--entities", type=int, default=1_000_000, help="how many to store and to list")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="a folder on the disk to measure")
    return parser.parse_args()


def measured(server: Server, work: Callable[[], int]) -> Scan:
    wall, client, ours = time.monotonic(), time.process_time(), server.cpu_seconds()
    found = work()
    return Scan(
        found=found,
        wall_seconds=time.monotonic() - wall,
        client_cpu_seconds=time.process_time() - client,
        server_cpu_seconds=server.cpu_seconds() - ours,
    )


def count_entities(server: Server) -> int:
    with upserts.table_client(server) as table:
        return sum(1 for _ in table.list_entities())


if __name__ == "__main__":
    sys.exit(ending(main))
