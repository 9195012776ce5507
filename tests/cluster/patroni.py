"""PostgreSQL with a primary and two synchronous standbys: three Patroni processes and etcd, on loopback.

`make cluster` installs Patroni from PyPI: that of Debian 12 (3.0.2) lets a primary that was suspended take the leader lock from
its successor. PostgreSQL and etcd come from Debian's packages.

Servers reach each PostgreSQL through a proxy of its own (`tests/contract/tcp_proxy.py`), so that its network can fail.
"""

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

from tests.cluster.processes import Managed, free_port, own
from tests.contract.tcp_proxy import TcpProxy

VERSION = "4.1.5"
PATRONI = Path(__file__).parents[2] / ".patroni"
PYTHON = "/usr/bin/python3"  # one that the user of PostgreSQL may run

MEMBERS = 3
DISK_MIB = 2048  # with room for the log that a member which was away needs
TTL_SECONDS = 20  # Patroni's shortest: after so long without a sign of life, another member becomes the primary

_REQUIREMENTS = (f"patroni[etcd3]=={VERSION}", "psycopg[binary]>=3.2")

_CONFIGURATION = """
scope: verditer
name: member{number}
restapi: {{listen: "127.0.0.1:{rest}", connect_address: "127.0.0.1:{rest}"}}
etcd3: {{host: "127.0.0.1:{etcd}"}}
bootstrap:
  dcs:
    ttl: {ttl}
    loop_wait: 3
    retry_timeout: 5
    maximum_lag_on_failover: 1048576
    synchronous_mode: true
    postgresql:
      use_pg_rewind: true
      parameters: {{max_connections: 200, synchronous_commit: "on", fsync: "off", max_wal_size: 256MB, wal_keep_size: 768MB}}
  initdb: [{{encoding: UTF8}}, {{locale: C}}]
  pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust", "local all all trust"]
postgresql:
  listen: "127.0.0.1:{port}"
  connect_address: "127.0.0.1:{port}"
  data_dir: {home}/disk{number}/data
  bin_dir: {programs}
  pgpass: {home}/pgpass{number}
  remove_data_directory_on_rewind_failure: true
  remove_data_directory_on_diverged_timelines: true
  authentication:
    superuser: {{username: postgres, password: secret}}
    replication: {{username: replicator, password: secret}}
    rewind: {{username: rewinder, password: secret}}
  parameters: {{unix_socket_directories: "{home}"}}
"""


def missing() -> str | None:
    """What has to be installed, or None."""
    needed = [shutil.which("etcd"), programs(), *Path("/usr/lib").glob("*/faketime/libfaketime.so.1")]
    if None in needed or len(needed) < 3:
        return "apt-get install --no-install-recommends postgresql etcd-server libfaketime python3-pip"
    return None if _is_installed() else f"python -m tests.cluster.patroni installs Patroni {VERSION}"


def install() -> None:
    if not _is_installed():
        print(f"installing Patroni {VERSION} …", flush=True)
        shutil.rmtree(PATRONI, ignore_errors=True)
        pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--break-system-packages"]
        subprocess.run([*pip, "--root-user-action=ignore", "--target", PATRONI, *_REQUIREMENTS], check=True)


def _is_installed() -> bool:
    return (PATRONI / f"patroni-{VERSION}.dist-info").exists()


def programs() -> Path | None:
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


