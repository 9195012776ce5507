"""The faults: what is done to the cluster while it is under load, and how it is undone."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.cluster.cluster import Cluster

FAKETIME = {
    "LD_PRELOAD": "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "FAKETIME": "+600s",
    "DONT_FAKE_MONOTONIC": "1",
}
Fault = Callable[[Cluster], Awaitable[None]]


class FaultRow(NamedTuple):
    name: str
    inject: Fault
    heal: Fault
    seconds: float  # between the two
    meaning: str
    needs_root: bool = False


async def nothing(cluster: Cluster) -> None: ...


async def kill_node(cluster: Cluster) -> None:
    cluster.nodes[0].kill()


async def start_node(cluster: Cluster) -> None:
    await asyncio.to_thread(cluster.nodes[0].start)
    cluster.note_ports()


async def pause_node(cluster: Cluster) -> None:
    cluster.nodes[1].signal(signal.SIGSTOP)


async def continue_node(cluster: Cluster) -> None:
    cluster.nodes[1].signal(signal.SIGCONT)


async def kill_primary(cluster: Cluster) -> None:
    cluster.hit = await cluster.postgres.primary()
    cluster.hit.process.kill()


async def start_member(cluster: Cluster) -> None:
    assert cluster.hit is not None
    cluster.hit.process.start()


async def pause_primary(cluster: Cluster) -> None:
    cluster.hit = await cluster.postgres.primary()
    cluster.hit.process.signal(signal.SIGSTOP)


async def continue_member(cluster: Cluster) -> None:
    assert cluster.hit is not None
    cluster.hit.process.signal(signal.SIGCONT)


async def bring_primary_back(cluster: Cluster) -> None:
    """The primary is stopped until it has a successor. Then it continues without its Patroni, which would end it."""
    await pause_primary(cluster)
    await cluster.postgres.primary()
    await asyncio.sleep(5)  # the nodes find the successor
    assert cluster.hit is not None
    cluster.hit.process.kill_alone()


async def end_former_primary(cluster: Cluster) -> None:
    assert cluster.hit is not None
    cluster.hit.process.kill()
    cluster.hit.process.start()


async def fill_disk(cluster: Cluster) -> None:
    """Tables and write-ahead log of the primary have no room."""
    cluster.hit = await cluster.postgres.primary()
    await asyncio.to_thread(cluster.hit.disk.fill)


async def empty_disk(cluster: Cluster) -> None:
    assert cluster.hit is not None
    cluster.hit.disk.empty()


async def drop_packets(cluster: Cluster) -> None:
    for member in cluster.postgres.members:
        member.proxy.drop()


async def restore_packets(cluster: Cluster) -> None:
    for member in cluster.postgres.members:
        member.proxy.cut()
        member.proxy.restore()


async def cut_connections(cluster: Cluster) -> None:
    for _ in range(10):
        for member in cluster.postgres.members:
            member.proxy.cut()
        await asyncio.sleep(0.5)


async def slow_network(cluster: Cluster) -> None:
    for member in cluster.postgres.members:
        member.proxy.delay_seconds = 0.1


async def fast_network(cluster: Cluster) -> None:
    for member in cluster.postgres.members:
        member.proxy.delay_seconds = 0.0


async def kill_s3(cluster: Cluster) -> None:
    cluster.s3.kill()


async def start_s3(cluster: Cluster) -> None:
    await asyncio.to_thread(cluster.s3.start)


async def pause_s3(cluster: Cluster) -> None:
    cluster.s3.signal(signal.SIGSTOP)


async def continue_s3(cluster: Cluster) -> None:
    cluster.s3.signal(signal.SIGCONT)


async def step_clock(cluster: Cluster) -> None:
    """A node is started again with a clock that is ten minutes ahead; the store of large bodies allows fifteen."""
    cluster.nodes[2].kill()
    os.environ.update(FAKETIME)
    try:
        await asyncio.to_thread(cluster.nodes[2].start)
    finally:
        for name in FAKETIME:
            del os.environ[name]
    cluster.note_ports()


async def right_clock(cluster: Cluster) -> None:
    cluster.nodes[2].kill()
    await asyncio.to_thread(cluster.nodes[2].start)
    cluster.note_ports()


# fmt: off
FAULTS = (
    FaultRow("none",            nothing,         nothing,         5,  "no fault"),
    FaultRow("kill-node",       kill_node,       start_node,      5,  "kill -9 of a node"),
    FaultRow("pause-node",      pause_node,      continue_node,   8,  "a node stopped (SIGSTOP) and continued"),
    FaultRow("cut-connections", cut_connections, nothing,         1,  "every database connection cut ten times"),
    FaultRow("slow-network",    slow_network,    fast_network,    10, "100 ms in each direction to the database"),
    FaultRow("drop-packets",    drop_packets,    restore_packets, 20, "nothing passes between nodes and database for 20 s"),
    FaultRow("kill-s3",         kill_s3,         start_s3,        8,  "kill -9 of the S3 server"),
    FaultRow("pause-s3",        pause_s3,        continue_s3,     15, "the S3 server stopped and continued"),
    FaultRow("step-clock",      step_clock,      right_clock,     10, "a node with a clock ten minutes ahead"),
    FaultRow("kill-primary",    kill_primary,    start_member,    40, "kill -9 of the primary and its Patroni"),
    FaultRow("pause-primary",   pause_primary,   continue_member, 45, "the primary and its Patroni stopped and continued"),
    FaultRow("return-primary",  bring_primary_back, end_former_primary, 20, "a replaced primary continues without its Patroni"),
    FaultRow("fill-disk",       fill_disk,       empty_disk,      40, "the disk of the primary full", needs_root=True),
)
# fmt: on
