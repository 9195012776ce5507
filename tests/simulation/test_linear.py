"""Linearizability: a sequential order explains the results of random calls by many clients, per blob (contract G2, G5)."""

import asyncio
import math
import random
from collections.abc import Callable

import pytest

from tests.simulation.client import Answer, Client, Gone, connected, together
from tests.simulation.linear import ANY, Call, State, unexplained
from tests.simulation.servers import Fleet

BLOBS = 3
Now = Callable[[], float]


class Recorder:
    """Random calls on a few blobs, and their recorded history."""

    def __init__(self, container: str, chance: random.Random) -> None:
        self.container = container
        self.histories: list[list[Call]] = [[] for _ in range(BLOBS)]
        self._chance = chance
        self._etags: list[str] = ['"0x1"'] * BLOBS
        self._writes = 0

    async def call(self, client: Client) -> bool:
        """Make one call; False if its response was lost."""
        blob = self._chance.randrange(BLOBS)
        do = self._chance.choices(["put", "set", "get", "delete"], [5, 2, 5, 1])[0]
        condition = self._chance.random() if do != "get" else 1.0
        if_match = self._etags[blob] if condition < 0.4 else None
        if_none = do == "put" and 0.4 <= condition < 0.55
        self._writes += 1
        value = f"{self._writes}" if do in ("put", "set") else ""
        now = asyncio.get_running_loop().time
        invoked = now()
        try:
            answer = await self._send(client, do, blob, value, if_match, if_none)
        except Gone:
            if do != "get":
                self._record(blob, Call(do=do, invoked=invoked, if_match=if_match, if_none=if_none, value=value))
            return False
        returned = now()
        if do == "get" and answer.status == 200:
            value = answer.body.decode()[: 8 * 10].partition(":")[0] + _meta(answer)
        etag = answer.headers.get("etag", ANY) if answer.status in (200, 201) else ANY
        self._etags[blob] = self._etags[blob] if etag == ANY else etag
        self._record(
            blob,
            Call(
                do=do,
                invoked=invoked,
                returned=returned if answer.status < 500 else math.inf,
                if_match=if_match,
                if_none=if_none,
                value=value,
                etag=etag,
                outcome=answer.outcome if answer.status < 500 else "",
            ),
        )
        return answer.status < 500

    def _record(self, blob: int, call: Call) -> None:
        self.histories[blob].append(call)

    async def _send(self, client: Client, do: str, blob: int, value: str, if_match: str | None, if_none: bool) -> Answer:
        path = f"{self.container}/blob-{blob}"
        headers = {"If-Match": if_match} if if_match is not None else {"If-None-Match": "*"} if if_none else {}
        match do:
            case "put":
                size = self._chance.choice([10, 10, 1000, 90_000])
                return await client.put_blob(path, f"{value}:".encode().ljust(size, b"."), headers)
            case "set":
                return await client.set_metadata(path, {"x-ms-meta-by": value, **headers})
            case "delete":
                return await client.delete_blob(path, headers)
        return await client.get_blob(path)


def _meta(answer: Answer) -> str:
    by = answer.headers.get("x-ms-meta-by")
    return f"/{by}" if by is not None else ""


def assert_linear(histories: list[list[Call]]) -> None:
    for blob, history in enumerate(histories):
        lines = "\n".join(map(str, sorted(history, key=lambda call: call.invoked)))
        assert (call := unexplained(history)) is None, f"no order of the calls on blob {blob} explains {call}:\n{lines}"


