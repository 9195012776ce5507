"""What people see of requests: one log line each, and counters for /metrics.

Both are on the hot path, so lines are gathered and written a few times a second, and counters are plain dictionaries that
are turned into Prometheus samples only when somebody asks.
"""

import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TextIO

from verditer.core.dates import iso
from verditer.rest.exchange import Exchange
from verditer.rest.message import Response

if TYPE_CHECKING:
    from prometheus_client.core import Metric

FLUSH_SECONDS = 0.1
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
        lines, self._lines = self._lines, []
        if lines:
            self._out.write("\n".join(lines) + "\n")
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


class Metrics:
    """Requests by service, operation and status; their duration; bytes both ways."""

    def __init__(self) -> None:
        self._requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self._durations: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * (len(BUCKETS) + 2))
        self._received: defaultdict[str, int] = defaultdict(int)
        self._sent: defaultdict[str, int] = defaultdict(int)

    def observer(self, service: str) -> Callable[[Exchange, Response, float], None]:
        def observe(exchange: Exchange, response: Response, seconds: float) -> None:
            operation = exchange.op.name if exchange.op is not None else "Unknown"
            self._requests[service, operation, response.status] += 1
            durations = self._durations[service, operation]
            durations[_bucket(seconds)] += 1
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


def _bucket(seconds: float) -> int:
    for number, limit in enumerate(BUCKETS):
        if seconds <= limit:
            return number
    return len(BUCKETS)


def _cumulative(durations: list[float]) -> list[tuple[str, float]]:
    total = 0.0
    buckets = []
    for limit, count in zip((*map(str, BUCKETS), "+Inf"), durations, strict=False):
        total += count
        buckets.append((limit, total))
    return buckets
