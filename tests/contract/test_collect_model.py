"""Random operations of all services, with all passes of the collector after each one: no live byte is removed, no dead one kept.

A model knows the bytes of every state of every blob, by the ETag of the state. What is alive is decided here, by the ids of
containers, queues and tables, and not by the declarations of the record classes. `VERDITER_SEED=n` replays a run.
"""

import os
import random
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import TypeVar

import msgspec
import pytest

from tests.contract.processes import VERSION, Body
from verditer.core.conditions import EtagCondition
from verditer.core.dates import seconds
from verditer.core.errors import StorageError
from verditer.core.grant import Grant, Scheme
from verditer.core.guard import CONTAINER_DELETE, COPY, COPY_SOURCE, CREATE, LEASE_ONLY, READ, SNAPSHOT, UPDATE, Guard
from verditer.core.names import AccountName, BlobName, ContainerName, EntityName, QueueName, TableName
from verditer.core.records.blob import Blob, BlobType, BlobVersion, Block, DeletedBlob, Snapshot, StagedBlob
from verditer.core.records.catalog import RECORDS
from verditer.core.records.container import Container, DeletedContainer
from verditer.core.records.content import Garbage
from verditer.core.records.copy import PendingCopy
from verditer.core.records.queue import Message, Queue
from verditer.core.records.record import EVERY_KEY, Record, key_of
from verditer.core.records.settings import SettingsChange
from verditer.core.records.table import Table
from verditer.core.records.tags import TagEntry
from verditer.jobs import pacing
from verditer.jobs.collect import Collector
from verditer.jobs.sweep import sweep_extents
from verditer.partition.engine import Transaction
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.services.account import development_accounts
from verditer.services.blob import blobs, containers, read, undelete
from verditer.services.blob.copying import copy
from verditer.services.blob.copying.pending import BLOB_TARGETS, name_of
from verditer.services.blob.kinds import append, block, blocklist, page
from verditer.services.content.content import Content, ContentState
from verditer.services.content.reading import body_of, content_parts, whole_body
from verditer.services.context import Context
from verditer.services.control import reset_account
from verditer.services.copying.pending import add_chunk, claim_copy, unclaimed_copies
from verditer.services.copying.sources import BlobSource, RemoteSource
from verditer.services.outbound import SourceProperties, SourceRequest
from verditer.services.queue import messages, queues
from verditer.services.settings import change_settings
from verditer.services.table import entities, tables
from verditer.services.table.changes import DeleteEntity, InsertEntity
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, receive
from verditer.stream.memory import MemoryExtents

ACCOUNT = "devstoreaccount1"
INLINE_LIMIT = 100
PAGE = 512
STEPS = 200
DAY = 86400
PAUSES = (0, 0, 1, 90, 3600, DAY, 3 * DAY)  # seconds between two steps
LEFT_BY_A_RESET = {"Horizon", "AccountSettings", "Secret"}
PARENTS: dict[str, tuple[type[Record], ...]] = {
    "container_id": (Container, DeletedContainer),
    "parent_id": (Container, DeletedContainer),  # pending copies
    "queue_id": (Queue,),
    "table_id": (Table,),
}
CHILD_TABLES = {kind.TABLE for kind in RECORDS if kind.KEY[0] in PARENTS}
R = TypeVar("R", bound=Record)
State = tuple[int, str, int]  # container id, blob name, ETag


class Source:
    """The only source of copies on other servers: it says how long it is, and `Run.fetch` makes up its bytes."""

    def __init__(self, length: int, blob_type: str) -> None:
        self.properties = SourceProperties(length=length, is_range=False, blob_type=blob_type)

    async def open(self, request: SourceRequest, *, total_seconds: float | None = None) -> "Source":
        length, _, blob_type = request.url.partition(" ")
        return Source(int(length), blob_type)

    async def read(self, most: int | None = None) -> bytes:
        return b""

    def close(self) -> None:
        pass


