"""Races on append and page blobs: no two blocks have the same offset, nothing is lost, and a reader sees one state.

Each race runs on one process with SQLite and on two processes with one PostgreSQL, clients alternating between them.
"""

import asyncio
import random
from collections import Counter

from tests.simulation.client import Answer, Client, connected, numbered_bytes, together
from tests.simulation.servers import Fleet

APPENDERS, BLOCKS = 12, 20
PAGE = 512
MIB = 1 << 20


async def create(client: Client, path: str, headers: dict[str, str]) -> None:
    assert (await client.call("PUT", path, headers=headers)).status == 201


async def append(client: Client, path: str, data: bytes, headers: dict[str, str] | None = None) -> Answer:
    return await client.call("PUT", path, query="comp=appendblock", headers=headers, body=data)


async def write(client: Client, path: str, start: int, data: bytes, headers: dict[str, str] | None = None) -> Answer:
    sent = {"x-ms-page-write": "update", "x-ms-range": f"bytes={start}-{start + len(data) - 1}", **(headers or {})}
    return await client.call("PUT", path, query="comp=page", headers=sent, body=data)


async def test_many_appenders_lose_nothing_and_share_no_place(fleet: Fleet, container: str, chance: random.Random) -> None:
    # race A1, A2
    path = f"{container}/log"
    sizes = [[chance.choice([1, 100, 5000, 60_000, 70_000, 200_000]) for _ in range(BLOCKS)] for _ in range(APPENDERS)]
    async with connected(fleet.ports, APPENDERS) as clients:
        await clients[0].create_container(container)
        await create(clients[0], path, {"x-ms-blob-type": "AppendBlob"})

        async def work(client: Client, number: int) -> list[tuple[Answer, bytes]]:
            blocks = [numbered_bytes(number * 1000 + iteration, size) for iteration, size in enumerate(sizes[number])]
            return [(await append(client, path, block), block) for block in blocks]

        appended = [pair for pairs in await together(clients, work) for pair in pairs]
        assert {answer.status for answer, _ in appended} == {201}
        appended.sort(key=lambda pair: int(pair[0].headers["x-ms-blob-append-offset"]))
        position = 0
        for count, (answer, block) in enumerate(appended, start=1):
            assert answer.headers["x-ms-blob-append-offset"] == str(position)
            assert answer.headers["x-ms-blob-committed-block-count"] == str(count)
            position += len(block)
        assert len({answer.etag for answer, _ in appended}) == len(appended)
        for client in clients[:2]:
            assert (await client.get_blob(path)).body == b"".join(block for _, block in appended)


