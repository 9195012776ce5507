"""Microsoft's asynchronous client: many concurrent requests from one process."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError
from azure.storage.blob.aio import BlobServiceClient, ContainerClient

from tests.rest.running import Running

MIB = 1024 * 1024


@asynccontextmanager
async def some_container(account: Running) -> AsyncIterator[ContainerClient]:
    async with BlobServiceClient.from_connection_string(
        account.connection_string, max_single_put_size=MIB, max_block_size=MIB, max_single_get_size=MIB, max_chunk_get_size=MIB
    ) as service:
        container = await service.create_container(f"aio-{uuid.uuid4().hex[:16]}")
        yield container
        await container.delete_container()


async def test_parallel_transfer_of_a_large_blob(account: Running) -> None:
    data = random.Random(2).randbytes(9 * MIB + 3)
    async with some_container(account) as container:
        blob = await container.upload_blob("large", data, max_concurrency=4)
        download = await blob.download_blob(max_concurrency=4)
        assert await download.readall() == data
        part = await blob.download_blob(offset=5 * MIB - 1, length=2 * MIB, max_concurrency=4)
        assert await part.readall() == data[5 * MIB - 1 : 7 * MIB - 1]


async def test_many_blobs_at_once(account: Running) -> None:
    async with some_container(account) as container:
        names = [f"blob-{number:03}" for number in range(50)]
        await asyncio.gather(*[container.upload_blob(name, name.encode()) for name in names])
        downloads = await asyncio.gather(*[container.download_blob(name) for name in names])
        assert await asyncio.gather(*[download.readall() for download in downloads]) == [name.encode() for name in names]
        assert [blob.name async for blob in container.list_blobs(results_per_page=7)] == names


async def test_of_many_who_create_exactly_one_wins(account: Running) -> None:
    # contract G5
    async with some_container(account) as container:
        outcomes = await asyncio.gather(
            *[container.upload_blob("one", f"{number}".encode()) for number in range(20)], return_exceptions=True
        )
        winners = [number for number, outcome in enumerate(outcomes) if not isinstance(outcome, BaseException)]
        assert len(winners) == 1
        assert all(isinstance(outcome, ResourceExistsError) for number, outcome in enumerate(outcomes) if number not in winners)
        assert await (await container.download_blob("one")).readall() == f"{winners[0]}".encode()


async def test_increments_guarded_by_etags_are_never_lost(account: Running) -> None:
    # contract B1, G5
    async with some_container(account) as container:
        blob = await container.upload_blob("counter", b"0")

        async def increment() -> None:
            while True:
                seen = await blob.download_blob()
                count = int(await seen.readall())
                try:
                    await blob.upload_blob(
                        f"{count + 1}".encode(),
                        overwrite=True,
                        etag=seen.properties.etag,
                        match_condition=MatchConditions.IfNotModified,
                    )
                    return
                except ResourceModifiedError:
                    continue  # another client was faster: read again

        await asyncio.gather(*[increment() for _ in range(10)])
        assert await (await blob.download_blob()).readall() == b"10"


async def test_a_lease_is_had_by_one_of_many(account: Running) -> None:
    # contract L2, G5
    async with some_container(account) as container:
        blob = await container.upload_blob("leased", b"")
        outcomes = await asyncio.gather(*[blob.acquire_lease(15) for _ in range(10)], return_exceptions=True)
        leases = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert len(leases) == 1
        with pytest.raises(HttpResponseError):
            await blob.delete_blob()
        await leases[0].release()


async def test_walking_and_snapshots(account: Running) -> None:
    async with some_container(account) as container:
        for name in ("a/1", "a/2", "b"):
            await container.upload_blob(name, b"x")
        assert [item.name async for item in container.walk_blobs()] == ["a/", "b"]
        blob = container.get_blob_client("b")
        moment = str((await blob.create_snapshot())["snapshot"])
        await blob.upload_blob(b"y", overwrite=True)
        old = await container.get_blob_client("b", snapshot=moment).download_blob()
        assert await old.readall() == b"x"
