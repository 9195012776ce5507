"""The feed of recent requests, of this process and of all other workers, for people who watch the server.

Recording a request appends to a bounded queue. Workers publish the newest entries in shared memory several times a second, where
the worker that serves a watcher reads them.
"""

import asyncio
from collections import deque
from collections.abc import Iterator

import msgspec

from verditer.serving.request_summary import RequestSummary
from verditer.serving.shared_slots import SharedSlots

PUBLISH_SECONDS = 0.25
RECENT = 500  # entries of one worker
MAX_PATH = 400  # characters of a path: longer ones are cut, so that all entries fit into a slot
SLOT_BYTES = 1 << 20


class FeedEntry(msgspec.Struct, array_like=True, frozen=True):
    """`number` counts the requests of one worker."""

    number: int
    worker: int
    request: RequestSummary


def shared_feed(workers: int) -> SharedSlots:
    return SharedSlots(workers, SLOT_BYTES)


class RequestFeed:
    """A worker that is started again continues to count where the one before it had stopped publishing."""

    def __init__(self, shared: SharedSlots | None = None, worker: int = 0) -> None:
        self._shared = shared
        self._worker = worker
        before = _read(shared, worker) if shared is not None else []
        self._recent: deque[RequestSummary] = deque(maxlen=RECENT)
        self._next_number = before[-1].number + 1 if before else 0
        self._published = -1

    def record(self, request: RequestSummary) -> None:
        self._recent.append(request)
        self._next_number += 1

    async def keep_published(self) -> None:
        while self._shared is not None:
            await asyncio.sleep(PUBLISH_SECONDS)
            if self._recent and self._next_number != self._published:
                self._shared.publish(self._worker, msgspec.msgpack.encode(self._entries()))
                self._published = self._next_number

    def newer_than(self, seen: dict[int, int]) -> list[FeedEntry]:
        """The entries of all workers that a watcher has not seen, in the order of their times. `seen` has the number of the last
        entry by worker, and is brought up to date."""
        found = [entry for entry in self._of_all_workers() if entry.number > seen.get(entry.worker, -1)]
        for entry in found:
            seen[entry.worker] = max(seen.get(entry.worker, -1), entry.number)
        return sorted(found, key=lambda entry: entry.request.time)

    def _of_all_workers(self) -> Iterator[FeedEntry]:
        yield from self._entries()
        if self._shared is not None:
            for worker in self._shared.others(self._worker):
                yield from _read(self._shared, worker)

    def _entries(self) -> list[FeedEntry]:
        recent = list(self._recent)
        first = self._next_number - len(recent)
        return [FeedEntry(number, self._worker, _cut(request)) for number, request in enumerate(recent, first)]


def _cut(request: RequestSummary) -> RequestSummary:
    if len(request.path) <= MAX_PATH:
        return request
    return msgspec.structs.replace(request, path=request.path[:MAX_PATH] + "…")


def _read(shared: SharedSlots, worker: int) -> list[FeedEntry]:
    text = shared.read(worker)
    return msgspec.msgpack.decode(text, type=list[FeedEntry]) if text is not None else []
