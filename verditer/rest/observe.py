"""What people see of requests: one log line each, and counters for /metrics.

Both are on the hot path, so lines are gathered and written a few times a second, and counters are plain dictionaries that
are turned into Prometheus samples only when somebody asks.
"""

import asyncio
import json
import mmap
import sys
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

import msgspec

from verditer.core.dates import iso
from verditer.rest.exchange import Exchange
from verditer.rest.message import Response

if TYPE_CHECKING:
    from prometheus_client.core import Metric

FLUSH_SECONDS = 0.1
PIPE_CHARACTERS = 4096  # what Linux writes to a pipe in one go, and a line is ASCII
POST_SECONDS = 1.0
SLOT_BYTES = 1 << 20  # for a worker's counters; what is not used costs nothing
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class RequestLog:
    """`plain` is for eyes, `json` for machines; both have the same fields."""

    def __init__(self, style: str, now: Callable[[], int], out: TextIO | None = None) -> None:
        self._line = {"plain": _plain, "json": _json}[style]
        self._now = now
        self._out = out or sys.stdout
        self._lines: list[str] = []

    def __call__(self, exchange: Exchange, response: Response, seconds: float) -> None:
        if not self._lines:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        self._lines.append(self._line(exchange, response, seconds, self._now()))

    def flush(self) -> None:
        """In pieces that a pipe takes whole: other workers write to it too, and no line of theirs lands inside one of ours."""
        lines, self._lines = self._lines, []
        piece = ""
        for line in lines:
            if piece and len(piece) + len(line) >= PIPE_CHARACTERS:
                self._write(piece)
                piece = ""
            piece += line + "\n"
        if piece:
            self._write(piece)

    def _write(self, piece: str) -> None:
        self._out.write(piece)
        self._out.flush()


def _plain(exchange: Exchange, response: Response, seconds: float, now: int) -> str:
    code = next((f" {value}" for name, value in response.headers if name == "x-ms-error-code"), "")
    return (
        f"{iso(now)[:23]}Z {_operation(exchange)} {response.status}{code} {_path(exchange)} "
        f"in={exchange.request.body.length or 0} out={_size(response)} {seconds * 1000:.1f}ms {exchange.request_id}"
    )


def _json(exchange: Exchange, response: Response, seconds: float, now: int) -> str:
    fields = {
        "time": iso(now),
        "operation": _operation(exchange),
        "status": response.status,
        "error": next((value for name, value in response.headers if name == "x-ms-error-code"), None),
        "method": exchange.request.method,
        "path": _path(exchange),
        "bytes_in": exchange.request.body.length or 0,
        "bytes_out": _size(response),
        "milliseconds": round(seconds * 1000, 2),
        "request_id": exchange.request_id,
        "client": exchange.request.peer,
    }
    return json.dumps({name: value for name, value in fields.items() if value is not None})


def _operation(exchange: Exchange) -> str:
    return exchange.op.name if exchange.op is not None else exchange.request.method


def _path(exchange: Exchange) -> str:
    """Without the query: that is where signatures are. What would break the line apart is escaped."""
    path = exchange.request.target.partition("?")[0]
    return path if path.isprintable() else path.encode("unicode_escape").decode()


def _size(response: Response) -> int:
    return response.length if response.length is not None else len(response.body) if isinstance(response.body, bytes) else 0


class Counts(msgspec.Struct, array_like=True):
    """What one worker has counted, as it lies in shared memory."""

    requests: list[tuple[str, str, int, int]]
    durations: list[tuple[str, str, list[float]]]
    received: dict[str, int]
    sent: dict[str, int]


