"""Oplocks through the service layer on every engine: when they are granted, what breaks them, and who waits for whom."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tests.contract.files import Files, files_on, path
from tests.contract.handles import ALL, ATTRIBUTES, DELETE, READ, WRITE, Listener, close, handle_on, opened
from tests.contract.stores import Store
from tests.contract.test_file_opens import OPERATIONS
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.files.oplocks import OplockLevel
from verditer.jobs.handles import HandleMonitor
from verditer.services.context import Context
from verditer.services.file import listing
from verditer.services.file.handles import closing, data, locking, oplocks, watching
from verditer.services.file.handles.handle import DirectoryChange, Handle, NotifyAction
from verditer.services.file.handles.requests import CreateDisposition, LockRequest, Opened
from verditer.stream.memory import MemoryExtents

NONE, II, EXCLUSIVE, BATCH = OplockLevel
PATIENCE_SECONDS = 10


class Holder(Listener):
    """A client that acknowledges a break when it is told to."""

    def __init__(self, ctx: Context) -> None:
        super().__init__()
        self.ctx = ctx
        self.handle: Handle | None = None
        self.told = asyncio.Event()

    def oplock_broken(self, level: OplockLevel) -> None:
        super().oplock_broken(level)
        self.told.set()

    async def acknowledge(self) -> OplockLevel:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self.told.wait()
        assert self.handle is not None
        return await oplocks.acknowledge_break(self.ctx, self.handle, self.breaks[-1])


class Watcher(Listener):
    def __init__(self) -> None:
        super().__init__()
        self.told = asyncio.Event()

    def changed(self) -> None:
        self.told.set()


async def holding(files: Files, name: str, level: OplockLevel, share_mode: int = ALL) -> tuple[Holder, Opened]:
    holder = Holder(files.ctx)
    found = await opened(files, name, READ | WRITE, share_mode, listener=holder, oplock=level)
    holder.handle = found.handle
    return holder, found


# What is held, whether the second open overwrites → the level it goes back to, or None.
OPENS = [
    (EXCLUSIVE, False, II),
    (BATCH, False, II),
    (II, False, None),
    (EXCLUSIVE, True, NONE),
    (BATCH, True, NONE),
    (II, True, NONE),
]


@pytest.mark.parametrize(("held", "overwrites", "after"), OPENS)
async def test_a_second_open_breaks_an_oplock(
    store: Store, held: OplockLevel, overwrites: bool, after: OplockLevel | None
) -> None:
    async with files_on(store) as files:
        await files.put("file", b"data")
        holder, found = await holding(files, "file", held)
        assert found.oplock is held
        disposition = CreateDisposition.OVERWRITE if overwrites else CreateDisposition.OPEN
        second = asyncio.ensure_future(opened(files, "file", disposition=disposition, oplock=BATCH))
        if after is not None and held is not II:
            assert not second.done()
            assert await holder.acknowledge() is after
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await second).oplock is II
        assert holder.breaks == ([] if after is None else [after])


async def test_an_open_of_attributes_breaks_nothing_and_gets_nothing(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"data")
        holder, _ = await holding(files, "file", BATCH)
        assert (await opened(files, "file", int(ATTRIBUTES), oplock=BATCH)).oplock is NONE
        assert holder.breaks == []


async def test_only_a_batch_oplock_is_broken_before_a_sharing_violation(store: Store) -> None:
    async with files_on(store) as files:
        for name in ("exclusive", "batch"):
            await files.put(name, b"data")
        exclusive, _ = await holding(files, "exclusive", EXCLUSIVE, 0)
        with pytest.raises(StorageError):
            await opened(files, "exclusive")
        assert exclusive.breaks == []
        batch, found = await holding(files, "batch", BATCH, 0)
        refused = asyncio.ensure_future(opened(files, "batch"))
        await batch.acknowledge()
        with pytest.raises(StorageError) as refusal:
            await refused
        assert refusal.value.code is Code.SharingViolation
        await close(files, found.handle)
        batch, found = await holding(files, "batch", BATCH, 0)
        allowed = asyncio.ensure_future(opened(files, "batch"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await batch.told.wait()
            await closing.close_handle(files.ctx, found.handle)  # it had closed the file already, and tells now
            await allowed


async def test_a_write_and_a_lock_break_the_read_caches_of_others(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"data")
        writer = await handle_on(files, "file")
        holder, found = await holding(files, "file", BATCH)
        assert found.oplock is II
        await data.write(files.ctx, writer, 0, b"x")
        assert holder.breaks == [NONE]
        second, found = await holding(files, "file", II)
        assert found.oplock is II
        await locking.lock(files.ctx, writer, [LockRequest(0, 1, True)], wait=False)
        assert second.breaks == [NONE]
        _, found = await holding(files, "file", II)
        assert found.oplock is NONE  # there is a lock


# REST operation → what is held → what it goes back to (file.md §12). None: it is not broken.
REST: dict[str, dict[OplockLevel, OplockLevel | None]] = {
    "Get": {BATCH: II, EXCLUSIVE: II, II: None},
    "Look": {BATCH: II, EXCLUSIVE: II, II: None},
    "ListRanges": {BATCH: II, EXCLUSIVE: II, II: None},
    "PutRange": {BATCH: NONE, EXCLUSIVE: NONE, II: NONE},
    "SetProps": {BATCH: NONE, EXCLUSIVE: NONE, II: NONE},
    "SetMeta": {BATCH: NONE, EXCLUSIVE: NONE, II: NONE},
    "Create": {BATCH: NONE, EXCLUSIVE: NONE, II: NONE},
    "Delete": {BATCH: II, EXCLUSIVE: None, II: None},
    "List": {BATCH: None, EXCLUSIVE: None, II: None},
}
CALLS: dict[str, Callable[[Files], Awaitable[object]]] = {
    **OPERATIONS,
    "Look": lambda files: files.entry("file"),
    "List": lambda files: listing.list_entries(files.ctx, path(""), listing.ListEntries()),
}


@pytest.mark.parametrize(
    ("operation", "held", "after"), [(name, held, after) for name, row in REST.items() for held, after in row.items()]
)
async def test_a_rest_operation_breaks_oplocks(
    store: Store, operation: str, held: OplockLevel, after: OplockLevel | None
) -> None:
    # contract F2
    async with files_on(store) as files:
        await files.put("file", b"data")
        holder, found = await holding(files, "file", held)
        assert found.oplock is held
        call = asyncio.ensure_future(CALLS[operation](files))
        if after is not None and held is not II:
            assert await holder.acknowledge() is after
        if operation == "Delete":
            with pytest.raises(StorageError) as refusal:
                await call
            assert refusal.value.code is Code.SharingViolation
        else:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await call
        assert holder.breaks == ([] if after is None else [after])


async def test_rest_sees_what_the_holder_wrote_back_before_it_acknowledged(store: Store) -> None:
    # contract F5
    async with files_on(store) as files:
        await files.put("file", b"data")
        holder, found = await holding(files, "file", BATCH)
        reading = asyncio.ensure_future(files.get("file"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await holder.told.wait()
            await data.write(files.ctx, found.handle, 0, b"DATA")
            await holder.acknowledge()
            assert await reading == b"DATA"


async def test_a_holder_that_does_not_answer_delays_rest_and_loses_its_oplock_to_an_open(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"data")
        holder, found = await holding(files, "file", BATCH)
        reading = asyncio.ensure_future(files.get("file"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await holder.told.wait()
            await files.ctx.engine.move_clock(seconds(31))
            with pytest.raises(StorageError) as refusal:
                await reading
            assert refusal.value.code is Code.ClientCacheFlushDelay
            second = asyncio.ensure_future(opened(files, "file", oplock=BATCH))
            await asyncio.sleep(0.05)
            assert not second.done()
            await files.ctx.engine.move_clock(seconds(5))
            assert (await second).oplock is II
        with pytest.raises(StorageError) as late:
            await oplocks.acknowledge_break(files.ctx, found.handle, II)
        assert late.value.code is Code.InvalidOplockAcknowledgement
        assert holder.breaks == [II]


@asynccontextmanager
async def another_process(store: Store, files: Files) -> AsyncIterator[tuple[Files, HandleMonitor]]:
    """A second process on the same store and the same extents. It receives the signals of the first."""
    engine = store.build()
    await engine.open()
    ctx = Context(engine=engine, extents=files.ctx.extents, accounts={}, inline_limit=64)
    assert isinstance(ctx.extents, MemoryExtents)
    monitor = HandleMonitor(ctx, number=1, is_only_server=False, has_workers=True)
    await monitor.start()
    try:
        yield Files(ctx), monitor
    finally:
        await monitor.stop()
        await engine.close()


async def test_a_break_and_its_acknowledgement_cross_processes(store: Store) -> None:
    if not store.shared:
        pytest.skip("one process only")
    async with files_on(store) as here, another_process(store, here) as (there, _):
        await here.put("file", b"data")
        holder, _found = await holding(there, "file", BATCH)
        reading = asyncio.ensure_future(here.get("file"))
        await holder.acknowledge()
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await reading == b"data"
        assert holder.breaks == [II]


async def test_changes_are_reported_to_watchers_also_in_another_process(store: Store) -> None:
    async with files_on(store) as here:
        await here.make_directory("d/")
        listener = Listener()
        root = (await opened(here, "", int(READ), listener=listener)).handle
        await watching.watch(here.ctx, root, tree=False, filter=0x3)
        flat, _ = root.take_changes()
        assert flat == []
        made = (await opened(here, "d/file", WRITE | DELETE, disposition=CreateDisposition.CREATE)).handle
        assert root.take_changes() == ([], False)  # it is too deep
        await watching.watch(here.ctx, root, tree=True, filter=0x3 | 0x10)
        await data.write(here.ctx, made, 0, b"x")
        assert root.take_changes() == ([DirectoryChange(NotifyAction.MODIFIED, ("d", "file"))], False)
        await here.write("d/file", 0, b"y")  # REST tells nobody
        assert root.take_changes() == ([], False)
        if store.shared:
            async with another_process(store, here) as (there, _):
                away, deep = Watcher(), (await opened(there, "d/", int(READ))).handle
                deep.listener = away
                await watching.watch(there.ctx, deep, tree=False, filter=0x1)
                await opened(here, "d/new", disposition=CreateDisposition.CREATE)
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await away.told.wait()
                assert deep.take_changes() == ([DirectoryChange(NotifyAction.ADDED, ("new",))], False)
