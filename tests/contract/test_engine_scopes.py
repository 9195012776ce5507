"""Writes that name several scopes, on every engine: they exclude each other where their scopes meet, and they never deadlock."""

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack

import pytest

from tests.contract.stores import Note, PostgresStore, Store, opened
from tests.contract.test_engine import engines_on
from verditer.core.records.record import span_of
from verditer.partition.engine import Engine, Scope, Transaction
from verditer.partition.postgres.locking.advisory_locks import AdvisoryLocks
from verditer.partition.postgres.locking.lock_rows import LockRows
from verditer.partition.postgres.locking.locks import Locking, locks_of

ROOT: Scope = ("account", "file", "share")
NAMES = ["a", "b", "c", "d", "e"]


def increment(*names: str) -> Callable[[Transaction], None]:
    """Read all the counters before any of them is written: another write in between would be lost."""

    def body(tx: Transaction) -> None:
        values = [note.value if (note := tx.get(Note, 1, name)) is not None else 0 for name in names]
        for name, value in zip(names, values, strict=True):
            tx.put(Note(space=1, name=name, value=value + 1))

    return body


async def test_writes_of_overlapping_scopes_in_any_order_exclude_each_other_and_all_end(store: Store) -> None:
    # contract G5
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance, expected = random.Random(seed), dict.fromkeys(NAMES, 0)

    async def write(engine: Engine) -> None:
        names = chance.sample(NAMES, chance.randint(1, 4))
        for name in names:
            expected[name] += 1
        await engine.write([(*ROOT, name) for name in names], increment(*names))

    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        async with asyncio.timeout(60):
            await asyncio.gather(*[write(engines[number % len(engines)]) for number in range(200)])
        found = await engines[0].read(ROOT, lambda tx: {note.name: note.value for note in tx.scan(Note, span_of(1))})
    assert found == expected


async def test_a_scope_may_be_above_another_of_the_same_write(store: Store) -> None:
    scopes: list[list[Scope]] = [
        [ROOT, (*ROOT, "a")],
        [(*ROOT, "a"), ROOT],
        [(*ROOT, "a"), (*ROOT, "a", "b")],
        [(*ROOT, "a"), (*ROOT, "a")],
        [(), (*ROOT, "a", "b", "c")],
    ]
    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        async with asyncio.timeout(60):
            writes = [engines[number % len(engines)].write(scopes[number % 5], increment("a")) for number in range(100)]
            await asyncio.gather(*writes)
        note = await engines[0].read(ROOT, lambda tx: tx.get(Note, 1, "a"))
    assert note is not None
    assert note.value == 100


async def test_a_write_that_fails_leaves_all_its_scopes_unlocked(store: Store) -> None:  # contract G7
    scopes = [(*ROOT, "a"), (*ROOT, "b")]

    def fail(tx: Transaction) -> None:
        tx.put(Note(space=1, name="a", value=7))
        raise LookupError

    async with opened(store) as engine:
        with pytest.raises(LookupError):
            await engine.write(scopes, fail)
        async with asyncio.timeout(10):
            await asyncio.gather(*[engine.write([scope], increment(scope[-1])) for scope in scopes])
        notes = await engine.read(ROOT, lambda tx: [note.value for note in tx.scan(Note, span_of(1))])
    assert notes == [1, 1]


async def test_writes_whose_scopes_do_not_meet_run_at_the_same_time_on_postgres(postgres: PostgresStore) -> None:
    async with opened(postgres) as engine:
        with postgres.held((*ROOT, "a"), (*ROOT, "b")):
            async with asyncio.timeout(5):
                await engine.write([(*ROOT, "c"), (*ROOT, "d")], lambda tx: tx.put(Note(space=1, name="other")))
        assert await engine.read(ROOT, lambda tx: tx.get(Note, 1, "other")) is not None


@pytest.mark.parametrize("locking", [AdvisoryLocks(), LockRows()])
def test_locks_are_taken_once_and_in_one_order_and_exclusive_ones_win(locking: Locking) -> None:
    a, b = (*ROOT, "a"), (*ROOT, "b")
    assert locks_of(locking, [a, b]) == locks_of(locking, [b, a]) == locks_of(locking, [b, a, b])
    for scopes in ([a, b], [a], [ROOT, a], [()]):
        keys = [key for key, _ in locks_of(locking, scopes)]
        assert keys == sorted(set(keys))
    assert [exclusive for _, exclusive in locks_of(locking, [a, b])].count(True) == 2
    assert len(locks_of(locking, [a, b])) == len(ROOT) + 1 + 2
    (root,) = [key for key, exclusive in locks_of(locking, [ROOT]) if exclusive]
    assert (root, True) in locks_of(locking, [ROOT, a])
    assert (root, False) in locks_of(locking, [a])


def test_a_lock_row_of_a_blob_is_never_that_of_a_container() -> None:
    rows = LockRows()
    upper = {rows.key(("account", "blob", f"container-{number}")) for number in range(2000)}
    lower = {rows.key(("account", "blob", "container", f"blob-{number}")) for number in range(2000)}
    assert not upper & lower
    assert len(lower) > 1700
