"""The pace of background work: how much is done at a time."""

import asyncio

import pytest

from verditer.jobs import steps
from verditer.partition.engine import Transaction
from verditer.partition.sqlite import SqliteEngine


@pytest.mark.parametrize(
    ("limit", "seconds", "following"),
    [
        (100, steps.AIM_SECONDS, 100),
        (400, steps.AIM_SECONDS * 4, 100),
        (100, steps.AIM_SECONDS / 1.5, 150),
        (100, steps.AIM_SECONDS / 50, 200),
        (100, 0.0, 200),
        (900, steps.AIM_SECONDS / 50, steps.MOST),
        (100, 60.0, steps.LEAST),
        (steps.LEAST, 60.0, steps.LEAST),
    ],
)
def test_a_step_takes_as_many_records_as_its_time_allows(limit: int, seconds: float, following: int) -> None:
    assert steps.fitting(limit, seconds) == following


def test_steps_go_on_where_the_one_before_ended_and_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "AIM_SECONDS", 60.0)
    seen: list[tuple[int, int]] = []

    def step(tx: Transaction, place: int, limit: int) -> int | None:
        seen.append((place, limit))
        return place + limit if place < 500 else None

    async def work() -> None:
        engine = SqliteEngine(None)
        await engine.open()
        try:
            await steps.in_steps(engine, ("jobs",), 0, step)
        finally:
            await engine.close()

    asyncio.run(work())
    assert seen == [(0, 100), (100, 200), (300, 400), (700, 800)]
