"""Worker processes that serve the same sockets: a parent forks them, starts a dead one again, and stops them.

A worker and its parent are connected by a pair of sockets. The worker reports when it serves; the parent tells it to stop. The
end of that connection means that the other process is gone: the parent starts a dead worker again, and a worker without a parent
ends at once, which is safe at any moment. Only the parent handles signals, because terminals and service managers send them to
all processes of a group.
"""

import asyncio
import contextlib
import logging
import os
import selectors
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from verditer.serving.accept import ConnectionCounts, WorkerConnections
from verditer.serving.metrics import SharedMetrics
from verditer.serving.request_feed import shared_feed
from verditer.serving.shared_slots import SharedSlots
from verditer.serving.sockets import close_all

logger = logging.getLogger("verditer")
MAX_DEATHS = 10  # within a minute: starting workers again does not cure what kills them so often
_READY, _STOP = b"r", b"s"


@dataclass(frozen=True, kw_only=True, slots=True)
class Worker:
    """One of several processes that serve the same ports, and what it shares with the others."""

    number: int
    count: int  # of all workers
    restarted: bool  # it replaces a worker that died
    sockets: dict[str, list[socket.socket]]  # by the name of the port
    metrics: SharedMetrics
    feed: SharedSlots  # the newest requests of each worker
    connections: WorkerConnections


class WorkerLink:
    """The worker's side of the connection to its parent."""

    def __init__(self, worker: Worker, line: socket.socket, *, is_last: bool) -> None:
        self.worker = worker
        self.is_last = is_last
        self._line = line

    def on_stop(self, stop: Callable[[], object]) -> None:
        """Call `stop` whenever the parent says so."""

        def received() -> None:
            if not _receive(self._line):
                os._exit(1)
            stop()

        asyncio.get_running_loop().add_reader(self._line.fileno(), received)

    def report_ready(self) -> None:
        self._line.sendall(_READY)


def _receive(line: socket.socket) -> bytes:
    """Nothing when the other process is gone, also when it left unread bytes behind."""
    try:
        return line.recv(1)
    except ConnectionResetError:
        return b""


@dataclass(kw_only=True, slots=True)
class _Child:
    """A worker as its parent sees it."""

    number: int
    process: int
    line: socket.socket
    ready: bool = False


class Workers:
    """The parent of `count` workers. `work` is what a worker does until it is told to stop; it returns the exit status."""

    def __init__(self, count: int, sockets: dict[str, list[socket.socket]], work: Callable[[WorkerLink], int]) -> None:
        self._count = count
        self._sockets = sockets
        self._work = work
        self._metrics = SharedMetrics(count)
        self._feed = shared_feed(count)
        self._connections = ConnectionCounts(count)
        self._children: dict[int, _Child] = {}
        self._deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        self._stopping = False
        self._status = 0

    def run(self) -> int:
        """Until all workers have ended. The parent has neither threads nor an event loop, which a fork would break."""
        self._selector = selectors.DefaultSelector()
        self._signals, wakeup = socket.socketpair()
        previous = {number: signal.signal(number, _ignore) for number in (signal.SIGTERM, signal.SIGINT)}
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno())
        self._selector.register(self._signals, selectors.EVENT_READ, self._signal_received)
        try:
            self._fork(0, restarted=False)
            while self._children:
                for key, _ in self._selector.select():
                    key.data()
        finally:
            close_all(self._sockets)
            signal.set_wakeup_fd(-1)
            for number, handler in previous.items():
                signal.signal(number, handler)
            for opened in (self._selector, self._signals, wakeup):
                opened.close()
        return self._status

    def _fork(self, number: int, *, restarted: bool) -> None:
        mine, its = socket.socketpair()
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            mine.close()
            self._become_worker(number, its, restarted)
        its.close()
        child = _Child(number=number, process=process, line=mine)
        self._children[number] = child
        self._selector.register(mine, selectors.EVENT_READ, lambda: self._child_reported(child))

    def _become_worker(self, number: int, line: socket.socket, restarted: bool) -> None:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for ignored in (signal.SIGTERM, signal.SIGINT):
                signal.signal(ignored, signal.SIG_IGN)
            self._selector.close()
            for other in self._children.values():  # an open copy would keep the connection up when the parent dies
                other.line.close()
            worker = Worker(
                number=number,
                count=self._count,
                restarted=restarted,
                sockets=self._sockets,
                metrics=self._metrics,
                feed=self._feed,
                connections=self._connections.of_worker(number),
            )
            status = self._work(WorkerLink(worker, line, is_last=number == self._count - 1))
            sys.stdout.flush()
        except BaseException:
            logger.exception("worker %d failed", number)
        finally:
            os._exit(status)

    def _child_reported(self, child: _Child) -> None:
        if _receive(child.line) == _READY:
            child.ready = True
            if child.number + 1 not in self._children and child.number + 1 < self._count and not self._stopping:
                self._fork(child.number + 1, restarted=False)
        else:
            self._child_ended(child)

    def _child_ended(self, child: _Child) -> None:
        self._selector.unregister(child.line)
        child.line.close()
        status = os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1])
        del self._children[child.number]
        if self._stopping:
            self._status = self._status or max(status, 0)
        elif (not child.ready and status == 1) or self._too_many_deaths():  # it has printed the reason
            self._status = 1
            self._stop()
        else:
            logger.error("worker %d ended with status %d; another takes its place", child.number, status)
            self._fork(child.number, restarted=True)

    def _too_many_deaths(self) -> bool:
        self._deaths.append(time.monotonic())
        return len(self._deaths) == MAX_DEATHS and self._deaths[-1] - self._deaths[0] < 60

    def _signal_received(self) -> None:
        for _ in self._signals.recv(64):
            self._stop()

    def _stop(self) -> None:
        """Tell every worker to stop. A second call makes them cut off slow requests."""
        self._stopping = True
        close_all(self._sockets)
        for child in self._children.values():
            with contextlib.suppress(OSError):  # the worker is gone, which `_child_reported` finds next
                child.line.sendall(_STOP)


def _ignore(number: int, frame: object) -> None:
    """The signal arrives through the wakeup socket."""
