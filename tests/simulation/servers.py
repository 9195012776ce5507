"""Server processes: started on free ports, killed, and started again on the same data.

A fleet is two workers on SQLite, or two servers on one PostgreSQL with a shared folder of extents.
"""

import asyncio
import ctypes
import http.client
import json
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.rest.running import ADMIN, ADMIN_TOKEN
from verditer.config import PORTS

PATIENCE_SECONDS = 30.0
PORT_NAMES = [row.name for row in PORTS]


COLLECTING = """
import sys
from verditer import app, cli
from verditer.jobs import collect
Collector, collect.ANNOUNCE_SECONDS = app.Collector, {every_seconds}
app.Collector = lambda ctx, every_seconds: Collector(ctx, {every_seconds})
sys.exit(cli.main())
"""


class Server:
    """One server, on SQLite with two workers. `log` is all of its output to stderr, over all starts.

    `collect_seconds` is the pause between two rounds of its collector, and between two announcements of a worker, if not the
    usual one."""

    def __init__(
        self, folder: Path, *flags: str, max_file_bytes: int | None = None, collect_seconds: float | None = None
    ) -> None:
        self.folder = folder
        self.port = self.admin_port = 0
        self.ports: dict[str, int] = {}  # by service
        self._flags = flags
        self._program = ["-m", "verditer"]
        if collect_seconds is not None:
            self._program = ["-c", COLLECTING.format(every_seconds=collect_seconds)]
        self._max_file_bytes = max_file_bytes
        self._log = folder.with_name(folder.name + ".log")
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> "Server":
        self.spawn()
        try:
            self._read_banner()
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def spawn(self) -> None:
        """Start the process without waiting for it."""
        ports = [part for name in PORT_NAMES for part in (f"--{name}Port", "0")]
        workers = [] if "--database" in self._flags else ["--workers", "2"]
        command = [sys.executable, *self._program, "--location", str(self.folder), "--silent", "--test-control"]
        command += ["--adminToken", ADMIN_TOKEN]
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [*command, *ports, *workers, *self._flags],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
                preexec_fn=self._prepare,
            )

    def kill(self) -> None:
        """kill -9: nothing is flushed."""
        if self._process is not None:
            self._process.kill()
            self.wait()

    def terminate(self) -> None:
        assert self._process is not None
        self._process.terminate()

    def stop(self) -> int:
        self.terminate()
        return self.wait()

    def wait(self) -> int:
        assert self._process is not None
        assert self._process.stdout is not None
        code = self._process.wait(PATIENCE_SECONDS)
        self._process.stdout.close()
        self._process = None
        return code

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def workers(self) -> list[int]:
        """Their process ids."""
        assert self._process is not None
        parent = self._process.pid
        return [int(word) for word in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def move_clock(self, seconds: float) -> None:
        assert self._admin("POST", "/control/clock", json.dumps({"seconds": seconds})) == 200

    def _prepare(self) -> None:
        """In the child: it ends when the tests end, and may write only files of limited size."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
        if self._max_file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._max_file_bytes, self._max_file_bytes))

    def _read_banner(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        ports = {name: port for name, port in map(_listening, _lines(self._process.stdout)) if name}
        assert {"blob", "admin"} <= ports.keys(), f"{ports} {self.log}"
        self.port, self.admin_port = ports["blob"], ports["admin"]
        self.ports = ports

    def _wait_until_ready(self) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while self._admin("GET", "/health/ready") != 200:
            assert time.monotonic() < end, self.log
            time.sleep(0.01)

    def _admin(self, method: str, path: str, body: str | None = None) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, ADMIN)
            return connection.getresponse().status
        finally:
            connection.close()


def _lines(stdout: IO[str]) -> Iterator[str]:
    """The start message up to its first empty line: the services and their ports."""
    yield from iter(lambda: stdout.readline().rstrip(), "")


def _listening(line: str) -> tuple[str, int]:
    words = line.split()
    if len(words) == 2 and words[1].startswith(("http", "smb")):
        return words[0].lower(), int(words[1].rpartition(":")[2])
    return "", 0


class Fleet:
    """Servers of the same data."""

    def __init__(self, kind: str, servers: list[Server]) -> None:
        self.kind = kind
        self.servers = servers

    @property
    def ports(self) -> list[int]:
        return [server.port for server in self.servers]

    @property
    def log(self) -> str:
        return "".join(server.log for server in self.servers)

    def restart(self) -> None:
        """Kill all of them and start them again."""
        for server in self.servers:
            server.kill()
        for server in self.servers:
            server.start()


@contextmanager
def sqlite_fleet(folder: Path) -> Iterator[Fleet]:
    with _running("sqlite", [Server(folder / "data")]) as fleet:
        yield fleet


@contextmanager
def postgres_fleet(folder: Path, make_database: Callable[[], str]) -> Iterator[Fleet]:
    database = make_database()
    location = str(folder / "shared")
    servers = [Server(folder / f"node-{number}", "--location", location, "--database", database) for number in range(2)]
    with _running("postgres", servers) as fleet:
        yield fleet


@contextmanager
def _running(kind: str, servers: list[Server]) -> Iterator[Fleet]:
    try:
        yield Fleet(kind, [server.start() for server in servers])
    finally:
        for server in servers:
            if server.alive:
                server.kill()


async def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)