class SmallDisk:
    """A disk of its own for the data of one PostgreSQL, in memory. Without root it is a folder that cannot be filled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        own(folder)

    def mount(self) -> None:
        if os.geteuid() == 0:
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "none", str(self._folder)], check=True)
            own(self._folder)

    def unmount(self) -> None:
        if os.path.ismount(self._folder):
            subprocess.run(["umount", "--lazy", str(self._folder)], check=True)

    def fill(self) -> None:
        assert os.path.ismount(self._folder), "filling a disk needs root"
        with (self._folder / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while filler.write(bytes(1 << 16)):
                pass

    def empty(self) -> None:
        (self._folder / "filler").unlink()


class Member:
    def __init__(self, number: int, home: Path, etcd_port: int) -> None:
        self.number = number
        self.disk = SmallDisk(home / f"disk{number}")
        self.port, self._rest = free_port(), free_port()
        self.proxy = TcpProxy(("127.0.0.1", self.port))
        configuration = home / f"member{number}.yml"
        configuration.write_text(
            _CONFIGURATION.format(
                number=number,
                rest=self._rest,
                etcd=etcd_port,
                port=self.port,
                home=home,
                programs=programs(),
                ttl=TTL_SECONDS,
            )
        )
        command = [PYTHON, "-m", "patroni", str(configuration)]
        environment = {"PYTHONPATH": str(home / "patroni")}
        self.process = Managed(f"member{number}", command, home / f"member{number}.log", environment=environment)

    async def role(self) -> tuple[str, str]:
        """Its role and state, as Patroni tells them."""
        told = await asyncio.to_thread(self._ask)
        return str(told.get("role", "")), str(told.get("state", ""))

    async def is_synchronous(self) -> bool:
        """Whether it is the standby that the primary waits for."""
        return bool((await asyncio.to_thread(self._ask)).get("sync_standby"))

    def _ask(self) -> dict[str, object]:
        told: dict[str, object] = {}
        with contextlib.suppress(OSError, ValueError):  # it does not run, or not yet
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self._rest}/patroni", timeout=2) as answer:
                    told = json.load(answer)
            except urllib.error.HTTPError as error:
                told = json.load(error)
        return told


class Postgres:
    def __init__(self, home: Path) -> None:
        port, peer = free_port(), free_port()
        own(home)
        shutil.copytree(PATRONI, home / "patroni")  # the project may lie where only its owner can read
        etcd = shutil.which("etcd")
        assert etcd is not None
        client, server = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
        command = [etcd, "--data-dir", str(home / "etcd"), "--listen-client-urls", client, "--advertise-client-urls", client]
        command += ["--listen-peer-urls", server, "--initial-advertise-peer-urls", server]
        command += ["--initial-cluster", f"default={server}", "--log-level", "error"]
        self._etcd = Managed("etcd", command, home / "etcd.log")
        self.members = [Member(number, home, port) for number in range(MEMBERS)]

    async def start(self) -> None:
        self._etcd.start()
        for member in self.members:
            await member.proxy.start()
            member.disk.mount()
            member.process.start()
            await self.until_healthy(1)  # the first becomes the primary, and the others copy it
        await self.until_healthy(MEMBERS)

    async def stop(self) -> None:
        for member in self.members:
            member.process.kill()
            member.disk.unmount()
            await member.proxy.stop()
        self._etcd.kill()

    async def primary(self) -> Member:
        while True:
            for member in self.members:
                if await member.role() in (("master", "running"), ("primary", "running")):
                    return member
            await asyncio.sleep(0.2)

    async def until_healthy(self, count: int, seconds: float = 150) -> None:
        """So many members run, one of them as the primary and another one as the standby that it waits for: before that, a
        primary acknowledges what no other member has."""
        async with asyncio.timeout(seconds):
            while True:
                states = [await member.role() for member in self.members]
                running = [role for role, state in states if state in ("running", "streaming")]
                has_standby = count == 1 or any([await member.is_synchronous() for member in self.members])
                if len(running) >= count and any(role in ("master", "primary") for role in running) and has_standby:
                    return
                await asyncio.sleep(0.5)

    @property
    def url(self) -> str:
        ports = ",".join(str(member.proxy.port) for member in self.members)
        hosts = ",".join("127.0.0.1" for _ in self.members)
        return f"host={hosts} port={ports} user=postgres password=secret dbname=postgres"


if __name__ == "__main__":
    install()
