"""What only the embedded engine has to care for: where bodies run, and snapshots that reads share."""

import asyncio
import contextlib
import gc
import threading
import weakref
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.stores import Note, SqliteStore, WorkersStore, opened
from verditer.core.errors import Code, StorageError
from verditer.core.records.record import span_of
from verditer.partition.engine import Engine, MemberEquals, Transaction
from verditer.partition.sqlite import group_commit, snapshot_reader
from verditer.partition.sqlite.group_commit import FULL_BATCH, MAX_LOOP_SECONDS
from verditer.partition.sqlite.snapshot_reader import MAX_SECONDS
from verditer.partition.sqlite.transaction import MAX_RECORDS_ON_LOOP

SCOPE = ("account", "blob", "container", "blob")


@pytest.fixture
def embedded(tmp_path: Path) -> SqliteStore:
    return SqliteStore(tmp_path / "store")


@pytest.fixture
def workers(tmp_path: Path) -> WorkersStore:
    return WorkersStore(tmp_path / "workers")


def putting(count: int, space: int = 1) -> Callable[[Transaction], str]:
    """A body that puts so many notes, and answers with the name of the thread it ran in."""

    def body(tx: Transaction) -> str:
        for number in range(count):
            tx.put(Note(space=space, name=f"{number:06}"))
        return threading.current_thread().name

    return body


def setting(value: int) -> Callable[[Transaction], None]:
    return lambda tx: tx.put(Note(space=1, name="a", value=value))


async def count_of(engine: Engine, space: int = 1) -> int:
    return await engine.read(SCOPE, lambda tx: sum(1 for _ in tx.scan(Note, span_of(space))), long=True)


async def test_a_short_body_runs_on_the_loop_and_a_long_one_beside_it(embedded: SqliteStore) -> None:
    async with opened(embedded) as engine:
        assert await engine.write([SCOPE], putting(MAX_RECORDS_ON_LOOP)) == threading.current_thread().name
        assert await engine.write([SCOPE], putting(MAX_RECORDS_ON_LOOP + 1)) == "verditer-writer"
        assert await count_of(engine) == MAX_RECORDS_ON_LOOP + 1


async def test_a_long_look_before_the_first_change_is_a_long_body_too(embedded: SqliteStore) -> None:
    def look(tx: Transaction) -> str:
        found = len(list(tx.scan(Note, span_of(1))))
        return f"{found} in {threading.current_thread().name}"

    async with opened(embedded) as engine:
        await engine.write([SCOPE], putting(MAX_RECORDS_ON_LOOP + 1))
        assert await engine.write([SCOPE], look) == f"{MAX_RECORDS_ON_LOOP + 1} in verditer-writer"


