"""Producers and consumers on one queue, each message is tracked: no two consumers hold it at once, it is not
delivered again too early, and it is not lost, even if the servers are killed (contract Q1, Q2, G6; races Q1-Q5).
"""

import asyncio
import os
import random
import re
from collections import Counter
from contextlib import suppress
from urllib.parse import quote

import pytest

from tests.simulation.client import Answer, Client, Gone, connected, together
from tests.simulation.servers import Fleet

KILLS = int(os.environ.get("VERDITER_KILLS", "3"))
ENDLESS = 1 << 60
PRODUCERS = 4
CONSUMERS = 8
HIDDEN_SECONDS = 5000  # longer than any round, so a message that becomes visible by itself does so too early
_MESSAGE = re.compile(
    r"<MessageId>(.*?)</MessageId>.*?<PopReceipt>(.*?)</PopReceipt>.*?<DequeueCount>(\d+)</DequeueCount><MessageText>(.*?)<"
)


@pytest.fixture
def queue(container: str) -> str:
    return container


class Ledger:
    """What the test knows of every message, by its text. It is updated before a request that may release the message, and
    after the response of other requests."""

    def __init__(self) -> None:
        self.put: set[str] = set()  # acknowledged
        self.perhaps_put: set[str] = set()  # sent, without a response
        self.held: dict[str, int] = {}  # text → consumer
        self.deleted: set[str] = set()  # acknowledged
        self.perhaps_deleted: set[str] = set()
        self.deliveries: Counter[str] = Counter()
        self.receipts: set[str] = set()
        self.uncertain = False  # a Get without a response: its messages are hidden, and the test does not know which

    def receive(self, text: str, consumer: int, dequeue_count: int, receipt: str) -> None:
        assert text in self.put or text in self.perhaps_put, f"{text} was never put"
        assert text not in self.held, f"{text} went to {consumer} while {self.held[text]} holds it"
        assert text not in self.deleted, f"{text} came back after its delete"
        assert receipt not in self.receipts, "a receipt was given twice"
        self.held[text] = consumer
        self.receipts.add(receipt)
        self.deliveries[text] += 1
        assert dequeue_count >= self.deliveries[text]
        assert self.uncertain or dequeue_count == self.deliveries[text]

    @property
    def left(self) -> set[str]:
        """The messages that must still exist."""
        return self.put - self.deleted - self.perhaps_deleted


class Workers:
    def __init__(self, queue: str, ledger: Ledger, seed: int) -> None:
        self.queue = queue
        self.ledger = ledger
        self._seed = seed
        self._numbers = iter(range(1 << 60))
        self.producing = 0
        self.faithful = False  # delete every received message
        self._milestone = 0
        self._reached = asyncio.Event()

    async def have_put(self, count: int) -> None:
        """Wait until this many messages were put in total."""
        self._milestone = count
        self._reached.clear()
        await self._reached.wait()

    async def run(self, fleet: Fleet, messages: int) -> None:
        """Work until this many more messages were put and none is visible, or the servers are killed."""
        self._wanted = messages
        self.producing = PRODUCERS
        ports = [server.ports["queue"] for server in fleet.servers]
        async with connected(ports, PRODUCERS + CONSUMERS) as clients:
            await together(clients, self._work)

    async def _work(self, client: Client, number: int) -> None:
        chance = random.Random(self._seed + number)
        self._seed += 1000
        with suppress(Gone):
            await (self._produce(client) if number < PRODUCERS else self._consume(client, number, chance))
        if number < PRODUCERS:
            self.producing -= 1

    async def _produce(self, client: Client) -> None:
        while self._wanted > 0:
            self._wanted -= 1
            text = f"m{next(self._numbers)}"
            self.ledger.perhaps_put.add(text)
            body = f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()
            answer = await client.call("POST", f"{self.queue}/messages", body=body)
            assert answer.status == 201, answer.outcome
            self.ledger.put.add(text)
            self.ledger.perhaps_put.discard(text)
            if len(self.ledger.put) == self._milestone:
                self._reached.set()

    async def _consume(self, client: Client, number: int, chance: random.Random) -> None:
        while True:
            producing = self.producing
            query = f"numofmessages={chance.choice((1, 3, 32))}&visibilitytimeout={HIDDEN_SECONDS}"
            try:
                answer = await client.call("GET", f"{self.queue}/messages", query=query)
            except Gone:
                self.ledger.uncertain = True
                raise
            assert answer.status == 200, answer.outcome
            messages = _MESSAGE.findall(answer.body.decode())
            for _, receipt, count, text in messages:
                self.ledger.receive(text, number, int(count), receipt)
            for id, receipt, _, text in messages:
                await self._settle(client, chance, id, receipt, text)
            if not messages and not producing:
                return

    async def _settle(self, client: Client, chance: random.Random, id: str, receipt: str, text: str) -> None:
        """Delete the message, or renew it first, or release it at once, or abandon it like a worker that died."""
        path = f"{self.queue}/messages/{id}"
        what = 0.0 if self.faithful else chance.random()
        if what > 0.95:
            return
        if what > 0.8:
            answer = await self._call(client, "PUT", path, f"popreceipt={quote(receipt)}&visibilitytimeout={HIDDEN_SECONDS}")
            stale, receipt = receipt, answer.headers["x-ms-popreceipt"]
            refused = await self._call(client, "DELETE", path, f"popreceipt={quote(stale)}")
            assert refused.outcome == "404 MessageNotFound"
        if what > 0.9:
            del self.ledger.held[text]
            await self._call(client, "PUT", path, f"popreceipt={quote(receipt)}&visibilitytimeout=0")
            return
        self.ledger.perhaps_deleted.add(text)
        answer = await self._call(client, "DELETE", path, f"popreceipt={quote(receipt)}")
        assert answer.status == 204, f"{text}: {answer.outcome}"
        self.ledger.deleted.add(text)
        self.ledger.perhaps_deleted.discard(text)
        del self.ledger.held[text]

    async def _call(self, client: Client, method: str, path: str, query: str) -> Answer:
        answer = await client.call(method, path, query=query)
        assert answer.status in (204, 404), answer.outcome
        return answer


