"""Stores for the tests of `verditer check`, `backup`, `restore` and `copy`."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from tests.contract.processes import BOX, Process, data, process
from tests.contract.stores import SqliteStore
from verditer.core.names import QueueName
from verditer.services.queue import queues
from verditer.tools.check import Findings, check_store
from verditer.tools.extent_digests import ExtentDigests
from verditer.tools.progress import ProgressLine
from verditer.tools.stores import StoreAddress, opened

QUEUE = QueueName(BOX.account, "orders")
LARGE = {f"large-{number}": data(str(number), 50_000 + number) for number in range(4)}


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Process]:
    """A server on an embedded store, without its front end."""
    async with process(SqliteStore(folder), folder / "extents") as one:
        yield one


async def fill(one: Process) -> None:
    await one.create()
    for name, body in LARGE.items():
        await one.put(name, body)
    await one.put("small", b"small")
    await one.stage("staged", b"1", data("s"))
    await one.snapshot("large-1")
    await queues.create_queue(one.ctx, QUEUE, queues.CreateQueue())
    await one.say(QUEUE, "hello")


async def make_filled(folder: Path) -> None:
    async with serving(folder) as one:
        await fill(one)


async def expect_filled(one: Process) -> None:
    for name, body in LARGE.items():
        assert await one.get(name) == body
    assert await one.get("small") == b"small"
    await one.commit("staged", b"1")
    assert await one.get("staged") == data("s")


async def checked(address: StoreAddress, *, read_bytes: bool = True) -> Findings:
    async with opened(address) as store:
        return await check_store(store.engine, store.extents, ProgressLine(), ExtentDigests() if read_bytes else None)
