"""What only the PostgreSQL engine can get wrong: connections, locks, several processes. Runs on a real server."""

import asyncio
import itertools
import random
import threading
from functools import partial
from typing import Any

import msgspec
import psycopg
import pytest

from tests.contract.stores import RECORDS, Job, Note, PostgresStore, opened
from verditer.core.clock import NODES, HybridClock
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.records.record import span_of
from verditer.partition.engine import Engine, EngineUnavailable, Order, Transaction
from verditer.partition.postgres.batches.loop_transaction import TicksUsedUp
from verditer.partition.postgres.database import Database
from verditer.partition.postgres.engine import PostgresEngine
from verditer.partition.postgres.pipeline import PipelineCall, PipelineConnection, open_pipeline
from verditer.partition.postgres.threads import Threads
from verditer.partition.postgres.ticks import RESERVE, TickIssuer

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
    async with opened(postgres) as engine:
        with postgres.held((*CONTAINER, "left")):
            async with asyncio.timeout(WAIT):
                assert await engine.write([(*CONTAINER, "right")], increment) == 1


@pytest.mark.parametrize(
    ("held", "asked"),
    [(SCOPE, SCOPE), (SCOPE, CONTAINER), (CONTAINER, SCOPE), (SCOPE, ()), ((), SCOPE), (SCOPE[:2], SCOPE), (SCOPE, SCOPE[:1])],
)
async def test_a_write_excludes_writes_on_its_scope_and_above_and_below(
    postgres: PostgresStore, held: tuple[str, ...], asked: tuple[str, ...]
) -> None:
    impatient = PostgresEngine(postgres.conninfo, records=RECORDS, lock_seconds=0.05, locks=postgres.locking.name)
    await impatient.open()
    with postgres.held(held), pytest.raises(EngineUnavailable, match="lock timeout"):
        await impatient.write([asked], increment)
    assert await impatient.write([asked], increment) == 1
    await impatient.close()


@pytest.mark.parametrize("count", [1, 20])
async def test_a_write_that_waits_for_another_process_goes_on_when_that_ends(postgres: PostgresStore, count: int) -> None:
    async with opened(postgres) as engine:
        with postgres.held(SCOPE):
            waiting = [asyncio.ensure_future(engine.write([SCOPE], increment)) for _ in range(count)]
            assert await asyncio.wait_for(counter(engine), WAIT / 2) == 0  # contract G3: reads go on
            assert await engine.write([(*CONTAINER, "other")], lambda tx: tx.now) > 0
            done, _ = await asyncio.wait(waiting, timeout=0.2)
            assert not done
        assert sorted(await asyncio.gather(*waiting)) == list(range(1, count + 1))


async def test_writes_of_two_processes_on_one_scope_lose_nothing(postgres: PostgresStore) -> None:
    async def increments(engine: Engine) -> list[int]:
        return [await engine.write([SCOPE], increment) for _ in range(20)]

    async with opened(postgres) as one, opened(postgres) as other:
        found = await asyncio.gather(*[increments(engine) for _ in range(3) for engine in (one, other)])
        assert sorted(itertools.chain(*found)) == list(range(1, 121))


async def test_a_record_being_claimed_is_passed_over(postgres: PostgresStore) -> None:
    def stock(tx: Transaction) -> None:
        for number in range(4):
            tx.put(Job(queue="q", id=number, due=number))

    async with opened(postgres) as engine:
        await engine.write([CONTAINER], stock)
        with psycopg.connect(postgres.conninfo) as connection:
            connection.execute("SELECT 1 FROM test_job ORDER BY rank LIMIT 2 FOR UPDATE")
            found = await engine.write([(*CONTAINER, "other")], lambda tx: [job.id for job in tx.claim(Job, span_of("q"), 4)])
    assert found == [2, 3]


