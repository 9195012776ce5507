"""Reads during writes: a reader and a listing see one complete committed state (contract G3)."""

import asyncio
import base64
import hashlib
import itertools
import random
import re
from pathlib import Path

from tests.simulation.client import Answer, Client, all_at_once, block_id, connected, numbered_bytes, order_of
from tests.simulation.servers import Fleet, Server, until

SIZES = (7, 5_000, 60_000, 70_000, 300_000, 1_500_000)
SECONDS = 1.5
DOWNLOADS = 15


async def test_a_read_is_of_one_version_while_the_blob_is_overwritten(
    fleet: Fleet, container: str, chance: random.Random
) -> None:
    # contract G2, G3; race E9
    path = f"{container}/blob"
    etags: dict[str, int] = {}
    versions = itertools.count(1)
    size_of: dict[int, int] = {}
    async with connected(fleet.ports, 9) as clients:
        await clients[0].create_container(container)
        end = asyncio.get_running_loop().time() + SECONDS

        async def write_one(client: Client) -> None:
            version = next(versions)
            size = size_of[version] = chance.choice(SIZES)
            data = numbered_bytes(version, size)
            md5 = base64.b64encode(hashlib.md5(data).digest()).decode()
            headers = {"x-ms-meta-version": str(version), "x-ms-blob-content-md5": md5}
            if size > 4 and chance.random() < 0.4:
                half = size // 2
                a, b = block_id(f"{version:08}a"), block_id(f"{version:08}b")
                await client.put_block(path, a, data[:half])
                await client.put_block(path, b, data[half:])
                answer = await client.put_block_list(path, [a, b], headers)
                assert answer.outcome in ("201", "400 InvalidBlockList")  # another writer has written in between
            else:
                answer = await client.put_blob(path, data, headers)
                assert answer.status == 201
            if answer.status == 201:
                etags[answer.etag] = version

        async def write(client: Client) -> None:
            while asyncio.get_running_loop().time() < end:
                await write_one(client)

        async def read(client: Client, ranged: bool) -> list[Answer]:
            answers: list[Answer] = []
            while asyncio.get_running_loop().time() < end or len(answers) < 6:
                answer = await client.get_blob(path, {"x-ms-range": "bytes=3-"} if ranged else None)
                check(answer, ranged)
                answers.append(answer)
            return answers

        def check(answer: Answer, ranged: bool) -> None:
            assert answer.status == (206 if ranged else 200)
            version = int(answer.headers["x-ms-meta-version"])
            whole = numbered_bytes(version, size_of[version])
            assert answer.body == (whole[3:] if ranged else whole)
            if ranged:
                assert answer.headers["content-range"] == f"bytes 3-{len(whole) - 1}/{len(whole)}"
            md5 = answer.headers["x-ms-blob-content-md5" if ranged else "content-md5"]
            assert base64.b64decode(md5) == hashlib.md5(whole).digest()

        await write_one(clients[0])
        *_, first, second, third, fourth = await all_at_once(
            [*[write(client) for client in clients[:5]], *[read(client, i % 2 == 1) for i, client in enumerate(clients[5:])]]
        )
    for answers in (first, second, third, fourth):
        assert answers is not None
        assert len(answers) > 5
        ticks = [order_of(answer.etag) for answer in answers]
        assert ticks == sorted(ticks), "a later read saw an earlier version"
        assert all(etags[answer.etag] == int(answer.headers["x-ms-meta-version"]) for answer in answers if answer.etag in etags)