class Run:
    def __init__(self, ctx: Context, chance: random.Random) -> None:
        self.ctx = ctx
        self.chance = chance
        self.collector = Collector(ctx, 3600)
        self.bytes: dict[State, bytes] = {}
        self.blocks: dict[tuple[int, str, bytes], bytes] = {}
        self.fetched: dict[str, bytes] = {}  # by copy id
        self.readers: list[tuple[AsyncIterator[bytes], bytes]] = []
        self.done: Counter[str] = Counter()
        self.operations: tuple[Callable[[], Awaitable[None]], ...] = (
            *(self.put_blob, self.put_blob, self.put_block, self.put_block, self.put_block_list, self.put_block_list),
            *(self.create_append, self.append, self.append, self.create_page, self.put_page, self.put_page, self.clear_page),
            *(
                self.copy,
                self.copy,
                self.copy_remote,
                self.fetch,
                self.fetch,
                self.set_metadata,
                self.open_reader,
                self.end_reader,
            ),
            *(
                self.snapshot,
                self.snapshot,
                self.delete_blob,
                self.delete_state,
                self.delete_state,
                self.undelete,
                self.delete_container,
            ),
            *(self.restore_container, self.change_settings, self.reset),
            *(self.put_message, self.get_message, self.clear_queue, self.delete_queue),
            *(self.insert_entity, self.delete_entity, self.delete_table),
        )

    async def run(self, steps: int) -> None:
        await self.create_missing_container()
        await self.change_settings()
        for _ in range(steps):
            if self.chance.random() < 0.5:
                await self.create_missing_container()
            operation = self.chance.choice(self.operations)
            try:
                await operation()
                self.done[operation.__name__] += 1
            except StorageError:  # refused: the blob is absent, of another type, has a pending copy, and so on
                self.done[f"{operation.__name__} refused"] += 1
            await self.collect(self.chance.choice(PAUSES))
            await self.check_bytes()
        while self.readers:
            await self.end_reader()

    # The model.

    async def check_bytes(self) -> None:
        for kind in RECORDS:
            if issubclass(kind, Blob):
                for blob in await self.all(kind):
                    assert await self.read(blob) == self.bytes[self.key(blob)], blob
        for one in await self.all(Block):
            state = ContentState(content_id=one.content_id, size=one.size, inline=True)
            expected = self.blocks[one.container_id, one.name, one.block_id]
            stored = await self.read(state) if one.extent is None else await self.read_extent(one.extent, one.size)
            assert stored == expected, one
        for copying in await self.all(PendingCopy):
            assert await self.read(copying) == self.fetched[copying.copy_id], copying

    async def collect(self, seconds_later: float) -> None:
        """Time passes, and everything is collected. What was alive then is still there."""
        await self.ctx.engine.move_clock(seconds(seconds_later))
        now = self.ctx.now()
        before = await self.living(now)
        await self.collector.collect()
        await sweep_extents(self.ctx, await self.ctx.activity.announce(self.ctx.engine))
        assert before <= await self.living(now)

    async def check_nothing_dead_is_kept(self) -> None:
        for _ in range(3):  # records, then what they owned, then their extents
            await self.collect(30 * DAY)
        rows = {kind: await self.all(kind) for kind in RECORDS}
        below_parents = {(kind.TABLE, row.key()) for kind, found in rows.items() if kind.KEY[0] in PARENTS for row in found}
        assert below_parents == {(table, key) for table, key in await self.living(self.ctx.now()) if table in CHILD_TABLES}
        owners = {row.content_id for found in rows.values() for row in found if isinstance(row, Blob | Block | PendingCopy)}
        for kind, found in rows.items():
            if kind.KEY[0] == "content_id":
                assert {row.key()[:8] for row in found} <= {key_of(id) for id in owners}, kind
        tags = {(blob.name, *tag) for blob in await self.all(Blob) for tag in (blob.tags or {}).items()}
        assert {(row.blob, row.tag, row.value) for row in await self.all(TagEntry)} == tags
        named = {extent for kind, found in rows.items() for row in found for extent in extents_in(row)}
        assert await self.all(Garbage) == []
        assert {extent async for extent, _ in self.ctx.extents.list()} == named

    async def check_nothing_is_left_by_a_reset(self) -> None:
        await reset_account(self.ctx, ACCOUNT)
        for _ in range(3):
            await self.collect(30 * DAY)
        assert {kind.__name__ for kind in RECORDS if await self.all(kind)} <= LEFT_BY_A_RESET
        assert [extent async for extent, _ in self.ctx.extents.list()] == []

    async def living(self, now: int) -> set[tuple[str, bytes]]:
        return await self.ctx.engine.read((), lambda tx: living(tx, now))

    async def all(self, kind: type[R]) -> list[R]:
        return await self.ctx.engine.read((), lambda tx: list(tx.scan(kind, EVERY_KEY)))

    async def read(self, content: Content) -> bytes:
        parts = await self.ctx.engine.read((), lambda tx: content_parts(tx, content, 0, content.size))
        return await whole_body(await body_of(self.ctx, self.ctx.now(), parts, content.size))

    async def read_extent(self, extent: str, size: int) -> bytes:
        return b"".join([chunk async for chunk in self.ctx.extents.read(extent, 0, size)])

    @staticmethod
    def key(blob: Blob) -> State:
        return blob.container_id, blob.name, blob.etag

    # Operations on blobs.

    def name(self) -> BlobName:
        return BlobName(ACCOUNT, self.chance.choice(("one", "two")), self.chance.choice("abcdef"))

    def data(self, most: int = 400) -> bytes:
        return self.chance.randbytes(self.chance.randrange(1, most))

    async def current(self, target: BlobName) -> Blob | None:
        def look(tx: Transaction) -> Blob | None:
            container = tx.get(Container, target.account, target.container)
            return tx.get(Blob, container.id, target.blob) if container is not None else None

        return await self.ctx.engine.read((), look)

    async def bytes_of(self, target: BlobName) -> bytes:
        blob = await self.current(target)
        return self.bytes[self.key(blob)] if blob is not None else b""

    async def note(self, target: BlobName, data: bytes) -> None:
        blob = await self.current(target)
        assert blob is not None
        self.bytes[self.key(blob)] = data

    async def put_blob(self) -> None:
        target, data = self.name(), self.data()
        tags = {"tag": self.chance.choice("xyz")} if self.chance.random() < 0.3 else None
        await block.put_blob(self.ctx, target, block.PutBlob(version=VERSION, tags=tags), Guard(rule=CREATE), Body(data))
        await self.note(target, data)

    async def put_block(self) -> None:
        target, data, id = self.name(), self.data(), self.chance.choice((b"1", b"2", b"3"))
        await block.put_block(self.ctx, target, block.PutBlock(version=VERSION, block_id=id), Guard(rule=LEASE_ONLY), Body(data))
        for one in await self.all(Block):  # the last of its name: it is the only one whose bytes may differ
            container = await self.ctx.engine.read((), lambda tx: tx.get(Container, ACCOUNT, target.container))
            if container is not None and (one.container_id, one.name, one.block_id) == (container.id, target.blob, id):
                self.blocks[container.id, target.blob, id] = data

    async def put_block_list(self) -> None:
        """Uncommitted blocks, in any order."""
        candidates = await self.all(Block)
        if not candidates:
            return
        chosen = self.chance.choice(candidates)
        parents = {container.id: container for container in await self.all(Container)}
        if chosen.container_id not in parents:
            return
        target = BlobName(ACCOUNT, parents[chosen.container_id].name, chosen.name)
        ids = [one.block_id for one in candidates if (one.container_id, one.name) == (chosen.container_id, chosen.name)]
        ids = self.chance.sample(ids, self.chance.randrange(1, len(ids) + 1))
        request = blocklist.PutBlockList(
            version=VERSION, blocks=tuple((blocklist.Search.UNCOMMITTED, id) for id in ids), document=b""
        )
        data = b"".join(self.blocks[chosen.container_id, chosen.name, id] for id in ids)
        await blocklist.put_block_list(self.ctx, target, request, Guard(rule=CREATE))
        await self.note(target, data)

    async def create_append(self) -> None:
        target = self.name()
        await append.create_append_blob(self.ctx, target, block.NewBlobProperties(), Guard(rule=CREATE))
        await self.note(target, b"")

    async def append(self) -> None:
        target, data = await self.any_of(BlobType.APPEND), self.data()
        before = await self.bytes_of(target)
        await append.append_block(self.ctx, target, append.AppendBlock(version=VERSION), Guard(rule=UPDATE), Body(data))
        await self.note(target, before + data)

    async def create_page(self) -> None:
        target = self.name()
        await page.create_page_blob(self.ctx, target, page.CreatePageBlob(size=8 * PAGE), Guard(rule=CREATE))
        await self.note(target, bytes(8 * PAGE))

    async def put_page(self) -> None:
        target = await self.any_of(BlobType.PAGE)
        first = self.chance.randrange(8)
        start, end = first * PAGE, self.chance.randrange(first + 1, 9) * PAGE
        before, data = await self.bytes_of(target), self.chance.randbytes(end - start)
        request = page.PutPages(version=VERSION, range=(start, end - 1), page_write="update")
        await page.put_pages(self.ctx, target, request, Guard(rule=UPDATE), Body(data))
        await self.note(target, before[:start] + data + before[end:])

    async def clear_page(self) -> None:
        target, start = await self.any_of(BlobType.PAGE), self.chance.randrange(8) * PAGE
        before = await self.bytes_of(target)
        await page.clear_pages(
            self.ctx, target, page.ClearPages(version=VERSION, range=(start, start + PAGE - 1)), Guard(rule=UPDATE)
        )
        await self.note(target, before[:start] + bytes(PAGE) + before[start + PAGE :])

    async def any_of(self, *types: BlobType) -> BlobName:
        """A blob of one of these types, if there is one."""
        parents = {container.id: container.name for container in await self.all(Container)}
        found = [blob for blob in await self.all(Blob) if blob.blob_type in types and blob.container_id in parents]
        if not found:
            return self.name()
        blob = self.chance.choice(found)
        return BlobName(ACCOUNT, parents[blob.container_id], blob.name)

    async def copy(self) -> None:
        target, name = self.name(), await self.any_of(*BlobType)
        data = await self.bytes_of(name)
        source = BlobSource(name=name, guard=Guard(rule=COPY_SOURCE), shown="", same_account=True)
        await copy.copy_blob(self.ctx, target, copy.CopyBlob(), Guard(rule=COPY), source)
        await self.note(target, data)

    async def copy_remote(self) -> None:
        target, size = self.name(), self.chance.randrange(1, 5) * PAGE
        kind = self.chance.choice(("BlockBlob", "PageBlob"))
        source = RemoteSource(url=f"{size} {kind}", shown="", rule=COPY_SOURCE, access={}, conditions={})
        copied = await copy.copy_blob(self.ctx, target, copy.CopyBlob(), Guard(rule=COPY), source)
        self.fetched[copied.copy_id] = b""
        await self.note(target, bytes(size) if kind == "PageBlob" else b"")

    async def fetch(self) -> None:
        """The next bytes of a pending copy, as `jobs/copy.py` fetches them."""
        for waiting in await unclaimed_copies(self.ctx, [BLOB_TARGETS], 1):
            claimed = await claim_copy(self.ctx, BLOB_TARGETS, waiting, f"{self.chance.random()}")
            if claimed is None:
                return
            data = self.chance.randbytes(self.chance.choice((PAGE, claimed.total - claimed.copied)))
            with self.ctx.activity.begin(self.ctx.now()) as work:
                received = await receive_extent(self.ctx, data)
                following = await add_chunk(self.ctx, BLOB_TARGETS, work, claimed, received, zeros=False)
            self.fetched[claimed.copy_id] += data
            if following is None:
                await self.note(name_of(claimed), self.fetched[claimed.copy_id])

    async def set_metadata(self) -> None:
        target = await self.any_of(*BlobType)
        data = await self.bytes_of(target)
        await blobs.set_metadata(self.ctx, target, blobs.SetBlobMetadata(metadata={"a": "b"}), Guard(rule=UPDATE))
        await self.note(target, data)

    async def snapshot(self) -> None:
        target = await self.any_of(*BlobType)
        await blobs.snapshot_blob(self.ctx, target, blobs.SnapshotBlob(), Guard(rule=SNAPSHOT))

    async def delete_blob(self) -> None:
        request = blobs.DeleteBlob(delete_snapshots=self.chance.choice(("include", "only", None)))
        await blobs.delete_blob(self.ctx, await self.any_of(*BlobType), request, Guard(rule=UPDATE))

    async def delete_state(self) -> None:
        parents = {container.id: container.name for container in await self.all(Container)}
        states = [*await self.all(Snapshot), *await self.all(BlobVersion)]
        states = [state for state in states if state.container_id in parents]
        if not states:
            return
        state = self.chance.choice(states)
        target = BlobName(ACCOUNT, parents[state.container_id], state.name)
        if isinstance(state, Snapshot):
            await blobs.delete_blob(self.ctx, target, blobs.DeleteBlob(snapshot=state.snapshot), Guard(rule=UPDATE))
        else:
            assert state.version_id is not None
            await blobs.delete_version(self.ctx, target, blobs.DeleteVersion(version_id=state.version_id), Guard(rule=UPDATE))

    async def undelete(self) -> None:
        await undelete.undelete_blob(self.ctx, self.name())

    async def open_reader(self) -> None:
        """A download that has begun and goes on later."""
        target = await self.any_of(*BlobType)
        data = await self.bytes_of(target)
        found = await read.get_blob(self.ctx, target, read.GetBlob(), Guard(rule=READ))
        if not isinstance(found.body, bytes):
            self.readers.append((found.body, data))

    async def end_reader(self) -> None:
        if self.readers:
            body, data = self.readers.pop(self.chance.randrange(len(self.readers)))
            assert await whole_body(body) == data

    # Operations on containers, the account, queues and tables.

    async def create_missing_container(self) -> None:
        existing = {container.name for container in await self.all(Container)}
        for name in sorted({"one", "two"} - existing):
            await containers.create_container(self.ctx, ContainerName(ACCOUNT, name), containers.CreateContainer())

    async def delete_container(self) -> None:
        name = ContainerName(ACCOUNT, self.chance.choice(("one", "two")))
        await containers.delete_container(self.ctx, name, Guard(rule=CONTAINER_DELETE))

    async def restore_container(self) -> None:
        for deleted in await self.all(DeletedContainer):
            request = undelete.RestoreContainer(deleted_name=deleted.name, deleted_version=deleted.version)
            await undelete.restore_container(self.ctx, ContainerName(ACCOUNT, deleted.name), request)

    async def change_settings(self) -> None:
        change = SettingsChange(
            versioning=self.chance.random() < 0.6,
            blob_soft_delete_days=self.chance.choice((0, 1, 3, 30)),
            container_soft_delete_days=self.chance.choice((0, 2)),
        )
        await change_settings(self.ctx, ACCOUNT, change)

    async def reset(self) -> None:
        if self.chance.random() < 0.3:
            await reset_account(self.ctx, ACCOUNT)

    async def put_message(self) -> None:
        queue = QueueName(ACCOUNT, self.chance.choice(("first", "second")))
        await queues.create_queue(self.ctx, queue, queues.CreateQueue())
        ttl = self.chance.choice((60, 7200, -1))
        await messages.put_message(self.ctx, queue, messages.PutMessage(text="x", ttl_seconds=ttl, version=VERSION))

    async def get_message(self) -> None:
        await messages.get_messages(self.ctx, QueueName(ACCOUNT, "first"), messages.GetMessages())

    async def clear_queue(self) -> None:
        await queues.clear_messages(self.ctx, QueueName(ACCOUNT, "first"))

    async def delete_queue(self) -> None:
        await queues.delete_queue(self.ctx, QueueName(ACCOUNT, self.chance.choice(("first", "second"))))

    async def insert_entity(self) -> None:
        name = self.chance.choice(("people", "things"))
        if not any(table.name == name for table in await self.all(Table)):
            await tables.create_table(self.ctx, AccountName(ACCOUNT, "table"), tables.CreateTable(table=name))
        request = InsertEntity(partition_key="p", row_key=self.chance.choice("abcdef"), properties={})
        await entities.insert_entity(self.ctx, TableName(ACCOUNT, name), request, Grant(scheme=Scheme.KEY))

    async def delete_entity(self) -> None:
        target = EntityName(ACCOUNT, "people", "p", self.chance.choice("abcdef"))
        request = DeleteEntity(if_match=EtagCondition(etags=(), any=True))
        await entities.delete_entity(self.ctx, target, request, Grant(scheme=Scheme.KEY))

    async def delete_table(self) -> None:
        await tables.delete_table(self.ctx, TableName(ACCOUNT, self.chance.choice(("people", "things"))))


