"""`python -m tests.cluster [faults…]`: run the faults one after another under load, judge the histories, print a table. With
`--save` the table replaces the one in docs/verification.md. The exit status is 1 if anything was violated."""

import argparse
import asyncio
import os
import signal
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from tests.cluster import patroni
from tests.cluster.cluster import Cluster, running_cluster
from tests.cluster.faults import FAULTS, FaultRow
from tests.cluster.load import Load, Outcome, prepare
from tests.contract import s3

PAGE = Path(__file__).parent.parent.parent / "docs" / "verification.md"
BEGIN, END = "<!-- cluster begin -->", "<!-- cluster end -->"
BEFORE_SECONDS, AFTER_SECONDS = 3.0, 5.0


async def run_fault(cluster: Cluster, row: FaultRow, seed: int) -> Outcome:
    load = Load(cluster.blob_ports, cluster.queue_ports, seed)
    running = asyncio.ensure_future(load.run())
    await asyncio.sleep(BEFORE_SECONDS)
    await row.inject(cluster)
    await asyncio.sleep(row.seconds)
    await row.heal(cluster)
    await cluster.postgres.until_healthy(patroni.MEMBERS)
    await asyncio.sleep(AFTER_SECONDS)
    load.stop()
    await running
    return await load.judge()


async def run(names: list[str], seed: int) -> list[tuple[FaultRow, Outcome]]:
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)  # the servers end and their disks are unmounted
    results = []
    async with running_cluster() as cluster:
        await prepare(cluster.blob_ports[0], cluster.queue_ports[0])
        for number, row in enumerate(row for row in FAULTS if not names or row.name in names):
            if row.needs_root and os.geteuid() != 0:
                print(f"{row.name}: left out, it needs root")
                continue
            began = time.monotonic()
            outcome = await run_fault(cluster, row, seed + number)
            results.append((row, outcome))
            print(
                f"{row.name}: {time.monotonic() - began:.0f} s, {shown(row, outcome)}",
                *outcome.violations,
                sep="\n  ",
                flush=True,
            )
            print(f"  {dict(outcome.errors)}", flush=True)
    return results


def shown(row: FaultRow, outcome: Outcome) -> str:
    return (
        f"| {row.meaning} | {outcome.acknowledged} | {outcome.refused} | {outcome.unknown} | {outcome.longest_gap:.1f} s |"
        f" {len(outcome.violations)} |"
    )


def document(results: list[tuple[FaultRow, Outcome]], seed: int, s3_name: str) -> str:
    head = (
        "| fault | writes acknowledged | refused by a condition | outcome unknown | longest time without a write | violations |"
    )
    lines = [shown(row, outcome) for row, outcome in results]
    note = f"Bodies in {s3_name}, seed {seed}, {datetime.now(UTC):%Y-%m-%d}."
    return "\n".join([BEGIN, "", head, "|---|---|---|---|---|---|", *lines, "", note, "", END])


def main() -> int:
    parser = argparse.ArgumentParser(prog="make cluster")
    parser.add_argument("faults", nargs="*", help=f"of {', '.join(row.name for row in FAULTS)}")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--s3", choices=("s3proxy", "ceph"), default="s3proxy")
    parser.add_argument("--save", action="store_true")
    arguments = parser.parse_args()
    os.environ["VERDITER_S3"] = arguments.s3
    if reason := patroni.missing() or s3.missing():
        print(reason)
        return 2
    results = asyncio.run(run(arguments.faults, arguments.seed))
    text = document(results, arguments.seed, arguments.s3)
    print(text)
    if arguments.save:
        before, _, rest = PAGE.read_text().partition(BEGIN)
        PAGE.write_text(before + text + rest.partition(END)[2])
    return int(any(outcome.violations for _, outcome in results))


if __name__ == "__main__":
    sys.exit(main())
