"""The embedded engine's log: nobody is told of a commit before it is on the disk, nor waits for the disk without need."""

import asyncio
import errno
import os
import random
import shutil
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.contract.stores import Note, SqliteStore, WorkersStore, opened
from verditer.core.records.record import span_of
from verditer.partition.engine import Engine, EngineUnavailable, Transaction
from verditer.partition.sqlite import group_commit as sqlite_commit
from verditer.partition.sqlite.group_commit import GroupCommitter, changes_between

SCOPE = ("account", "blob", "container", "blob")
PATIENCE_SECONDS = 10


class Disk:
    """Stands before the real one: a sync waits while it is shut, and fails while it is broken. To those who write it is a slow
    one: the loop goes on meanwhile."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.broken = False
        self._open = threading.Event()
        self._open.set()
        self._sync = os.fdatasync

    def fdatasync(self, file: int) -> None:
        self.asked.release()
        self._open.wait()
        if self.broken:
            raise OSError(errno.EIO, "Input/output error")
        self._sync(file)

    def shut(self) -> None:
        self.forget()
        self._open.clear()

    def forget(self) -> None:
        """What it was asked for so far."""
        while self.asked.acquire(blocking=False):
            pass

    def open(self) -> None:
        self._open.set()

    async def is_asked(self, times: int = 1) -> None:
        for _ in range(times):
            assert await asyncio.to_thread(self.asked.acquire, timeout=PATIENCE_SECONDS)


@pytest.fixture
def workers(tmp_path: Path) -> WorkersStore:
    return WorkersStore(tmp_path / "store")


@pytest.fixture
def disk(workers: WorkersStore, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The disk of `workers`, and of no other store."""
    disk = Disk()
    workers.fdatasync = disk.fdatasync
    monkeypatch.setattr(GroupCommitter, "_sync_on_loop", GroupCommitter._sync_in_thread)
    return disk


@asynccontextmanager
async def both(workers: WorkersStore, disk: Disk) -> AsyncIterator[tuple[Engine, Engine]]:
    """Two workers, whose disk is open again in the end."""
    async with opened(workers) as one, opened(workers) as other:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                yield one, other
        finally:
            disk.open()


def setting(name: str, value: int = 0) -> Callable[[Transaction], None]:
    return lambda tx: tx.put(Note(space=1, name=name, value=value))


def look(tx: Transaction) -> list[str]:
    return [note.name for note in tx.scan(Note, span_of(1))]


def refuse_if_there(tx: Transaction) -> None:
    if look(tx):
        raise LookupError


async def test_nobody_is_notified_of_a_commit_before_it_is_synced(workers: WorkersStore, disk: Disk) -> None:  # contract G6
    async with both(workers, disk) as (one, other):
        disk.shut()
        write = asyncio.ensure_future(one.write([SCOPE], setting("a")))
        await disk.is_asked()  # it is committed, and would be seen
        readers: list[Awaitable[object]] = [
            *[engine.read(SCOPE, look) for engine in (one, other)],
            *[engine.read(SCOPE, look, long=True) for engine in (one, other)],
            *[engine.read(SCOPE, refuse_if_there) for engine in (one, other)],
            other.write([SCOPE], refuse_if_there),
        ]
        waiting = [write, *[asyncio.ensure_future(reader) for reader in readers]]
        await disk.is_asked(5)  # once for the reads of each, once for each scan, once for the write
        assert not any(each.done() for each in waiting)
        disk.open()
        assert await asyncio.gather(*waiting[:5]) == [None, ["a"], ["a"], ["a"], ["a"]]
        for refused in waiting[5:]:
            with pytest.raises(LookupError):
                await refused


async def test_a_read_of_what_is_synced_asks_no_disk(workers: WorkersStore, disk: Disk) -> None:
    async with both(workers, disk) as (one, other):
        await one.write([SCOPE], setting("a"))
        disk.shut()
        for engine in (one, other):
            assert await engine.read(SCOPE, look) == ["a"]
            assert await engine.read(SCOPE, look, long=True) == ["a"]
        assert not disk.asked.acquire(blocking=False)


async def test_who_is_refused_asks_no_disk(workers: WorkersStore, disk: Disk) -> None:
    async with both(workers, disk) as (one, other):
        await asyncio.gather(one.write([SCOPE], setting("a")), other.write([SCOPE], setting("b")))
        disk.shut()
        for engine in (one, other):
            with pytest.raises(LookupError):
                await engine.write([SCOPE], refuse_if_there)
        assert not disk.asked.acquire(blocking=False)


def test_changes_are_counted_beyond_what_sqlite_can_count() -> None:
    assert changes_between(7, 9) == 2
    assert changes_between(2**31 - 1, -(2**31) + 1) == 2
    assert changes_between(-1, 3) == 4


async def test_a_worker_writes_while_another_waits_for_its_sync(workers: WorkersStore, disk: Disk) -> None:
    async with both(workers, disk) as (one, other):
        disk.shut()
        first = asyncio.ensure_future(one.write([SCOPE], setting("a")))
        await disk.is_asked()
        second = asyncio.ensure_future(other.write([SCOPE], setting("b")))
        await disk.is_asked()  # by the other: it has had its turn
        assert not first.done()
        disk.open()
        await asyncio.gather(first, second)
        assert await one.read(SCOPE, look) == ["a", "b"]


