"""Many records at once, on every engine: `get_many` and `put_many` mean what as many `get` and `put` mean."""

import pytest

from tests.contract.stores import Job, Note, Store, opened
from verditer.core.records.record import key_of, span_of
from verditer.partition.engine import Transaction

SCOPE = ("account", "blob", "container", "blob")
MANY = 1000


async def test_of_many_keys_those_are_found_that_are_there(store: Store) -> None:
    notes = [Note(space=1, name=f"n{number}", value=number, data=bytes([number % 256]) * number) for number in range(MANY)]
    keys = [note.key() for note in notes]
    async with opened(store) as engine:
        await engine.write(SCOPE, lambda tx: tx.put_many(notes[::2]))
        found = await engine.read(SCOPE, lambda tx: tx.get_many(Note, keys))
        assert found == {note.key(): note for note in notes[::2]}
        assert await engine.read(SCOPE, lambda tx: tx.get_many(Note, [key_of(2, "n0")])) == {}


async def test_putting_many_replaces_records_and_their_ranks(store: Store) -> None:
    def body(tx: Transaction) -> list[int]:
        tx.put_many([Job(queue="q", id=number, due=100 - number) for number in range(3)])
        return [job.id for job in tx.ranked(Job, span_of("q"), 10)]

    async with opened(store) as engine:
        await engine.write(SCOPE, lambda tx: tx.put_many([Job(queue="q", id=number, due=number) for number in range(4)]))
        assert await engine.write(SCOPE, body) == [3, 2, 1, 0]
        assert [job.due for job in await engine.read(SCOPE, lambda tx: tx.ranked(Job, span_of("q"), 10))] == [3, 98, 99, 100]


async def test_what_was_put_with_many_is_taken_back_with_its_transaction(store: Store) -> None:  # contract G7
    def body(tx: Transaction) -> None:
        tx.put_many([Note(space=1, name="kept", value=2), Note(space=1, name="new")])
        assert len(tx.get_many(Note, [key_of(1, "kept"), key_of(1, "new")])) == 2
        raise ValueError

    async with opened(store) as engine:
        await engine.write(SCOPE, lambda tx: tx.put_many([Note(space=1, name="kept", value=1)]))
        with pytest.raises(ValueError):
            await engine.write(SCOPE, body)
        left = await engine.read(SCOPE, lambda tx: tx.get_many(Note, [key_of(1, "kept"), key_of(1, "new")]))
    assert left == {key_of(1, "kept"): Note(space=1, name="kept", value=1)}


async def test_two_kinds_are_looked_up_under_one_key(store: Store) -> None:
    note, job = Note(space=1, name="n", value=7), Job(queue="q", id=1, due=5)
    async with opened(store) as engine:
        await engine.write(SCOPE, lambda tx: tx.put(note))
        await engine.write(SCOPE, lambda tx: tx.put(job))
        assert await engine.read(SCOPE, lambda tx: tx.get_both(Note, Job, 1, "n")) == (note, None)
        assert await engine.read(SCOPE, lambda tx: tx.get_both(Note, Job, "q", 1)) == (None, job)
        assert await engine.read(SCOPE, lambda tx: tx.get_both(Job, Note, "none")) == (None, None)


async def test_an_insert_takes_a_free_place_and_leaves_a_taken_one_alone(store: Store) -> None:
    first, second = Job(queue="q", id=1, due=5), Job(queue="q", id=1, due=9)
    async with opened(store) as engine:
        assert await engine.write(SCOPE, lambda tx: tx.insert(first)) is True
        assert await engine.write(SCOPE, lambda tx: (tx.insert(second), tx.get(Job, "q", 1))) == (False, first)
        assert await engine.read(SCOPE, lambda tx: tx.ranked(Job, span_of("q"), 10)) == [first]


async def test_an_insert_is_taken_back_with_its_transaction(store: Store) -> None:  # contract G7
    def body(tx: Transaction) -> None:
        assert tx.insert(Note(space=1, name="new"))
        assert not tx.insert(Note(space=1, name="new", value=2))
        raise ValueError

    async with opened(store) as engine:
        with pytest.raises(ValueError):
            await engine.write(SCOPE, body)
        assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "new")) is None
