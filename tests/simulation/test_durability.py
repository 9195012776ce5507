"""Acknowledged writes are durable (contract G6): servers are killed under load, clients disconnect in uploads, disks fill up."""

import asyncio
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.simulation.client import Answer, Client, Gone, block_id, connected, numbered_bytes, together
from tests.simulation.servers import Fleet, Server

ROUNDS = int(os.environ.get("VERDITER_KILLS", "4"))
PATIENCE_SECONDS = 60
SIZES = (10, 3_000, 60_000, 70_000, 400_000)


@dataclass(frozen=True)
class Version:
    """Content and metadata of a blob; None for both if it does not exist."""

    data: bytes | None = None
    meta: str | None = None


@dataclass
class Known:
    """One blob with one writer: the last acknowledged state, and the states of requests without a response."""

    sure: Version = Version()
    etag: str = ""
    perhaps: list[Version] = field(default_factory=list)


class Writer:
    """Writes its own blobs with different operations until the server is killed."""

    def __init__(self, container: str, number: int, chance: random.Random) -> None:
        self.blobs = {f"{container}/{number}-{index}": Known() for index in range(3)}
        self.acknowledged = asyncio.Semaphore(0)  # released once per write
        self._chance = chance
        self._count = number * 1_000_000

    async def run(self, client: Client, _: int) -> None:
        while True:
            path, known = self._chance.choice(list(self.blobs.items()))
            try:
                await self._write(client, path, known)
            except Gone:
                return

    async def _write(self, client: Client, path: str, known: Known) -> None:
        self._count += 1
        data = numbered_bytes(self._count, self._chance.choice(SIZES))
        match self._chance.choice(["put", "put", "blocks", "meta", "delete"]):
            case "put":
                await self._attempt(known, Version(data), client.put_blob(path, data))
            case "blocks":
                third = len(data) // 3 + 1
                parts = [data[start : start + third] for start in range(0, len(data), third)]
                ids = [block_id(f"{self._count:08}-{index}") for index in range(len(parts))]
                for id, part in zip(ids, parts, strict=True):
                    await client.put_block(path, id, part)
                await self._attempt(known, Version(data), client.put_block_list(path, ids))
            case "meta" if known.sure.data is not None:
                meta = str(self._count)
                await self._attempt(known, Version(known.sure.data, meta), client.set_metadata(path, {"x-ms-meta-by": meta}))
            case "delete" if known.sure.data is not None:
                await self._attempt(known, Version(), client.delete_blob(path))

    async def _attempt(self, known: Known, wanted: Version, call: "asyncio.Future[Answer] | object") -> None:
        known.perhaps = [wanted]
        answer = await call  # type: ignore[misc]
        assert answer.status in (200, 201, 202), answer.outcome
        known.sure, known.etag, known.perhaps = wanted, answer.headers.get("etag", ""), []
        self.acknowledged.release()

    async def verify(self, client: Client) -> None:
        for path, known in self.blobs.items():
            answer = await client.get_blob(path)
            found = Version()
            if answer.status == 200:
                found = Version(answer.body, answer.headers.get("x-ms-meta-by"))
            else:
                assert answer.outcome == "404 BlobNotFound"
            assert found in [known.sure, *known.perhaps], f"{path} is neither what was acknowledged nor what was asked for last"
            if found == known.sure and found not in known.perhaps and known.etag:
                assert answer.etag == known.etag
            known.sure, known.etag, known.perhaps = found, answer.headers.get("etag", ""), []


async def test_every_acknowledged_write_survives_a_kill(own_fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G6; races D1, B4
    async with connected(own_fleet.ports, 1) as [client]:
        await client.create_container(container)
    writers = [Writer(container, number, chance) for number in range(10)]
    for _ in range(ROUNDS):
        acknowledged = asyncio.Semaphore(0)
        for writer in writers:
            writer.acknowledged = acknowledged
        async with connected(own_fleet.ports, len(writers)) as clients:
            working = asyncio.ensure_future(together(clients, lambda client, number: writers[number].run(client, number)))
            async with asyncio.timeout(PATIENCE_SECONDS):
                for _ in range(chance.randint(11, 150)):  # the other writers are then at random points
                    await acknowledged.acquire()
            own_fleet.restart()
            await working
        async with connected(own_fleet.ports, len(writers)) as clients:
            await together(clients, lambda client, number: writers[number].verify(client))
            listed = (await clients[0].list_blobs(container)).body
            stored = {path for writer in writers for path, known in writer.blobs.items() if known.sure.data is not None}
            assert {f"{container}/{name}" for name in _names(listed)} == stored
    assert "ERROR" not in own_fleet.log, own_fleet.log
    assert "Traceback" not in own_fleet.log, own_fleet.log


def _names(page: bytes) -> list[str]:
    return [part.partition("</Name>")[0] for part in page.decode().split("<Name>")[1:]]


async def test_a_lease_survives_a_kill(own_fleet: Fleet, container: str) -> None:
    # contract L7, G6
    path, lease = f"{container}/blob", "11111111-2222-3333-4444-555555555555"
    async with connected(own_fleet.ports, 1) as [client]:
        await client.create_container(container)
        await client.put_blob(path, b"x")
        assert (await client.acquire(path, lease, 60)).status == 201
    own_fleet.restart()
    async with connected(own_fleet.ports, 1) as [client]:
        assert (await client.put_blob(path, b"y")).outcome == "412 LeaseIdMissing"
        assert (await client.put_blob(path, b"y", {"x-ms-lease-id": lease})).status == 201


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "data").start()
    yield server
    if server.alive:
        server.kill()


