"""Between the moment a copy has read its source and the moment it names the bytes, nobody collects them."""

import asyncio
from pathlib import Path

import pytest

from tests.contract.processes import Process, blob_name, data, process
from tests.contract.stores import Store
from verditer.core.errors import StorageError
from verditer.core.guard import COPY, COPY_SOURCE, Guard
from verditer.core.records.blob import Blob
from verditer.partition.engine import Transaction
from verditer.services.activity import ActiveOperation
from verditer.services.blob.copying.capture import CapturedBlob, capture_blob
from verditer.services.blob.copying.copy import CopyBlob, copied_blob, copy_blob
from verditer.services.blob.new_blob import put_new_blob
from verditer.services.content.sharing import attach
from verditer.services.copying.sources import BlobSource


def source_of(name: str = "source") -> BlobSource:
    return BlobSource(name=blob_name(name), guard=Guard(rule=COPY_SOURCE), shown="", same_account=True)


async def copied(process: Process, name: str = "copy", source: str = "source") -> None:
    await copy_blob(process.ctx, blob_name(name), CopyBlob(), Guard(rule=COPY), source_of(source))


async def captured_from(process: Process) -> CapturedBlob:
    return await capture_blob(process.ctx, source_of(), lambda blob, now: None)


async def commit(process: Process, work: ActiveOperation, captured: CapturedBlob) -> None:
    target = blob_name("copy")

    def body(tx: Transaction) -> None:
        def make(container_id: int, tick: int) -> Blob:
            blob = copied_blob(captured.blob, tick, target=target, request=CopyBlob())
            fields = attach(tx, captured.content, tick, target.scope).fields()
            return Blob(
                **{name: getattr(blob, name) for name in Blob.__struct_fields__} | fields | {"container_id": container_id}
            )

        put_new_blob(tx, target, Guard(rule=COPY), captured.blob.blob_type, make)

    await work.write(process.ctx.engine, target.scope, body)


@pytest.mark.parametrize("loss", ["deleted", "overwritten", "container deleted"])
async def test_a_source_that_goes_away_in_between_leaves_its_bytes(store: Store, tmp_path: Path, loss: str) -> None:
    # race G1
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("source", data("s"))
        with one.ctx.activity.begin(one.ctx.now()) as work:
            captured = await captured_from(one)
            if loss == "deleted":
                await one.delete("source")
            elif loss == "overwritten":
                await one.put("source", data("t"))
            else:
                await one.drop()
                await one.create()
            await one.collect(48)
            await commit(one, work, captured)
        await one.collect(48)
        assert await one.get("copy") == data("s")


async def test_another_process_collects_nothing_that_a_copy_holds(shared_store: Store, tmp_path: Path) -> None:
    # race G1
    async with process(shared_store, tmp_path / "extents") as one, process(shared_store, tmp_path / "extents") as two:
        await one.create()
        await one.put("source", data("s"))
        with one.ctx.activity.begin(one.ctx.now()) as work:
            captured = await captured_from(one)
            await one.ctx.activity.announce(one.ctx.engine)
            await two.delete("source")
            await two.collect(0.1)
            await one.ctx.activity.announce(one.ctx.engine)
            await two.collector.collect()
            await commit(one, work, captured)
        assert await two.get("copy") == data("s")


async def test_a_copy_that_was_given_up_holds_nothing(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("source", data("s"))
        with one.ctx.activity.begin(one.ctx.now()):
            await captured_from(one)
        await one.delete("source")
        await one.collect(48)
        assert one.files() == 0


async def test_copying_while_the_source_is_written_and_the_collector_runs(store: Store, tmp_path: Path) -> None:
    # race G1, contract G3
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("source", data("0"))
        done = asyncio.Event()

        async def write() -> None:
            for number in range(30):
                await one.put("source", data(str(number % 10)))
                if number % 5 == 4:
                    await one.delete("source")
            await one.put("source", data("x"))
            done.set()

        async def collect() -> None:
            while not done.is_set():
                await one.collect(25)

        async def copy(number: int) -> int:
            made = 0
            while not done.is_set():
                try:
                    await copied(one, f"copy{number}")
                    made += 1
                except StorageError:  # it was deleted just now
                    continue
                body = await one.get(f"copy{number}")
                assert body == body[:1] * len(data("0"))
            return made

        made = await asyncio.gather(copy(1), copy(2), write(), collect())
        assert made[0]
        assert made[1]
        await one.collect(48)
        await copied(one, "last", "copy1")
        assert len(await one.get("last")) == len(data("0"))
        for name in ("source", "copy1", "copy2", "last"):
            await one.delete(name)
        await one.collect(48)
        await one.collect(48)
        assert one.files() == 0
