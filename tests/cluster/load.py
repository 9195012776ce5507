"""Mixed load with recorded histories, and the judgement about them.
Clients overwrite, read and delete a few blobs (each history has to be linearizable), increment counters by If-Match (no increment
is lost, none counted twice), put blobs under new names, small and large (none that was acknowledged is lost), and put messages
(each is delivered). A request without an answer, or answered 503 or 500, may have happened or not."""

import asyncio
import itertools
import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import quote

from tests.simulation.client import Answer, Client, Gone
from tests.simulation.linear import Call, unexplained

CONTAINER, QUEUE = "cluster", "cluster"
LARGE = 200_000
PAUSE_SECONDS = 0.3  # after a failure, as SDKs do
UNKNOWN = (500, 503)
FULL = 507  # nothing has happened


@dataclass
class Outcome:
    acknowledged: int = 0
    refused: int = 0  # conditions that were not met
    unknown: int = 0
    longest_gap: float = 0.0  # seconds without any acknowledged write
    violations: list[str] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)


class Load:
    def __init__(self, blob_ports: list[int], queue_ports: list[int], seed: int) -> None:
        self._ports, self._queue_ports = blob_ports, queue_ports
        self._chance = random.Random(seed)
        self._name = f"{seed:x}"
        self._numbers = itertools.count()
        self.outcome = Outcome()
        self._stopped = False
        self._last_write = time.monotonic()
        self._histories: dict[str, list[Call]] = {}
        self._put: dict[str, bytes] = {}  # blobs that were acknowledged
        self._counters: dict[str, tuple[list[int], list[int]]] = {}  # values acknowledged, values unknown
        self._said: tuple[set[str], set[str]] = (set(), set())  # messages acknowledged, messages unknown

    async def run(self) -> None:
        workers = [self._overwrite(f"{CONTAINER}/{self._name}-{n % 3}") for n in range(6)]
        workers += [self._count(f"{CONTAINER}/{self._name}-counter-{n % 2}") for n in range(4)]
        workers += [self._create(size) for size in (100, 100, LARGE)]
        workers += [self._say()]
        await asyncio.gather(*workers)

    def stop(self) -> None:
        self._stopped = True

    # Clients.

    async def _ask(self, client: Client, ports: list[int], call: "asyncio.Future[Answer]") -> Answer | None:
        """None when it is unknown what happened. The next request goes to another node."""
        try:
            answer = await asyncio.wait_for(call, 40)
        except (Gone, TimeoutError) as error:
            reason = type(error).__name__
        else:
            if answer.status not in UNKNOWN:
                return answer
            reason = answer.outcome
        self.outcome.errors[reason] += 1
        client.close()
        client.port = self._chance.choice(ports)
        return None

    async def _refuse(self) -> None:
        self.outcome.refused += 1
        await asyncio.sleep(PAUSE_SECONDS)

    def _acknowledge(self) -> None:
        now = time.monotonic()
        self.outcome.acknowledged += 1
        self.outcome.longest_gap = max(self.outcome.longest_gap, now - self._last_write)
        self._last_write = now

    async def _overwrite(self, path: str) -> None:
        client, etag = Client(self._chance.choice(self._ports)), ""
        history = self._histories.setdefault(path, [])
        while not self._stopped:
            do = self._chance.choice(("put", "put", "get", "get", "delete"))
            value = str(next(self._numbers))
            condition = etag if do != "get" and etag and self._chance.random() < 0.5 else None
            headers = {"If-Match": condition} if condition else {}
            invoked = time.monotonic()
            match do:
                case "put":
                    request = client.put_blob(path, value.encode(), headers)
                case "get":
                    request = client.get_blob(path)
                case _:
                    request = client.delete_blob(path, headers)
            answer = await self._ask(client, self._ports, asyncio.ensure_future(request))
            if answer is None:
                self.outcome.unknown += do != "get"
                history.append(Call(do=do, invoked=invoked, if_match=condition, value=value))
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            if answer.status == FULL:
                await self._refuse()
                continue
            etag = answer.headers.get("etag", "") if answer.status in (200, 201) else ""
            read = answer.body.decode() if do == "get" and answer.status == 200 else value
            history.append(
                Call(
                    do=do,
                    invoked=invoked,
                    returned=time.monotonic(),
                    if_match=condition,
                    value=read,
                    etag=etag or "any",
                    outcome=answer.outcome,
                )
            )
            self._tally(do, answer)
            await asyncio.sleep(0.05 * self._chance.random())

    def _tally(self, do: str, answer: Answer) -> None:
        if do != "get" and answer.status < 300:
            self._acknowledge()
        elif do != "get":
            self.outcome.refused += 1

    async def _count(self, path: str) -> None:
        client = Client(self._chance.choice(self._ports))
        known, unknown = self._counters.setdefault(path, ([], []))
        while not self._stopped:
            found = await self._ask(client, self._ports, asyncio.ensure_future(client.get_blob(path)))
            if found is None:
                await asyncio.sleep(PAUSE_SECONDS)
                continue
            exists = found.status == 200
            value = int(found.body) + 1 if exists else 1
            condition = {"If-Match": found.etag} if exists else {"If-None-Match": "*"}
            answer = await self._ask(
                client, self._ports, asyncio.ensure_future(client.put_blob(path, str(value).encode(), condition))
            )
            if answer is None:
                unknown.append(value)
                self.outcome.unknown += 1
                await asyncio.sleep(PAUSE_SECONDS)
            elif answer.status == 201:
                known.append(value)
                self._acknowledge()
            else:
                self.outcome.refused += 1

    async def _create(self, size: int) -> None:
        client = Client(self._chance.choice(self._ports))
        while not self._stopped:
            path = f"{CONTAINER}/{self._name}-new-{next(self._numbers)}"
            data = self._chance.randbytes(64) * (size // 64 + 1)
            answer = await self._ask(client, self._ports, asyncio.ensure_future(client.put_blob(path, data)))
            if await self._is_created(answer):
                self._put[path] = data

    async def _say(self) -> None:
        client = Client(self._chance.choice(self._queue_ports))
        known, unknown = self._said
        while not self._stopped:
            text = f"{self._name}-{next(self._numbers)}"
            body = f"<QueueMessage><MessageText>{text}</MessageText></QueueMessage>".encode()
            request = client.call("POST", f"{QUEUE}/messages", body=body)
            answer = await self._ask(client, self._queue_ports, asyncio.ensure_future(request))
            if answer is None:
                unknown.add(text)
            if await self._is_created(answer):
                known.add(text)

    async def _is_created(self, answer: Answer | None) -> bool:
        """Count the answer to a write of something new. False: it is refused, or nobody knows whether it happened."""
        if answer is None:
            self.outcome.unknown += 1
            await asyncio.sleep(PAUSE_SECONDS)
            return False
        if answer.status == FULL:
            await self._refuse()
            return False
        assert answer.status == 201, answer.outcome
        self._acknowledge()
        return True

    # Judgement, when everything works again.

    async def judge(self) -> Outcome:
        for path, history in self._histories.items():
            if (call := unexplained(history)) is not None:
                self.outcome.violations.append(f"no order of the calls on {path} explains {call}")
        client = Client(self._ports[0])
        for path, data in self._put.items():
            answer = await client.get_blob(path)
            if answer.status != 200 or answer.body != data:
                self.outcome.violations.append(f"{path} was acknowledged and is {answer.outcome}")
        for path, (known, unknown) in self._counters.items():
            await self._judge_counter(client, path, known, unknown)
        await self._judge_messages()
        client.close()
        return self.outcome

    async def _judge_counter(self, client: Client, path: str, known: list[int], unknown: list[int]) -> None:
        final = int((await client.get_blob(path)).body)
        if len(set(known)) < len(known):
            self.outcome.violations.append(f"{path}: two increments won with the same value")
        possible = set(known) | set(unknown)
        if not set(known) <= set(range(1, final + 1)) or not set(range(1, final + 1)) <= possible:
            self.outcome.violations.append(f"{path} is {final}; {len(known)} increments were acknowledged")

    async def _judge_messages(self) -> None:
        known, unknown = self._said
        client, received = Client(self._queue_ports[0]), Counter[str]()
        while True:
            answer = await client.call("GET", f"{QUEUE}/messages", query="numofmessages=32&visibilitytimeout=600")
            found = re.findall(
                r"<MessageId>(.+?)</MessageId>.*?<PopReceipt>(.+?)</PopReceipt>.*?<MessageText>(.+?)<", answer.body.decode()
            )
            if not found:
                break
            for message, receipt, text in found:
                received[text] += 1
                query = f"popreceipt={quote(receipt, safe='')}"
                await client.call("DELETE", f"{QUEUE}/messages/{message}", query=query)
        own = {text for text in received if text.startswith(f"{self._name}-")}
        if known - own or own - known - unknown or any(count > 1 for count in received.values()):
            self.outcome.violations.append(f"messages: {len(known - own)} lost, {len(own - known - unknown)} out of nowhere")
        client.close()


async def prepare(blob_port: int, queue_port: int) -> None:
    for port, path, query in ((blob_port, CONTAINER, "restype=container"), (queue_port, QUEUE, "")):
        client = Client(port)
        answer = await client.call("PUT", path, query=query)
        assert answer.status in (201, 204), answer.outcome
        client.close()
