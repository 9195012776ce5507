"""Processes of the cluster: started in sessions of their own, killed, stopped and continued by signals."""

import contextlib
import ctypes
import os
import pwd
import signal
import socket
import subprocess
from pathlib import Path

NOBODY = "nobody" if os.geteuid() == 0 else None


class Managed:
    """A process and everything it has started."""

    def __init__(self, name: str, command: list[str], log: Path, *, environment: dict[str, str] | None = None) -> None:
        self.name = name
        self._command = command
        self._log = log
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._orphans: list[int] = []

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env={**os.environ, **self._environment},
                user=NOBODY,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )

    def signal(self, number: signal.Signals) -> None:
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGKILL)
        self._orphans = []
        if self._process is not None:
            self._process.wait()
            self._process = None

    def kill_alone(self) -> None:
        """Kill the process, and continue what it has started."""
        assert self._process is not None
        _, *self._orphans = self.pids()
        self._process.kill()
        self._process.wait()
        self._process = None
        self.signal(signal.SIGCONT)

    def pids(self) -> list[int]:
        """The process and its descendants."""
        children: dict[int, list[int]] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                children.setdefault(parent, []).append(int(stat.parent.name))
        found = [*self._orphans, *([self._process.pid] if self._process is not None else [])]
        for pid in found:
            found += children.get(pid, [])
        return found


def _end_with_parent() -> None:
    """And become the parent of what the children leave behind: Patroni starts PostgreSQL by a process that ends."""
    libc = ctypes.CDLL(None)
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    libc.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def own(folder: Path) -> None:
    """Give a folder to the user that runs the processes: PostgreSQL refuses to run as root."""
    if NOBODY is not None:
        account = pwd.getpwnam(NOBODY)
        os.chown(folder, account.pw_uid, account.pw_gid)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