async def test_a_refused_write_is_answered_when_what_it_claimed_is_free_again(postgres: PostgresStore, monkeypatch: Any) -> None:
    run = PipelineConnection.run
    ending, may_end = asyncio.Event(), asyncio.Event()

    async def run_held(connection: PipelineConnection, calls: list[PipelineCall], *rest: Any) -> Any:
        if [call.statement for call in calls] == [b"COMMIT"]:
            ending.set()
            await may_end.wait()
        return await run(connection, calls, *rest)

    def refuse(tx: Transaction) -> None:
        assert len(tx.claim(Job, span_of("q"), 1)) == 1
        raise StorageError(Code.MessageNotFound)

    async with opened(postgres) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(Job(queue="q", id=1, due=10)))
        monkeypatch.setattr(PipelineConnection, "run", run_held)
        refused = asyncio.ensure_future(engine.write([(*CONTAINER, "left")], refuse))
        async with asyncio.timeout(WAIT):
            await ending.wait()
        assert not refused.done()
        may_end.set()
        with pytest.raises(StorageError):
            await refused
        found = await engine.write([(*CONTAINER, "right")], lambda tx: tx.claim(Job, span_of("q"), 1))
    assert [job.id for job in found] == [1]


async def test_bodies_of_one_batch_claim_different_records(postgres: PostgresStore) -> None:
    def stock(tx: Transaction) -> None:
        for number in range(10):
            tx.put(Job(queue="q", id=number, due=number))

    def take(tx: Transaction) -> list[int]:
        return [job.id for job in tx.claim(Job, span_of("q"), 3)]

    async with opened(postgres) as engine:
        await engine.write([CONTAINER], stock)
        taken = await asyncio.gather(*[engine.write([(*CONTAINER, str(n))], take) for n in range(4)])
    assert [len(ids) for ids in taken] == [3, 3, 3, 1]
    assert sorted(itertools.chain(*taken)) == list(range(10))


# Connections that break


async def test_a_record_that_cannot_be_encoded_fails_its_own_write_only(postgres: PostgresStore) -> None:
    def put(tx: Transaction, value: int) -> None:
        tx.put(Note(space=1, name=str(value), value=value))

    async with opened(postgres) as engine:
        writes = [engine.write([(*CONTAINER, str(value))], partial(put, value=value)) for value in (1, 1 << 70, 2)]
        first, failed, last = await asyncio.gather(*writes, return_exceptions=True)
        assert isinstance(failed, OverflowError)
        assert (first, last) == (None, None)
        stored = await engine.read(SCOPE, lambda tx: [note.value for note in tx.scan(Note, span_of(1))])
        assert stored == [1, 2]


