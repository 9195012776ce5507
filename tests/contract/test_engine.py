"""The engine contract, on every engine: what `partition/engine.py` promises."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

import pytest

from tests.contract.stores import RECORDS, Job, Note, SqliteStore, Store, opened
from verditer.core.dates import seconds
from verditer.core.records.record import Span, key_of, span_of, span_of_prefix
from verditer.partition import migrations, schema
from verditer.partition.engine import Engine, EngineUnavailable, MemberBetween, MemberEquals, Order, Transaction

SCOPE = ("account", "blob", "container", "blob")
HOUR = seconds(3600)


async def engines_on(store: Store, stack: AsyncExitStack) -> Sequence[Engine]:
    """Two engines where a store can be shared: whatever holds inside one process has to hold between two."""
    return [await stack.enter_async_context(opened(store)) for _ in range(2 if store.shared else 1)]


async def put(engine: Engine, *records: Note | Job) -> None:
    def body(tx: Transaction) -> None:
        for record in records:
            tx.put(record)

    await engine.write([SCOPE], body)


async def names(engine: Engine, span: Span, limit: int | None = None, reverse: bool = False) -> list[str]:
    def look(tx: Transaction) -> list[str]:
        return [note.name for note in tx.scan(Note, span, limit=limit, order=order(reverse))]

    return await engine.read(SCOPE, look, long=True)


def order(reverse: bool) -> Order:
    return Order.KEY_DESCENDING if reverse else Order.KEY


# Records and their order


async def test_a_record_that_was_put_is_found_and_a_deleted_one_is_not(store: Store) -> None:
    note = Note(space=1, name="here", value=7, data=bytes(range(256)) * 1000)
    async with opened(store) as engine:
        await put(engine, note)
        assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "here")) == note
        assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "elsewhere")) is None
        await engine.write([SCOPE], lambda tx: tx.delete(Note, 1, "here"))
        await engine.write([SCOPE], lambda tx: tx.delete(Note, 1, "never was"))
        assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "here")) is None


async def test_a_second_put_replaces_the_record_and_its_rank(store: Store) -> None:
    async with opened(store) as engine:
        await put(engine, Job(queue="q", id=1, due=10), Job(queue="q", id=2, due=20))
        await put(engine, Job(queue="q", id=1, due=30))
        claimed = await engine.write([SCOPE], lambda tx: tx.claim(Job, span_of("q"), 10))
    assert [(job.id, job.due) for job in claimed] == [(2, 20), (1, 30)]


async def test_a_transaction_sees_its_own_changes(store: Store) -> None:
    def body(tx: Transaction) -> tuple[Note | None, Note | None, list[str]]:
        tx.put(Note(space=1, name="new", value=2))
        tx.delete(Note, 1, "old")
        return tx.get(Note, 1, "new"), tx.get(Note, 1, "old"), [note.name for note in tx.scan(Note, span_of(1))]

    async with opened(store) as engine:
        await put(engine, Note(space=1, name="old"), Note(space=1, name="new", value=1))
        new, old, left = await engine.write([SCOPE], body)
    assert new is not None
    assert (new.value, old, left) == (2, None, ["new"])


async def test_names_are_listed_by_utf16_code_unit(store: Store) -> None:
    expected = ["", "\0", "a", "a\0", "a\0b", "a\x01", "a!", "ab", "b", "é", "\ud7ff", "\U0001f600", "\U0010ffff", "\ue000", "Ａ"]
    assert expected == sorted(expected, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    async with opened(store) as engine:
        await put(engine, *[Note(space=1, name=name) for name in reversed(expected)])
        assert await names(engine, span_of(1)) == expected
        assert await names(engine, span_of(1), reverse=True) == expected[::-1]


LETTERS = [Note(space=1, name=name) for name in ("a", "aa", "ab", "b", "c")]


@pytest.mark.parametrize(
    ("span", "limit", "reverse", "expected"),
    [
        (span_of(1), None, False, "a aa ab b c"),
        (span_of(1), None, True, "c b ab aa a"),
        (span_of(1), 2, False, "a aa"),
        (span_of(1), 2, True, "c b"),
        (span_of(1), 0, False, ""),
        (span_of(1), 99, False, "a aa ab b c"),
        (span_of(2), None, False, ""),
        (span_of_prefix(1, prefix="a"), None, False, "a aa ab"),
        (span_of_prefix(1, prefix="a"), 1, True, "ab"),
        (span_of(1).after(key_of(1, "aa")), None, False, "ab b c"),
        (span_of(1).starting(key_of(1, "aa")), 2, False, "aa ab"),
        (Span(key_of(1, "aa"), key_of(1, "b")), None, False, "aa ab"),
        (Span(key_of(1, "b"), key_of(1, "b")), None, False, ""),
    ],
)
async def test_a_scan_gives_its_span(store: Store, span: Span, limit: int | None, reverse: bool, expected: str) -> None:
    async with opened(store) as engine:
        await put(engine, *LETTERS, Note(space=0, name="before"), Note(space=3, name="behind"))
        assert await names(engine, span, limit, reverse) == expected.split()


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("limit", [None, 399, 400, 401])
async def test_a_long_scan_gives_every_record_once(store: Store, limit: int | None, reverse: bool) -> None:
    everything = [f"{number:04}" for number in range(600)]
    async with opened(store) as engine:
        await put(engine, *[Note(space=1, name=name) for name in everything])
        assert await names(engine, span_of(1), limit, reverse) == (everything[::-1] if reverse else everything)[:limit]


@pytest.mark.parametrize("reverse", [False, True])
async def test_a_scan_with_conditions_loses_no_record_that_meets_them(store: Store, reverse: bool) -> None:
    even = [f"{number}" for number in range(10, 20, 2)]
    documents = [b'{"n":%d,"s":"%b"}' % (number, b"odd" if number % 2 else b"even") for number in range(100)]
    notes = [Note(space=1, name=f"{number}", data=document) for number, document in enumerate(documents)]
    conditions = (MemberEquals("s", "even"), MemberBetween("n", 10, 19))

    def look(tx: Transaction) -> list[str]:
        return [note.name for note in tx.scan(Note, span_of(1), order=order(reverse), conditions=conditions)]

    async with opened(store) as engine:
        await put(engine, *notes)
        found = await engine.read(SCOPE, look, long=True)
        kept = [name for name in found if name in even]
        assert kept == sorted(even, reverse=reverse)
        assert len(found) == len(set(found))


def removing(span: Span, limit: int) -> Callable[[Transaction], tuple[int, Span | None]]:
    return lambda tx: tx.delete_span(Job, span, limit)


@pytest.mark.parametrize(("limit", "counts"), [(2, [2, 2, 2]), (4, [4, 2]), (6, [6]), (7, [6])])
async def test_a_span_is_removed_from_its_front_piece_by_piece(store: Store, limit: int, counts: list[int]) -> None:
    jobs = [Job(queue="q", id=number, due=100 - number) for number in range(6)]
    async with opened(store) as engine:
        await put(engine, *jobs, Job(queue="p", id=9, due=1), Job(queue="r", id=0, due=1))
        rest: Span | None = span_of("q")
        removed = []
        while rest is not None:
            count, rest = await engine.write([SCOPE], removing(rest, limit))
            removed.append(count)
            left = await engine.read(SCOPE, lambda tx: [job.id for job in tx.scan(Job, span_of("q"))], long=True)
            assert left == list(range(sum(removed), 6))
        assert removed == counts
        assert await engine.write([SCOPE], removing(span_of("q"), limit)) == (0, None)
        assert await engine.read(
            SCOPE, lambda tx: [len(list(tx.scan(Job, span_of(queue), limit=9, order=Order.RANK))) for queue in "pqr"]
        ) == [1, 0, 1]


# One step or none


async def test_a_body_that_raises_changes_nothing(store: Store) -> None:  # contract G7
    def body(tx: Transaction) -> None:
        tx.put(Note(space=1, name="kept", value=2))
        tx.put(Note(space=1, name="new"))
        tx.delete(Note, 1, "gone?")
        raise LookupError("refused")

    async with opened(store) as engine:
        await put(engine, Note(space=1, name="kept", value=1), Note(space=1, name="gone?"))
        neighbours = [put(engine, Note(space=2, name=str(n))) for n in range(5)]
        refused = engine.write([SCOPE], body)
        outcomes = await asyncio.gather(*neighbours[:2], refused, *neighbours[2:], return_exceptions=True)
        kept = await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "kept"))
        assert [repr(outcome) for outcome in outcomes if outcome is not None] == ["LookupError('refused')"]
        assert kept is not None
        assert kept.value == 1
        assert await names(engine, span_of(1)) == ["gone?", "kept"]
        assert await names(engine, span_of(2)) == ["0", "1", "2", "3", "4"]


async def test_a_write_is_seen_by_every_later_read(store: Store) -> None:  # contract G2
    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        for value in range(20):
            await put(engines[value % len(engines)], Note(space=1, name="n", value=value))
            for engine in engines:
                seen = await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "n"))
                assert seen is not None
                assert seen.value == value


async def test_a_read_sees_one_committed_state_while_writes_run(store: Store) -> None:  # contract G3, race E9
    def move(tx: Transaction) -> None:
        left, right = tx.get(Note, 1, "left"), tx.get(Note, 1, "right")
        assert left is not None
        assert right is not None
        tx.put(Note(space=1, name="left", value=left.value - 1))
        tx.put(Note(space=1, name="right", value=right.value + 1))

    def look(tx: Transaction) -> set[int]:
        left, right = tx.get(Note, 1, "left"), tx.get(Note, 1, "right")
        assert left is not None
        assert right is not None
        return {left.value + right.value, sum(note.value for note in tx.scan(Note, span_of(1)))}

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        await put(engines[0], Note(space=1, name="left", value=100), Note(space=1, name="right"))
        writes = [engines[n % len(engines)].write([SCOPE], move) for n in range(100)]
        reads = [engines[n % len(engines)].read(SCOPE, look) for n in range(100)]
        scans = [engines[n % len(engines)].read(SCOPE, look, long=True) for n in range(100)]
        seen = await asyncio.gather(*[one for three in zip(writes, reads, scans, strict=True) for one in three])
    assert [state for state in seen if state not in (None, {100})] == []


async def test_racing_writers_of_one_scope_lose_nothing(store: Store) -> None:  # contract G5
    def increment(tx: Transaction) -> int:
        note = tx.get(Note, 1, "counter")
        value = note.value + 1 if note else 1
        tx.put(Note(space=1, name="counter", value=value))
        return value

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        values = await asyncio.gather(*[engines[n % len(engines)].write([SCOPE], increment) for n in range(200)])
    assert sorted(values) == list(range(1, 201))


async def test_a_parent_is_never_deleted_under_a_child_that_is_being_written(store: Store) -> None:  # contract G5, race G4
    container = SCOPE[:3]

    async def write_child(engine: Engine, name: str) -> None:
        def body(tx: Transaction) -> None:
            if tx.get(Note, 0, "container") is not None:
                tx.put(Note(space=1, name=name))

        await engine.write([(*container, name)], body)

    def delete_parent(tx: Transaction) -> None:
        children = [note.name for note in tx.scan(Note, span_of(1))]
        for name in children:
            tx.delete(Note, 1, name)
        tx.delete(Note, 0, "container")

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        for _ in range(10):
            await put(engines[0], Note(space=0, name="container"))
            writes = [write_child(engines[n % len(engines)], str(n)) for n in range(20)]
            await asyncio.gather(*writes[:10], engines[-1].write([container], delete_parent), *writes[10:])
            assert await names(engines[0], span_of(1)) == []


# Ticks and time


async def test_no_tick_is_ever_issued_twice(store: Store) -> None:  # contract G4, race E7
    def five(tx: Transaction) -> list[int]:
        return [tx.tick(together) for _ in range(5)]

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        together = engines[0].now() + HOUR  # one moment for all: only the clocks keep their ticks apart
        rows = await asyncio.gather(*[engines[n % len(engines)].write([(*SCOPE, str(n))], five) for n in range(200)])
    ticks = [tick for row in rows for tick in row]
    assert len(set(ticks)) == 1000
    assert [row for row in rows if row != sorted(row)] == []


async def test_the_ticks_of_one_record_only_grow(store: Store) -> None:  # contract G4
    def touch(tx: Transaction) -> tuple[int, int, int]:
        note = tx.get(Note, 1, "n")
        before = note.value if note else 0
        tick = tx.tick(before)
        tx.put(Note(space=1, name="n", value=tick))
        return before, tick, tx.now

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        rows = await asyncio.gather(*[engines[n % len(engines)].write([SCOPE], touch) for n in range(100)])
    assert [row for row in rows if row[1] <= row[0]] == []
    assert [row for row in rows if not row[2] - HOUR < row[1] < row[2] + HOUR] == []


async def test_a_tick_is_later_than_what_it_has_to_follow(store: Store) -> None:
    async with opened(store) as engine:
        future = await engine.write([SCOPE], lambda tx: tx.now) + HOUR
        first = await engine.write([SCOPE], lambda tx: tx.tick(future))
        second = await engine.write([SCOPE], lambda tx: tx.tick())
        assert future < first < second
        assert await engine.read(SCOPE, lambda tx: tx.now) >= second  # what is written is never in the future
        assert engine.now() >= second


async def test_no_tick_returns_after_a_restart_with_a_clock_that_went_backwards(kept_store: Store) -> None:
    def many(tx: Transaction) -> list[int]:
        return [tx.tick() for _ in range(100)]

    issued: list[int] = []
    for _ in range(5):
        async with opened(kept_store) as engine:
            issued += await engine.write([SCOPE], many)
            await engine.move_clock(-1000)  # within the span of ticks just issued
    assert len(set(issued)) == 500


async def test_ticks_go_on_behind_the_last_one_although_the_machine_forgot_an_hour(timed_store: SqliteStore) -> None:
    async with opened(timed_store) as engine:
        before = await engine.write([SCOPE], lambda tx: tx.tick())
    timed_store.clock_error = -HOUR
    async with opened(timed_store) as engine:
        assert await engine.write([SCOPE], lambda tx: tx.tick()) > before


async def test_a_moved_clock_is_seen_by_every_engine_and_after_a_restart(store: Store) -> None:
    async def times(engine: Engine) -> list[int]:
        return [await engine.read(SCOPE, lambda tx: tx.now), await engine.write([SCOPE], lambda tx: tx.tick()), engine.now()]

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        before = max(await times(engines[0]))
        await engines[0].move_clock(HOUR)
        assert engines[0].now() >= before + HOUR
        for engine in engines:
            assert min(await times(engine)) >= before + HOUR
            assert max(await times(engine)) < before + 2 * HOUR
    if store.kept:
        async with opened(store) as engine:
            assert before + HOUR <= min(await times(engine)) < before + 2 * HOUR


# Claims


async def test_a_claim_takes_the_first_by_rank(store: Store) -> None:
    jobs = [Job(queue=queue, id=number, due=1000 - number) for queue in "pqr" for number in range(10)]
    async with opened(store) as engine:
        await put(engine, *jobs)
        claimed = await engine.write([SCOPE], lambda tx: tx.claim(Job, span_of("q"), 3))
        due = await engine.write([SCOPE], lambda tx: tx.claim(Job, Span(key_of("q"), key_of("q", 993)), 10))
    assert [(job.queue, job.id) for job in claimed] == [("q", 9), ("q", 8), ("q", 7)]
    assert [job.id for job in due] == [9, 8]


async def test_no_record_goes_to_two_claimers(store: Store) -> None:  # race Q5
    def take(tx: Transaction) -> list[int]:
        jobs = tx.claim(Job, span_of("q"), 3)
        for job in jobs:
            tx.delete(Job, job.queue, job.id)
        return [job.id for job in jobs]

    async def consume(engine: Engine, consumer: int) -> list[int]:
        taken: list[int] = []
        while some := await engine.write([(*SCOPE[:3], str(consumer))], take):
            taken += some
        return taken

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        await put(engines[0], *[Job(queue="q", id=number, due=number) for number in range(200)])
        rows = await asyncio.gather(*[consume(engines[n % len(engines)], n) for n in range(8)])
    assert sorted(number for row in rows for number in row) == list(range(200))


async def test_a_claim_that_fails_leaves_its_records_to_the_next(store: Store) -> None:
    def fail(tx: Transaction) -> None:
        for job in tx.claim(Job, span_of("q"), 1):
            tx.delete(Job, job.queue, job.id)
        raise LookupError

    async with opened(store) as engine:
        await put(engine, Job(queue="q", id=1, due=1))
        with pytest.raises(LookupError):
            await engine.write([SCOPE], fail)
        assert await engine.write([SCOPE], lambda tx: [job.id for job in tx.claim(Job, span_of("q"), 1)]) == [1]


async def test_looking_by_rank_gives_the_same_records_and_holds_none(store: Store) -> None:
    jobs = [Job(queue=queue, id=number, due=1000 - number) for queue in "pqr" for number in range(10)]
    async with opened(store) as engine:
        await put(engine, *jobs)
        seen = await engine.read(SCOPE, lambda tx: list(tx.scan(Job, span_of("q"), limit=3, order=Order.RANK)))

        def look_then_claim(tx: Transaction) -> tuple[list[Job], list[Job]]:
            return list(tx.scan(Job, span_of("q"), limit=3, order=Order.RANK)), tx.claim(Job, span_of("q"), 3)

        assert await engine.write([SCOPE], look_then_claim) == (seen, seen)
    assert [job.id for job in seen] == [9, 8, 7]


# Holding


async def test_of_holders_and_claimers_of_one_record_each_sees_what_the_one_before_left(store: Store) -> None:
    """Every writer has a scope of its own, so nothing but the record itself makes them take turns."""

    def get_for_update(tx: Transaction) -> int:
        job = tx.get(Job, "q", 1, for_update=True)
        assert job is not None
        tx.put(Job(queue="q", id=1, due=job.due + 1))
        return job.due

    def claim(tx: Transaction) -> int | None:
        for job in tx.claim(Job, span_of("q"), 1):
            tx.put(Job(queue="q", id=1, due=job.due + 1))
            return job.due
        return None

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        await put(engines[0], Job(queue="q", id=1, due=0))
        bodies = [(get_for_update, claim)[number % 2] for number in range(40)]
        writes = [engines[number % len(engines)].write([(*SCOPE[:3], str(number))], body) for number, body in enumerate(bodies)]
        seen = [due for due in await asyncio.gather(*writes) if due is not None]
        last = await engines[0].read(SCOPE, lambda tx: tx.get(Job, "q", 1))
    assert sorted(seen) == list(range(len(seen)))
    assert len(seen) >= 20  # the holders waited; a claimer may have passed by
    assert last is not None
    assert last.due == len(seen)


async def test_a_holder_that_waited_for_a_delete_finds_nothing(store: Store) -> None:
    def take(tx: Transaction) -> bool:
        job = tx.get(Job, "q", 1, for_update=True)
        tx.delete(Job, "q", 1)
        return job is not None

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        for _ in range(5):
            await put(engines[0], Job(queue="q", id=1, due=0))
            writes = [engines[number % len(engines)].write([(*SCOPE[:3], str(number))], take) for number in range(8)]
            assert sorted(await asyncio.gather(*writes)) == [False] * 7 + [True]


# Restarts


async def test_an_engine_finds_what_the_one_before_it_wrote(kept_store: Store) -> None:  # contract G6
    async with opened(kept_store) as engine:
        await put(engine, *LETTERS)
    async with opened(kept_store) as engine:
        assert await names(engine, span_of(1)) == [note.name for note in LETTERS]


async def test_a_new_record_class_gets_its_table_at_the_next_start(kept_store: Store) -> None:
    async with opened(kept_store, schema.RECORDS):
        pass
    async with opened(kept_store, RECORDS) as engine:
        await put(engine, Note(space=1, name="n"), Job(queue="q", id=1, due=1))
        assert await names(engine, span_of(1)) == ["n"]


async def test_a_store_with_a_newer_schema_is_refused(kept_store: Store) -> None:
    async with opened(kept_store):
        pass
    kept_store.set_schema_version(99)
    with pytest.raises(EngineUnavailable, match="schema version 99"):
        await kept_store.build().open()
    kept_store.set_schema_version(migrations.VERSION)
    async with opened(kept_store) as engine:
        await put(engine, Note(space=1, name="n"))