async def test_those_who_share_a_commit_with_a_long_body_keep_their_own_outcomes(embedded: SqliteStore) -> None:
    def refuse(tx: Transaction) -> None:
        raise LookupError

    def spoil(tx: Transaction) -> None:
        tx.put(Note(space=2, name="taken back"))
        raise KeyError

    async with opened(embedded) as engine:
        bodies: list[Callable[[Transaction], object]] = [
            putting(1, space=3),
            refuse,
            spoil,
            putting(MAX_RECORDS_ON_LOOP * 2),
            putting(2, space=4),
        ]
        outcomes = await asyncio.gather(*[engine.write([SCOPE], body) for body in bodies], return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [str, LookupError, KeyError, str, str]
        assert [await count_of(engine, space) for space in (1, 2, 3, 4)] == [MAX_RECORDS_ON_LOOP * 2, 0, 1, 2]


async def test_a_body_that_ends_strangely_holds_nobody_up(embedded: SqliteStore) -> None:
    def run_out(tx: Transaction) -> None:
        next(iter(()))

    async with opened(embedded) as engine:
        outcomes = await asyncio.gather(engine.write([SCOPE], run_out), engine.write([SCOPE], putting(1)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [RuntimeError, str]
        assert await engine.write([SCOPE], putting(2))


async def test_the_loop_goes_on_while_many_slow_bodies_wait(embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    run: list[int] = []
    seen: set[int] = set()

    def slow(number: int) -> Callable[[Transaction], None]:
        def body(tx: Transaction) -> None:
            nonlocal now
            now += MAX_LOOP_SECONDS * 0.6  # a batch is over its time with the second
            run.append(number)
            tx.put(Note(space=1, name=f"{number:06}"))

        return body

    async def look_around() -> None:
        while True:
            seen.add(len(run))
            await asyncio.sleep(0)

    async with opened(embedded) as engine:
        monkeypatch.setattr(group_commit, "perf_counter", lambda: now)
        looking = asyncio.ensure_future(look_around())
        await asyncio.gather(*[engine.write([SCOPE], slow(number)) for number in range(20)])
        looking.cancel()
        assert await count_of(engine) == 20
    assert run == list(range(20))
    assert seen == set(range(0, 21, 2))


@pytest.mark.parametrize(("gathered", "commits"), [(FULL_BATCH, 1), (4, 3)])
async def test_bodies_that_come_in_successive_iterations_share_a_commit_up_to_a_bound(
    embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch, gathered: int, commits: int
) -> None:
    monkeypatch.setattr(group_commit, "FULL_BATCH", gathered)
    monkeypatch.setattr(group_commit, "perf_counter", lambda: 0.0)

    def putting_one(number: int) -> Callable[[Transaction], None]:
        return lambda tx: tx.put(Note(space=1, name=f"{number}"))

    async with opened(embedded) as engine:
        shared = engine._shared  # type: ignore[attr-defined]
        before = shared.commits
        writing = []
        for number in range(10):
            writing.append(asyncio.ensure_future(engine.write([SCOPE], putting_one(number))))
            await asyncio.sleep(0)
        await asyncio.gather(*writing)
        assert await count_of(engine) == 10
        assert (shared.commits - before) // 2 == commits


async def test_of_those_who_share_a_commit_only_the_one_the_disk_has_no_room_for_is_refused(embedded: SqliteStore) -> None:
    def large(tx: Transaction) -> None:
        tx.put(Note(space=1, name="large", data=bytes(1 << 22)))

    async with opened(embedded) as engine:
        connection = engine._committer._connection  # type: ignore[attr-defined]
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        bodies: list[Callable[[Transaction], object]] = [putting(1, space=3), large, putting(1, space=4)]
        outcomes = await asyncio.gather(*[engine.write([SCOPE], body) for body in bodies], return_exceptions=True)
        refused = outcomes[1]
        assert [type(outcome) for outcome in outcomes] == [str, StorageError, str]
        assert isinstance(refused, StorageError)
        assert refused.code is Code.InsufficientStorage
        assert [await count_of(engine, space) for space in (1, 3, 4)] == [0, 1, 1]


async def test_a_read_in_the_same_iteration_of_the_loop_sees_what_was_acknowledged_before_it(
    embedded: SqliteStore,
) -> None:  # contract G1
    async with opened(embedded) as engine:
        for value in range(50):
            await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "a"))  # a snapshot that later reads of this iteration would share
            await engine.write([SCOPE], setting(value))
            note = await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "a"))
            assert note is not None
            assert note.value == value


async def test_a_snapshot_in_use_is_given_up_when_another_worker_commits(workers: WorkersStore) -> None:  # contract G1, G2
    async with opened(workers) as one, opened(workers) as other:
        for value in range(50):
            write = asyncio.ensure_future(other.write([SCOPE], setting(value)))
            seen = -1
            while not write.done():  # reads go on all the while, and never go back
                note = await one.read(SCOPE, lambda tx: tx.get(Note, 1, "a"))
                again = await other.read(SCOPE, lambda tx: tx.get(Note, 1, "a"))
                for found in (note, again):
                    assert (found.value if found is not None else -1) >= seen
                    seen = found.value if found is not None else -1
                await asyncio.sleep(0)
            note = await one.read(SCOPE, lambda tx: tx.get(Note, 1, "a"))
            assert note is not None
            assert note.value == value


WANTED = [MemberEquals("Wanted", "7")]
UNWANTED = b'{"Other":"x"}'


