"""Counters for `/metrics`: requests by service, operation and status, their durations, and bytes in both directions.

Counting is on the path of every request, so counters are plain dictionaries. They become Prometheus samples only when somebody
asks. Workers publish their counters in shared memory, where the worker that is asked adds them up.
"""

import asyncio
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from verditer.serving.request_summary import RequestSummary
from verditer.serving.shared_slots import SharedSlots

if TYPE_CHECKING:
    from prometheus_client.core import Metric

PUBLISH_SECONDS = 1.0
SLOT_BYTES = 1 << 20  # for the counters of one worker; pages that are not used cost nothing
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


class Counts(msgspec.Struct, array_like=True):
    """The counters of one worker as they are stored in shared memory."""

    requests: list[tuple[str, str, int | str, int]]
    durations: list[tuple[str, str, list[float]]]
    received: dict[str, int]
    sent: dict[str, int]


class Totals(msgspec.Struct):
    """All counters of all workers, summed up for the charts of the explorer."""

    requests: dict[str, int]  # by service
    statuses: dict[str, int]
    received: int
    sent: int
    durations: list[float]  # one count for each of BUCKETS, then the rest, then the sum of seconds


class SharedMetrics(SharedSlots):
    """The published counters of all workers."""

    def __init__(self, workers: int) -> None:
        super().__init__(workers, SLOT_BYTES)

    def publish_counts(self, worker: int, counts: Counts) -> None:
        self.publish(worker, msgspec.msgpack.encode(counts))

    def counts(self, worker: int) -> Counts | None:
        text = self.read(worker)
        return msgspec.msgpack.decode(text, type=Counts) if text is not None else None

    def counts_of_others(self, worker: int) -> Iterator[Counts]:
        for number in self.others(worker):
            if (counts := self.counts(number)) is not None:
                yield counts


class Metrics:
    """The counters of one process. A worker that is started again continues from what it had published: counters never fall."""

    def __init__(self, shared: SharedMetrics | None = None, worker: int = 0) -> None:
        self._shared = shared
        self._worker = worker
        self._published = 0
        self._requests: defaultdict[tuple[str, str, int | str], int] = defaultdict(int)
        self._durations: defaultdict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0] * (len(BUCKETS) + 2))
        self._received: defaultdict[str, int] = defaultdict(int)
        self._sent: defaultdict[str, int] = defaultdict(int)
        if shared is not None and (before := shared.counts(worker)) is not None:
            self._add(before)

    def record(self, request: RequestSummary) -> None:
        service, operation = request.service, request.operation or "Unknown"
        self._requests[service, operation, request.status] += 1
        durations = self._durations[service, operation]
        durations[bisect_left(BUCKETS, request.seconds)] += 1
        durations[-1] += request.seconds
        self._received[service] += request.bytes_in
        self._sent[service] += request.bytes_out

    async def keep_published(self) -> None:
        """Publish the counters about once a second, when something was counted."""
        while self._shared is not None:
            await asyncio.sleep(PUBLISH_SECONDS)
            if (total := sum(self._requests.values())) != self._published:
                self._shared.publish_counts(self._worker, self._counts())
                self._published = total

    def of_all_workers(self) -> "Metrics":
        if self._shared is None:
            return self
        total = Metrics()
        for counts in (self._counts(), *self._shared.counts_of_others(self._worker)):
            total._add(counts)
        return total

    def totals(self) -> Totals:
        """Of this process alone; `of_all_workers().totals()` gives those of the server."""
        requests: defaultdict[str, int] = defaultdict(int)
        statuses: defaultdict[str, int] = defaultdict(int)
        for (service, _, status), count in self._requests.items():
            requests[service] += count
            statuses[str(status)] += count
        columns = zip(*self._durations.values(), strict=True)
        durations = [sum(column) for column in columns] or [0.0] * (len(BUCKETS) + 2)
        received, sent = sum(self._received.values()), sum(self._sent.values())
        return Totals(dict(requests), dict(statuses), received, sent, durations)

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

    def collect(self) -> Iterator["Metric"]:
        """Called by a Prometheus registry."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily  # importing takes 25 ms: not at start-up

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