async def test_a_quick_disk_is_waited_for_on_the_loop_and_a_slow_one_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, takes, sync = 0.0, 0.0, os.fdatasync
    threads: list[str] = []

    def fdatasync(file: int) -> None:
        nonlocal now
        threads.append(threading.current_thread().name)
        now += takes
        sync(file)

    async def written(after: float) -> str:
        nonlocal now
        now += after
        await engine.write([SCOPE], setting("a"))
        return threads[-1]

    store = SqliteStore(tmp_path)
    async with opened(store) as engine:
        store.fdatasync = fdatasync
        monkeypatch.setattr(sqlite_commit, "perf_counter", lambda: now)
        loop, beside = threading.current_thread().name, "verditer-writer"
        takes = 0.0005
        assert [await written(after=0.1) for _ in range(3)] == [loop] * 3
        takes = 0.05
        assert await written(after=0.1) == loop  # it finds out
        assert [await written(after=0.1) for _ in range(6)] == [beside] * 6
        takes = 0.0005
        assert [await written(after=0.1) for _ in range(3)] == [loop] * 3


@pytest.mark.parametrize("waiting", [GroupCommitter._sync_on_loop, GroupCommitter._sync_in_thread])
async def test_a_sync_that_failed_is_the_last_one(
    workers: WorkersStore, disk: Disk, waiting: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:  # contract G6
    """The kernel forgets what it could not write, and says so once."""
    monkeypatch.setattr(GroupCommitter, "_sync_on_loop", waiting)
    async with opened(workers) as one, opened(workers) as other:
        await one.write([SCOPE], setting("kept"))
        disk.broken = True
        with pytest.raises(EngineUnavailable, match="Input/output error"):
            await one.write([SCOPE], setting("lost"))
        disk.broken = False
        for engine in (one, other):
            with pytest.raises(EngineUnavailable, match="started anew"):
                await engine.write([SCOPE], setting("never"))
            for long in (False, True):
                with pytest.raises(EngineUnavailable, match="started anew"):
                    await engine.read(SCOPE, look, long=long)
    workers.together.close()
    async with opened(SqliteStore(workers.together.folder)) as engine:
        found = await engine.read(SCOPE, look)
        assert "kept" in found
        assert "never" not in found
        await engine.write([SCOPE], setting("again"))
        assert "again" in await engine.read(SCOPE, look)


async def test_a_failed_store_writes_nothing_and_shows_what_is_synced(workers: WorkersStore) -> None:  # contract G6
    async with opened(workers) as one, opened(workers) as other:
        await one.write([SCOPE], setting("kept"))
        workers.together.mark_sync_failed()
        for engine in (one, other):
            with pytest.raises(EngineUnavailable, match="started anew"):
                await engine.write([SCOPE], setting("never"))
            assert await engine.read(SCOPE, look) == ["kept"]


async def test_what_was_acknowledged_is_in_the_files_as_they_were_when_last_synced(
    workers: WorkersStore, tmp_path: Path
) -> None:  # contract G6
    """The power fails at any moment: what is left for sure is what the files held when the last sync that has ended began."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance, lock, sync = random.Random(seed), threading.Lock(), os.fdatasync
    begun, ended = 0, -1
    known_at: dict[str, int] = {}  # what somebody was told of, by writing or reading it: the last sync that had ended by then

    def fdatasync(file: int) -> None:
        nonlocal begun, ended
        with lock:
            number, begun = begun, begun + 1
            shutil.copytree(workers.together.folder, tmp_path / f"left{number}", ignore=shutil.ignore_patterns("*.lock", "*-shm"))
        sync(file)
        with lock:
            ended = max(ended, number)

    async def work(engine: Engine, names: list[str]) -> None:
        for name in names:
            told = [name]
            if chance.random() < 0.7:
                await engine.write([SCOPE], setting(name))
            else:
                told = await engine.read(SCOPE, look)
            for each in told:
                known_at.setdefault(each, ended)

    async with opened(workers) as one, opened(workers) as other:
        workers.fdatasync = fdatasync
        names = [[f"{writer}-{number}" for number in range(12)] for writer in range(8)]
        await asyncio.gather(*[work((one, other)[writer % 2], names[writer]) for writer in range(8)])
        workers.fdatasync = sync
    left = {number for number in known_at.values() if number >= 0}
    assert len(left) > 5
    for number in chance.sample(sorted(left), 5):
        async with opened(SqliteStore(tmp_path / f"left{number}")) as engine:
            found = set(await engine.read(SCOPE, look))
            assert {name for name, known in known_at.items() if known <= number} <= found


async def test_who_comes_after_one_killed_in_its_commit_ends_it(workers: WorkersStore, disk: Disk) -> None:
    """Otherwise every read would take it for one that is on its way, and sync, until somebody writes."""
    async with opened(workers) as one:
        await one.write([SCOPE], lambda tx: tx.put(Note(space=1, name="a")))
        workers.together.begin_commit()
        async with opened(workers):
            disk.forget()
            assert await one.read(SCOPE, lambda tx: tx.get(Note, 1, "a")) is not None
            assert not disk.asked.acquire(blocking=False)