class Board:
    """Memory in which each worker keeps what it has counted, for the others to add up. Made before they are forked.

    Whoever reads while the owner writes finds that the sum is wrong, and looks again."""

    def __init__(self, workers: int) -> None:
        self._slots = [mmap.mmap(-1, SLOT_BYTES) for _ in range(workers)]

    def post(self, worker: int, counts: Counts) -> None:
        text = msgspec.msgpack.encode(counts)
        if len(text) <= SLOT_BYTES - 8:
            self._slots[worker][: len(text) + 8] = len(text).to_bytes(4, "little") + zlib.crc32(text).to_bytes(4, "little") + text

    def read(self, worker: int) -> Counts | None:
        """None when that worker has counted nothing yet."""
        slot = self._slots[worker]
        for _ in range(100):
            length, check = int.from_bytes(slot[:4], "little"), int.from_bytes(slot[4:8], "little")
            if not length:
                return None
            text = slot[8 : 8 + length]
            if zlib.crc32(text) == check:
                return msgspec.msgpack.decode(text, type=Counts)
        return None

    def others(self, worker: int) -> Iterator[Counts]:
        for number in range(len(self._slots)):
            if number != worker and (counts := self.read(number)) is not None:
                yield counts


class Metrics:
    """Requests by service, operation and status; their duration; bytes both ways. A worker keeps them on the board too, and goes
    on from there when it is started again: counters never fall."""

    def __init__(self, board: Board | None = None, worker: int = 0) -> None:
        self._board = board
        self._worker = worker
        self._posted = 0
        self._requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._durations: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * (len(BUCKETS) + 2))
        self._received: defaultdict[str, int] = defaultdict(int)
        self._sent: defaultdict[str, int] = defaultdict(int)
        if board is not None and (before := board.read(worker)) is not None:
            self._add(before)

    async def keep_posted(self) -> None:
        """About once a second, when there is something new."""
        while self._board is not None:
            await asyncio.sleep(POST_SECONDS)
            if (total := sum(self._requests.values())) != self._posted:
                self._board.post(self._worker, self._counts())
                self._posted = total

    def _counts(self) -> Counts:
        return Counts(
            requests=[(*key, count) for key, count in self._requests.items()],
            durations=[(*key, durations) for key, durations in self._durations.items()],
            received=self._received,
            sent=self._sent,
        )

    def _add(self, counts: Counts) -> None:
        for service, operation, status, count in counts.requests:
            self._requests[service, operation, status] += count
        for service, operation, durations in counts.durations:
            mine = self._durations[service, operation]
            mine[:] = [one + other for one, other in zip(mine, durations, strict=True)]
        for totals, more in ((self._received, counts.received), (self._sent, counts.sent)):
            for service, count in more.items():
                totals[service] += count

    def of_all_workers(self) -> "Metrics":
        if self._board is None:
            return self
        together = Metrics()
        for counts in (self._counts(), *self._board.others(self._worker)):
            together._add(counts)
        return together

    def observer(self, service: str) -> Callable[[Exchange, Response, float], None]:
        def observe(exchange: Exchange, response: Response, seconds: float) -> None:
            operation = exchange.op.name if exchange.op is not None else "Unknown"
            self._requests[service, operation, response.status] += 1
            durations = self._durations[service, operation]
            durations[bisect_left(BUCKETS, seconds)] += 1
            durations[-1] += seconds
            self._received[service] += exchange.request.body.length or 0
            self._sent[service] += _size(response)

        return observe

    def collect(self) -> Iterator["Metric"]:
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily  # 25 ms that a start need not wait for

        requests = CounterMetricFamily("verditer_requests", "Requests answered.", labels=["service", "operation", "status"])
        for (service, operation, status), count in list(self._requests.items()):
            requests.add_metric([service, operation, str(status)], count)
        yield requests
        seconds = HistogramMetricFamily("verditer_request_seconds", "Time to answer.", labels=["service", "operation"])
        for (service, operation), durations in list(self._durations.items()):
            seconds.add_metric([service, operation], _cumulative(durations), durations[-1])
        yield seconds
        for name, text, values in (
            ("verditer_received_bytes", "Bytes of request bodies announced.", self._received),
            ("verditer_sent_bytes", "Bytes of response bodies.", self._sent),
        ):
            family = CounterMetricFamily(name, text, labels=["service"])
            for service, count in list(values.items()):
                family.add_metric([service], count)
            yield family


def _cumulative(durations: list[float]) -> list[tuple[str, float]]:
    total = 0.0
    buckets = []
    for limit, count in zip((*map(str, BUCKETS), "+Inf"), durations, strict=False):
        total += count
        buckets.append((limit, total))
    return buckets