def living(tx: Transaction, now: int) -> set[tuple[str, bytes]]:
    """Table and key of every record that a client can reach, or bring back, from now on."""
    ids = {parent.id for parent in tx.scan(Container, EVERY_KEY)} | {
        parent.id for parent in tx.scan(DeletedContainer, EVERY_KEY) if parent.expires > now
    }
    ids |= {queue.id for queue in tx.scan(Queue, EVERY_KEY)} | {table.id for table in tx.scan(Table, EVERY_KEY)}
    staged = {(row.container_id, row.name) for row in tx.scan(StagedBlob, EVERY_KEY) if row.touched > now - seconds(7 * DAY)}
    found = set()
    for kind in RECORDS:
        for record in tx.scan(kind, EVERY_KEY):
            first = getattr(record, kind.KEY[0])
            if kind.KEY[0] in PARENTS and first not in ids:
                continue
            if isinstance(record, DeletedBlob | DeletedContainer | Message) and record.expires <= now:
                continue
            if isinstance(record, StagedBlob | Block) and (record.container_id, record.name) not in staged:
                continue
            if kind.KEY[0] in PARENTS or kind.KEY[0] == "account":
                found.add((kind.TABLE, record.key()))
    return found


def extents_in(value: object) -> Iterator[str]:
    """Every extent that a record names, found by the names of its attributes."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            if name == "extent" and getattr(value, name) is not None:
                yield getattr(value, name)
            yield from extents_in(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from extents_in(item)


async def receive_extent(ctx: Context, data: bytes) -> Received:
    return await receive(Body(data), ctx.extents, limit=len(data), inline_limit=0, expected=Checksums())


async def test_the_collector_removes_no_live_byte_and_keeps_no_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    # contract G3, race G1
    monkeypatch.setattr(pacing, "PAUSE_FACTOR", 0.0)
    seed = int(os.environ.get("VERDITER_SEED") or random.randrange(1 << 32))
    print(f"VERDITER_SEED={seed}")  # shown when the test fails
    engine = SqliteEngine(None)
    await engine.open()
    try:
        extents = MemoryExtents(lambda: f"{engine.now():016x}{secrets.token_hex(8)}", None)
        source = Source(0, "")
        ctx = Context(
            engine=engine, extents=extents, accounts=development_accounts(), inline_limit=INLINE_LIMIT, source_reader=source
        )
        run = Run(ctx, random.Random(seed))
        await run.run(STEPS)
        print(run.done)
        await run.check_nothing_dead_is_kept()
        await run.check_nothing_is_left_by_a_reset()
    finally:
        await engine.close()
