"""Sides and servers: a side is a program that can be started, a server is one such process with its own folder and ports.

Every process leads a session of its own, so memory, CPU time and signals count its workers too.
"""

import copy
import http.client
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOST = "127.0.0.1"
READY_WITHIN_SECONDS = 60.0
STOP_WITHIN_SECONDS = 20.0
PORTS = range(12_000, 32_000)
SERVICES = ("blob", "queue", "table", "file", "smb")


class CannotMeasure(Exception):
    """Something is missing on this machine, or a server does not start."""


def ending(main: Callable[[], int]) -> int:
    """Run `main` and return the exit status; `CannotMeasure` is printed as one line."""
    try:
        return main()
    except CannotMeasure as problem:
        print(problem)
        return 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Side:
    """A program to measure. `command` builds its command line from its folder, all ports, and the measured service."""

    label: str
    command: Callable[[Path, dict[str, int], str], list[str]]
    environment: dict[str, str] = field(default_factory=dict)
    has_rest: bool = True


class Server:
    """A running process of a side. `objects` is the number of blobs that it was filled with."""

    def __init__(self, side: Side, parent: Path, service: str = "blob") -> None:
        self.side = side
        self.service = service
        self.folder = Path(tempfile.mkdtemp(prefix="verditer-bench-", dir=parent))
        self.data = self.folder / "data"
        self.ports = dict(zip(SERVICES, free_ports(len(SERVICES)), strict=True))
        self.objects = 0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return self.ports[self.service]

    def at(self, service: str) -> "Server":
        """The same server, addressed at the port of another service."""
        other = copy.copy(self)
        other.service = service
        return other

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, **self.side.environment}

    def start(self) -> float:
        """Start on the existing folder. Returns the seconds until the first HTTP response, whatever its status. For SMB it is
        the first connection."""
        self.data.mkdir(exist_ok=True)
        log = self.folder / "log"
        started = time.perf_counter()
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                self.side.command(self.data, self.ports, self.service),
                cwd=self.folder,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while time.perf_counter() - started < READY_WITHIN_SECONDS:
            if listens(self.port) if self.service == "smb" else answers(self.port):
                return time.perf_counter() - started
            if self._process.poll() is not None:
                break
            time.sleep(0.002)
        raise CannotMeasure(f"{self.side.label} did not start:\n{log.read_text(errors='replace')[-2000:]}")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """Ask the process to stop, and kill it if it does not."""
        if self._process is None:
            return
        process, self._process = self._process, None
        self._signal(process, signal.SIGCONT)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_WITHIN_SECONDS)
        self._signal(process, signal.SIGKILL)
        process.wait()

    def restart(self, *, fresh: bool = False) -> float:
        """Stop and start again, on an empty folder if `fresh`. Returns the seconds until the first response."""
        self.stop()
        if fresh:
            shutil.rmtree(self.data)
            self.objects = 0
        return self.start()

    def discard(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pause(self) -> None:
        """Suspend the process while another side is measured, so that its background work falls into its own rounds."""
        assert self._process is not None
        self._signal(self._process, signal.SIGSTOP)

    def resume(self) -> None:
        if self._process is not None:
            self._signal(self._process, signal.SIGCONT)

    def proportional_bytes(self) -> int:
        """Memory in use, by PSS: a page that n processes share counts as 1/n in each of them, so it is counted once."""
        return sum(_memory_bytes(process, "Pss:") for process in self._processes())

    def resident_bytes(self) -> int:
        """The sum of RSS: a page that n processes share is counted n times."""
        return sum(_memory_bytes(process, "Rss:") for process in self._processes())

    def user_seconds(self) -> float:
        """CPU time spent in the program itself so far, without the kernel's part."""
        return sum(int(stat[11]) for stat in self._stats()) / os.sysconf("SC_CLK_TCK")

    def cpu_seconds(self) -> float:
        """The same with the kernel's part."""
        return sum(int(stat[11]) + int(stat[12]) for stat in self._stats()) / os.sysconf("SC_CLK_TCK")

    def _stats(self) -> Iterator[list[str]]:
        """/proc/<pid>/stat from its third field on, of every process in the server's session."""
        for process in self._processes():
            with suppress(OSError):
                yield _stat(process)

    def _processes(self) -> Iterator[Path]:
        assert self._process is not None
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if int(_stat(process)[3]) == self._process.pid:
                    yield process

    @staticmethod
    def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def answers(port: int) -> bool:
    connection = http.client.HTTPConnection(HOST, port, timeout=READY_WITHIN_SECONDS)
    try:
        connection.request("GET", "/devstoreaccount1?comp=list")
        connection.getresponse().read()
        return True
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def listens(port: int) -> bool:
    return not is_free(port)


def free_ports(count: int) -> list[int]:
    """Free ports below the ephemeral range, so that a client does not connect to itself."""
    return [port for port in random.sample(PORTS, 4 * count) if is_free(port)][:count]


def is_free(port: int) -> bool:
    with socket.socket() as holder:
        return holder.connect_ex((HOST, port)) != 0


def require_disk(folder: Path) -> None:
    """Refuse a folder in memory: a sync costs nothing there, so the numbers would favour a server that syncs."""
    kind = file_system(folder)
    if kind in ("tmpfs", "ramfs"):
        raise CannotMeasure(f"{folder} is in memory ({kind}); name a folder on a disk with --folder")


def file_system(folder: Path) -> str:
    words = ["df", "--output=fstype", str(folder)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()[-1]


def _stat(process: Path) -> list[str]:
    return (process / "stat").read_text().rpartition(")")[2].split()


def _memory_bytes(process: Path, field: str) -> int:
    with suppress(OSError):
        for line in (process / "smaps_rollup").read_text().splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return 0
