"""Random transaction bodies give the same results on every engine as on a dictionary: alone, and many at the same moment.

Bodies get, scan in every order, claim, put, delete and sometimes fail after they have written. A failure prints its seed.
"""

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.contract.stores import Job, Note, Store, opened
from verditer.core.records.record import Record, Span, key_of, span_of
from verditer.partition.engine import Engine, Order, Transaction

NAMES = [f"{number:02}" for number in range(40)]
DOINGS = ["get", "get", "lock", "many", "scan", "down", "rank", "claim", "put", "put", "puts", "job", "delete", "drop"]
Step = tuple[Any, ...]


class Failed(Exception):
    pass


class Model:
    """The records of one store, as `Transaction` shows them."""

    def __init__(self) -> None:
        self.rows: dict[type[Record], dict[bytes, Any]] = {Note: {}, Job: {}}

    def get(self, kind: type[Record], *key: Any, for_update: bool = False) -> Any:
        return self.rows[kind].get(key_of(*key))

    def get_many(self, kind: type[Record], keys: list[bytes]) -> dict[bytes, Any]:
        return {key: self.rows[kind][key] for key in keys if key in self.rows[kind]}

    def scan(self, kind: type[Record], span: Span, *, limit: int | None = None, order: Order = Order.KEY) -> Iterator[Any]:
        positions = [(record.rank() if order is Order.RANK else key, record) for key, record in self.rows[kind].items()]
        found = sorted([row for row in positions if span.low <= row[0] < span.high], key=lambda row: row[0])
        if order is Order.KEY_DESCENDING:
            found.reverse()
        return iter([record for _, record in found[:limit]])

    def claim(self, kind: type[Record], span: Span, limit: int) -> list[Any]:
        return list(self.scan(kind, span, limit=limit, order=Order.RANK))

    def put(self, *records: Record) -> None:
        for record in records:
            self.rows[type(record)][record.key()] = record

    def delete(self, kind: type[Record], *key: Any) -> None:
        self.rows[kind].pop(key_of(*key), None)


def steps(chance: random.Random, space: int, count: int) -> list[Step]:
    return [_step(chance, space) for _ in range(count)]


def _step(chance: random.Random, space: int) -> Step:
    name, number = chance.choice(NAMES), chance.randrange(40)
    limit = chance.choice([None, 0, 1, 3, 17, 100])
    match chance.choice(
        ["get", "get", "lock", "many", "scan", "down", "rank", "claim", "put", "put", "puts", "job", "delete", "drop"]
    ):
        case "get":
            return "get", Note, (space, name), False
        case "lock":
            return "get", Note, (space, name), True
        case "many":
            return "many", Note, [key_of(space, other) for other in chance.sample(NAMES, 5)]
        case "scan":
            low = chance.choice(NAMES)
            return "scan", Note, chance.choice([span_of(space), Span(key_of(space, low), span_of(space).high)]), limit, Order.KEY
        case "down":
            return "scan", Note, span_of(space), limit, Order.KEY_DESCENDING
        case "rank":
            return "scan", Job, Span(key_of(f"q{space}"), key_of(f"q{space}", number)), limit, Order.RANK
        case "claim":
            return "claim", Job, Span(key_of(f"q{space}"), key_of(f"q{space}", number)), chance.choice([1, 2, 10])
        case "put":
            return "put", [Note(space=space, name=name, value=number)]
        case "puts":
            return "put", [Note(space=space, name=other, value=number) for other in chance.sample(NAMES, 6)]
        case "job":
            return "put", [Job(queue=f"q{space}", id=number, due=chance.randrange(40))]
        case "delete":
            return "delete", Note, (space, name)
        case _:
            return "delete", Job, (f"q{space}", number)


def body_of(program: list[Step], fails: bool) -> Callable[[Any], list[Any]]:
    """Reads may decide what comes next, so that a wrong guess about them shows."""

    def body(tx: Any) -> list[Any]:
        seen = [_run(tx, step) for step in program]
        found = [value for value in seen if isinstance(value, Note)]
        if found:
            name = NAMES[found[-1].value]
            seen.append(tx.get(Note, found[-1].space, name))
            tx.put(Note(space=found[-1].space, name=name, value=(found[-1].value + 1) % 40))
        if fails:
            raise Failed
        return seen

    return body


def _run(tx: Any, step: Step) -> Any:
    match step:
        case "get", kind, key, for_update:
            return tx.get(kind, *key, for_update=for_update)
        case "many", kind, keys:
            return sorted(tx.get_many(kind, keys).items())
        case "scan", kind, span, limit, order:
            return list(tx.scan(kind, span, limit=limit, order=order))
        case "claim", kind, span, limit:
            return tx.claim(kind, span, limit)
        case "put", records:
            return tx.put(*records)
        case "delete", kind, key:
            return tx.delete(kind, *key)
    raise AssertionError(step)


def expected_of(model: Model, body: Callable[[Any], list[Any]]) -> list[Any] | None:
    before = {kind: dict(rows) for kind, rows in model.rows.items()}
    try:
        return body(model)
    except Failed:
        model.rows = before
        return None


async def engines_on(store: Store, stack: AsyncExitStack) -> list[Engine]:
    """Two where a store can be shared: what one knows is then often stale."""
    return [await stack.enter_async_context(opened(store)) for _ in range(2 if store.shared else 1)]


async def result_of(engine: Engine, space: int, body: Callable[[Transaction], list[Any]]) -> list[Any] | None:
    try:
        return await engine.write([("account", "note", str(space))], body)
    except Failed:
        return None


@pytest.mark.parametrize("seed", range(4))
async def test_bodies_one_after_another_see_what_a_dictionary_shows(store: Store, seed: int) -> None:
    chance, model = random.Random(seed), Model()
    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        for _ in range(60):
            engine = chance.choice(engines)
            body = body_of(steps(chance, 1, chance.randrange(1, 12)), fails=chance.random() < 0.2)
            assert await result_of(engine, 1, body) == expected_of(model, body)
            program = [step for step in steps(chance, 1, 5) if step[0] in ("get", "many", "scan")]
            assert await engine.read((), lambda tx, run=program: [_run(tx, step) for step in run]) == [  # type: ignore[misc]
                _run(model, step) for step in program
            ]


@pytest.mark.parametrize("seed", range(4))
async def test_bodies_at_the_same_moment_do_not_see_each_other(store: Store, seed: int) -> None:
    """Each has a part of the records of its own, so their order does not matter; they may share a transaction."""
    chance, models = random.Random(seed), [Model() for _ in range(12)]
    async with AsyncExitStack() as stack:
        engines = await engines_on(store, stack)
        for _ in range(20):
            engine = chance.choice(engines)
            bodies = [body_of(steps(chance, space, chance.randrange(1, 10)), chance.random() < 0.2) for space in range(12)]
            results = await asyncio.gather(*[result_of(engine, space, body) for space, body in enumerate(bodies)])
            assert results == [expected_of(model, body) for model, body in zip(models, bodies, strict=True)]
