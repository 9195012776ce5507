"""The collector removes records: children of removed parents, expired messages, and blocks that were never committed."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.processes import BOX, VERSION, data, process
from tests.contract.stores import Store
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.names import AccountName, QueueName, TableName
from verditer.core.records.blob import Blob, Block, Snapshot, StagedBlob
from verditer.core.records.container import Tombstone
from verditer.core.records.content import BlockRun, Garbage, Inline, Layout
from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.queue import Message
from verditer.core.records.record import EVERY_KEY, Record
from verditer.core.records.table import Entity, Table
from verditer.jobs import cascade
from verditer.jobs.collect import Collector
from verditer.partition import schema
from verditer.partition.engine import Transaction
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.services.account import development_accounts
from verditer.services.context import Context
from verditer.services.queue import messages, queues
from verditer.services.removal import remove
from verditer.services.table import tables
from verditer.stream.memory import MemoryExtents


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
        assert await one.count(Snapshot, StagedBlob, Block, Layout, BlockRun, Garbage, Tombstone) == 0
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
        await one.ctx.engine.write([table.scope], fill_table)
        await tables.delete_table(one.ctx, table)
        await one.collect()
        assert await one.count(Message) == 231
        assert await one.count(Entity, Tombstone) == 0
        counts = [(await queues.get_queue(one.ctx, names[name])).messages_count for name in ("cleared", "kept")]
        assert counts == [1, 230]


def fill_table(tx: Transaction) -> None:
    table = next(tx.scan(Table, EVERY_KEY, limit=1))
    for number in range(230):
        row = Entity(table_id=table.id, partition_key="p", row_key=str(number), etag=tx.tick(), properties=b"{}")
        tx.put(row)


async def test_expired_messages_are_removed_and_the_others_stay(store: Store, tmp_path: Path) -> None:
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


async def test_no_message_is_removed_early_when_the_clock_was_set_back() -> None:
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


async def test_uncommitted_blocks_are_removed_after_a_week(store: Store, tmp_path: Path) -> None:
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


async def test_old_blocks_are_committed_or_removed_together(store: Store, tmp_path: Path) -> None:
    # contract G5: the commit and the collector take the same blocks at once; one of them gets all
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for number in range(8):
            name = f"blob-{number}"
            for id in (b"1", b"2", b"3"):
                await one.stage(name, id, data(f"{number}{id.decode()}"))
            await one.later(8 * 24)
            await one.ctx.activity.announce(one.ctx.engine)
            outcomes = await asyncio.gather(one.collector.collect(), one.commit(name, b"1", b"2", b"3"), return_exceptions=True)
            assert outcomes[0] is None
            await one.collect(2)
            if outcomes[1] is None:
                assert await one.get(name) == b"".join(data(f"{number}{id}") for id in "123")
            else:
                assert isinstance(outcomes[1], StorageError)
                assert outcomes[1].code is Code.InvalidBlockList


class Folder(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "test_folder"
    KEY = ("account", "name")
    LIFECYCLE = Lifecycle(parent=Root.ACCOUNT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    account: str
    name: str
    id: int


class Node(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "test_node"
    KEY = ("folder_id", "id")
    LIFECYCLE = Lifecycle(parent=Folder, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    folder_id: int
    id: int


class Entry(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "test_entry"
    KEY = ("node_id", "name")
    LIFECYCLE = Lifecycle(parent=Node, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    node_id: int
    name: str


async def test_children_of_children_are_removed_by_their_declarations_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: tuple[type[Record], ...] = (Folder, Node, Entry)
    monkeypatch.setattr(cascade, "CHILDREN", (Node, Entry))
    engine = SqliteEngine(None, records=(*schema.RECORDS, *kinds))
    await engine.open()
    try:
        folders = [Folder(account=BOX.account, name=name, id=id) for id, name in ((1, "removed"), (2, "kept"))]
        nodes = [Node(folder_id=folder.id, id=10 * folder.id + number) for folder in folders for number in range(3)]
        entries = [Entry(node_id=node.id, name=name) for node in nodes for name in "abc"]
        await engine.write([("jobs",)], lambda tx: tx.put(*folders, *nodes, *entries))
        await engine.write([("jobs",)], lambda tx: remove(tx, folders[0]))
        await cascade.remove_children_of_tombstones(engine)
        left = await engine.read((), lambda tx: [record for kind in kinds for record in tx.scan(kind, EVERY_KEY)])
        assert left == [folders[1], *nodes[3:], *entries[9:]]
        assert await engine.read((), lambda tx: list(tx.scan(Tombstone, EVERY_KEY))) == []
    finally:
        await engine.close()
