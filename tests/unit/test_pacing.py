"""The pace of background work: how many records one transaction handles."""

import asyncio

import pytest

from verditer.jobs import pacing
from verditer.partition.engine import Transaction
from verditer.partition.sqlite.engine import SqliteEngine


@pytest.mark.parametrize(
    ("limit", "seconds", "following"),
    [
        (100, pacing.TARGET_SECONDS, 100),
        (400, pacing.TARGET_SECONDS * 4, 100),
        (100, pacing.TARGET_SECONDS / 1.5, 150),
        (100, pacing.TARGET_SECONDS / 50, 200),
        (100, 0.0, 200),
        (900, pacing.TARGET_SECONDS / 50, pacing.MAX_LIMIT),
        (100, 60.0, pacing.MIN_LIMIT),
        (pacing.MIN_LIMIT, 60.0, pacing.MIN_LIMIT),
    ],
)
def test_a_step_takes_as_many_records_as_its_time_allows(limit: int, seconds: float, following: int) -> None:
    assert pacing.next_limit(limit, seconds) == following


def test_each_step_starts_where_the_last_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "TARGET_SECONDS", 60.0)
    seen: list[tuple[int, int]] = []

    def step(tx: Transaction, position: int, limit: int) -> int | None:
        seen.append((position, limit))
        return position + limit if position < 500 else None

    async def work() -> None:
        engine = SqliteEngine(None)
        await engine.open()
        try:
            await pacing.run_paced(engine, ("jobs",), 0, step)
        finally:
            await engine.close()

    asyncio.run(work())
    assert seen == [(0, 100), (100, 200), (300, 400), (700, 800)]
