"""Many records at once, on every engine: `get_many` and `put` of many mean what as many `get` and `put` of one mean."""

import msgspec
import pytest

from tests.contract.stores import Job, Note, Store, opened
from verditer.core.records.record import key_of, span_of
from verditer.partition.engine import Order, Transaction

SCOPE = ("account", "blob", "container", "blob")
MANY = 1000


def without_space(note: Note) -> Note:
    """An engine may add a space behind a document."""
    return msgspec.structs.replace(note, data=note.data.rstrip(b" "))


def by_rank(tx: Transaction) -> list[Job]:
    return list(tx.scan(Job, span_of("q"), limit=10, order=Order.RANK))


async def test_of_many_keys_those_are_found_that_are_there(store: Store) -> None:
    documents = [b'{"n":"%b"}' % (b"z" * number) for number in range(MANY)]
    notes = [Note(space=1, name=f"n{number}", value=number, data=document) for number, document in enumerate(documents)]
    keys = [note.key() for note in notes]
    async with opened(store) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(*notes[::2]))
        found = await engine.read(SCOPE, lambda tx: tx.get_many(Note, keys))
        assert {key: without_space(note) for key, note in found.items()} == {note.key(): note for note in notes[::2]}
        assert await engine.read(SCOPE, lambda tx: tx.get_many(Note, [key_of(2, "n0")])) == {}


async def test_putting_many_replaces_records_and_their_ranks(store: Store) -> None:
    def body(tx: Transaction) -> list[int]:
        tx.put(*[Job(queue="q", id=number, due=100 - number) for number in range(3)])
        return [job.id for job in tx.scan(Job, span_of("q"), limit=10, order=Order.RANK)]

    async with opened(store) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(*[Job(queue="q", id=number, due=number) for number in range(4)]))
        assert await engine.write([SCOPE], body) == [3, 2, 1, 0]
        assert [job.due for job in await engine.read(SCOPE, by_rank)] == [3, 98, 99, 100]


async def test_what_was_put_with_many_is_taken_back_with_its_transaction(store: Store) -> None:  # contract G7
    def body(tx: Transaction) -> None:
        tx.put(Note(space=1, name="kept", value=2), Note(space=1, name="new"))
        assert len(tx.get_many(Note, [key_of(1, "kept"), key_of(1, "new")])) == 2
        raise ValueError

    async with opened(store) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(Note(space=1, name="kept", value=1)))
        with pytest.raises(ValueError):
            await engine.write([SCOPE], body)
        left = await engine.read(SCOPE, lambda tx: tx.get_many(Note, [key_of(1, "kept"), key_of(1, "new")]))
    assert left == {key_of(1, "kept"): Note(space=1, name="kept", value=1)}


async def test_records_of_several_kinds_are_put_together(store: Store) -> None:
    notes = [Note(space=1, name=name, value=7) for name in ("n", "m")]
    jobs = [Job(queue="q", id=number, due=5) for number in (1, 2)]
    async with opened(store) as engine:
        await engine.write([SCOPE], lambda tx: tx.put(notes[0], jobs[0], notes[1], jobs[1]))
        await engine.write([SCOPE], lambda tx: tx.put())
        assert await engine.read(SCOPE, lambda tx: (tx.get(Note, 1, "n"), tx.get(Job, 1, "n"))) == (notes[0], None)
        assert await engine.read(SCOPE, lambda tx: (tx.get(Note, "q", 1), tx.get(Job, "q", 1))) == (None, jobs[0])
        assert await engine.read(SCOPE, lambda tx: (list(tx.scan(Note, span_of(1))), by_rank(tx))) == (notes[::-1], jobs)


async def test_a_record_put_where_none_was_is_taken_back_with_its_transaction(store: Store) -> None:  # contract G7
    def body(tx: Transaction) -> None:
        assert tx.get(Note, 1, "new") is None
        tx.put(Note(space=1, name="new"))
        assert tx.get(Note, 1, "new") == Note(space=1, name="new")
        raise ValueError

    async with opened(store) as engine:
        with pytest.raises(ValueError):
            await engine.write([SCOPE], body)
        assert await engine.read(SCOPE, lambda tx: tx.get(Note, 1, "new")) is None
