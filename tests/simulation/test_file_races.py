"""Races on a directory tree: clients of two processes create, rename, list, write and delete in one share at the same moment.

Each race runs on two workers with SQLite and on two processes with one PostgreSQL, clients alternating between them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from xml.etree.ElementTree import fromstring

import pytest

from tests.contract.postgres import PostgresServer
from tests.simulation.client import Answer, Client, connected, together
from tests.simulation.servers import PATIENCE_SECONDS, Fleet
from verditer.services.account import DEVELOPMENT_ACCOUNT

RACERS = 8
ROUNDS = 6
FILE_BYTES = 1000  # of every file, so that the statistics of the share tell their number
GIB = 1 << 30


class Share:
    """The requests of one client about one share."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.name = name

    async def create(self, quota_gib: int = 100) -> None:
        answer = await self.client.call("PUT", self.name, query="restype=share", headers={"x-ms-share-quota": str(quota_gib)})
        assert answer.status == 201

    async def make(self, path: str) -> Answer:
        return await self.client.call("PUT", f"{self.name}/{path}", query="restype=directory")

    async def put(self, path: str, size: int = FILE_BYTES) -> Answer:
        headers = {"x-ms-type": "file", "x-ms-content-length": str(size)}
        return await self.client.call("PUT", f"{self.name}/{path}", headers=headers)

    async def write(self, path: str, start: int, data: bytes) -> Answer:
        headers = {"x-ms-write": "update", "x-ms-range": f"bytes={start}-{start + len(data) - 1}"}
        return await self.client.call("PUT", f"{self.name}/{path}", query="comp=range", headers=headers, body=data)

    async def get(self, path: str) -> Answer:
        return await self.client.call("GET", f"{self.name}/{path}")

    async def move(self, source: str, target: str, *, directory: bool = True) -> Answer:
        url = f"http://127.0.0.1:{self.client.port}/{DEVELOPMENT_ACCOUNT}/{self.name}/{source}"
        query = "restype=directory&comp=rename" if directory else "comp=rename"
        return await self.client.call("PUT", f"{self.name}/{target}", query=query, headers={"x-ms-file-rename-source": url})

    async def remove(self, path: str) -> Answer:
        return await self.client.call("DELETE", f"{self.name}/{path}", query="restype=directory")

    async def snapshot(self) -> str:
        answer = await self.client.call("PUT", self.name, query="restype=share&comp=snapshot")
        return answer.headers["x-ms-snapshot"]

    async def names(self, path: str = "", snapshot: str = "") -> list[str] | None:
        """The names in a directory, with a slash behind those of directories. None: it does not exist."""
        query = "restype=directory&comp=list" + (f"&sharesnapshot={snapshot}" if snapshot else "")
        answer = await self.client.call("GET", f"{self.name}/{path}".rstrip("/"), query=query)
        if answer.status == 404:
            return None
        entries = fromstring(answer.body.removeprefix(b"\xef\xbb\xbf")).find("Entries") or ()
        return [f"{entry.findtext('Name')}{'/' if entry.tag == 'Directory' else ''}" for entry in entries]

    async def tree(self, path: str = "") -> list[str]:
        """The paths of everything below a directory."""
        found: list[str] = []
        for name in await self.names(path) or []:
            found += [path + name, *(await self.tree(path + name) if name.endswith("/") else [])]
        return found

    async def usage_bytes(self) -> int:
        answer = await self.client.call("GET", self.name, query="restype=share&comp=stats")
        return int(fromstring(answer.body.removeprefix(b"\xef\xbb\xbf")).findtext("ShareUsageBytes") or "")


@asynccontextmanager
async def clients_of(fleet: Fleet, name: str, quota_gib: int = 100) -> AsyncIterator[list[Share]]:
    """Clients of a new share. Afterwards it holds the bytes that its statistics tell: no file is out of reach."""
    ports = [server.ports["file"] for server in fleet.servers]
    async with connected(ports, RACERS) as clients:
        shares = [Share(client, name) for client in clients]
        await shares[0].create(quota_gib)
        yield shares
        files = [path for path in await shares[0].tree() if not path.endswith("/")]
        assert await shares[1].usage_bytes() == len(files) * FILE_BYTES


@pytest.fixture(autouse=True)
def no_transactions_wait_for_each_other(simulation_postgres: PostgresServer) -> Iterator[None]:
    """PostgreSQL ends that after a second, so clients would only see slow answers."""
    before = simulation_postgres.deadlocks
    yield
    assert simulation_postgres.deadlocks == before


def outcomes(answers: Sequence[Answer]) -> Counter[str]:
    return Counter(answer.outcome for answer in answers)


async def test_of_many_who_want_one_name_exactly_one_gets_it(fleet: Fleet, container: str) -> None:
    # contract G5
    async with clients_of(fleet, container) as shares:
        clients = [share.client for share in shares]
        for iteration in range(ROUNDS):
            made = await together(clients, lambda _, number, iteration=iteration: shares[number].make(f"directory-{iteration}"))  # type: ignore[misc]
            assert outcomes(made) == {"201": 1, "409 ResourceAlreadyExists": RACERS - 1}
            for number, share in enumerate(shares):
                await share.put(f"source-{number}")
            moved = await together(
                clients,
                lambda _, number, iteration=iteration: shares[number].move(
                    f"source-{number}", f"file-{iteration}", directory=False
                ),  # type: ignore[misc]
            )
            assert outcomes(moved) == {"200": 1, "409 ResourceAlreadyExists": RACERS - 1}