async def test_a_record_that_cannot_be_decoded_fails_its_own_read_only(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        for name in ("damaged", "whole"):
            await engine.write([(*CONTAINER, name)], lambda tx, name=name: tx.put(Note(space=1, name=name)))  # type: ignore[misc]
        postgres.execute("UPDATE test_note SET body = '' WHERE key = %s", Note(space=1, name="damaged").key())
        names = ("whole", "damaged", "whole")
        reads = [engine.read(SCOPE, lambda tx, name=name: tx.get(Note, 1, name)) for name in names]  # type: ignore[misc]
        first, failed, last = await asyncio.gather(*reads, return_exceptions=True)
        assert isinstance(failed, msgspec.DecodeError)
        assert first == last == Note(space=1, name="whole")


async def test_idle_connections_that_broke_are_replaced_unnoticed(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        for value in range(1, 4):
            assert await engine.write([SCOPE], increment) == value
            assert await counter(engine) == value
            postgres.break_connections()


async def test_a_body_whose_connection_breaks_runs_again(postgres: PostgresStore) -> None:
    runs = []

    def body(tx: Transaction) -> int:
        runs.append(tx.now)
        if len(runs) == 2:  # the first run finds out what the body reads, before the transaction begins
            postgres.break_connections()
        return increment(tx)

    async with opened(postgres) as engine:
        assert await engine.write([SCOPE], body) == 1
        assert len(runs) == 3
        assert await counter(engine) == 1


async def test_a_commit_that_cannot_be_confirmed_is_not_acknowledged(postgres: PostgresStore, monkeypatch: Any) -> None:
    async with opened(postgres) as engine:
        assert await engine.write([SCOPE], increment) == 1
        monkeypatch.setattr(PipelineConnection, "check", lambda connection: postgres.break_connections())
        with pytest.raises(EngineUnavailable, match="unknown"):
            await engine.write([SCOPE], increment)
        monkeypatch.undo()
        assert await counter(engine) == 1
        assert await engine.write([SCOPE], increment) == 2


async def test_acknowledged_writes_survive_a_crash_of_the_server(postgres: PostgresStore) -> None:  # contract G6
    async def write_until_refused(engine: Engine, name: str) -> tuple[int, int]:
        """The last value acknowledged, and the one that may or may not be there."""
        value = 0

        def body(tx: Transaction) -> None:
            tx.put(Note(space=1, name=name, value=value + 1))

        while True:
            try:
                await engine.write([(*CONTAINER, name)], body)
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
        assert await engine.write([SCOPE], increment) == 1


async def test_commits_are_synced_whatever_the_database_says(postgres: PostgresStore) -> None:  # contract G6
    name = postgres.conninfo.rpartition("=")[2]
    postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    database = Database(postgres.conninfo, lock_seconds=1)
    threads = Threads(database, 1, 1, lock_seconds=1, deadline_seconds=WAIT)
    with threads.extra_connection() as connection:
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",)
    pipeline = await open_pipeline(database, WAIT)
    (result,) = await pipeline.run([PipelineCall(b"SHOW synchronous_commit")], WAIT)
    assert result.get_value(0, 0) == b"on"
    (result,) = await pipeline.run([PipelineCall(b"SHOW idle_in_transaction_session_timeout")], WAIT)
    assert result.get_value(0, 0) == b"15s"  # a process that was stopped holds its locks for so long
    pipeline.close()


async def test_an_engine_closes_while_its_server_is_down(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(Note(space=1, name="n", value=tx.tick())))
        await asyncio.to_thread(postgres.server.stop)
    await asyncio.to_thread(postgres.server.start)
    async with opened(postgres) as engine:
        assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "n")) is not None


# Several processes


async def test_processes_that_start_together_prepare_the_store_once(postgres: PostgresStore) -> None:
    engines = [postgres.build() for _ in range(6)]
    await asyncio.gather(*[engine.open() for engine in engines])
    values = await asyncio.gather(*[engine.write([SCOPE], increment) for engine in engines])
    assert sorted(values) == [1, 2, 3, 4, 5, 6]
    await asyncio.gather(*[engine.close() for engine in engines])


async def test_ticks_are_reserved_while_every_thread_is_busy(postgres: PostgresStore) -> None:
    started, may_end = threading.Event(), threading.Event()

    def long(tx: Transaction) -> None:
        tx.put(*[Note(space=2, name=str(number)) for number in range(300)])  # too many for the event loop
        started.set()
        may_end.wait(WAIT)

    engine = PostgresEngine(postgres.conninfo, records=RECORDS, threads=1)
    await engine.open()
    try:
        writing = asyncio.ensure_future(engine.write([SCOPE], long))
        await asyncio.to_thread(started.wait, WAIT)
        async with asyncio.timeout(WAIT / 2):
            assert await engine.write([(*CONTAINER, "other")], lambda tx: tx.tick())
        may_end.set()
        await writing
    finally:
        may_end.set()
        await engine.close()


