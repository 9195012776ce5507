"""Connections for one of several workers that listen on the same sockets: each takes those that come while it has the fewest.

Left to themselves, whichever process wakes first takes all that have come, and clients that keep their connections stay there: of
sixteen connections one of two workers may get none. So a worker that has more than another looks away for a moment. Whatever
nobody took by then it takes all the same: the other may be busy, or dead.
"""

import asyncio
import errno
import logging
import mmap
import socket
from collections.abc import Callable, Coroutine
from typing import Any

logger = logging.getLogger("verditer")
MOMENT_SECONDS = 0.005  # enough for a busy process to come round to its sockets
NO_FILES_SECONDS = 1.0
_NO_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class Crew:
    """How many connections each worker has, in memory that all of them see. Made before they are forked."""

    def __init__(self, workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")[:workers]

    def member(self, number: int) -> "Member":
        self._counts[number] = 0  # whoever was here before has none any more
        return Member(self._counts, number)


class Member:
    def __init__(self, counts: memoryview, number: int) -> None:
        self._counts = counts
        self._number = number

    def add(self, connections: int) -> None:
        self._counts[self._number] += connections

    @property
    def has_more_than_another(self) -> bool:
        return bool(self._counts[self._number] > min(self._counts))


class Acceptor:
    """Listens on one socket until it is closed."""

    def __init__(
        self, listening: socket.socket, member: Member, serve: Callable[[socket.socket], Coroutine[Any, Any, None]]
    ) -> None:
        self._socket = listening
        self._member = member
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.TimerHandle | None = None
        self._starting: set[asyncio.Task[None]] = set()
        listening.setblocking(False)
        self._look()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Once or more often."""
        if self._socket.fileno() < 0:
            return
        if self._waiting is not None:
            self._waiting.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    def _look(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._knocked)

    def _look_away(self, seconds: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._waiting = self._loop.call_later(seconds, then)

    def _knocked(self) -> None:
        if self._member.has_more_than_another:
            self._look_away(MOMENT_SECONDS, self._take_and_look)
        else:
            self._take()

    def _take_and_look(self) -> None:
        self._look()
        self._take()

    def _take(self) -> None:
        try:
            taken, _ = self._socket.accept()
        except OSError as error:  # another worker was faster, or the client gave up
            if error.errno in _NO_FILES:
                logger.error("no connection can be taken: %s", error)
                self._look_away(NO_FILES_SECONDS, self._look)
            return
        self._member.add(1)  # before the next one knocks; whoever serves it takes it off again
        taken.setblocking(False)
        task = self._loop.create_task(self._serve(taken))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)