async def test_what_is_created_below_a_moving_directory_is_found_once(fleet: Fleet, container: str) -> None:
    async with clients_of(fleet, container) as shares:
        await shares[0].make("here")

        async def move() -> None:
            for _ in range(ROUNDS):
                assert (await shares[0].move("here", "there")).status == 200
                assert (await shares[0].move("there", "here")).status == 200

        async def create(number: int) -> list[str]:
            created = []
            for iteration in range(2 * ROUNDS):
                answer = await shares[number].put(f"here/{number}-{iteration}")
                assert answer.outcome in ("201", "404 ParentNotFound")
                created += [f"{number}-{iteration}"] if answer.status == 201 else []
            return created

        _, created = await asyncio.gather(move(), asyncio.gather(*map(create, range(1, RACERS))))
        assert sorted(await shares[1].names("here") or []) == sorted([name for names in created for name in names])


async def test_crossing_renames_end_and_every_directory_stays_in_reach(fleet: Fleet, container: str) -> None:
    moves = [
        ("a", "b/y/a"),
        ("b", "a/x/b"),
        ("b/y/a", "a"),
        ("a/x/b", "b"),
        ("a/x", "x"),
        ("x", "b/x"),
        ("b/x", "a/x"),
        ("b/y", "y"),
    ]
    async with clients_of(fleet, container) as shares:
        for path in ("a", "a/x", "b", "b/y"):
            await shares[0].make(path)

        async def move(number: int) -> list[Answer]:
            return [await shares[number].move(*moves[(number + iteration) % len(moves)]) for iteration in range(2 * ROUNDS)]

        answers = await asyncio.wait_for(asyncio.gather(*map(move, range(RACERS))), PATIENCE_SECONDS)
        assert {answer.status for each in answers for answer in each} <= {200, 400, 404, 409}
        found = await shares[0].tree()
        assert sorted(path.rstrip("/").rpartition("/")[2] for path in found) == ["a", "b", "x", "y"]


async def test_a_directory_is_deleted_or_gets_a_file(fleet: Fleet, container: str) -> None:
    # contract F4
    async with clients_of(fleet, container) as shares:
        for iteration in range(ROUNDS):
            path = f"directory-{iteration}"
            await shares[0].make(path)
            deleted, *created = await asyncio.gather(
                shares[0].remove(path), *[share.put(f"{path}/{number}") for number, share in enumerate(shares[1:])]
            )
            expected = (
                ("202", {"404 ParentNotFound"})
                if deleted.status == 202
                else ("409 DirectoryNotEmpty", {"201", "404 ParentNotFound"})
            )
            assert deleted.outcome == expected[0]
            assert set(outcomes(created)) <= expected[1]
            found = await shares[1].names(path)
            assert found == (
                None if deleted.status == 202 else sorted(f"{n}" for n, one in enumerate(created) if one.status == 201)
            )


async def test_listings_and_snapshots_show_a_directory_before_or_after_its_rename(fleet: Fleet, container: str) -> None:
    # contract G3
    async with clients_of(fleet, container) as shares:
        await shares[0].make("a")
        for number in range(4):
            await shares[0].put(f"a/{number}")
        inside = ["0", "1", "2", "3"]

        async def move() -> None:
            for _ in range(ROUNDS):
                assert (await shares[0].move("a", "b")).status == 200
                assert (await shares[0].move("b", "a")).status == 200

        async def look(share: Share) -> None:
            for _ in range(2 * ROUNDS):
                assert await share.names() in (["a/"], ["b/"])
                assert await share.names("a") in (None, inside)

        async def take(share: Share) -> None:
            for _ in range(ROUNDS):
                snapshot = await share.snapshot()
                [seen] = await share.names(snapshot=snapshot) or []
                assert await share.names(seen, snapshot) == inside

        await asyncio.gather(move(), take(shares[1]), *map(look, shares[2:]))


async def test_writers_of_disjoint_ranges_all_succeed(fleet: Fleet, container: str) -> None:
    # contract F1, G2
    length = 3 * 512
    async with clients_of(fleet, container) as shares:
        await shares[0].put("file", RACERS * length)
        for iteration in range(ROUNDS):
            patterns = [b"%04d%04d" % (iteration, number) for number in range(RACERS)]

            async def write(number: int, patterns: list[bytes] = patterns) -> Answer:
                return await shares[number].write("file", number * length, patterns[number] * (length // 8))

            assert outcomes(await asyncio.gather(*map(write, range(RACERS)))) == {"201": RACERS}
            expected = b"".join(pattern * (length // 8) for pattern in patterns)
            assert [(await share.get("file")).body for share in shares[:2]] == [expected, expected]
        await shares[0].put("file")  # of the size that all other files have


async def test_files_that_grow_at_once_stay_within_the_quota(shared_sqlite: Fleet, container: str) -> None:
    # contract G5; on PostgreSQL only the files of one node do, see `services/file/usage.py`
    async with clients_of(shared_sqlite, container, quota_gib=4) as shares:
        for iteration in range(ROUNDS):
            grown = await asyncio.gather(*[share.put(f"{iteration}-{number}", GIB) for number, share in enumerate(shares)])
            assert outcomes(grown) == {"201": 4, "403 ShareSizeLimitReached": RACERS - 4}
            assert await shares[0].usage_bytes() == 4 * GIB
            for path in await shares[0].names() or []:
                await shares[0].client.call("DELETE", f"{container}/{path}")
