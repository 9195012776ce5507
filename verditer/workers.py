"""Several processes that serve together: one parent binds the ports, forks the workers and stays to look after them.

A worker and its parent talk over a pair of sockets. The worker says when it serves; the parent says when to stop. The end of the
line means the other one is gone: the parent starts a dead worker again, and a worker without a parent ends at once, which is safe
at any moment. Signals are for the parent alone, since terminals and service managers send them to all processes of a group.
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

from verditer.app import Worker
from verditer.config import Config, Listen
from verditer.partition.shared import SharedStore
from verditer.rest.accept import Crew
from verditer.rest.observe import Board
from verditer.rest.server import listening_sockets

logger = logging.getLogger("verditer")
PORTS = ("blob", "queue", "table", "file", "admin")
MAX_DEATHS = 10  # in a minute: whatever kills workers so often is not cured by starting them again
_READY, _STOP = b"r", b"s"


class Seat:
    """The worker's side."""

    def __init__(self, worker: Worker, line: socket.socket, *, is_last: bool) -> None:
        self.worker = worker
        self.is_last = is_last
        self._line = line

    def obey(self, stop: Callable[[], object]) -> None:
        """`stop` is called whenever the parent says so."""

        def hear() -> None:
            if not _heard_on(self._line):
                os._exit(1)
            stop()

        asyncio.get_running_loop().add_reader(self._line.fileno(), hear)

    def say_ready(self) -> None:
        self._line.sendall(_READY)


def _heard_on(line: socket.socket) -> bytes:
    """Nothing when the other side is gone, also where its end left unread words behind."""
    try:
        return line.recv(1)
    except ConnectionResetError:
        return b""


@dataclass(kw_only=True, slots=True)
class _Child:
    """The parent's side."""

    number: int
    process: int
    line: socket.socket
    ready: bool = False


class Workers:
    """`work` is what a worker does until it is told to stop; it returns the status of its process."""

    def __init__(self, config: Config, count: int, work: Callable[[Seat], int]) -> None:
        self._config = config
        self._count = count
        self._work = work
        self._children: dict[int, _Child] = {}
        self._deaths: deque[float] = deque(maxlen=MAX_DEATHS)
        self._stopping = False
        self._status = 0

    def run(self) -> int:
        """Until all workers have ended. Nothing here makes a thread or a loop: a forked one would be broken."""
        config = self._config
        self._store = SharedStore(config.location) if config.database is None else None
        self._board = Board(self._count)
        self._crew = Crew(self._count)
        self._sockets: dict[str, list[socket.socket]] = {}
        self._selector = selectors.DefaultSelector()
        self._signals, wakeup = socket.socketpair()
        before = {number: signal.signal(number, _heard) for number in (signal.SIGTERM, signal.SIGINT)}
        wakeup.setblocking(False)
        signal.set_wakeup_fd(wakeup.fileno())
        self._selector.register(self._signals, selectors.EVENT_READ, self._hear_signal)
        try:
            for name in PORTS:
                listen: Listen = getattr(config, name)
                self._sockets[name] = listening_sockets(listen.host, listen.port)
            self._fork(0, again=False)
            while self._children:
                for key, _ in self._selector.select():
                    key.data()
        finally:
            self._close_ports()
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            for opened in (self._selector, self._signals, wakeup, self._store):
                if opened is not None:
                    opened.close()
        return self._status

    def _fork(self, number: int, *, again: bool) -> None:
        mine, its = socket.socketpair()
        sys.stdout.flush()
        process = os.fork()
        if process == 0:
            mine.close()
            self._become_worker(number, its, again)
        its.close()
        child = _Child(number=number, process=process, line=mine)
        self._children[number] = child
        self._selector.register(mine, selectors.EVENT_READ, lambda: self._hear(child))

    def _become_worker(self, number: int, line: socket.socket, again: bool) -> None:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            for ignored in (signal.SIGTERM, signal.SIGINT):
                signal.signal(ignored, signal.SIG_IGN)
            self._selector.close()
            for other in self._children.values():  # held here, they would outlive the parent
                other.line.close()
            worker = Worker(
                number=number,
                again=again,
                sockets=self._sockets,
                board=self._board,
                member=self._crew.member(number),
                store=self._store,
            )
            status = self._work(Seat(worker, line, is_last=number == self._count - 1))
            sys.stdout.flush()
        except BaseException:
            logger.exception("worker %d failed", number)
        finally:
            os._exit(status)

    def _hear(self, child: _Child) -> None:
        if _heard_on(child.line) == _READY:
            child.ready = True
            if child.number + 1 not in self._children and child.number + 1 < self._count and not self._stopping:
                self._fork(child.number + 1, again=False)
        else:
            self._bury(child)

    def _bury(self, child: _Child) -> None:
        self._selector.unregister(child.line)
        child.line.close()
        status = os.waitstatus_to_exitcode(os.waitpid(child.process, 0)[1])
        del self._children[child.number]
        if self._stopping:
            self._status = self._status or max(status, 0)
        elif (not child.ready and status == 1) or self._too_many_deaths():  # it said why
            self._status = 1
            self._stop()
        else:
            logger.error("worker %d ended with status %d; another takes its place", child.number, status)
            self._fork(child.number, again=True)

    def _too_many_deaths(self) -> bool:
        self._deaths.append(time.monotonic())
        return len(self._deaths) == MAX_DEATHS and self._deaths[-1] - self._deaths[0] < 60

    def _hear_signal(self) -> None:
        for _ in self._signals.recv(64):
            self._stop()

    def _stop(self) -> None:
        """A second time cuts off what is slow."""
        self._stopping = True
        self._close_ports()
        for child in self._children.values():
            with contextlib.suppress(OSError):  # it is gone, and that is heard next
                child.line.sendall(_STOP)

    def _close_ports(self) -> None:
        for sockets in self._sockets.values():
            for made in sockets:
                made.close()


def _heard(number: int, frame: object) -> None:
    """The wakeup socket has it."""
