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
from verditer.partition import sqlite, sqlite_commit
from verditer.partition.engine import Engine, Mark, TooLong, Transaction
from verditer.partition.sqlite_commit import LOOP_SECONDS
from verditer.partition.sqlite_rows import BRIEF

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
    return await engine.scan(SCOPE, lambda tx: sum(1 for _ in tx.scan(Note, span_of(space))))


async def test_a_short_body_runs_on_the_loop_and_a_long_one_beside_it(embedded: SqliteStore) -> None:
    async with opened(embedded) as engine:
        assert await engine.write(SCOPE, putting(BRIEF)) == threading.current_thread().name
        assert await engine.write(SCOPE, putting(BRIEF + 1)) == "verditer-writer"
        assert await count_of(engine) == BRIEF + 1


async def test_a_long_look_before_the_first_change_is_a_long_body_too(embedded: SqliteStore) -> None:
    def look(tx: Transaction) -> str:
        found = len(list(tx.scan(Note, span_of(1))))
        return f"{found} in {threading.current_thread().name}"

    async with opened(embedded) as engine:
        await engine.write(SCOPE, putting(BRIEF + 1))
        assert await engine.write(SCOPE, look) == f"{BRIEF + 1} in verditer-writer"


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
            putting(BRIEF * 2),
            putting(2, space=4),
        ]
        outcomes = await asyncio.gather(*[engine.write(SCOPE, body) for body in bodies], return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [str, LookupError, KeyError, str, str]
        assert [await count_of(engine, space) for space in (1, 2, 3, 4)] == [BRIEF * 2, 0, 1, 2]


async def test_a_body_that_ends_strangely_holds_nobody_up(embedded: SqliteStore) -> None:
    def run_out(tx: Transaction) -> None:
        next(iter(()))

    async with opened(embedded) as engine:
        outcomes = await asyncio.gather(engine.write(SCOPE, run_out), engine.write(SCOPE, putting(1)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [RuntimeError, str]
        assert await engine.write(SCOPE, putting(2))


async def test_the_loop_goes_on_while_many_slow_bodies_wait(embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    run: list[int] = []
    seen: set[int] = set()

    def slow(number: int) -> Callable[[Transaction], None]:
        def body(tx: Transaction) -> None:
            nonlocal now
            now += LOOP_SECONDS * 0.6  # a batch is over its time with the second
            run.append(number)
            tx.put(Note(space=1, name=f"{number:06}"))

        return body

    async def look_around() -> None:
        while True:
            seen.add(len(run))
            await asyncio.sleep(0)

    async with opened(embedded) as engine:
        monkeypatch.setattr(sqlite_commit, "perf_counter", lambda: now)
        looking = asyncio.ensure_future(look_around())
        await asyncio.gather(*[engine.write(SCOPE, slow(number)) for number in range(20)])
        looking.cancel()
        assert await count_of(engine) == 20
    assert run == list(range(20))
    assert seen == set(range(0, 21, 2))


@pytest.mark.parametrize(("gathered", "commits"), [(sqlite_commit.GATHERED, 1), (4, 3)])
async def test_bodies_that_come_turn_after_turn_share_a_commit_up_to_a_bound(
    embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch, gathered: int, commits: int
) -> None:
    monkeypatch.setattr(sqlite_commit, "GATHERED", gathered)
    monkeypatch.setattr(sqlite_commit, "perf_counter", lambda: 0.0)

    def putting_one(number: int) -> Callable[[Transaction], None]:
        return lambda tx: tx.put(Note(space=1, name=f"{number}"))

    async with opened(embedded) as engine:
        shared = engine._shared  # type: ignore[attr-defined]
        before = shared.commits
        writing = []
        for number in range(10):
            writing.append(asyncio.ensure_future(engine.write(SCOPE, putting_one(number))))
            await asyncio.sleep(0)
        await asyncio.gather(*writing)
        assert await count_of(engine) == 10
        assert (shared.commits - before) // 2 == commits


async def test_of_those_who_share_a_commit_only_the_one_the_disk_has_no_room_for_is_refused(embedded: SqliteStore) -> None:
    def large(tx: Transaction) -> None:
        tx.put(Note(space=1, name="large", data=bytes(1 << 22)))

    async with opened(embedded) as engine:
        connection = engine._writer._connection  # type: ignore[attr-defined]
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 20}")
        bodies: list[Callable[[Transaction], object]] = [putting(1, space=3), large, putting(1, space=4)]
        outcomes = await asyncio.gather(*[engine.write(SCOPE, body) for body in bodies], return_exceptions=True)
        refused = outcomes[1]
        assert [type(outcome) for outcome in outcomes] == [str, StorageError, str]
        assert isinstance(refused, StorageError)
        assert refused.code is Code.InsufficientStorage
        assert [await count_of(engine, space) for space in (1, 3, 4)] == [0, 1, 1]


async def test_a_read_of_the_same_turn_of_the_loop_sees_what_was_acknowledged_before_it(
    embedded: SqliteStore,
) -> None:  # contract G1
    async with opened(embedded) as engine:
        for value in range(50):
            await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "a"))  # a snapshot that later reads of this turn would share
            await engine.write(SCOPE, setting(value))
            note = await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "a"))
            assert note is not None
            assert note.value == value


