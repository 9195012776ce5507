"""Workers on one embedded store: what `test_engine.py` cannot show from inside one process."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.contract.stores import RECORDS, Note, WorkersStore, opened
from tests.fresh_process import run_in_fresh_process
from verditer.core.clock import NODES
from verditer.core.dates import seconds
from verditer.core.records.record import span_of
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.partition.sqlite import shared
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.partition.sqlite.shared import SharedStore

SCOPE = ("account", "blob", "container", "blob")


@pytest.fixture
def workers(tmp_path: Path) -> WorkersStore:
    return WorkersStore(tmp_path / "store")


def forked(together: SharedStore, number: int, work: Callable[[SqliteEngine], Awaitable[None]]) -> int:
    """A worker in a process of its own; it ends with status 0 when its work came to an end."""
    process = os.fork()
    if process == 0:
        status = 1
        try:
            asyncio.run(_work(together, number, work))
            status = 0
        finally:
            os._exit(status)
    return process


async def _work(together: SharedStore, number: int, work: Callable[[SqliteEngine], Awaitable[None]]) -> None:
    engine = SqliteEngine(together.folder, shared=together, worker=number, records=RECORDS)
    await engine.open()
    await work(engine)
    await engine.close()


def ended(process: int) -> int:
    return os.waitpid(process, 0)[1]


async def count_up(engine: SqliteEngine) -> None:
    def add(tx: Transaction) -> None:
        note = tx.get(Note, 1, "count") or Note(space=1, name="count")
        tx.put(Note(space=1, name="count", value=note.value + 1))
        tx.put(Note(space=2, name=f"{tx.tick():016x}"))

    for _ in range(20):
        await asyncio.gather(*[engine.write([SCOPE], add) for _ in range(10)])


def test_processes_that_count_together_lose_nothing_and_share_no_tick(tmp_path: Path) -> None:  # contract G4, G5
    run_in_fresh_process(_count_together, tmp_path / "store")


def _count_together(folder: Path) -> None:
    workers = WorkersStore(folder)
    processes = [forked(workers.together, number, count_up) for number in range(3)]
    assert [ended(process) for process in processes] == [0, 0, 0]
    asyncio.run(_check_counts(workers))


async def _check_counts(workers: WorkersStore) -> None:
    async with opened(workers) as engine:
        count = await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "count"))
        ticks = await engine.read(SCOPE, lambda tx: [int(note.name, 16) for note in tx.scan(Note, span_of(2))], long=True)
    assert count is not None
    assert count.value == len(ticks) == 600
    assert {tick % NODES for tick in ticks} == {0, 1, 2}


def test_a_worker_killed_in_mid_transaction_leaves_the_others_working(tmp_path: Path) -> None:  # contract G7
    run_in_fresh_process(_kill_in_mid_transaction, tmp_path / "store")


def _kill_in_mid_transaction(folder: Path) -> None:
    workers = WorkersStore(folder)
    hear, say = os.pipe()
    obey, order = os.pipe()

    async def stay_inside(engine: SqliteEngine) -> None:
        os.read(obey, 1)

        def body(tx: Transaction) -> None:
            tx.put(Note(space=1, name="half", value=1))
            os.write(say, b"x")
            signal.pause()  # until it is killed

        await engine.write([SCOPE], body)

    async def outlive(process: int) -> None:
        async with opened(workers) as engine:
            os.write(order, b"x")
            os.read(hear, 1)
            waiting = asyncio.ensure_future(engine.write([SCOPE], lambda tx: tx.put(Note(space=1, name="whole", value=2))))
            assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "half")) is None  # nobody waits to read
            os.kill(process, signal.SIGKILL)
            assert ended(process) != 0
            await waiting
            assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "half")) is None
            assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "whole")) is not None

    asyncio.run(outlive(forked(workers.together, 1, stay_inside)))


async def test_moves_of_the_clock_add_up_whichever_worker_makes_them(workers: WorkersStore) -> None:
    async with opened(workers) as one, opened(workers) as other:
        before = one.now()
        await asyncio.gather(*[engine.move_clock(seconds(3600)) for engine in (one, other) for _ in range(5)])
        for engine in (one, other):
            assert seconds(36000) <= engine.now() - before < seconds(36600)
    async with opened(workers) as again:
        assert again.now() - before >= seconds(36000)


async def test_a_move_of_the_clock_counts_once_when_its_neighbour_fails(workers: WorkersStore) -> None:
    def fail(tx: Transaction) -> None:
        tx.put(Note(space=1, name="taken back"))
        raise LookupError

    async with opened(workers) as engine:
        before = engine.now()
        moves = [engine.move_clock(seconds(3600)), engine.write([SCOPE], fail), engine.move_clock(seconds(3600))]
        await asyncio.gather(*moves, return_exceptions=True)
        assert seconds(7200) <= engine.now() - before < seconds(7800)


async def test_no_worker_is_behind_what_another_has_written(workers: WorkersStore) -> None:  # contract L7
    async with opened(workers) as one, opened(workers) as other:
        ahead = await one.write([SCOPE], lambda tx: tx.tick(tx.now + seconds(5)))
        assert other.now() >= ahead
        assert await other.write([SCOPE], lambda tx: tx.tick()) > ahead


async def test_the_log_of_changes_stays_small_while_workers_read_and_write(workers: WorkersStore) -> None:
    def put(name: str) -> Callable[[Transaction], None]:
        return lambda tx: tx.put(Note(space=1, name=name, data=bytes(8000)))

    async with opened(workers) as one, opened(workers) as other:
        for count in range(120):
            puts = [engine.write([SCOPE], put(f"{count}-{number}")) for number in range(50) for engine in (one, other)]
            await asyncio.gather(*puts, *[engine.read(SCOPE, lambda tx: tx.get(Note, 1, "0-0")) for engine in (one, other)])
        log = workers.together.folder / "verditer.db-wal"
        # 96 MB were written. A reader that a busy machine suspends may keep two or three restarts from succeeding.
        assert log.stat().st_size < 48 << 20


def test_a_folder_has_one_server(workers: WorkersStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared, "FOLDER_LOCK_SECONDS", 0.0)
    with pytest.raises(EngineUnavailable, match="in use by another"):
        SharedStore(workers.together.folder)
    workers.together.close()
    SharedStore(workers.together.folder).close()
