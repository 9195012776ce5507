"""Response batching: responses are written at once for a few clients, and together under load."""

import asyncio
from collections.abc import Awaitable, Callable

from verditer.rest.http.response_batcher import ResponseBatcher

SAME_POLL, LATER = 0.000_01, 0.001  # seconds between two clients of one poll, and after the event loop has slept


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Port:
    """Clients that send requests, and the names of those whose responses were written, in that order."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.batcher = ResponseBatcher(self.clock)
        self.written: list[str] = []

    def receive(self, *gaps: float) -> None:
        """Bytes of one client after the other, with these gaps before each."""
        for gap in gaps:
            self.clock.now += gap
            self.batcher.received(self.clock.now)
            self.batcher.handled()

    def hold(self, *names: str) -> None:
        for name in names:
            self.batcher.hold(Client(name, self.written))


class Client:
    def __init__(self, name: str, written: list[str]) -> None:
        self._name = name
        self._written = written

    def flush(self) -> None:
        self._written.append(self._name)


def run(scenario: Callable[[Port], Awaitable[None]]) -> None:
    async def with_a_port() -> None:
        await scenario(Port())

    asyncio.run(with_a_port())


def test_a_client_that_comes_alone_is_answered_at_once() -> None:
    async def scenario(port: Port) -> None:
        port.receive(LATER, LATER, LATER, SAME_POLL, LATER)
        assert not port.batcher.is_batching

    run(scenario)


def test_responses_wait_when_several_clients_come_in_one_poll() -> None:
    async def scenario(port: Port) -> None:
        port.receive(LATER, SAME_POLL)
        assert not port.batcher.is_batching
        port.receive(SAME_POLL)
        assert port.batcher.is_batching
        port.receive(LATER)
        assert not port.batcher.is_batching

    run(scenario)


def test_held_responses_are_written_in_order_within_the_iteration_of_the_loop() -> None:
    async def scenario(port: Port) -> None:
        port.hold("a", "b", "c")
        assert port.written == []
        await asyncio.sleep(0)
        assert port.written == ["a", "b", "c"]
        assert port.batcher.is_batching  # there are many clients, so the next responses wait too

    run(scenario)


def test_batching_ends_when_a_response_had_nothing_to_wait_for() -> None:
    async def scenario(port: Port) -> None:
        port.hold("a", "b")
        await asyncio.sleep(0)
        port.hold("c")
        await asyncio.sleep(0)
        assert port.written == ["a", "b", "c"]
        assert not port.batcher.is_batching

    run(scenario)


def test_a_batch_of_sixteen_is_written_at_once() -> None:
    async def scenario(port: Port) -> None:
        port.hold(*"abcdefghijklmno")
        assert port.written == []
        port.hold("p", "q")
        assert port.written == [*"abcdefghijklmnop"]
        await asyncio.sleep(0)
        assert port.written[-1] == "q"

    run(scenario)


def test_no_response_waits_for_a_slow_request() -> None:
    async def scenario(port: Port) -> None:
        port.hold("a")
        port.clock.now += 0.003
        port.hold("b")
        assert port.written == ["a", "b"]

    run(scenario)
