"""Which reads and uploads are running in this process. The collector asks, so that it never removes bytes in use."""

import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager


class Activity:
    def __init__(self) -> None:
        self._running: dict[int, int] = {}
        self._numbers = itertools.count()

    @contextmanager
    def since(self, start: int) -> Iterator[None]:
        """Running from `start` (ticks) until the block ends."""
        number = next(self._numbers)
        self._running[number] = start
        try:
            yield
        finally:
            del self._running[number]

    async def stream(self, start: int, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The same pieces; running until the last one was taken or the reader gave up."""
        with self.since(start):
            async for piece in pieces:
                yield piece

    def oldest(self, now: int) -> int:
        return min(self._running.values(), default=now)
