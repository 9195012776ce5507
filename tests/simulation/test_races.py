"""Races: many clients send conflicting requests at the same moment. One succeeds, the others get an error, and nothing is mixed.

Each race runs on one process with SQLite and on two processes with one PostgreSQL, clients alternating between them.
"""

import asyncio
import math
import random
import uuid
from collections import Counter
from functools import partial

from tests.simulation.client import Answer, Client, all_at_once, block_id, connected, numbered_bytes, order_of, together
from tests.simulation.servers import Fleet, until

RACERS = 16
ROUNDS = 12
SMALL, LARGE = 1000, 100_000  # inline, and as an extent


async def test_of_many_writers_with_one_etag_exactly_one_wins(fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G5, B1
    async with connected(fleet.ports, RACERS) as clients:
        await clients[0].create_container(container)
        for iteration in range(ROUNDS):
            path = f"{container}/blob-{iteration % 3}"
            etag = (await clients[0].put_blob(path, b"before")).etag
            size = chance.choice([SMALL, LARGE])

            async def write(client: Client, number: int, path: str = path, etag: str = etag, size: int = size) -> Answer:
                return await client.put_blob(path, numbered_bytes(number, size), {"If-Match": etag})

            answers = await together(clients, write)
            assert Counter(answer.outcome for answer in answers) == {"201": 1, "412 ConditionNotMet": RACERS - 1}
            winner = next(number for number, answer in enumerate(answers) if answer.status == 201)
            for client in clients[:2]:
                found = await client.get_blob(path)
                assert (found.body, found.etag) == (numbered_bytes(winner, size), answers[winner].etag)


async def test_of_many_creators_exactly_one_creates(fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G5, race E2
    async with connected(fleet.ports, RACERS) as clients:
        await clients[0].create_container(container)
        for iteration in range(ROUNDS):
            path, size = f"{container}/blob-{iteration}", chance.choice([SMALL, LARGE])

            async def create(client: Client, number: int, path: str = path, size: int = size) -> Answer:
                return await client.put_blob(path, numbered_bytes(number, size), {"If-None-Match": "*"})

            answers = await together(clients, create)
            assert Counter(answer.outcome for answer in answers) == {"201": 1, "409 BlobAlreadyExists": RACERS - 1}
            winner = next(number for number, answer in enumerate(answers) if answer.status == 201)
            assert (await clients[1].get_blob(path)).body == numbered_bytes(winner, size)


async def test_of_many_who_create_a_container_exactly_one_does(fleet: Fleet, container: str) -> None:
    # contract G5
    async with connected(fleet.ports, RACERS) as clients:
        for iteration in range(ROUNDS):
            name = f"{container}-{iteration}"
            answers = await all_at_once([client.create_container(name) for client in clients])
            assert Counter(answer.outcome for answer in answers) == {"201": 1, "409 ContainerAlreadyExists": RACERS - 1}


async def test_of_many_acquirers_exactly_one_holds_the_lease(fleet: Fleet, container: str) -> None:
    # contract G5, L2
    async with connected(fleet.ports, RACERS) as clients:
        await clients[0].create_container(container)
        for iteration in range(ROUNDS):
            path = f"{container}/blob-{iteration}"
            await clients[0].put_blob(path, b"x")
            ids = [str(uuid.uuid4()) for _ in clients]
            answers = await all_at_once([client.acquire(path, id) for client, id in zip(clients, ids, strict=True)])
            assert Counter(answer.outcome for answer in answers) == {"201": 1, "409 LeaseAlreadyPresent": RACERS - 1}
            winner = next(number for number, answer in enumerate(answers) if answer.status == 201)
            assert answers[winner].headers["x-ms-lease-id"] == ids[winner]
            assert (await clients[1].put_blob(path, b"y", {"x-ms-lease-id": ids[winner]})).status == 201


async def test_nobody_writes_with_a_lease_that_was_stolen(fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G5, L3; race L6, L7
    path = f"{container}/state"
    async with connected(fleet.ports, 8) as [thief, *writers]:
        await thief.create_container(container)
        await thief.put_blob(path, b"start")
        held = str(uuid.uuid4())
        await thief.acquire(path, held)
        for _ in range(ROUNDS):
            theft = Theft(path, held, chance)
            writing = [asyncio.ensure_future(theft.write(client)) for client in writers]
            await until(partial(bool, theft.written))
            held = str(uuid.uuid4())
            assert (await thief.lease(path, "break", {"x-ms-lease-break-period": "0"})).status == 202
            assert (await thief.acquire(path, held)).status == 201
            theft.done_at = asyncio.get_running_loop().time()
            mine = await thief.get_blob(path)
            await asyncio.gather(*writing)
            assert (await thief.get_blob(path)).etag == mine.etag
            assert theft.written
            assert max(theft.written) <= order_of(mine.etag)


class Theft:
    """Writers that keep using the old lease until a write that began after the theft has been refused."""

    def __init__(self, path: str, lease: str, chance: random.Random) -> None:
        self.done_at = math.inf
        self.written: list[int] = []
        self._path = path
        self._lease = lease
        self._chance = chance

    async def write(self, client: Client) -> None:
        late = False
        while not late:
            began = asyncio.get_running_loop().time()
            late = began > self.done_at
            data = numbered_bytes(0, self._chance.choice([SMALL, LARGE]))
            answer = await client.put_blob(self._path, data, {"x-ms-lease-id": self._lease})
            if answer.status == 201:
                assert not late, "written with a lease that another client had taken before"
                self.written.append(order_of(answer.etag))
            else:
                assert answer.outcome in ("412 LeaseLost", "412 LeaseIdMismatchWithBlobOperation"), answer.outcome


async def test_of_two_committers_the_loser_finds_its_blocks_gone(fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G5, race B3
    async with connected(fleet.ports, 4) as clients:
        await clients[0].create_container(container)
        for iteration in range(ROUNDS):
            path = f"{container}/blob-{iteration}"
            sizes = [[chance.choice([SMALL, LARGE]) for _ in range(3)] for _ in clients]

            async def stage(client: Client, number: int, path: str = path, sizes: list[list[int]] = sizes) -> None:
                for index, size in enumerate(sizes[number]):
                    answer = await client.put_block(path, block_id(f"{number}-{index}"), numbered_bytes(number, size))
                    assert answer.status == 201

            await together(clients, stage)

            async def commit(client: Client, number: int, path: str = path) -> Answer:
                return await client.put_block_list(path, [block_id(f"{number}-{index}") for index in range(3)])

            answers = await together(clients, commit)
            assert Counter(answer.outcome for answer in answers) == {"201": 1, "400 InvalidBlockList": len(clients) - 1}
            winner = next(number for number, answer in enumerate(answers) if answer.status == 201)
            found = await clients[1].get_blob(path)
            assert found.body == b"".join(numbered_bytes(winner, size) for size in sizes[winner])
            assert found.etag == answers[winner].etag


async def test_a_block_staged_again_during_the_commit_is_whole_or_absent(fleet: Fleet, container: str) -> None:
    # contract G5, race B1
    path = f"{container}/blob"
    blocks = [block_id(f"{number}") for number in range(4)]
    async with connected(fleet.ports, 4) as [first, *others]:
        await first.create_container(container)
        for iteration in range(1, ROUNDS):
            size = [SMALL, LARGE][iteration % 2]
            for block in blocks:
                await first.put_block(path, block, numbered_bytes(iteration, size))

            async def restage(client: Client, block: str, iteration: int = iteration, size: int = size) -> Answer:
                return await client.put_block(path, block, numbered_bytes(100 + iteration, size))

            stagings = [restage(client, block) for client, block in zip(others, blocks, strict=False)]
            answer, *staged = await all_at_once([first.put_block_list(path, blocks), *stagings])
            assert {one.status for one in (answer, *staged)} == {201}
            body = (await others[0].get_blob(path)).body
            parts = [body[start : start + size] for start in range(0, len(body), size)]
            assert len(parts) == len(blocks)
            assert all(part in (numbered_bytes(iteration, size), numbered_bytes(100 + iteration, size)) for part in parts)


async def test_a_container_is_deleted_with_everything_or_not_yet(fleet: Fleet, container: str) -> None:
    # contract G5, race G4
    now = asyncio.get_running_loop().time
    async with connected(fleet.ports, 8) as [deleter, *putters]:
        for _ in range(ROUNDS):
            assert (await deleter.create_container(container)).status == 201
            deleted_at, written = [math.inf], list[str]()

            async def put(
                client: Client, number: int, deleted_at: list[float] = deleted_at, written: list[str] = written
            ) -> None:
                for count in range(1_000_000):
                    began = now()
                    path = f"{container}/{number}-{count}"
                    answer = await client.put_blob(path, numbered_bytes(number, [SMALL, LARGE][count % 2]))
                    if answer.status != 201:
                        assert answer.outcome == "404 ContainerNotFound"
                        return
                    assert began < deleted_at[0], "written into a container that was gone"
                    written.append(path)
                raise AssertionError("the container never went")

            putting = [asyncio.ensure_future(put(client, number)) for number, client in enumerate(putters)]
            await until(partial(bool, written))
            assert (await deleter.delete_container(container)).status == 202
            deleted_at[0] = now()
            await asyncio.gather(*putting)
            assert len(written) > 0
            assert (await putters[0].create_container(container)).status == 201
            assert b"<Blob>" not in (await deleter.list_blobs(container, include="uncommittedblobs")).body
            assert (await deleter.get_blob(written[0])).status == 404
            await deleter.delete_container(container)


async def test_no_etag_comes_twice_and_time_never_goes_back(fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G4; races E7, E12
    path = f"{container}/blob"
    seen: list[Answer] = []
    async with connected(fleet.ports, 8) as clients:
        await clients[0].create_container(container)

        async def change(client: Client, number: int) -> None:
            for _ in range(25):
                match chance.randrange(4):
                    case 0 | 1:
                        answer = await client.put_blob(path, numbered_bytes(number, chance.choice([SMALL, LARGE])))
                    case 2:
                        answer = await client.set_metadata(path, {"x-ms-meta-by": str(number)})
                    case _:
                        answer = await client.delete_blob(path)
                if answer.status in (200, 201):
                    seen.append(answer)

        await together(clients, change)
    assert len({answer.etag for answer in seen}) == len(seen) > 50
    in_order = sorted(seen, key=lambda answer: order_of(answer.etag))
    times = [answer.modified for answer in in_order]
    assert times == sorted(times)