async def test_random_calls_by_many_clients_have_an_order(fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G2, G5
    recorder = Recorder(container, chance)
    async with connected(fleet.ports, 8) as clients:
        await clients[0].create_container(container)

        async def work(client: Client, number: int) -> None:
            for _ in range(60):
                assert await recorder.call(client)

        await together(clients, work)
    assert all(len(history) > 50 for history in recorder.histories)
    assert_linear(recorder.histories)


async def test_the_order_survives_a_kill(own_fleet: Fleet, container: str, chance: random.Random) -> None:
    # contract G2, G5, G6: calls without an answer may have happened or not; everything else is still explained
    recorder = Recorder(container, chance)
    async with connected(own_fleet.ports, 1) as [client]:
        await client.create_container(container)
    for _ in range(3):
        async with connected(own_fleet.ports, 8) as clients:

            async def work(client: Client, number: int) -> None:
                while await recorder.call(client):
                    pass

            working = asyncio.ensure_future(together(clients, work))
            await asyncio.sleep(0.15)
            own_fleet.restart()
            await working
    async with connected(own_fleet.ports, 8) as clients:

        async def look(client: Client, number: int) -> None:
            for _ in range(10):
                assert await recorder.call(client)

        await together(clients, look)
    assert_linear(recorder.histories)


def called(
    do: str, at: tuple[float, float], outcome: str, *, value: str = "", etag: str = ANY, if_match: str | None = None
) -> Call:
    return Call(do=do, invoked=at[0], returned=at[1], outcome=outcome, value=value, etag=etag, if_match=if_match)


PUT_1 = called("put", (0, 1), "201", value="1", etag="a")
PUT_2 = called("put", (2, 3), "201", value="2", etag="b")


@pytest.mark.parametrize(
    "history",
    [
        [PUT_1, PUT_2, called("get", (4, 5), "200", value="1", etag="a")],  # a stale read
        [PUT_1, called("get", (2, 3), "404 BlobNotFound")],  # a lost write
        [PUT_1, called("get", (2, 3), "200", value="1", etag="b")],  # the ETag of another version
        [
            PUT_1,
            called("put", (2, 5), "201", value="2", etag="b", if_match="a"),
            called("put", (2, 5), "201", value="3", etag="c", if_match="a"),
        ],  # two winners
        [PUT_1, PUT_2, called("set", (4, 5), "200", value="3", etag="c", if_match="a")],  # a lost update
        [
            PUT_1,
            called("put", (2, math.inf), "", value="2"),
            called("get", (4, 5), "200", value="2", etag="b"),
            called("get", (6, 7), "200", value="1", etag="a"),
        ],  # a write that appeared and disappeared
        [
            PUT_1,
            called("put", (2, math.inf), "", value="2"),
            PUT_2,
            called("delete", (4, 5), "202", if_match="a"),
        ],  # a condition that names another version
    ],
)
def test_the_checker_notices(history: list[Call]) -> None:
    assert unexplained(history) is history[-1]


def test_the_checker_lets_pass_what_can_be_explained() -> None:
    lost = called("put", (2, math.inf), "", value="2")
    assert unexplained([PUT_1, lost, called("get", (4, 5), "200", value="1", etag="a")]) is None
    assert unexplained([PUT_1, lost, called("get", (4, 5), "200", value="2", etag="b")]) is None
    assert unexplained([called("get", (0, 1), "200", value="1", etag="a")], State("a", "1")) is None
    overlapping = called("get", (2, 4), "200", value="1", etag="a")
    assert unexplained([PUT_1, PUT_2, overlapping]) is None


def test_many_lost_calls_do_not_multiply_what_has_to_be_tried() -> None:
    lost = [called(do, (2, math.inf), "", value=f"lost {number}") for number, do in enumerate(["put", "delete", "set"] * 20)]
    deleted = called("get", (4, 5), "404 BlobNotFound")
    appeared = called("get", (6, 7), "200", value="lost 3", etag="c")
    impossible = called("get", (8, 9), "200", value="4", etag="d")
    assert unexplained([PUT_1, *lost, deleted, appeared]) is None
    assert unexplained([PUT_1, *lost, deleted, appeared, impossible]) is impossible


def test_lost_calls_of_which_any_may_explain_a_response_are_not_told_apart() -> None:
    lost = [called(do, (0, math.inf), "", value=f"lost {number}") for number, do in enumerate(["put", "delete"] * 40)]
    history = list(lost)
    for number in range(1, 60, 3):
        history += [
            called("put", (number, number + 0.5), "201", value=f"{number}", etag=f"{number}"),
            called("get", (number + 1, number + 1.5), "404 BlobNotFound"),  # one of the lost deletes
            called("delete", (number + 2, number + 2.5), "202"),  # of what one of the lost puts has written
        ]
    assert unexplained(history) is None
    impossible = called("get", (70, 71), "200", value="1", etag="1")
    assert unexplained([*history, impossible]) is impossible
