"""Races of copies: one winner, one state of the source, and a pending copy that continues when its process was killed.

Each race runs on one process with SQLite and on two processes with one PostgreSQL, clients alternating between them.
"""

import asyncio
import random
import threading
from collections import Counter

import pytest

from tests.rest.copies import File, elsewhere
from tests.simulation.client import SAS, Answer, Client, connected, numbered_bytes, together
from tests.simulation.servers import PATIENCE_SECONDS, Fleet
from verditer.services.account import DEVELOPMENT_ACCOUNT

RACERS = 12
MIB = 1 << 20


def url(client: Client, path: str) -> str:
    return f"http://127.0.0.1:{client.port}/{DEVELOPMENT_ACCOUNT}/{path}?{SAS}"


async def copy(client: Client, source: str, path: str, headers: dict[str, str] | None = None) -> Answer:
    return await client.call("PUT", path, headers={"x-ms-copy-source": source, **(headers or {})})


async def put(client: Client, path: str, body: bytes) -> None:
    assert (await client.call("PUT", path, headers={"x-ms-blob-type": "BlockBlob"}, body=body)).status == 201


@pytest.mark.parametrize(
    "extra", [{}, {"x-ms-requires-sync": "true"}, {"x-ms-blob-type": "BlockBlob"}], ids=["copy", "sync", "put"]
)
async def test_of_many_copies_that_must_be_new_exactly_one_is_made(
    fleet: Fleet, container: str, chance: random.Random, extra: dict[str, str]
) -> None:
    # race E2, contract G5
    async with connected(fleet.ports, RACERS) as clients:
        await clients[0].create_container(container)
        for number, client in enumerate(clients):
            await put(client, f"{container}/source{number}", numbered_bytes(number, chance.choice([100, 100_000])))
        for iteration in range(5):
            path = f"{container}/new{iteration}"

            async def work(client: Client, number: int, path: str = path) -> Answer:
                source = url(client, f"{container}/source{number}")
                return await copy(client, source, path, {"If-None-Match": "*", **extra})

            answers = await together(clients, work)
            won = "201" if "x-ms-blob-type" in extra else "202"
            assert Counter(answer.outcome for answer in answers) == {won: 1, "409 BlobAlreadyExists": RACERS - 1}
            winner = next(number for number, answer in enumerate(answers) if answer.outcome == won)
            found = await clients[iteration % RACERS].get_blob(path)
            assert found.etag == answers[winner].etag
            assert found.body == (await clients[0].get_blob(f"{container}/source{winner}")).body


async def test_a_copy_is_one_state_of_a_source_that_is_written_all_the_time(
    fleet: Fleet, container: str, chance: random.Random
) -> None:
    # contract G3
    async with connected(fleet.ports, 6) as clients:
        await clients[0].create_container(container)
        source = f"{container}/source"
        await put(clients[0], source, numbered_bytes(0, 100_000))
        done = asyncio.Event()
        sizes = [chance.choice([100, 70_000, 200_000]) for _ in range(60)]

        async def work(client: Client, number: int) -> int:
            if number == 0:
                for iteration, size in enumerate(sizes):
                    await put(client, source, numbered_bytes(iteration, size))
                done.set()
            made = 0
            while not done.is_set():
                assert (await copy(client, url(client, source), f"{container}/copy{number}")).status == 202
                body = (await client.get_blob(f"{container}/copy{number}")).body
                assert body == numbered_bytes(int(body[:8]), len(body))
                made += 1
            return made

        assert sum(await together(clients, work)) > 0


async def test_pages_copied_while_they_are_written_are_one_state(fleet: Fleet, container: str) -> None:
    # contract G3: each write replaces all pages
    async with connected(fleet.ports, 4) as clients:
        await clients[0].create_container(container)
        path, size = f"{container}/disk", 256 * 1024
        created = {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size)}
        assert (await clients[0].call("PUT", path, headers=created)).status == 201
        done = asyncio.Event()
        sent = {"x-ms-page-write": "update", "x-ms-range": f"bytes=0-{size - 1}"}

        async def work(client: Client, number: int) -> None:
            if number == 0:
                for iteration in range(1, 60):
                    answer = await client.call("PUT", path, query="comp=page", headers=sent, body=numbered_bytes(iteration, size))
                    assert answer.status == 201
                done.set()
            while not done.is_set():
                assert (await copy(client, url(client, path), f"{container}/copy{number}")).status == 202
                body = (await client.get_blob(f"{container}/copy{number}")).body
                assert body in (bytes(size), numbered_bytes(int(body[:8]) if body[0] else 0, size))

        await together(clients, work)


async def shown(client: Client, path: str, header: str, value: str) -> None:
    for _ in range(1000):
        if (await client.call("HEAD", path)).headers[header] == value:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{header} never was {value}")


async def settled(client: Client, path: str) -> Answer:
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while True:
        answer = await client.call("HEAD", path)
        if answer.headers["x-ms-copy-status"] != "pending":
            return answer
        assert asyncio.get_running_loop().time() < end
        await asyncio.sleep(0.02)


async def test_a_pending_copy_goes_on_after_its_processes_were_killed(own_fleet: Fleet, container: str) -> None:
    # contract G6
    body = numbered_bytes(1, 30 * MIB)
    with elsewhere() as remote:
        file = File(body, {"ETag": '"one"'}, gate=threading.Event(), before_gate=20 * MIB)
        source, path = remote.add("file", file), f"{container}/copy"
        async with connected(own_fleet.ports, 1) as (client,):
            await client.create_container(container)
            assert (await copy(client, source, path)).headers["x-ms-copy-status"] == "pending"
            await shown(client, path, "x-ms-copy-progress", f"{16 * MIB}/{len(body)}")
        own_fleet.restart()
        assert file.gate is not None
        file.gate.set()
        own_fleet.servers[0].move_clock(60)  # the claim of the killed process has expired
        async with connected(own_fleet.ports, 1) as (client,):
            answer = await settled(client, path)
            assert (answer.headers["x-ms-copy-status"], answer.headers["x-ms-copy-progress"]) == (
                "success",
                f"{len(body)}/{len(body)}",
            )
            assert (await client.get_blob(path)).body == body
        assert file.asked[-1]["range"] == f"bytes={16 * MIB}-"  # committed chunks are not fetched again


async def test_abort_and_completion_leave_one_of_two_outcomes(fleet: Fleet, container: str) -> None:
    # contract G5
    body = numbered_bytes(7, 100_000)
    with elsewhere() as remote:
        source = remote.add("file", File(body, {"ETag": '"one"'}))
        async with connected(fleet.ports, 2) as (client, other):
            await client.create_container(container)
            for iteration in range(15):
                path = f"{container}/copy{iteration}"
                copy_id = (await copy(client, source, path)).headers["x-ms-copy-id"]
                await asyncio.sleep(0.002 * (iteration % 5))
                aborted = await other.call(
                    "PUT", path, query=f"comp=copy&copyid={copy_id}", headers={"x-ms-copy-action": "abort"}
                )
                assert aborted.outcome in ("204", "409 NoPendingCopyOperation")
                answer = await settled(client, path)
                found = (await client.get_blob(path)).body
                expected = ("aborted", b"") if aborted.status == 204 else ("success", body)
                assert (answer.headers["x-ms-copy-status"], found) == expected