async def test_a_slow_download_gets_the_version_it_began_with(fleet: Fleet, container: str) -> None:
    # contract G3: overwritten, then deleted, while it is being read
    path = f"{container}/blob"
    size = 24 << 20  # more than sockets and buffers can hold
    async with connected(fleet.ports, 4) as [writer, *readers]:
        await writer.create_container(container)
        blocks = [block_id(f"{number}") for number in range(6)]
        for number, block in enumerate(blocks):
            await writer.put_block(path, block, numbered_bytes(number, size // 6))
        etag = (await writer.put_block_list(path, blocks)).etag
        for reader in readers:
            await reader.send("GET", path, headers={})
        heads = [await reader.receive_head() for reader in readers]
        await writer.put_blob(path, b"other")
        await writer.delete_blob(path)
        for reader, (status, headers) in zip(readers, heads, strict=True):
            assert (status, headers["etag"]) == (200, etag)
            assert reader.reader is not None
            body = await reader.reader.readexactly(size)
            assert body == b"".join(numbered_bytes(number, size // 6) for number in range(6))


async def test_no_slow_download_is_cut_while_the_blob_is_overwritten_under_a_busy_collector(
    tmp_path: Path, chance: random.Random
) -> None:
    # contract G3: the clock jumps by minutes, and one of two workers collects ten times a second
    server = Server(tmp_path / "data", collect_seconds=0.1).start()
    path, size, blocks = "container/blob", 12 << 20, [block_id(str(number)) for number in range(6)]
    overwritten, written, whole = asyncio.Event(), 0, 0

    async def overwrite(client: Client) -> None:
        nonlocal overwritten, written
        for block in blocks:
            await client.put_block(path, block, numbered_bytes(written, size // len(blocks)))
        answer = await client.put_block_list(path, blocks, {"x-ms-meta-version": str(written)})
        assert answer.status == 201
        written += 1
        overwritten.set()
        overwritten = asyncio.Event()

    async def download(client: Client) -> None:
        """A piece for each version that is written meanwhile."""
        nonlocal whole
        while whole < DOWNLOADS:
            await client.send("GET", path, headers={})
            status, headers = await client.receive_head()
            assert status == 200
            part = numbered_bytes(int(headers["x-ms-meta-version"]), size // len(blocks))
            for _ in blocks:
                assert client.reader is not None
                assert await client.reader.readexactly(len(part)) == part
                if whole < DOWNLOADS:
                    await overwritten.wait()
            whole += 1

    async def drive(client: Client) -> None:
        while whole < DOWNLOADS:
            await asyncio.to_thread(server.move_clock, chance.randint(20, 100))
            await overwrite(client)

    try:
        async with connected([server.port], 6, receive_buffer_bytes=1 << 16) as [writer, *readers]:
            await writer.create_container("container")
            await overwrite(writer)
            await all_at_once([drive(writer), *map(download, readers)])
        assert "ERROR" not in server.log, server.log
        extents = tmp_path / "data" / "extents"
        await until(lambda: sum(file.is_file() for file in extents.rglob("*")) < written)  # each version had six
    finally:
        server.kill()


async def test_a_listing_page_is_one_committed_state(fleet: Fleet, container: str) -> None:
    # contract G2, G3: every writer writes its first blob, then its second, so no page may show the second one ahead
    pairs = 6
    async with connected(fleet.ports, pairs + 2) as clients:
        await clients[0].create_container(container)
        end = asyncio.get_running_loop().time() + SECONDS
        acknowledged = [0] * pairs

        async def write(client: Client, pair: int) -> None:
            for version in itertools.count(1):
                for name in ("a", "b"):
                    data = numbered_bytes(version, 100 * version % 7000 + 8)
                    await client.put_blob(f"{container}/{name}{pair}", data, {"x-ms-meta-version": str(version)})
                acknowledged[pair] = version
                if asyncio.get_running_loop().time() > end:
                    return

        async def watch(client: Client) -> int:
            pages = 0
            while asyncio.get_running_loop().time() < end or pages < 6:
                before = list(acknowledged)
                versions = _versions((await client.list_blobs(container, include="metadata")).body)
                pages += 1
                for pair in range(pairs):
                    first, second = versions.get(f"a{pair}", 0), versions.get(f"b{pair}", 0)
                    assert first - 1 <= second <= first, "the page mixes two states"
                    assert second >= before[pair], "the page is older than an acknowledged write"
            return pages

        writing = [write(client, pair) for pair, client in enumerate(clients[2:])]
        *_, one, other = await all_at_once([*writing, watch(clients[0]), watch(clients[1])])
        assert (one or 0) + (other or 0) > 10


def _versions(page: bytes) -> dict[str, int]:
    """Blob name → version, after checking that each entry is consistent."""
    found = {}
    for entry in re.findall(r"<Blob>.*?</Blob>", page.decode(), re.DOTALL):
        name, length, md5, version = (
            re.findall(rf"<{tag}>(.*?)</{tag}>", entry)[0] for tag in ("Name", "Content-Length", "Content-MD5", "version")
        )
        data = numbered_bytes(int(version), 100 * int(version) % 7000 + 8)
        assert int(length) == len(data)
        assert base64.b64decode(md5) == hashlib.md5(data).digest()
        found[name] = int(version)
    return found
