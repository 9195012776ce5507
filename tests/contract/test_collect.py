"""The collector: what nothing names is removed, and what anybody still needs is not. The clock is moved, never waited for."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.stores import RECORDS, Store
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.guard import CONTAINER_DELETE, CREATE, LEASE_ONLY, READ, SNAPSHOT, UPDATE
from verditer.core.names import AccountName, BlobName, ContainerName, QueueName, TableName
from verditer.core.records.activity import Horizon
from verditer.core.records.blob import Blob, Block, Snapshot, StagedBlob
from verditer.core.records.container import Forgotten
from verditer.core.records.content import BlockRun, Garbage, Inline, Layout
from verditer.core.records.queue import Message
from verditer.core.records.record import Record
from verditer.core.records.table import Entity, Table
from verditer.jobs.collect import EVERYTHING, Collector
from verditer.partition.engine import Transaction
from verditer.partition.sqlite import SqliteEngine
from verditer.services.account import development_accounts
from verditer.services.blob import blobs, block, blocklist, containers, read
from verditer.services.blob.blocklist import Search
from verditer.services.context import Context
from verditer.services.queue import messages, queues
from verditer.services.table import tables
from verditer.stream.local import LocalExtents
from verditer.stream.memory import MemoryExtents

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


class Process:
    """A server without its front end: services, stores and a collector, which runs when it is told to."""

    def __init__(self, ctx: Context, folder: Path) -> None:
        self.ctx = ctx
        self.collector = Collector(ctx, 3600)
        self._folder = folder

    def files(self) -> int:
        return sum(path.is_file() for path in self._folder.rglob("*"))

    async def later(self, hours: float) -> None:
        await self.ctx.engine.move_clock(seconds(hours * 3600))

    async def collect(self, hours: float = 0.5) -> None:
        await self.later(hours)
        await self.collector.collect()

    async def create(self) -> None:
        await containers.create_container(self.ctx, BOX, containers.CreateContainer())

    async def drop(self) -> None:
        await containers.delete_container(self.ctx, BOX, CONTAINER_DELETE.guard({}))

    async def put(self, name: str, body: bytes | Body) -> None:
        source = body if isinstance(body, Body) else Body(body)
        await block.put_blob(self.ctx, blob_name(name), block.PutBlob(version=VERSION), CREATE.guard({}), source)

    async def stage(self, name: str, block_id: bytes, body: bytes | Body) -> None:
        source = body if isinstance(body, Body) else Body(body)
        request = block.PutBlock(version=VERSION, block_id=block_id)
        await block.put_block(self.ctx, blob_name(name), request, LEASE_ONLY.guard({}), source)

    async def commit(self, name: str, *block_ids: bytes) -> None:
        request = blocklist.PutBlockList(version=VERSION, blocks=tuple((Search.LATEST, id) for id in block_ids), document=b"")
        await blocklist.put_block_list(self.ctx, blob_name(name), request, CREATE.guard({}))

    async def snapshot(self, name: str) -> int:
        written = await blobs.snapshot_blob(self.ctx, blob_name(name), blobs.SnapshotBlob(), SNAPSHOT.guard({}))
        assert written.snapshot is not None
        return written.snapshot

    async def delete(self, name: str, snapshot: int | None = None) -> None:
        await blobs.delete_blob(self.ctx, blob_name(name), blobs.DeleteBlob(snapshot=snapshot), UPDATE.guard({}))

    async def open(self, name: str, snapshot: int | None = None) -> AsyncIterator[bytes]:
        answer = await read.get_blob(self.ctx, blob_name(name), read.GetBlob(snapshot=snapshot), READ.guard({}))
        return _whole(answer.body) if isinstance(answer.body, bytes) else answer.body

    async def get(self, name: str, snapshot: int | None = None) -> bytes:
        return b"".join([piece async for piece in await self.open(name, snapshot)])

    async def say(self, queue: QueueName, text: str, ttl_seconds: int = 604_800) -> None:
        await messages.put_message(self.ctx, queue, messages.PutMessage(text=text, ttl_seconds=ttl_seconds, version=VERSION))

    async def count(self, *kinds: type[Record]) -> int:
        return await self.ctx.engine.scan((), lambda tx: sum(len(list(tx.scan(kind, EVERYTHING))) for kind in kinds))


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
    ctx = Context(engine=engine, extents=extents, accounts=development_accounts(), inline_limit=1000)
    await ctx.activity.announce(engine)  # as the collector does when it starts
    try:
        yield Process(ctx, folder)
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


def data(mark: str, size: int = LARGE) -> bytes:
    return (mark.encode() * size)[:size]


async def test_bytes_that_were_let_go_are_removed_later(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for name in ("overwritten", "deleted", "emptied", "kept"):
            await one.put(name, data(name))
        await one.put("overwritten", data("new"))
        await one.put("emptied", b"small")
        await one.delete("deleted")
        await one.collect(0)
        assert one.files() == 5  # somebody may be reading
        await one.collect()
        assert one.files() == 2
        assert await one.get("overwritten") == data("new")
        assert await one.get("kept") == data("kept")
        assert await one.count(Garbage) == 0


async def test_bytes_being_read_are_kept(store: Store, tmp_path: Path) -> None:
    # contract G3, race G1
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for number in range(4):
            await one.stage("blob", b"%d" % number, data(str(number)))
        await one.commit("blob", b"0", b"1", b"2", b"3")
        reading = await one.open("blob")
        first = await anext(reading)
        await one.put("blob", b"other")
        await one.collect(300)
        assert one.files() == 4
        assert first + b"".join([piece async for piece in reading]) == b"".join(data(str(number)) for number in range(4))
        await one.collect()
        assert one.files() == 0


async def test_an_upload_may_take_longer_than_anything(store: Store, tmp_path: Path) -> None:
    # race G1: days pass and the collector sweeps while a blob and a block arrive
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        bodies = [Body(data("a"), data("b"), slow=True) for _ in range(2)]
        uploads = [asyncio.ensure_future(one.put("blob", bodies[0])), asyncio.ensure_future(one.stage("staged", b"1", bodies[1]))]
        await until_files(one, 2)
        for _ in range(3):
            await one.collect(50)
            assert one.files() == 2
        for body in bodies:
            body.go_on.set()
        await asyncio.gather(*uploads)
        await one.collect(50)
        await one.commit("staged", b"1")
        assert await one.get("blob") == await one.get("staged") == data("a") + data("b")


async def test_what_another_process_reads_or_writes_is_kept(store: Store, tmp_path: Path) -> None:
    # race G1
    if not store.shared:
        pytest.skip("one process at a time")
    async with process(store, tmp_path / "extents") as one, process(store, tmp_path / "extents") as other:
        await one.create()
        await one.stage("read", b"1", data("1"))
        await one.stage("read", b"2", data("2"))
        await one.commit("read", b"1", b"2")
        body = Body(data("a"), data("b"), slow=True)
        uploading = asyncio.ensure_future(other.put("written", body))
        reading = await other.open("read")
        first = await anext(reading)
        await one.delete("read")
        await until_files(one, 3)
        for _ in range(20):
            await other.ctx.activity.announce(other.ctx.engine)  # as it does every half minute
            await one.collect(0.15)
        assert one.files() == 3
        body.go_on.set()
        await uploading
        assert first + b"".join([piece async for piece in reading]) == data("1") + data("2")
        await other.ctx.activity.announce(other.ctx.engine)
        await one.collect(0.15)
        assert one.files() == 1
        assert await one.get("written") == data("a") + data("b")


async def test_a_process_that_was_given_up_names_nothing_it_had_begun(store: Store, tmp_path: Path) -> None:
    # contract G6: it slept so long that its half-made upload was swept; an acknowledgement now would be a lie
    if not store.shared:
        pytest.skip("one process at a time")
    async with process(store, tmp_path / "extents") as one, process(store, tmp_path / "extents") as sleeper:
        await one.create()
        await sleeper.put("before", data("x"))
        body = Body(data("a"), data("b"), slow=True)
        uploading = asyncio.ensure_future(sleeper.put("lost", body))
        await until_files(one, 2)
        await one.collect(48)
        assert one.files() == 1
        await sleeper.ctx.activity.announce(sleeper.ctx.engine)  # it wakes, and speaks before the upload is done
        body.go_on.set()
        with pytest.raises(StorageError) as refusal:
            await uploading
        assert refusal.value.code is Code.ServerBusy
        with pytest.raises(StorageError):
            await one.get("lost")
        await sleeper.put("lost", data("again"))
        await one.collect(0)
        assert await one.get("lost") == data("again")
        assert await one.get("before") == data("x")


async def test_a_process_speaks_up_before_it_names_an_extent(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.ctx.activity.retire(one.ctx.engine)
        await one.put("small", b"x")
        assert await one.count(Horizon) == 0
        await one.put("large", data("x"))
        assert await one.count(Horizon) == 1
        await one.later(1000)
        await one.put("large", data("y"))  # silent for long, but nobody has given it up
        assert await one.get("large") == data("y")


async def test_a_process_that_was_given_up_goes_on_with_what_it_has_just_begun(store: Store, tmp_path: Path) -> None:
    if not store.shared:
        pytest.skip("one process at a time")
    async with process(store, tmp_path / "extents") as one, process(store, tmp_path / "extents") as sleeper:
        await one.create()
        await one.collect(48)
        assert await one.count(Horizon) == 1
        await sleeper.ctx.engine.read((), lambda tx: tx.now)  # it hears what time it is
        await sleeper.put("blob", data("x"))
        assert await one.count(Horizon) == 2
        assert await one.get("blob") == data("x")


async def test_a_process_that_died_does_not_hold_back_the_others_for_ever(store: Store, tmp_path: Path) -> None:
    if not store.kept:
        pytest.skip("it forgets")
    async with process(store, tmp_path / "extents") as died:
        await died.create()
        await died.put("blob", data("x"))
    async with process(store, tmp_path / "extents") as one:
        await one.delete("blob")
        await one.collect(0)
        assert await one.count(Horizon) == 2
        await one.collect()
        assert await one.count(Horizon) == 1
        assert one.files() == 0


async def test_shared_bytes_go_with_the_last_that_names_them(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("blob", data("old"))
        first, second = await one.snapshot("blob"), await one.snapshot("blob")
        await one.put("blob", data("new"))
        await one.collect(48)
        assert await one.get("blob", first) == await one.get("blob", second) == data("old")
        await one.delete("blob", first)
        await one.collect(48)
        assert await one.get("blob", second) == data("old")
        await one.delete("blob", second)
        await one.collect(48)
        assert one.files() == 1
        await one.delete("blob")
        await one.collect(48)
        assert one.files() == 0
        assert await one.count(Layout, Garbage, Blob, Snapshot) == 0


async def test_blocks_that_a_commit_keeps_outlive_the_collector(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for id in (b"1", b"2"):
            await one.stage("blob", id, data(id.decode()))
        await one.commit("blob", b"1", b"2")
        await one.stage("blob", b"3", data("3"))
        await one.stage("blob", b"s", data("s", 500))  # small: gathered into an extent of its own
        await one.commit("blob", b"3", b"s", b"1")
        await one.collect(48)
        assert await one.get("blob") == data("3") + data("s", 500) + data("1")
        assert one.files() == 3


async def test_a_deleted_container_leaves_nothing(store: Store, tmp_path: Path) -> None:
    # race G4
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for number in range(250):
            await one.put(f"small-{number}", b"x")
        for number in range(3):
            await one.put(f"large-{number}", data("x"))
            await one.snapshot(f"large-{number}")
            await one.stage(f"staged-{number}", b"1", data("y"))
            await one.stage(f"staged-{number}", b"2", b"small")
        await one.drop()
        await one.create()
        await one.put("small-1", b"new")
        await one.collect(48)
        await one.collect(48)
        assert await one.count(Blob, Inline) == 2
        assert await one.count(Snapshot, StagedBlob, Block, Layout, BlockRun, Garbage, Forgotten) == 0
        assert one.files() == 0
        assert await one.get("small-1") == b"new"


async def test_cleared_and_deleted_queues_and_tables_leave_nothing(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        names = {name: QueueName(BOX.account, name) for name in ("cleared", "deleted", "kept")}
        for name in names.values():
            await queues.create_queue(one.ctx, name, queues.CreateQueue())
            await asyncio.gather(*[one.say(name, str(number)) for number in range(230)])
        await queues.clear_messages(one.ctx, names["cleared"])
        await one.say(names["cleared"], "new")
        await queues.delete_queue(one.ctx, names["deleted"])
        table = TableName(BOX.account, "things")
        await tables.create_table(one.ctx, AccountName(BOX.account, "table"), tables.CreateTable(table=table.table))
        await one.ctx.engine.write(table.scope, fill_table)
        await tables.delete_table(one.ctx, table)
        await one.collect()
        assert await one.count(Message) == 231
        assert await one.count(Entity, Forgotten) == 0
        counts = [(await queues.get_queue(one.ctx, names[name])).messages_count for name in ("cleared", "kept")]
        assert counts == [1, 230]


def fill_table(tx: Transaction) -> None:
    table = next(tx.scan(Table, EVERYTHING, limit=1))
    for number in range(230):
        row = Entity(table_id=table.id, partition_key="p", row_key=str(number), etag=tx.tick(), properties=b"{}")
        tx.put(row)


async def test_expired_messages_go_run_by_run_and_the_others_stay(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        name = QueueName(BOX.account, "orders")
        await queues.create_queue(one.ctx, name, queues.CreateQueue())
        for ttl in (60, 90, 7200, -1):
            await asyncio.gather(*[one.say(name, f"{ttl}", ttl) for _ in range(120)])
        await one.collect(0.01)
        assert await one.count(Message) == 480
        await one.collect(1)
        assert await one.count(Message) == 240
        assert (await queues.get_queue(one.ctx, name)).messages_count == 240
        await one.collect(24)
        assert await one.count(Message) == 120


async def test_no_message_goes_before_its_time_although_the_clock_went_back() -> None:
    clock = [seconds(10**9)]
    engine = SqliteEngine(None, source=lambda: clock[0])
    await engine.open()
    try:
        name = QueueName(BOX.account, "orders")
        ctx = Context(engine=engine, extents=MemoryExtents(lambda: "x", None), accounts=development_accounts(), inline_limit=0)
        await queues.create_queue(ctx, name, queues.CreateQueue())
        await engine.read((), lambda tx: tx.now)
        clock[0] += seconds(1000)
        shown = engine.now()
        clock[0] -= seconds(900)
        message = await messages.put_message(ctx, name, messages.PutMessage(text="x", ttl_seconds=500, version=VERSION))
        assert message.inserted >= shown
        clock[0] = shown + seconds(499)
        await Collector(ctx, 3600).collect()
        assert await messages.peek_messages(ctx, name, messages.PeekMessages()) == [message]
        clock[0] = shown + seconds(501)
        await Collector(ctx, 3600).collect()
        assert (await queues.get_queue(ctx, name)).messages_count == 0
    finally:
        await engine.close()


async def test_blocks_that_nobody_commits_go_after_a_week(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.stage("old", b"1", data("1"))
        await one.stage("old", b"2", b"small")
        await one.stage("touched", b"1", data("1"))
        await one.collect(6 * 24)
        await one.stage("touched", b"2", data("2"))
        await one.collect(2 * 24)
        await one.collect()
        assert await one.count(StagedBlob) == 1
        assert await one.count(Inline) == 0
        assert one.files() == 2
        await one.commit("touched", b"1", b"2")
        with pytest.raises(StorageError) as refusal:
            await one.commit("old", b"1", b"2")
        assert refusal.value.code is Code.InvalidBlockList


async def test_old_blocks_committed_at_the_last_moment_are_a_whole_blob(store: Store, tmp_path: Path) -> None:
    # contract G5: the commit and the collector want the same blocks; one of them gets all of them
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for turn in range(8):
            name = f"blob-{turn}"
            for id in (b"1", b"2", b"3"):
                await one.stage(name, id, data(f"{turn}{id.decode()}"))
            await one.later(8 * 24)
            await one.ctx.activity.announce(one.ctx.engine)
            outcomes = await asyncio.gather(one.collector.collect(), one.commit(name, b"1", b"2", b"3"), return_exceptions=True)
            assert outcomes[0] is None
            await one.collect(2)
            if outcomes[1] is None:
                assert await one.get(name) == b"".join(data(f"{turn}{id}") for id in "123")
            else:
                assert isinstance(outcomes[1], StorageError)
                assert outcomes[1].code is Code.InvalidBlockList


async def test_what_a_killed_process_left_half_written_is_swept(store: Store, tmp_path: Path) -> None:
    # race G2
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("kept", data("k"))
        writer = LocalExtents(tmp_path / "extents", lambda: f"{one.ctx.now():016x}{secrets.token_hex(8)}").new()
        await writer.write(b"half")  # by a process that is then no more
        await one.collector.collect()
        assert one.files() == 2  # it may still be at work
        await one.collect(48)
        assert one.files() == 1
        assert await one.get("kept") == data("k")


async def test_nothing_is_lost_while_the_collector_runs_without_pause(store: Store, tmp_path: Path) -> None:
    # race G1
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        stop = False
        rounds = 0

        async def collect() -> None:
            nonlocal rounds
            while not stop:
                await one.collect(25)
                rounds += 1
                await asyncio.sleep(0.005)

        async def work(number: int) -> None:
            for turn in range(26):
                mark = f"{number}-{turn};"
                if turn % 2:
                    await one.put(f"blob-{number}", data(mark))
                else:
                    await one.stage(f"blob-{number}", b"1", data(mark, LARGE // 2))
                    await one.stage(f"blob-{number}", b"2", data(mark, 500))
                    await one.commit(f"blob-{number}", b"1", b"2")
                expected = data(mark) if turn % 2 else data(mark, LARGE // 2) + data(mark, 500)
                reading = await one.open(f"blob-{number}")
                first = await anext(reading)
                await asyncio.sleep(0.002)
                assert first + b"".join([piece async for piece in reading]) == expected

        collecting = asyncio.ensure_future(collect())
        try:
            await asyncio.gather(*[work(number) for number in range(6)])
        finally:
            stop = True
            await collecting
        assert rounds > 1
        await one.collect(25)
        await one.collect(25)
        assert one.files() == 6
