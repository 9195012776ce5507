"""A real Ceph for tests: one monitor, one OSD on a file, and the RADOS gateway, which serves S3. Unlike s3proxy it syncs an
object before it answers.

`python -m tests.contract.ceph` unpacks Debian's packages (55 of them, 66 MB) into `.ceph`; nothing is installed.
`VERDITER_S3=ceph` then makes the tests of extents use it, and `make cluster ARGS="--s3 ceph"` the cluster.
"""

import base64
import hashlib
import hmac
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
import uuid
from email.utils import formatdate
from itertools import count
from pathlib import Path

from tests.contract.s3 import S3Server, end_with_the_tests, free_port
from tests.contract.signals import send_signal

ROOT = Path(__file__).parents[2] / ".ceph"
PACKAGES = ("radosgw", "ceph-mon", "ceph-osd", "ceph-common")
_LIBRARIES = ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/ceph", "usr/lib/ceph")
_START_SECONDS = 120
_COMMAND_SECONDS = 60


class CephServer(S3Server):
    """Its processes are killed, stopped and started together, on the same data."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp(prefix="verditer-ceph-", dir="/tmp")))
        self._monitor_port = free_port()
        self._buckets = count()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._environment = {
            **os.environ,
            "LD_LIBRARY_PATH": ":".join(str(ROOT / folder) for folder in _LIBRARIES),
            "PYTHONPATH": str(ROOT / "usr/lib/python3/dist-packages"),
            "CEPH_CONF": str(self.home / "ceph.conf"),
        }
        for folder in ("mon", "osd", "log", "run"):
            (self.home / folder).mkdir()
        self._is_made = False

    def make_bucket(self) -> str:
        name = f"bucket-{next(self._buckets)}"
        date = formatdate(usegmt=True)
        signature = hmac.digest(self.secret.encode(), f"PUT\n\n\n{date}\n/{name}".encode(), hashlib.sha1)
        headers = {"Date": date, "Authorization": f"AWS {self.key}:{base64.b64encode(signature).decode()}"}
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT", headers=headers)
        urllib.request.urlopen(request, timeout=_COMMAND_SECONDS).close()
        return name

    def start(self) -> None:
        if self._is_made:
            self._serve("ceph-mon", "-i", "a")
        else:
            self._make()
        self._serve("ceph-osd", "-i", "0")
        if not self._is_made:
            user = ("user", "create", "--uid=verditer", "--display-name=verditer")
            self._run("radosgw-admin", *user, f"--access-key={self.key}", f"--secret-key={self.secret}")
            self._is_made = True
        self._serve("radosgw", "-n", "client.rgw")
        self.await_answer(self._processes, _START_SECONDS)

    def signal(self, number: int) -> None:
        for process in self._processes:
            send_signal(process.pid, number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        for process in self._processes:
            process.wait()
        self._processes.clear()

    def _make(self) -> None:
        """Monitor, keys and OSD on an empty folder. The monitor runs afterwards."""
        (self.home / "ceph.conf").write_text(_CONFIGURATION.format(server=self, cluster=uuid.uuid4(), monitor=self._address))
        keys, map_file, disk = str(self.home / "keyring"), str(self.home / "monmap"), str(uuid.uuid4())
        for number, (name, *caps) in enumerate(_KEYS):
            words = [word for cap in caps for word in ("--cap", *cap.split(" ", 1))]
            self._run("ceph-authtool", keys, *(() if number else ("--create-keyring",)), "--gen-key", "-n", name, *words)
        cluster = re.search(r"fsid = (\S+)", (self.home / "ceph.conf").read_text())
        assert cluster is not None
        self._run("monmaptool", "--create", "--fsid", cluster[1], "--addv", "a", f"[{self._address}]", map_file)
        self._run("ceph-mon", "--mkfs", "-i", "a", "--monmap", map_file, "--keyring", keys)
        self._serve("ceph-mon", "-i", "a")
        self._run("/usr/bin/python3", str(ROOT / "usr/bin/ceph"), "osd", "new", disk)
        key = self._run("ceph-authtool", "-p", "-n", "osd.0", keys).strip()
        self._run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", disk, "--key", key)

    @property
    def _address(self) -> str:
        return f"v2:127.0.0.1:{self._monitor_port}"

    def _run(self, program: str, *arguments: str) -> str:
        command = [program if program.startswith("/") else str(ROOT / "usr/bin" / program), *arguments]
        done = subprocess.run(
            command, env=self._environment, capture_output=True, text=True, timeout=_COMMAND_SECONDS, check=False
        )
        assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
        return done.stdout

    def _serve(self, program: str, *arguments: str) -> None:
        with (self.home / "log" / f"{program}.out").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(ROOT / "usr/bin" / program), "-f", *arguments],
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    preexec_fn=end_with_the_tests,
                )
            )


_KEYS = (
    ("mon.", "mon allow *"),
    ("client.admin", "mon allow *", "osd allow *"),
    ("osd.0", "mon allow profile osd", "osd allow *"),
    ("client.rgw", "mon allow rw", "osd allow rwx"),
)
_CONFIGURATION = f"""\
[global]
fsid = {{cluster}}
mon_host = {{monitor}}
public_network = 127.0.0.0/8
keyring = {{server.home}}/keyring
log_file = {{server.home}}/log/$name.log
admin_socket = {{server.home}}/run/$name.asok
run_dir = {{server.home}}/run
mon_data = {{server.home}}/mon
osd_data = {{server.home}}/osd
rgw_data = {{server.home}}/rgw
osd_objectstore = bluestore
bluestore_block_size = 8589934592
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
osd_pool_default_pg_autoscale_mode = off
mon_allow_pool_size_one = true
osd_crush_chooseleaf_type = 0
osd_memory_target = 939524096
mon_data_avail_crit = 1
plugin_dir = {ROOT}/usr/lib/x86_64-linux-gnu/ceph
osd_class_dir = {ROOT}/usr/lib/x86_64-linux-gnu/rados-classes
erasure_code_dir = {ROOT}/usr/lib/x86_64-linux-gnu/ceph/erasure-code
rgw_frontends = beast endpoint=127.0.0.1:{{server.port}}
"""


def missing() -> str | None:
    return None if (ROOT / "usr/bin/radosgw").exists() else "Ceph is not there: python -m tests.contract.ceph"


def fetch() -> None:
    """The packages that this machine lacks."""
    unfinished = ROOT.with_suffix(f".{os.getpid()}")
    unfinished.mkdir()
    wanted = ("apt-get", "install", "--print-uris", "-y", "--no-install-recommends", *PACKAGES)
    listed = subprocess.run(wanted, capture_output=True, text=True, check=True).stdout
    names = re.findall(r"^'\S+' ([^_]+)_", listed, re.MULTILINE)
    subprocess.run(("apt-get", "download", "-qq", *names), cwd=unfinished, check=True)  # it verifies them
    for package in unfinished.glob("*.deb"):
        subprocess.run(("dpkg", "-x", package, unfinished), check=True)
        package.unlink()
    unfinished.rename(ROOT)


if __name__ == "__main__" and missing():
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None:
        print("Ceph comes from Debian's packages: this machine has no apt-get")
    else:
        began = time.monotonic()
        fetch()
        print(f"fetched Ceph in {time.monotonic() - began:.0f} s", flush=True)
