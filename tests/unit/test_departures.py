"""When answers leave: at once for a few clients, together where many wait."""

import asyncio
from collections.abc import Awaitable, Callable

from verditer.rest.departures import Departures

BRIEF, LONG = 0.000_01, 0.001  # between two clients of one turn, and where nobody came for a while


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Port:
    """Clients that come, and those whose answers have left, in their order."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.departures = Departures(self.clock)
        self.left: list[str] = []

    def come(self, *gaps: float) -> None:
        for gap in gaps:
            self.clock.now += gap
            self.departures.arrival(self.clock.now)
            self.departures.arrived()

    def wait(self, *names: str) -> None:
        for name in names:
            self.departures.wait(Client(name, self.left))


class Client:
    def __init__(self, name: str, left: list[str]) -> None:
        self._name = name
        self._left = left

    def depart(self) -> None:
        self._left.append(self._name)


def run(story: Callable[[Port], Awaitable[None]]) -> None:
    async def told() -> None:
        await story(Port())

    asyncio.run(told())


def test_who_comes_alone_is_answered_at_once() -> None:
    async def story(port: Port) -> None:
        port.come(LONG, LONG, LONG, BRIEF, LONG)
        assert not port.departures.gathering

    run(story)


def test_answers_wait_where_clients_come_one_upon_the_other() -> None:
    async def story(port: Port) -> None:
        port.come(LONG, BRIEF)
        assert not port.departures.gathering
        port.come(BRIEF)
        assert port.departures.gathering
        port.come(LONG)
        assert not port.departures.gathering

    run(story)


def test_those_that_wait_leave_in_their_order_with_the_turn() -> None:
    async def story(port: Port) -> None:
        port.wait("a", "b", "c")
        assert port.left == []
        await asyncio.sleep(0)
        assert port.left == ["a", "b", "c"]
        assert port.departures.gathering  # there are many: the next ones wait too

    run(story)


def test_one_that_left_alone_is_the_last_to_wait() -> None:
    async def story(port: Port) -> None:
        port.wait("a", "b")
        await asyncio.sleep(0)
        port.wait("c")
        await asyncio.sleep(0)
        assert port.left == ["a", "b", "c"]
        assert not port.departures.gathering

    run(story)


def test_sixteen_leave_at_once() -> None:
    async def story(port: Port) -> None:
        port.wait(*"abcdefghijklmno")
        assert port.left == []
        port.wait("p", "q")
        assert port.left == [*"abcdefghijklmnop"]
        await asyncio.sleep(0)
        assert port.left[-1] == "q"

    run(story)


def test_nobody_waits_for_a_slow_one() -> None:
    async def story(port: Port) -> None:
        port.wait("a")
        port.clock.now += 0.003
        port.wait("b")
        assert port.left == ["a", "b"]

    run(story)
