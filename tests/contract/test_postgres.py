"""What only the PostgreSQL engine can get wrong: connections, locks, several processes. Runs on a real server."""

import asyncio
import random
import threading
from functools import partial
from typing import Any

import pytest

from tests.contract.stores import RECORDS, Job, Note, PostgresStore, opened
from verditer.core.clock import NODES
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.records.record import span_of
from verditer.partition.engine import Engine, EngineUnavailable, Transaction
from verditer.partition.postgres import PostgresEngine

SCOPE = ("account", "blob", "container", "blob")
CONTAINER = SCOPE[:3]
WAIT = 20  # seconds until a test that hangs says so


def increment(tx: Transaction) -> int:
    note = tx.get(Note, 1, "counter")
    value = note.value + 1 if note else 1
    tx.put(Note(space=1, name="counter", value=value))
    return value


async def counter(engine: Engine) -> int:
    note = await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "counter"))
    return note.value if note else 0


# Locks


async def test_writes_beside_each_other_run_side_by_side(postgres: PostgresStore) -> None:
    meeting = threading.Barrier(2)

    def meet(tx: Transaction) -> None:
        tx.get(Note, 1, "n")
        meeting.wait(WAIT)

    async with opened(postgres) as engine:
        await asyncio.gather(engine.write((*CONTAINER, "left"), meet), engine.write((*CONTAINER, "right"), meet))


@pytest.mark.parametrize(
    ("held", "asked"),
    [(SCOPE, SCOPE), (SCOPE, CONTAINER), (CONTAINER, SCOPE), (SCOPE, ()), ((), SCOPE), (SCOPE[:2], SCOPE), (SCOPE, SCOPE[:1])],
)
async def test_a_write_excludes_writes_on_its_scope_and_above_and_below(
    postgres: PostgresStore, held: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    inside, leave = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> None:
        tx.get(Note, 1, "n")
        inside.set()
        leave.wait(WAIT)

    impatient = PostgresEngine(postgres.conninfo, records=RECORDS, lock_seconds=0.05)
    async with opened(postgres) as engine:
        await impatient.open()
        holding = asyncio.ensure_future(engine.write(held, hold))
        await asyncio.to_thread(inside.wait, WAIT)
        with pytest.raises(EngineUnavailable, match="lock timeout"):
            await impatient.write(asked, increment)
        leave.set()
        await holding
        assert await impatient.write(asked, increment) == 1
        await impatient.close()


async def test_reads_and_other_scopes_go_on_while_every_writer_waits_for_one_scope(postgres: PostgresStore) -> None:
    leave = threading.Event()

    def hold(tx: Transaction) -> int:
        tx.get(Note, 1, "n")
        leave.wait(WAIT)
        return increment(tx)

    async with opened(postgres) as engine:
        waiting = [asyncio.ensure_future(engine.write(SCOPE, hold)) for _ in range(20)]
        assert await asyncio.wait_for(counter(engine), WAIT / 2) == 0  # contract G3
        leave.set()
        assert sorted(await asyncio.gather(*waiting)) == list(range(1, 21))


async def test_a_record_being_claimed_is_passed_over(postgres: PostgresStore) -> None:
    claimed, leave = threading.Event(), threading.Event()

    def hold(tx: Transaction) -> list[int]:
        jobs = tx.claim(Job, span_of("q"), 2)
        claimed.set()
        leave.wait(WAIT)
        return [job.id for job in jobs]

    def stock(tx: Transaction) -> None:
        for number in range(4):
            tx.put(Job(queue="q", id=number, due=number))

    async with opened(postgres) as one, opened(postgres) as other:
        await one.write(CONTAINER, stock)
        holding = asyncio.ensure_future(one.write((*CONTAINER, "one"), hold))
        await asyncio.to_thread(claimed.wait, WAIT)
        second = await other.write((*CONTAINER, "other"), lambda tx: [job.id for job in tx.claim(Job, span_of("q"), 4)])
        leave.set()
        assert (await holding, second) == ([0, 1], [2, 3])


# Connections that break


async def test_idle_connections_that_broke_are_replaced_unnoticed(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        for value in range(1, 4):
            assert await engine.write(SCOPE, increment) == value
            assert await counter(engine) == value
            postgres.break_connections()


async def test_a_body_whose_connection_breaks_runs_again(postgres: PostgresStore) -> None:
    runs = []

    def body(tx: Transaction) -> int:
        increment(tx)
        runs.append(tx.now)
        if len(runs) == 1:
            postgres.break_connections()
        return increment(tx)

    async with opened(postgres) as engine:
        assert await engine.write(SCOPE, body) == 2
        assert len(runs) == 2
        assert await counter(engine) == 2


async def test_a_commit_that_cannot_be_confirmed_is_not_acknowledged(postgres: PostgresStore) -> None:
    def body(tx: Transaction) -> None:
        increment(tx)
        postgres.break_connections()

    async with opened(postgres) as engine:
        with pytest.raises(EngineUnavailable, match="unknown"):
            await engine.write(SCOPE, body)
        assert await counter(engine) == 0
        assert await engine.write(SCOPE, increment) == 1


async def test_acknowledged_writes_survive_a_crash_of_the_server(postgres: PostgresStore) -> None:  # contract G6
    async def write_until_refused(engine: Engine, name: str) -> tuple[int, int]:
        """The last value acknowledged, and the one that may or may not be there."""
        value = 0

        def body(tx: Transaction) -> None:
            tx.put(Note(space=1, name=name, value=value + 1))

        while True:
            try:
                await engine.write((*CONTAINER, name), body)
            except EngineUnavailable:
                return value, value + 1
            value += 1

    async with opened(postgres) as engine:
        writing = [asyncio.ensure_future(write_until_refused(engine, str(n))) for n in range(4)]
        async with asyncio.timeout(WAIT):
            while await engine.read(SCOPE, lambda tx: sum(note.value for note in tx.scan(Note, span_of(1)))) < 100:
                pass
        await asyncio.to_thread(postgres.server.stop)
        try:
            bounds = await asyncio.gather(*writing)
            with pytest.raises(EngineUnavailable):
                await engine.read(SCOPE, lambda tx: tx.now)
            with pytest.raises(EngineUnavailable):
                await postgres.build().open()
        finally:
            await asyncio.to_thread(postgres.server.start)
        found = await engine.read(SCOPE, lambda tx: [note.value for note in tx.scan(Note, span_of(1))])
        assert [value for value, bound in zip(found, bounds, strict=True) if value not in bound] == []
        assert await engine.write(SCOPE, increment) == 1


async def test_commits_are_synced_whatever_the_database_says(postgres: PostgresStore) -> None:  # contract G6
    name = postgres.conninfo.rpartition("=")[2]
    postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    engine = PostgresEngine(postgres.conninfo)
    with engine.connect() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)


async def test_an_engine_closes_while_its_server_is_down(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        await engine.write(SCOPE, lambda tx: tx.put(Note(space=1, name="n", value=tx.tick())))
        await asyncio.to_thread(postgres.server.stop)
    await asyncio.to_thread(postgres.server.start)
    async with opened(postgres) as engine:
        assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "n")) is not None


