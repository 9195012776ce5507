"""azure-storage-file-share, asynchronous: parallel transfers, many requests at once, and races that one client wins."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.fileshare.aio import ShareClient, ShareServiceClient

from tests.rest.running import Running
from tests.sdk.codes import code_of

KIB, MIB = 1024, 1024 * 1024


@asynccontextmanager
async def some_share(account: Running) -> AsyncIterator[ShareClient]:
    async with ShareServiceClient(
        f"http://127.0.0.1:{account.app.servers['file'].port}/{account.account}",
        credential={"account_name": account.account, "account_key": account.key},
        max_range_size=256 * KIB,
        max_single_get_size=256 * KIB,
        max_chunk_get_size=256 * KIB,
        retry_total=0,
    ) as service:
        share = await service.create_share(f"aio-{uuid.uuid4().hex[:16]}")
        yield share
        await share.delete_share(delete_snapshots=True)


async def test_parallel_transfer_of_a_large_file(account: Running) -> None:
    data = random.Random(2).randbytes(3 * MIB + 3)
    async with some_share(account) as share:
        file = share.get_file_client("large")
        await file.upload_file(data, max_concurrency=4)
        assert await (await file.download_file(max_concurrency=4)).readall() == data
        part = await file.download_file(offset=MIB - 1, length=MIB, max_concurrency=4)
        assert await part.readall() == data[MIB - 1 : 2 * MIB - 1]


async def test_many_files_at_once(account: Running) -> None:
    async with some_share(account) as share:
        directory = await share.create_directory("d")
        names = [f"file-{number:03}" for number in range(30)]
        await asyncio.gather(*[directory.upload_file(name, name.encode()) for name in names])
        downloads = await asyncio.gather(*[directory.get_file_client(name).download_file() for name in names])
        assert await asyncio.gather(*[download.readall() for download in downloads]) == [name.encode() for name in names]
        assert [entry.name async for entry in directory.list_directories_and_files(results_per_page=7)] == names


async def test_writers_of_different_ranges_all_succeed(account: Running) -> None:
    async with some_share(account) as share:
        file = share.get_file_client("file")
        await file.create_file(20 * 512)
        await asyncio.gather(*[file.upload_range(bytes([number]) * 512, offset=number * 512, length=512) for number in range(20)])
        expected = b"".join(bytes([number]) * 512 for number in range(20))
        assert await (await file.download_file()).readall() == expected
        assert [(found.start, found.end) async for found in file.list_ranges()] == [(0, 20 * 512 - 1)]


async def test_of_many_who_create_a_directory_or_rename_to_one_name_exactly_one_wins(account: Running) -> None:
    # contract G5
    async with some_share(account) as share:
        made = await asyncio.gather(*[share.create_directory("d") for _ in range(10)], return_exceptions=True)
        assert sum(not isinstance(one, BaseException) for one in made) == 1
        files = [share.get_file_client(f"file-{number}") for number in range(10)]
        await asyncio.gather(*[file.create_file(number) for number, file in enumerate(files)])
        renamed = await asyncio.gather(*[file.rename_file("target") for file in files], return_exceptions=True)
        winners = [number for number, one in enumerate(renamed) if not isinstance(one, BaseException)]
        assert len(winners) == 1
        assert all(isinstance(one, ResourceExistsError) for number, one in enumerate(renamed) if number not in winners)
        assert (await share.get_file_client("target").get_file_properties()).size == winners[0]


async def test_leases_snapshots_and_renames(account: Running) -> None:
    async with some_share(account) as share:
        directory = await share.create_directory("d", metadata={"UP": "1"})
        file = directory.get_file_client("file")
        await file.upload_file(b"before")
        lease = await file.acquire_lease()
        with pytest.raises(HttpResponseError) as refused:
            await file.delete_file()
        assert code_of(refused.value) == "LeaseIdMissing"
        await lease.release()
        snapshot = (await share.create_snapshot())["snapshot"]
        await file.upload_file(b"after")
        moved = await directory.rename_directory("e")
        assert (await moved.get_directory_properties()).metadata == {"UP": "1"}
        assert [entry.name async for entry in moved.list_directories_and_files()] == ["file"]
        async with ShareClient(
            f"http://127.0.0.1:{account.app.servers['file'].port}/{account.account}",
            share.share_name,
            snapshot=snapshot,
            credential={"account_name": account.account, "account_key": account.key},
        ) as old:
            assert await (await old.get_file_client("d/file").download_file()).readall() == b"before"