async def test_a_client_that_vanishes_leaves_nothing(alone: Server, container: str, chance: random.Random) -> None:
    # contract G7, race G2
    async with connected([alone.port], 12) as clients:
        await clients[0].create_container(container)
        await clients[0].put_blob(f"{container}/kept", b"before")

        async def vanish(client: Client, number: int) -> None:
            for iteration in range(6):
                path = chance.choice([f"{container}/kept", f"{container}/new-{number}-{iteration}"])
                size = chance.choice([10_000, 300_000, 3_000_000])
                head = {"x-ms-blob-type": "BlockBlob"}
                if chance.random() < 0.5:
                    head["Content-Length"] = str(size)
                    body = bytes(chance.randrange(size))
                else:
                    head["Transfer-Encoding"] = "chunked"
                    body = b"%x\r\n%b" % (size, bytes(chance.randrange(size)))
                query = chance.choice(["", "", f"comp=block&blockid={block_id('1')}"])
                await client.send("PUT", path, query=query, headers=head, body=body)
                await asyncio.sleep(chance.uniform(0, 0.02))
                client.reset() if chance.random() < 0.7 else client.close()

        await together(clients, vanish)
        async with connected([alone.port], 1) as [client]:
            assert _names((await client.list_blobs(container, include="uncommittedblobs")).body) == ["kept"]
            assert (await client.get_blob(f"{container}/kept")).body == b"before"
            for _ in range(100):
                if not _extents(alone):
                    break
                await asyncio.sleep(0.05)
            assert _extents(alone) == [], alone.log
            assert (await client.put_blob(f"{container}/kept", numbered_bytes(1, 300_000))).status == 201
    assert "ERROR" not in alone.log, alone.log


async def test_a_full_disk_refuses_and_leaves_nothing(tmp_path: Path, container: str) -> None:
    # contract G6, G7; race D1: no file may grow beyond two megabytes, neither an extent nor the store itself
    small = Server(tmp_path / "data", max_file_bytes=2 << 20).start()
    kept = []
    try:
        async with connected([small.port], 1) as [client]:
            await client.create_container(container)
            large = await client.put_blob(f"{container}/large", bytes(5_000_000))
            assert large.outcome == "507 InsufficientStorage"
            assert (await client.get_blob(f"{container}/large")).outcome == "404 BlobNotFound"
            assert _extents(small) == []
            refused = 0
            for number in range(80):
                answer = await client.put_blob(f"{container}/{number}", numbered_bytes(number, 60_000))
                assert answer.status == 201 or answer.status >= 500, answer.outcome
                if answer.status == 201:
                    kept.append(number)
                else:
                    assert answer.code in ("ServerBusy", "InsufficientStorage")
                    refused += 1
            assert kept, "nothing could be written at all"
            assert refused, "the store never became full"
            assert len(_names((await client.list_blobs(container)).body)) == len(kept)
            assert (await client.get_blob(f"{container}/{kept[-1]}")).body == numbered_bytes(kept[-1], 60_000)
        assert small.stop() == 0
        small = Server(tmp_path / "data").start()
        async with connected([small.port], 1) as [client]:
            for number in kept:
                assert (await client.get_blob(f"{container}/{number}")).body == numbered_bytes(number, 60_000)
            assert (await client.put_blob(f"{container}/large", bytes(5_000_000))).status == 201
    finally:
        if small.alive:
            small.kill()


def _extents(server: Server) -> list[Path]:
    return [path for path in (server.folder / "extents").rglob("*") if path.is_file()]
