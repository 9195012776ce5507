"""azure-data-tables, asynchronous: many concurrent writers, and the resulting state."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from azure.core import MatchConditions
from azure.core.credentials import AzureNamedKeyCredential
from azure.core.exceptions import ResourceModifiedError
from azure.data.tables import TableTransactionError, UpdateMode
from azure.data.tables.aio import TableClient, TableServiceClient

from tests.rest.running import Running


@asynccontextmanager
async def new_table(server: Running) -> AsyncIterator[TableClient]:
    credential = AzureNamedKeyCredential(server.account, server.key)
    endpoint = f"http://127.0.0.1:{server.app.servers['table'].port}/{server.account}"
    async with TableServiceClient(endpoint, credential=credential) as service:
        yield await service.create_table(f"sdk{uuid.uuid4().hex[:16]}")


@pytest.fixture(params=["steady", "steady_postgres"])
def server(request: pytest.FixtureRequest) -> Running:
    server: Running = request.getfixturevalue(request.param)
    return server


def test_concurrent_merges_keep_both_property_sets(server: Running) -> None:
    # race T6; contract G5
    async def run() -> dict[str, object]:
        async with new_table(server) as table:
            await table.create_entity({"PartitionKey": "p", "RowKey": "r"})
            merges = [
                table.update_entity({"PartitionKey": "p", "RowKey": "r", f"n{number}": number}, mode=UpdateMode.MERGE)
                for number in range(40)
            ]
            await asyncio.gather(*merges)
            return dict(await table.get_entity("p", "r"))

    found = asyncio.run(run())
    assert {name: found[name] for name in found if name.startswith("n")} == {f"n{number}": number for number in range(40)}


def test_of_many_writers_with_one_etag_one_wins(server: Running) -> None:
    # contract G5, T1
    async def run() -> tuple[list[bool], object]:
        async with new_table(server) as table:
            await table.create_entity({"PartitionKey": "p", "RowKey": "r", "by": -1})
            seen = await table.get_entity("p", "r")

            async def write(number: int) -> bool:
                try:
                    await table.update_entity(
                        {"PartitionKey": "p", "RowKey": "r", "by": number},
                        etag=seen.metadata["etag"],
                        match_condition=MatchConditions.IfNotModified,
                    )
                except ResourceModifiedError:
                    return False
                return True

            won = await asyncio.gather(*[write(number) for number in range(20)])
            return won, (await table.get_entity("p", "r"))["by"]

    won, by = asyncio.run(run())
    assert won.count(True) == 1
    assert by == won.index(True)


@pytest.mark.parametrize("partitions", [1, 25])
def test_a_hundred_batches_at_once(server: Running, partitions: int) -> None:
    # race T5; contract T4
    async def run() -> dict[str, set[object]]:
        async with new_table(server) as table:
            batches = [
                table.submit_transaction([
                    ("upsert", {"PartitionKey": f"p{number % partitions}", "RowKey": f"{row}", "by": number}) for row in range(10)
                ])
                for number in range(100)
            ]  # fmt: skip
            await asyncio.gather(*batches)
            found: dict[str, set[object]] = {}
            async for entity in table.list_entities():
                found.setdefault(entity["PartitionKey"], set()).add(entity["by"])
            return found

    found = asyncio.run(run())
    assert len(found) == partitions
    assert all(len(writers) == 1 for writers in found.values()), found


def test_a_batch_and_single_writes_exclude_each_other(server: Running) -> None:
    # contract T4, G5
    """Each writer increments a counter that is stored in two entities, with a transaction or with the ETag of the first."""

    async def run() -> list[int]:
        async with new_table(server) as table:
            for row in ("a", "b"):
                await table.create_entity({"PartitionKey": "p", "RowKey": row, "n": 0})

            async def add() -> None:
                while True:
                    a, b = [await table.get_entity("p", row) for row in ("a", "b")]
                    match = [{"etag": each.metadata["etag"], "match_condition": MatchConditions.IfNotModified} for each in (a, b)]
                    changes = [
                        ("update", {**each, "n": each["n"] + 1}, options) for each, options in zip((a, b), match, strict=True)
                    ]
                    try:
                        await table.submit_transaction(changes)
                        return
                    except TableTransactionError:
                        pass

            async def touch(number: int) -> None:
                await table.update_entity(
                    {"PartitionKey": "p", "RowKey": "ab"[number % 2], f"t{number}": 1}, mode=UpdateMode.MERGE
                )

            await asyncio.gather(*[add() for _ in range(8)], *[touch(number) for number in range(16)])
            return [(await table.get_entity("p", row))["n"] for row in ("a", "b")]

    assert asyncio.run(run()) == [8, 8]
