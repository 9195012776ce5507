"""Servers without their front ends, for tests of what is removed and what is kept. The clock is moved, never waited for."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.contract.stores import RECORDS, Store
from verditer.core.dates import seconds
from verditer.core.guard import CONTAINER_DELETE, CREATE, LEASE_ONLY, READ, SNAPSHOT, UPDATE, Guard
from verditer.core.names import BlobName, ContainerName, QueueName
from verditer.core.records.record import EVERY_KEY, Record
from verditer.jobs.collect import Collector
from verditer.services.account import development_accounts
from verditer.services.activity import ANNOUNCE_SECONDS, Activity
from verditer.services.blob import blobs, containers, read
from verditer.services.blob.kinds import block, blocklist
from verditer.services.blob.kinds.blocklist import Search
from verditer.services.context import Context
from verditer.services.queue import messages
from verditer.stream.local import LocalExtents

LARGE = 100_000
BOX = ContainerName("devstoreaccount1", "box")
VERSION = "2021-12-02"


class Body:
    """What a client sends: pieces, the later ones only when the test lets them come."""

    def __init__(self, *pieces: bytes, slow: bool = False) -> None:
        self.length = None if slow else sum(map(len, pieces))
        self.ended = not slow
        self.go_on = asyncio.Event()
        self._pieces = list(pieces)
        self._slow = slow
        self._sent = 0

    async def read(self) -> bytes:
        if self._slow and self._sent == 1:
            await self.go_on.wait()
        self._sent += 1
        return self._pieces.pop(0) if self._pieces else b""


class MonotonicClock:
    """The clock by which one process judges how long the others have been silent. Tests move it."""

    def __init__(self) -> None:
        self.moved_seconds = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.moved_seconds


class Process:
    """A server without its front end: services, stores and a collector, which runs when it is told to."""

    def __init__(self, ctx: Context, folder: Path, clock: MonotonicClock) -> None:
        self.ctx = ctx
        self.clock = clock
        self.collector = Collector(ctx, 3600)
        self._folder = folder

    def files(self) -> int:
        return sum(path.is_file() for path in self._folder.rglob("*"))

    async def later(self, hours: float) -> None:
        await self.ctx.engine.move_clock(seconds(hours * 3600))

    async def collect(self, hours: float = 0.5) -> None:
        await self.later(hours)
        await self.collector.collect()

    async def watch(self, passed_seconds: float) -> None:
        """So much real time passes, in which this process announces as it should, and the others do nothing."""
        for _ in range(int(passed_seconds // ANNOUNCE_SECONDS)):
            self.clock.moved_seconds += ANNOUNCE_SECONDS
            await self.ctx.activity.announce(self.ctx.engine)

    async def create(self) -> None:
        await containers.create_container(self.ctx, BOX, containers.CreateContainer())

    async def drop(self) -> None:
        await containers.delete_container(self.ctx, BOX, Guard(rule=CONTAINER_DELETE))

    async def put(self, name: str, body: bytes | Body) -> None:
        source = body if isinstance(body, Body) else Body(body)
        await block.put_blob(self.ctx, blob_name(name), block.PutBlob(version=VERSION), Guard(rule=CREATE), source)

    async def stage(self, name: str, block_id: bytes, body: bytes | Body) -> None:
        source = body if isinstance(body, Body) else Body(body)
        request = block.PutBlock(version=VERSION, block_id=block_id)
        await block.put_block(self.ctx, blob_name(name), request, Guard(rule=LEASE_ONLY), source)

    async def commit(self, name: str, *block_ids: bytes) -> None:
        request = blocklist.PutBlockList(version=VERSION, blocks=tuple((Search.LATEST, id) for id in block_ids), document=b"")
        await blocklist.put_block_list(self.ctx, blob_name(name), request, Guard(rule=CREATE))

    async def snapshot(self, name: str) -> int:
        written = await blobs.snapshot_blob(self.ctx, blob_name(name), blobs.SnapshotBlob(), Guard(rule=SNAPSHOT))
        assert written.snapshot is not None
        return written.snapshot

    async def delete(self, name: str, snapshot: int | None = None) -> None:
        await blobs.delete_blob(self.ctx, blob_name(name), blobs.DeleteBlob(snapshot=snapshot), Guard(rule=UPDATE))

    async def open(self, name: str, snapshot: int | None = None) -> AsyncIterator[bytes]:
        answer = await read.get_blob(self.ctx, blob_name(name), read.GetBlob(snapshot=snapshot), Guard(rule=READ))
        return _whole(answer.body) if isinstance(answer.body, bytes) else answer.body

    async def get(self, name: str, snapshot: int | None = None) -> bytes:
        return b"".join([piece async for piece in await self.open(name, snapshot)])

    async def say(self, queue: QueueName, text: str, ttl_seconds: int = 604_800) -> None:
        await messages.put_message(self.ctx, queue, messages.PutMessage(text=text, ttl_seconds=ttl_seconds, version=VERSION))

    async def count(self, *kinds: type[Record]) -> int:
        return await self.ctx.engine.read((), lambda tx: sum(len(list(tx.scan(kind, EVERY_KEY))) for kind in kinds), long=True)


async def _whole(data: bytes) -> AsyncIterator[bytes]:
    yield data


def blob_name(name: str) -> BlobName:
    return BlobName(BOX.account, BOX.container, name)


@asynccontextmanager
async def process(store: Store, folder: Path) -> AsyncIterator[Process]:
    engine = store.build(RECORDS)
    await engine.open()
    extents = LocalExtents(folder, lambda: f"{engine.now():016x}{secrets.token_hex(8)}")
    await extents.open()
    clock = MonotonicClock()
    ctx = Context(
        engine=engine,
        extents=extents,
        accounts=development_accounts(),
        inline_limit=1000,
        activity=Activity(clock),
    )
    await ctx.activity.announce(engine)  # as the collector does when it starts
    try:
        yield Process(ctx, folder, clock)
    finally:
        await extents.close()
        await engine.close()


async def until_files(process: Process, count: int) -> None:
    """The uploads that were begun have reached the disk."""
    for _ in range(10_000):
        if process.files() >= count:
            return
        await asyncio.sleep(0.001)
    raise AssertionError("the upload never began")


def data(pattern: str, size: int = LARGE) -> bytes:
    return (pattern.encode() * size)[:size]