async def create(fleet: Fleet, queue: str) -> None:
    async with connected([fleet.servers[0].ports["queue"]], 1) as (client,):
        assert (await client.call("PUT", queue)).status == 201


async def drain(fleet: Fleet, workers: Workers) -> None:
    """Move the clock beyond all visibility timeouts and receive the remaining messages."""
    ledger = workers.ledger
    fleet.servers[0].move_clock(HIDDEN_SECONDS + 1)
    ledger.held.clear()
    workers.faithful = True
    await workers.run(fleet, 0)
    assert ledger.left == set()
    assert ledger.deleted >= ledger.put - ledger.perhaps_deleted
    async with connected([server.ports["queue"] for server in fleet.servers], len(fleet.servers)) as clients:
        for client in clients:
            answer = await client.call("GET", workers.queue, query="comp=metadata")
            assert answer.headers["x-ms-approximate-messages-count"] == "0"


@pytest.mark.parametrize("number", [5_000, pytest.param(100_000, marks=pytest.mark.soak)])
async def test_every_message_is_held_by_one_consumer_at_a_time_and_none_is_lost(
    fleet: Fleet, queue: str, seed: int, number: int
) -> None:
    # contract Q1, Q2; race Q5
    await create(fleet, queue)
    workers = Workers(queue, Ledger(), seed)
    await workers.run(fleet, number)
    ledger = workers.ledger
    assert len(ledger.put) == number
    assert set(ledger.held) == ledger.left  # all remaining messages were abandoned
    await drain(fleet, workers)
    assert sum(ledger.deliveries.values()) == len(ledger.receipts)


async def test_killed_servers_lose_no_message_and_give_none_back_early(own_fleet: Fleet, queue: str, seed: int) -> None:
    # contract G6, Q1, Q2
    chance = random.Random(seed)
    await create(own_fleet, queue)
    workers = Workers(queue, Ledger(), seed)
    for _ in range(KILLS):
        running = asyncio.create_task(workers.run(own_fleet, ENDLESS))
        await workers.have_put(len(workers.ledger.put) + chance.randrange(100, 400))
        for server in own_fleet.servers:
            server.kill()
        await running
        for server in own_fleet.servers:
            server.start()
    await workers.run(own_fleet, 100)
    ledger = workers.ledger
    assert ledger.left <= ledger.put
    await drain(own_fleet, workers)
    assert len(ledger.deleted | ledger.perhaps_deleted | ledger.perhaps_put) >= len(ledger.put)


async def test_a_delete_and_a_get_of_one_message_have_one_outcome(fleet: Fleet, queue: str) -> None:
    """A worker whose timeout has just passed deletes a message while another one gets it: either the delete succeeds and the
    other gets nothing, or the get succeeds and the delete is refused."""
    # contract G5, Q2; race Q2
    await create(fleet, queue)
    body = b"<QueueMessage><MessageText>text</MessageText></QueueMessage>"
    outcomes: Counter[str] = Counter()
    async with connected([server.ports["queue"] for server in fleet.servers], 6) as clients:
        for _ in range(40):
            put = await clients[0].call("POST", f"{queue}/messages", body=body)
            found = re.search(r"<MessageId>(.*?)</MessageId>.*<PopReceipt>(.*?)</PopReceipt>", put.body.decode())
            assert found is not None
            path, query = f"{queue}/messages/{found[1]}", f"popreceipt={quote(found[2])}"

            async def race(client: Client, number: int, path: str = path, query: str = query) -> str:
                if number % 3 == 0:
                    return f"deleted {(await client.call('DELETE', path, query=query)).status}"
                if number % 3 == 1:
                    return f"updated {(await client.call('PUT', path, query=f'{query}&visibilitytimeout=100')).status}"
                answer = await client.call("GET", f"{queue}/messages")
                return f"got {answer.body.count(b'</QueueMessage>')}"

            answers = Counter(await together(clients, race))
            winners = answers["deleted 204"] + answers["updated 204"] + answers["got 1"]
            assert winners == 1, answers
            outcomes += answers
            await clients[0].call("DELETE", f"{queue}/messages")
    assert set(outcomes) <= {"deleted 204", "deleted 404", "updated 204", "updated 404", "got 0", "got 1"}
