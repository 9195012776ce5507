"""Installs the judges: `python -m tests.smb_judges.install`, which `make smb` calls.

Samba's tools, rclone and QEMU are Debian packages. The Python clients have a virtual environment of their own, the Go and Java
clients are built, and the kernel of the Linux client is unpacked, all below `.clients`. Versions are defined only here and in the
manifests of the Go and Java programs; what is installed is not touched.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".clients" / "smb"
PYTHON = FOLDER / "python/bin/python"
GO_CLIENTS = FOLDER / "go"
JAVA_CLIENTS = FOLDER / "java"
GUEST = FOLDER / "guest"

PACKAGES = {
    "smbclient": "smbclient",
    "samba-testsuite": "smbtorture",
    "samba": "smbd",
    "samba-vfs-modules": "/usr/lib/x86_64-linux-gnu/samba/vfs/acl_xattr.so",
    "qemu-system-x86": "qemu-system-x86_64",
    "seabios": "/usr/share/seabios/bios-256k.bin",
    "cpio": "cpio",
    "gcc": "gcc",
    "libc6-dev": "/usr/include/fcntl.h",
    "rclone": "rclone",
    "fuse3": "fusermount3",
    "maven": "mvn",
    "default-jdk-headless": "javac",
}
"""Debian package → the program or file that it is needed for."""

PYTHON_CLIENTS = {"smbprotocol": "1.17.0", "impacket": "0.13.1", "pysmb": "1.2.15"}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    install_packages()
    install_python_clients()
    build_go_clients()
    build_java_clients()
    unpack_guest()


def install_packages() -> None:
    missing = [package for package, needed in PACKAGES.items() if not is_there(needed)]
    if not missing:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit(f"Missing on this machine. On Debian and its kin: sudo apt-get install {' '.join(missing)}")
    say(", ".join(missing))
    run("apt-get", "-o", "DPkg::Lock::Timeout=600", "install", "--yes", "--no-install-recommends", *missing)


def is_there(needed: str) -> bool:
    return Path(needed).exists() if "/" in needed else bool(shutil.which(needed) or shutil.which(f"/usr/sbin/{needed}"))


def install_python_clients() -> None:
    wanted = [f"{name}=={version}" for name, version in PYTHON_CLIENTS.items()]
    done = FOLDER / "python/versions"
    if is_done(done, "\n".join(wanted)):
        return
    say("Python clients")
    venv.create(FOLDER / "python", clear=True, with_pip=True)
    run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted)
    done.write_text("\n".join(wanted))


def build_go_clients() -> None:
    source = HERE / "go"
    stamp = digest(source.rglob("*"))
    if is_done(GO_CLIENTS / "built", stamp):
        return
    if shutil.which("go") is None:
        sys.exit("These tests need Go 1.25 or newer. Debian's is older.")
    say("Go clients")
    GO_CLIENTS.mkdir(exist_ok=True)
    run("go", "build", "-o", f"{GO_CLIENTS}/", "./...", folder=source)
    (GO_CLIENTS / "built").write_text(stamp)


def build_java_clients() -> None:
    source = HERE / "java"
    stamp = digest(source.rglob("*"))
    if is_done(JAVA_CLIENTS / "built", stamp):
        return
    say("Java clients")
    shutil.rmtree(JAVA_CLIENTS, ignore_errors=True)
    run("mvn", "--quiet", "--batch-mode", f"-Dfolder={JAVA_CLIENTS}", "package", folder=source)
    (JAVA_CLIENTS / "built").write_text(stamp)


def unpack_guest() -> None:
    """The kernel that Debian's metapackage names, its modules, a static busybox and a program for locks; not installed."""
    if (GUEST / "ready").exists():
        return
    say("a Linux kernel for the guest")
    shutil.rmtree(GUEST, ignore_errors=True)
    GUEST.mkdir()
    kernel = re.search(r"Depends: (linux-image-\S+)", run("apt-cache", "depends", "linux-image-amd64"))
    if kernel is None:
        sys.exit("apt knows no kernel: run apt-get update")
    run("apt-get", "download", kernel[1], "busybox-static", folder=GUEST)
    for package in GUEST.glob("*.deb"):
        run("dpkg-deb", "-x", package, GUEST / "root")
        package.unlink()
    run("gcc", "-static", "-O1", "-o", GUEST / "lock", HERE / "lock.c")
    (GUEST / "ready").touch()


def digest(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in sorted(files) if path.is_file())).hexdigest()


def is_done(installed: Path, wanted: str) -> bool:
    return installed.exists() and installed.read_text() == wanted


def say(name: str) -> None:
    print(f"installing {name} …", flush=True)


def run(*command: str | Path, folder: Path = FOLDER) -> str:
    outcome = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True)
    if outcome.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{outcome.stdout}{outcome.stderr}")
    return outcome.stdout


if __name__ == "__main__":
    main()