async def test_a_snapshot_in_use_is_given_up_when_another_worker_commits(workers: WorkersStore) -> None:  # contract G1, G2
    async with opened(workers) as one, opened(workers) as other:
        for value in range(50):
            write = asyncio.ensure_future(other.write(SCOPE, setting(value)))
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


async def test_a_sieve_at_work_for_too_long_is_stopped_on_the_loop_and_not_beside_it(
    embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sifted(tx: Transaction) -> int:
        return sum(1 for _ in tx.scan(Note, span_of(1), sieve=[Mark(b'"Wanted":7')]))

    async with opened(embedded) as engine:
        await engine.write(SCOPE, putting(5000))
        monkeypatch.setattr(sqlite, "monotonic", lambda: 0.0)
        assert await engine.read(SCOPE, sifted) == 0
        monkeypatch.setattr(sqlite, "SIFTING_SECONDS", -1.0)
        with pytest.raises(TooLong):
            await engine.read(SCOPE, sifted)
        assert await engine.scan(SCOPE, sifted) < 5000
        assert await engine.read(SCOPE, lambda tx: sum(1 for _ in tx.scan(Note, span_of(1)))) == 5000  # which has no sieve


async def test_records_that_a_sieve_cannot_look_into_pass_and_no_others_for_their_sake(embedded: SqliteStore) -> None:
    sizes = {"small": 100, "large": 70_000, "largest": 3_000_000}

    def store(tx: Transaction) -> None:
        for name, size in sizes.items():
            tx.put(Note(space=1, name=name, data=b'{"Other":"%b"}' % (b"z" * size)))

    def sifted(tx: Transaction) -> list[str]:
        return [note.name for note in tx.scan(Note, span_of(1), sieve=[Mark(b'"Wanted":7')])]

    async with opened(embedded) as engine:
        await engine.write(SCOPE, store)
        assert await engine.read(SCOPE, sifted) == ["large", "largest"]
        await engine.write(SCOPE, lambda tx: tx.put(Note(space=1, name="large")))
        assert await engine.read(SCOPE, sifted) == ["largest"]
        await engine.write(SCOPE, lambda tx: tx.delete(Note, 1, "largest"))
        assert await engine.read(SCOPE, sifted) == []


async def test_sieves_of_one_body_have_their_time_together(embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def sifted(tx: Transaction) -> int:
        nonlocal now
        found = 0
        for space in range(1, 4):
            found += sum(1 for _ in tx.scan(Note, span_of(space), sieve=[Mark(b'"Wanted":7')]))
            now += sqlite.SIFTING_SECONDS * 0.6
        return found

    async with opened(embedded) as engine:
        for space in range(1, 4):
            await engine.write(SCOPE, putting(2000, space))
        monkeypatch.setattr(sqlite, "monotonic", lambda: now)
        with pytest.raises(TooLong):
            await engine.read(SCOPE, sifted)
        assert now == sqlite.SIFTING_SECONDS * 1.2  # it was stopped in the third
        assert await engine.scan(SCOPE, sifted) < 6000


async def test_a_sieve_stops_no_other_statement(embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite looks at the clock every few thousand steps of a statement, counted over all the times it is used."""

    def sifted(tx: Transaction) -> int:
        return sum(1 for _ in tx.scan(Note, span_of(1), sieve=[Mark(b'"Wanted":7')]))

    failed: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, problem: failed.append(problem))
    monkeypatch.setattr(sqlite, "SIFTING_SECONDS", -1.0)
    async with opened(embedded) as engine:
        await engine.write(SCOPE, putting(1))
        for _ in range(2000):
            with contextlib.suppress(TooLong):
                await engine.read(SCOPE, sifted)
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
                await engine.write(SCOPE, body)
            del body
            await asyncio.sleep(0)
            assert known() is None
        finally:
            gc.enable()
