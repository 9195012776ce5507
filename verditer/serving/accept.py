"""Accepting connections, balanced across worker processes that listen on the same sockets.

Without balancing, the process that wakes first accepts everything that is waiting, and clients that keep their connections stay
with it: of sixteen connections one of two workers may get none. So a worker that has more connections than another one waits for
a moment before it accepts. It then accepts what is still waiting, because the other worker may be busy or dead.
"""

import asyncio
import errno
import logging
import mmap
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

logger = logging.getLogger("verditer")
DELAY_SECONDS = 0.005  # enough for a busy process to look at its sockets
NO_FILES_SECONDS = 1.0
_NO_FILES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}


class ConnectionCounts:
    """How many connections each worker has, in shared memory. It is made before the workers are forked."""

    def __init__(self, workers: int) -> None:
        self._counts = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("q")[:workers]

    def of_worker(self, number: int) -> "WorkerConnections":
        """The count of one worker, which begins at 0: the connections of a worker that died are closed."""
        self._counts[number] = 0
        return WorkerConnections(self._counts, number)


class WorkerConnections:
    """The number of connections of one worker, compared with those of the others."""

    def __init__(self, counts: memoryview, number: int) -> None:
        self._counts = counts
        self._number = number

    def add(self, connections: int) -> None:
        self._counts[self._number] += connections

    @property
    def has_more_than_another(self) -> bool:
        return bool(self._counts[self._number] > min(self._counts))


class Acceptor:
    """Accepts connections from one listening socket until it is closed. `serve` takes over each accepted socket."""

    def __init__(
        self,
        listening: socket.socket,
        connections: WorkerConnections,
        serve: Callable[[socket.socket], Coroutine[Any, Any, object]],
    ) -> None:
        self._socket = listening
        self._connections = connections
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._delay: asyncio.TimerHandle | None = None
        self._starting: set[asyncio.Task[object]] = set()
        listening.setblocking(False)
        self._watch()

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        """Accept nothing more. May be called more than once."""
        if self._socket.fileno() < 0:
            return
        if self._delay is not None:
            self._delay.cancel()
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()

    async def abort_starting(self) -> None:
        """Cut off connections that are not set up yet, such as those in a TLS handshake."""
        starting = list(self._starting)
        for task in starting:
            task.cancel()
        await asyncio.gather(*starting, return_exceptions=True)

    def _watch(self) -> None:
        self._loop.add_reader(self._socket.fileno(), self._readable)

    def _pause(self, seconds: float, then: Callable[[], None]) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._delay = self._loop.call_later(seconds, then)

    def _readable(self) -> None:
        if self._connections.has_more_than_another:
            self._pause(DELAY_SECONDS, self._accept_and_watch)
        else:
            self._accept()

    def _accept_and_watch(self) -> None:
        self._watch()
        self._accept()

    def _accept(self) -> None:
        try:
            accepted, _ = self._socket.accept()
        except OSError as error:  # another worker was faster, or the client gave up
            if error.errno in _NO_FILES:
                logger.error("connections cannot be accepted: %s", error)
                self._pause(NO_FILES_SECONDS, self._watch)
            return
        self._connections.add(1)  # now, since it counts for the next one; the server subtracts it when the connection ends
        accepted.setblocking(False)
        task: asyncio.Task[object] = self._loop.create_task(self._serve(accepted))
        self._starting.add(task)
        task.add_done_callback(partial(self._started, accepted))

    def _started(self, accepted: socket.socket, task: "asyncio.Task[object]") -> None:
        self._starting.discard(task)
        if not task.cancelled() and task.exception() is None:
            return
        self._connections.add(-1)
        accepted.close()
        if not task.cancelled() and not isinstance(task.exception(), OSError):  # an OSError: no TLS client, or gone already
            logger.error("a connection could not be set up", exc_info=task.exception())