async def test_a_read_that_takes_too_long_on_the_loop_runs_again_in_a_thread(
    embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def prefiltered(tx: Transaction) -> int:
        threads.append(threading.current_thread().name)
        return sum(1 for _ in tx.scan(Note, span_of(1), conditions=WANTED))

    def unfiltered(tx: Transaction) -> int:
        threads.append(threading.current_thread().name)
        return sum(1 for _ in tx.scan(Note, span_of(1)))

    loop = threading.current_thread().name
    async with opened(embedded) as engine:
        await engine.write([SCOPE], putting(5000))
        monkeypatch.setattr(snapshot_reader, "monotonic", lambda: 0.0)
        assert await engine.read(SCOPE, prefiltered) == 0
        assert await engine.read(SCOPE, unfiltered) == 5000
        assert threads == [loop, loop]
        monkeypatch.setattr(snapshot_reader, "MAX_SECONDS", -1.0)
        assert 0 < await engine.read(SCOPE, prefiltered) < 5000  # in a thread one in 128 passes
        assert await engine.read(SCOPE, unfiltered) == 5000
        assert [name.split("_")[0] for name in threads[2:]] == [loop, "verditer-reader"] * 2
        del threads[:]
        assert await engine.read(SCOPE, unfiltered, long=True) == 5000
        assert [name.split("_")[0] for name in threads] == ["verditer-reader"]


async def test_records_too_large_for_the_prefilter_pass_and_no_others_for_their_sake(embedded: SqliteStore) -> None:
    sizes = {"small": 100, "large": 70_000, "largest": 3_000_000}

    def store(tx: Transaction) -> None:
        for name, size in sizes.items():
            tx.put(Note(space=1, name=name, data=b'{"Other":"%b"}' % (b"z" * size)))

    def prefiltered(tx: Transaction) -> list[str]:
        return [note.name for note in tx.scan(Note, span_of(1), conditions=WANTED)]

    async with opened(embedded) as engine:
        await engine.write([SCOPE], store)
        assert await engine.read(SCOPE, prefiltered) == ["large", "largest"]
        await engine.write([SCOPE], lambda tx: tx.put(Note(space=1, name="large", data=UNWANTED)))
        assert await engine.read(SCOPE, prefiltered) == ["largest"]
        await engine.write([SCOPE], lambda tx: tx.delete(Note, 1, "largest"))
        assert await engine.read(SCOPE, prefiltered) == []


async def test_all_scans_of_one_read_share_its_time(embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    stopped_at: list[float] = []

    def prefiltered(tx: Transaction) -> int:
        nonlocal now
        found = 0
        for space in range(1, 4):
            stopped_at.append(now)
            found += sum(1 for _ in tx.scan(Note, span_of(space), conditions=WANTED))
            now += MAX_SECONDS * 0.6
        return found

    async with opened(embedded) as engine:
        for space in range(1, 4):
            await engine.write([SCOPE], putting(2000, space))
        monkeypatch.setattr(snapshot_reader, "monotonic", lambda: now)
        assert await engine.read(SCOPE, prefiltered) < 6000
        assert stopped_at[:3] == [0, MAX_SECONDS * 0.6, MAX_SECONDS * 1.2]  # it was interrupted in the third
        assert len(stopped_at) == 6


async def test_an_interrupted_read_interrupts_no_other_statement(embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite checks the time every few hundred steps, counted over all statements of a connection."""

    def prefiltered(tx: Transaction) -> int:
        return sum(1 for _ in tx.scan(Note, span_of(1), conditions=WANTED))

    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, problem: failed.append(problem))
    async with opened(embedded) as engine:
        await engine.write([SCOPE], putting(1))
        for _ in range(2000):
            monkeypatch.setattr(snapshot_reader, "MAX_SECONDS", -1.0)
            await engine.read(SCOPE, prefiltered)
            monkeypatch.setattr(snapshot_reader, "MAX_SECONDS", MAX_SECONDS)
            await asyncio.sleep(0)  # the snapshot ends
            assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "000000")) is not None
            await asyncio.sleep(0)
    assert not failed


async def test_a_refused_body_is_let_go_of_at_once(embedded: SqliteStore) -> None:
    """And with it what it was to store. Nothing waits for the collector of circles, which seldom comes."""

    class Body:
        def __call__(self, tx: Transaction) -> None:
            raise StorageError(Code.EntityAlreadyExists)

    async with opened(embedded) as engine:
        gc.disable()
        try:
            body = Body()
            known = weakref.ref(body)
            with contextlib.suppress(StorageError):
                await engine.write([SCOPE], body)
            del body
            await asyncio.sleep(0)
            assert known() is None
        finally:
            gc.enable()