async def test_a_process_that_lost_its_node_number_takes_another(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        before = await engine.write([SCOPE], lambda tx: tx.tick())
        postgres.execute("UPDATE node SET reserved = reserved + 1 WHERE number = %s", before % NODES)
        await engine.move_clock(seconds(60))  # behind what it had reserved
        after = await engine.write([SCOPE], lambda tx: tx.tick())
        assert after > before
        assert after % NODES != before % NODES


def test_a_number_that_is_replaced_meanwhile_issues_no_tick_behind_its_reservation(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:  # contract G4
    """A thread takes another number while the event loop is between issuing a tick and looking whether it was reserved."""
    asyncio.run(_prepared(postgres))
    threads = Threads(Database(postgres.conninfo, lock_seconds=1), 1, 1, lock_seconds=1, deadline_seconds=WAIT)
    issuer = TickIssuer(threads.extra_connection)
    lost = issuer.tick(seconds(1))
    postgres.execute("UPDATE node SET reserved = reserved + 1 WHERE number = %s", lost % NODES)
    issue = HybridClock.tick

    def issue_and_be_interrupted(clock: HybridClock, after: int = 0) -> int:
        tick = issue(clock, after)
        monkeypatch.undo()
        issuer.reserve(tick)
        return tick

    monkeypatch.setattr(HybridClock, "tick", issue_and_be_interrupted)
    with pytest.raises(TicksUsedUp):
        issuer.issued_tick(lost + RESERVE)
    assert issuer.issued_tick(lost + RESERVE) % NODES != lost % NODES


async def _prepared(postgres: PostgresStore) -> None:
    async with opened(postgres):
        pass


async def test_ticks_go_on_behind_every_reservation_when_the_database_forgot_an_hour(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        ahead = await engine.write([SCOPE], lambda tx: tx.now) + seconds(3600)
    postgres.execute("UPDATE node SET reserved = %s", ahead)
    async with opened(postgres) as one, opened(postgres) as other:
        ticks = [await engine.write([SCOPE], lambda tx: tx.tick()) for engine in (one, other, one, other)]
    assert min(ticks) > ahead
    assert len(set(ticks)) == 4


async def test_time_does_not_run_backwards_when_the_clock_of_the_database_does(postgres: PostgresStore) -> None:
    """As after a failover to a machine whose clock is behind."""
    async with opened(postgres) as engine:
        await engine.move_clock(seconds(3600))
        before = await engine.read(SCOPE, lambda tx: tx.now)
        postgres.execute("UPDATE store SET value = 0 WHERE name = 'clock_offset'")
        assert await engine.read(SCOPE, lambda tx: tx.now) >= before
        assert await engine.write([SCOPE], lambda tx: tx.now) >= before
        assert engine.now() >= before
        await engine.write([SCOPE], lambda tx: tx.tick())
    async with opened(postgres) as another:
        assert await another.read(SCOPE, lambda tx: tx.now) >= before - RESERVE


# Limits


async def test_a_key_too_long_for_an_index_is_refused_as_what_it_is(postgres: PostgresStore) -> None:
    """Not as a store that is unavailable, which clients would ask again."""
    name = "".join(map(chr, random.Random(1).sample(range(0x4E00, 0x9FFF), 1000)))  # three bytes each, hard to compress
    async with opened(postgres) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(Note(space=1, name=name[:800])))
        with pytest.raises(StorageError) as refused:
            await engine.write([SCOPE], lambda tx: tx.put(Note(space=1, name=name)))
        assert (refused.value.code, "too long" in refused.value.message) == (Code.OutOfRangeInput, True)
        await engine.write([SCOPE], increment)


async def test_records_are_fetched_few_at_first_and_few_where_they_are_large(postgres: PostgresStore) -> None:
    names = [f"{number:03}" for number in range(600)]

    def fill(tx: Transaction) -> None:
        for number, name in enumerate(names):
            tx.put(Note(space=1, name=name, data=bytes(100_000 if 20 <= number < 40 else 10)))

    async with opened(postgres) as engine:
        await engine.write([SCOPE], fill)
        for limit, reverse, pages in (
            (None, False, [16, 32, 16, 32, 64, 128, 200, 200]),
            (None, True, [16, 32, 64, 128, 200, 200]),
            (1, False, [1]),
            (17, False, [16, 1]),
            (60, True, [16, 32, 12]),
        ):
            body = partial(scanned, limit=limit, order=Order.KEY_DESCENDING if reverse else Order.KEY)
            found = await engine.read(SCOPE, body, long=True)
            assert found == ((names[::-1] if reverse else names)[:limit], pages)


def scanned(tx: Any, limit: int | None, order: Order) -> tuple[list[str], list[int]]:
    """The names, and how many records were asked for at a time."""
    execute, pages = tx._execute, list[int]()

    def watched(query: bytes, params: tuple[Any, ...], **more: Any) -> Any:
        pages.append(params[-1])
        return execute(query, params, **more)

    tx._execute = watched
    names = [note.name for note in tx.scan(Note, span_of(1), limit=limit, order=order)]
    tx._execute = execute
    return names, pages