# Several processes


async def test_processes_that_start_together_prepare_the_store_once(postgres: PostgresStore) -> None:
    engines = [postgres.build() for _ in range(6)]
    await asyncio.gather(*[engine.open() for engine in engines])
    values = await asyncio.gather(*[engine.write(SCOPE, increment) for engine in engines])
    assert sorted(values) == [1, 2, 3, 4, 5, 6]
    await asyncio.gather(*[engine.close() for engine in engines])


async def test_a_process_that_lost_its_node_number_takes_another(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        before = await engine.write(SCOPE, lambda tx: tx.tick())
        postgres.execute("UPDATE node SET reserved = reserved + 1 WHERE number = %s", before % NODES)
        await engine.move_clock(seconds(60))  # behind what it had reserved
        after = await engine.write(SCOPE, lambda tx: tx.tick())
        assert after > before
        assert after % NODES != before % NODES


async def test_ticks_go_on_behind_every_reservation_when_the_database_forgot_an_hour(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        ahead = await engine.write(SCOPE, lambda tx: tx.now) + seconds(3600)
    postgres.execute("UPDATE node SET reserved = %s", ahead)
    async with opened(postgres) as one, opened(postgres) as other:
        ticks = [await engine.write(SCOPE, lambda tx: tx.tick()) for engine in (one, other, one, other)]
    assert min(ticks) > ahead
    assert len(set(ticks)) == 4


# Limits


async def test_a_key_too_long_for_an_index_is_refused_as_what_it_is(postgres: PostgresStore) -> None:
    """Not as a store that is unavailable, which clients would ask again."""
    name = "".join(map(chr, random.Random(1).sample(range(0x4E00, 0x9FFF), 1000)))  # three bytes each, hard to compress
    async with opened(postgres) as engine:
        await engine.write(SCOPE, lambda tx: tx.put(Note(space=1, name=name[:800])))
        with pytest.raises(StorageError) as refused:
            await engine.write(SCOPE, lambda tx: tx.put(Note(space=1, name=name)))
        assert (refused.value.code, "too long" in refused.value.message) == (Code.OutOfRangeInput, True)
        await engine.write(SCOPE, increment)


async def test_records_are_fetched_few_at_first_and_few_where_they_are_large(postgres: PostgresStore) -> None:
    names = [f"{number:03}" for number in range(600)]

    def fill(tx: Transaction) -> None:
        for number, name in enumerate(names):
            tx.put(Note(space=1, name=name, data=bytes(100_000 if 20 <= number < 40 else 10)))

    async with opened(postgres) as engine:
        await engine.write(SCOPE, fill)
        for limit, reverse, pages in (
            (None, False, [16, 32, 16, 32, 64, 128, 200, 200]),
            (None, True, [16, 32, 64, 128, 200, 200]),
            (1, False, [1]),
            (17, False, [16, 1]),
            (60, True, [16, 32, 12]),
        ):
            found = await engine.read(SCOPE, partial(scanned, limit=limit, reverse=reverse))
            assert found == ((names[::-1] if reverse else names)[:limit], pages)


def scanned(tx: Any, limit: int | None, reverse: bool) -> tuple[list[str], list[int]]:
    """The names, and how many records were asked for at a time."""
    execute, pages = tx._execute, list[int]()

    def watched(query: bytes, params: tuple[Any, ...], **more: Any) -> Any:
        pages.append(params[-1])
        return execute(query, params, **more)

    tx._execute = watched
    return [note.name for note in tx.scan(Note, span_of(1), limit=limit, reverse=reverse)], pages
