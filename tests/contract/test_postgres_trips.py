"""How often an operation goes to the database and back: once for most reads, twice for a guarded write.

The container or queue was used before, as it has been for all but the first request.
"""

import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.contract.files import files_on
from tests.contract.processes import BOX, Process, process
from tests.contract.stores import PostgresStore
from verditer.core.names import MessageName, QueueName
from verditer.partition.postgres.pipeline import PipelineCall, PipelineConnection
from verditer.services.queue import messages, queues
from verditer.services.queue.current import PopReceipt

QUEUE = QueueName(BOX.account, "orders")


class Trips:
    """Counts the round trips of the event loop of the test, not of servers that other threads of this process run."""

    def __init__(self) -> None:
        self.count = 0
        self._thread = threading.get_ident()

    def made(self) -> None:
        self.count += threading.get_ident() == self._thread

    async def of(self, operation: Awaitable[Any]) -> int:
        before = self.count
        await operation
        return self.count - before


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Trips:
    counted, run = Trips(), PipelineConnection.run

    async def counting(connection: PipelineConnection, calls: Sequence[PipelineCall], deadline_seconds: float) -> Any:
        counted.made()
        return await run(connection, calls, deadline_seconds)

    monkeypatch.setattr(PipelineConnection, "run", counting)
    return counted


async def test_blobs(postgres: PostgresStore, tmp_path: Path, trips: Trips) -> None:
    async with process(postgres, tmp_path) as one:
        await one.create()
        await one.put("first", b"small")
        small, large = b"small", b"x" * 5000
        expected: list[tuple[int, Callable[[], Awaitable[Any]]]] = [
            (2, lambda: one.put("new", small)),
            (2, lambda: one.put("new", small)),  # overwrites
            (1, lambda: one.get("new")),
            (2, lambda: one.put("large", large)),
            (2, lambda: one.get("large")),  # the record, then the layout that it names
            (2, lambda: one.delete("large")),
            (2, lambda: one.delete("new")),
        ]
        found = [await trips.of(operation()) for _, operation in expected]
        assert found == [count for count, _ in expected]


async def test_a_blob_that_another_process_wrote_takes_one_trip_more(
    postgres: PostgresStore, tmp_path: Path, trips: Trips
) -> None:
    async with process(postgres, tmp_path / "one") as one, process(postgres, tmp_path / "other") as other:
        await one.create()
        await one.put("first", b"small")
        await other.get("first")
        await one.put("second", b"small")
        assert [await trips.of(other.get("second")) for _ in range(2)] == [2, 1]


async def test_files(postgres: PostgresStore, trips: Trips) -> None:
    async with files_on(postgres) as files:
        await files.make_directory("d/")
        await files.put("d/first", size=100)
        await files.write("d/first", 0, b"small")
        expected: list[tuple[int, Callable[[], Awaitable[Any]]]] = [
            (2, lambda: files.put("d/new", size=100)),
            (2, lambda: files.put("d/new", size=200)),  # replaces
            (2, lambda: files.write("d/new", 0, b"small")),
            (2, lambda: files.write("d/new", 0, b"small")),
            (1, lambda: files.get("d/new")),
            (2, lambda: files.rename("d/new", "d/other")),
            (2, lambda: files.delete("d/other")),
        ]
        found = [await trips.of(operation()) for _, operation in expected]
        assert found == [count for count, _ in expected]


async def test_messages(postgres: PostgresStore, tmp_path: Path, trips: Trips) -> None:
    async with process(postgres, tmp_path) as one:
        await queues.create_queue(one.ctx, QUEUE, queues.CreateQueue())
        await one.say(QUEUE, "first")
        assert await trips.of(one.say(QUEUE, "second")) == 2
        assert await trips.of(messages.peek_messages(one.ctx, QUEUE, messages.PeekMessages())) == 1
        assert await trips.of(messages.get_messages(one.ctx, QUEUE, messages.GetMessages())) == 2
        (taken,) = await messages.get_messages(one.ctx, QUEUE, messages.GetMessages())
        assert await trips.of(_delete(one, taken.id, taken.receipt)) == 2


async def _delete(one: Process, message: str, receipt: int) -> None:
    target = MessageName(QUEUE.account, QUEUE.queue, message)
    await messages.delete_message(one.ctx, target, messages.DeleteMessage(pop_receipt=PopReceipt(text="", tick=receipt)))
