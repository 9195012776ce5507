"""The handles of a process end with it, however it ends: at once on an embedded store, by its heartbeat on a shared one."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.files import Files, files_on
from tests.contract.handles import DELETE, READ, WRITE, Listener, handle_on, opened
from tests.contract.stores import PostgresStore, SqliteStore, Store
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.records.file_open import FileLock, FileOpen, FileOwner, PendingDelete
from verditer.core.records.record import EVERY_KEY, Record
from verditer.jobs.handles import HandleMonitor
from verditer.services.context import Context
from verditer.services.file.handles import data
from verditer.services.file.handles.processes import owners
from verditer.stream.memory import MemoryExtents

PATIENCE_SECONDS = 30


class MonotonicClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def process_on(
    store: Store, number: int, clock: MonotonicClock | None = None
) -> AsyncIterator[tuple[Files, HandleMonitor]]:
    engine = store.build()
    await engine.open()
    ctx = Context(
        engine=engine,
        extents=MemoryExtents(str),
        accounts={},
        inline_limit=64,
        monotonic=clock if clock is not None else MonotonicClock(),
    )
    monitor = HandleMonitor(ctx, number=number, is_only_server=isinstance(store, SqliteStore), has_workers=True)
    await monitor.start()
    try:
        yield Files(ctx), monitor
    finally:
        await monitor.stop()
        await engine.close()


async def records(files: Files, *kinds: type[Record]) -> list[Record]:
    return await files.ctx.engine.read((), lambda tx: [one for kind in kinds for one in tx.scan(kind, EVERY_KEY)])


@asynccontextmanager
async def killed_holder(where: str) -> AsyncIterator[None]:
    """A process has opened handles, and was killed."""
    program = [sys.executable, "-m", "tests.contract.holder", where]
    process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[2])
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await process.stdout.readline() == b"holding\n"
    finally:
        process.kill()
        await process.wait()
    yield


async def make_files(files: Files) -> None:
    for name in ("on-close", "pending", "locked"):
        await files.put(name, b"x")


async def check_released(files: Files) -> None:
    assert await files.names() == ["locked"]
    for name in ("on-close", "pending"):
        with pytest.raises(StorageError) as gone:
            await files.get(name)
        assert gone.value.code is Code.ResourceNotFound
    await files.write("locked", 0, b"y")
    assert await records(files, FileOpen, FileLock, PendingDelete) == []


async def test_the_next_server_closes_the_handles_of_one_that_was_killed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    async with files_on(store) as files:
        await make_files(files)
    async with killed_holder(str(tmp_path / "store")), process_on(store, 0) as (files, _):
        await check_released(files)


async def test_another_node_closes_the_handles_of_one_that_was_killed_within_a_minute(store: Store) -> None:
    if not isinstance(store, PostgresStore):
        pytest.skip("of PostgreSQL")
    clock = MonotonicClock()
    async with files_on(store) as files:
        await make_files(files)
    async with killed_holder(store.conninfo), process_on(store, 0, clock) as (files, monitor):
        for _ in range(5):  # 40 seconds
            await monitor.keep()
            assert len(await records(files, FileOpen)) == 3
            clock.now += owners.HEARTBEAT_SECONDS
        await monitor.keep()
        clock.now += owners.HEARTBEAT_SECONDS
        await monitor.keep()
        assert clock.now <= 60
        await check_released(files)
        await files.ctx.engine.move_clock(seconds(61))
        await monitor.keep()
        assert await records(files, FileOwner) == []


async def test_a_worker_closes_the_handles_of_its_predecessor_and_of_no_other(store: Store) -> None:
    if not store.shared:
        pytest.skip("one process only")
    async with files_on(store) as files:
        await files.put("one", b"x")
        await files.put("two", b"x")
        first, second = await _dead(store, 1), await _dead(store, 2)
        await handle_on(first, "one", READ | DELETE, delete_on_close=True)
        await handle_on(second, "two")
        async with process_on(store, 1):
            assert [one.path for one in await records(files, FileOpen) if isinstance(one, FileOpen)] == [("two",)]
            assert await files.names() == ["two"]
        await second.ctx.engine.close()
        await first.ctx.engine.close()


async def _dead(store: Store, number: int) -> Files:
    """A process that does nothing of its own accord any more."""
    engine = store.build()
    await engine.open()
    ctx = Context(engine=engine, extents=MemoryExtents(str), accounts={}, inline_limit=64)
    ctx.handles.number = number
    return Files(ctx)


async def test_a_process_that_was_taken_for_dead_starts_again(store: Store) -> None:
    async with files_on(store) as files, AsyncExitStack() as exits:
        await files.put("file", b"x")
        listener = Listener()
        lost = (await opened(files, "file", READ | WRITE, listener=listener)).handle
        idle = (await opened(files, "file", READ | WRITE, listener=listener)).handle
        before = files.ctx.handles.owner
        if store.shared:
            clock = MonotonicClock()
            _, monitor = await exits.enter_async_context(process_on(store, 9, clock))
            for _ in range(7):
                await monitor.keep()
                clock.now += owners.HEARTBEAT_SECONDS
        else:
            (owner,) = await owners.owners(files.ctx)
            await owners.release(files.ctx, owner)
        with pytest.raises(StorageError) as closed:
            await data.read(files.ctx, lost, 0, 1)
        assert closed.value.code is Code.HandleClosed
        handle = await handle_on(files, "file")
        assert files.ctx.handles.owner != before
        assert idle.is_closed
        assert listener.is_closed
        assert await data.read(files.ctx, handle, 0, 1) == b"x"


async def test_a_process_that_beats_is_not_taken_for_dead(store: Store) -> None:
    if not store.shared:
        pytest.skip("one process only")
    clock = MonotonicClock()
    async with files_on(store) as files, process_on(store, 9, clock) as (_, monitor):
        await files.put("file", b"x")
        handle = await handle_on(files, "file")
        for _ in range(8):
            await owners.beat(files.ctx)
            await monitor.keep()
            clock.now += owners.HEARTBEAT_SECONDS
        clock.now += 1000  # the observer slept
        await monitor.keep()
        assert await data.read(files.ctx, handle, 0, 1) == b"x"


async def test_a_process_that_stops_leaves_nothing_behind(store: Store) -> None:
    if not store.shared:
        pytest.skip("one process only")
    async with files_on(store) as files:
        await files.put("file", b"x")
        async with process_on(store, 4) as (other, _):
            await handle_on(other, "file", DELETE, delete_on_close=True)
        assert await files.names() == []
        assert await records(files, FileOpen, FileOwner) == []