async def test_of_many_who_append_at_one_place_exactly_one_does(fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G5, race A3
    path = f"{container}/log"
    async with connected(fleet.ports, APPENDERS) as clients:
        await clients[0].create_container(container)
        await create(clients[0], path, {"x-ms-blob-type": "AppendBlob"})
        whole = b""
        for _ in range(8):
            size, place = chance.choice([100, 100_000]), str(len(whole))

            async def work(client: Client, number: int, size: int = size, place: str = place) -> Answer:
                return await append(client, path, numbered_bytes(number, size), {"x-ms-blob-condition-appendpos": place})

            answers = await together(clients, work)
            assert Counter(answer.outcome for answer in answers) == {"201": 1, "412 AppendPositionConditionNotMet": APPENDERS - 1}
            whole += numbered_bytes(next(n for n, answer in enumerate(answers) if answer.status == 201), size)
        assert (await clients[1].get_blob(path)).body == whole


async def test_readers_see_a_prefix_of_what_is_appended_and_hinder_nobody(fleet: Fleet, container: str) -> None:
    # contract G3, race A4
    path, count_of_blocks = f"{container}/log", 60
    async with connected(fleet.ports, 6) as clients:
        await clients[0].create_container(container)
        await create(clients[0], path, {"x-ms-blob-type": "AppendBlob"})
        blocks = [numbered_bytes(number, 50_000 if number % 2 else 90_000) for number in range(count_of_blocks)]
        whole = b"".join(blocks)
        ends = {sum(len(block) for block in blocks[:count]) for count in range(count_of_blocks + 1)}
        done = asyncio.Event()

        async def work(client: Client, number: int) -> None:
            if number == 0:
                assert {(await append(client, path, block)).status for block in blocks} == {201}
                done.set()
            while not done.is_set():
                found = await client.get_blob(path)
                assert found.status == 200
                assert len(found.body) in ends
                assert found.body == whole[: len(found.body)]

        await together(clients, work)
        assert (await clients[1].get_blob(path)).body == whole


async def test_a_slow_download_of_a_page_blob_is_one_state_however_much_is_written_meanwhile(
    fleet: Fleet, container: str
) -> None:
    # contract G3
    path, size, step = f"{container}/disk", 24 * MIB, 48 * 1024
    async with connected(fleet.ports, 3) as (writer, reader, other):
        await writer.create_container(container)
        await create(writer, path, {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(size)})
        for start in range(0, size, 4 * MIB):
            await write(writer, path, start, numbered_bytes(1, 4 * MIB))
        for start in range(0, size // 2, 10 * step):
            await write(writer, path, start, numbered_bytes(2, step))  # small writes between the large ones
        before = (await other.get_blob(path)).body
        await reader.send("GET", path, headers={})
        status, headers = await reader.receive_head()
        assert (status, headers["content-length"]) == (200, str(size))
        for start in range(0, size, 4 * MIB):
            assert (await write(writer, path, start, numbered_bytes(3, 4 * MIB))).status == 201
        for start in range(0, size, 4 * step):
            assert (await write(writer, path, start, numbered_bytes(4, step))).status == 201
        cleared = {"x-ms-page-write": "clear", "x-ms-range": f"bytes={size // 2}-{size - 1}"}
        assert (await writer.call("PUT", path, query="comp=page", headers=cleared)).status == 201
        assert reader.reader is not None
        assert await reader.reader.readexactly(size) == before
        assert (await other.get_blob(path)).body != before


async def test_writers_of_neighbouring_pages_do_not_disturb_each_other(
    fleet: Fleet, container: str, chance: random.Random
) -> None:
    # contract G1
    path, writers = f"{container}/disk", 8
    lane = 256 * 1024
    async with connected(fleet.ports, writers) as clients:
        await clients[0].create_container(container)
        await create(clients[0], path, {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(lane * writers)})
        dice = [random.Random(chance.random()) for _ in clients]

        async def work(client: Client, number: int) -> bytes:
            mine = bytearray(lane)
            for iteration in range(25):
                count = dice[number].choice([1, 5, 100, 200])
                first = dice[number].randrange(lane // PAGE - count + 1) * PAGE
                data = numbered_bytes(number * 1000 + iteration, count * PAGE)
                assert (await write(client, path, number * lane + first, data)).status == 201
                mine[first : first + len(data)] = data
                if iteration % 10 == 5:
                    assert (await client.snapshot(path)).status == 201
            return bytes(mine)

        lanes = await together(clients, work)
        assert (await clients[1].get_blob(path)).body == b"".join(lanes)


async def test_of_many_writers_with_one_sequence_number_all_or_none_pass(fleet: Fleet, container: str) -> None:
    # contract G5: a writer that was replaced (fenced off by a newer number) writes no more
    path = f"{container}/disk"
    async with connected(fleet.ports, 8) as clients:
        await clients[0].create_container(container)
        await create(clients[0], path, {"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(PAGE)})
        fence = {"x-ms-sequence-number-action": "increment"}

        async def work(client: Client, number: int) -> list[str]:
            if number == 0:
                return [(await client.call("PUT", path, query="comp=properties", headers=fence)).outcome]
            data = numbered_bytes(number, PAGE)
            return [(await write(client, path, 0, data, {"x-ms-if-sequence-number-eq": "0"})).outcome for _ in range(10)]

        outcomes = await together(clients, work)
        assert outcomes[0] == ["200"]
        for mine in outcomes[1:]:
            assert set(mine) <= {"201", "412 SequenceNumberConditionNotMet"}
            assert mine == sorted(mine)  # once refused, always refused
        late = await write(clients[1], path, 0, numbered_bytes(1, PAGE), {"x-ms-if-sequence-number-eq": "0"})
        assert late.outcome == "412 SequenceNumberConditionNotMet"


async def test_appended_blocks_survive_a_kill(own_fleet: Fleet, container: str) -> None:
    # contract G6
    path = f"{container}/log"
    async with connected(own_fleet.ports, 2) as clients:
        await clients[0].create_container(container)
        await create(clients[0], path, {"x-ms-blob-type": "AppendBlob"})
        blocks = [
            numbered_bytes(number, 60_000 if number % 3 else 100_000) for number in range(90)
        ]  # some spill, some are extents
        assert {(await append(client, path, block)).status for block in blocks for client in clients[:1]} == {201}
    own_fleet.restart()
    async with connected(own_fleet.ports, 1) as clients:
        assert (await clients[0].get_blob(path)).body == b"".join(blocks)
        assert (await append(clients[0], path, b"on")).headers["x-ms-blob-committed-block-count"] == "91"
