"""Debian's smbd as the reference server: started on a free port with a configuration of its own, below one folder.

It shows that a judge is right before it judges Verditer, and it is the other side of the SMB benchmarks. It needs root.
"""

import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.smb_judges.target import HOST

SHARE = "reference"
LOCAL_USER = "root"  # an account key opens everything, so the judged user does too
PATIENCE_SECONDS = 30.0
FOLDERS = (
    "private dir",
    "lock directory",
    "state directory",
    "cache directory",
    "pid directory",
    "ncalrpc dir",
    "usershare path",
)

REDUCED = {
    "oplocks": "no",
    "level2 oplocks": "no",
    "kernel oplocks": "no",
    "smb2 leases": "no",
    "durable handles": "no",
    "ea support": "no",
    "mangled names": "no",
}
"""Without what Verditer does not offer."""

OPLOCKS = REDUCED | {"oplocks": "yes", "level2 oplocks": "yes", "aio read size": "0", "aio write size": "0"}
"""What Verditer offers: classic oplocks, no leases, no streams. Asynchronous I/O is off, because rclone's library does not accept
the interim answers that it causes."""

SYNCED = REDUCED | {"strict sync": "yes", "sync always": "yes"}
"""For benchmarks: an acknowledged write is on disk, as Verditer promises."""


class Samba:
    """One smbd with one share. `settings` are lines of the section of the share or of the global section."""

    def __init__(self, folder: Path, account: str, key: str, settings: dict[str, str] = OPLOCKS, port: int = 0) -> None:
        self.folder = folder
        self.port = port or free_port()
        self.settings = settings
        self._account = account
        self._key = key
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def share_folder(self) -> Path:
        return self.folder / "share"

    @property
    def command(self) -> list[str]:
        return [program("smbd"), "--foreground", "--no-process-group", f"--configfile={self.folder / 'smb.conf'}"]

    def prepare(self) -> None:
        """Write the configuration and define the user."""
        self.share_folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "users").write_text(f"{LOCAL_USER} = {self._account}\n")
        (self.folder / "smb.conf").write_text(self.configuration())
        for name in FOLDERS:
            self.path_of(name).mkdir(exist_ok=True)
        words = [program("smbpasswd"), "-c", str(self.folder / "smb.conf"), "-s", "-a", LOCAL_USER]
        subprocess.run(words, input=f"{self._key}\n{self._key}\n", text=True, check=True, capture_output=True)

    def configuration(self) -> str:
        general = {
            "netbios name": "REFERENCE",
            "server role": "standalone server",
            "smb ports": str(self.port),
            "interfaces": "lo",
            "bind interfaces only": "yes",
            "disable netbios": "yes",
            "load printers": "no",
            "passdb backend": f"tdbsam:{self.folder / 'passwords.tdb'}",
            "username map": str(self.folder / "users"),
            "log file": str(self.folder / "log"),
            "server signing": "mandatory",
            "server min protocol": "SMB2_02",
            **{name: str(self.path_of(name)) for name in FOLDERS},
        }
        share = {"path": str(self.share_folder), "read only": "no", "vfs objects": "acl_xattr", "store dos attributes": "yes"}
        options = {"smb2 leases"}  # the others are settings of a share
        general |= {name: value for name, value in self.settings.items() if name in options}
        share |= {name: value for name, value in self.settings.items() if name not in options}
        return f"[global]\n{lines(general)}[{SHARE}]\n{lines(share)}"

    def path_of(self, name: str) -> Path:
        return self.folder / name.replace(" ", "-")

    def start(self) -> "Samba":
        self.prepare()
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(self.command, stdout=output, stderr=output, start_new_session=True)
        end = time.monotonic() + PATIENCE_SECONDS
        while not answers(self.port):
            assert self._process.poll() is None, (self.folder / "output").read_text()
            assert time.monotonic() < end, "smbd does not listen"
            time.sleep(0.05)
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE_SECONDS)
            self._process = None


def program(name: str) -> str:
    """Debian has servers in a folder that an ordinary PATH lacks."""
    return shutil.which(name) or f"/usr/sbin/{name}"


def lines(settings: dict[str, str]) -> str:
    return "".join(f"  {name} = {value}\n" for name, value in settings.items())


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
