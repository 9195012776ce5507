"""Stores for the tests of `verditer check`, `backup`, `restore` and `copy`."""

import asyncio
import contextlib
import itertools
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


@contextlib.asynccontextmanager
async def written_to(one: Process) -> AsyncIterator[list[int]]:
    """A client writes all the time: under new names, and over one blob. Yields the numbers of what was acknowledged, which are
    some already."""
    written, some = list[int](), asyncio.Event()

    async def write_on() -> None:
        for number in itertools.count():
            await one.put(f"more-{number}", data("m", 2000))
            await one.put("changing", data(str(number), 2000))
            written.append(number)
            if number == 5:
                some.set()

    writing = asyncio.ensure_future(write_on())
    try:
        await some.wait()
        yield written
    finally:
        writing.cancel()


async def expect_filled(one: Process) -> None:
    for name, body in LARGE.items():
        assert await one.get(name) == body
    assert await one.get("small") == b"small"
    await one.commit("staged", b"1")
    assert await one.get("staged") == data("s")


async def checked(address: StoreAddress, *, read_bytes: bool = True) -> Findings:
    async with opened(address) as store:
        return await check_store(store.engine, store.extents, ProgressLine(), ExtentDigests() if read_bytes else None)
