"""The facts about machine, time and programs that a report states."""

import importlib.metadata
import os
import platform
import sqlite3
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.servers import ROOT, file_system
from benchmarks.sides import AZURITE_FOLDER, AZURITE_VERSION
from tests.smb_judges.samba import program

SYNCS = 50
GIB = 1 << 30


def facts(folder: Path) -> list[str]:
    """One line each. `folder` is on the disk that is measured."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / GIB
    return [
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC; load average before the run {os.getloadavg()[0]:.2f}",
        f"{os.cpu_count()} cores ({processor()}), {memory:.0f} GiB of memory, {platform.system()} {platform.release()}",
        f"disk: {file_system(folder)}; writing 4 KiB and syncing takes {sync_milliseconds(folder):.2f} ms (median of {SYNCS})",
        f"Verditer {importlib.metadata.version('verditer')} at {commit()}; Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}",
        f"Azurite {AZURITE_VERSION}; Node {first_line([str(AZURITE_FOLDER / 'node_modules' / '.bin' / 'node'), '--version'])}",
        f"Samba {first_line([program('smbd'), '--version']).removeprefix('Version ')}, for SMB",
        f"load from {' '.join(first_line(['wrk', '-v']).split()[:2])}; over SMB from go-smb2 and smbclient",
    ]


def processor() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def sync_milliseconds(folder: Path) -> float:
    """The minimum time that an acknowledged write has to wait for."""
    seconds = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(SYNCS):
            started = time.perf_counter()
            file.write(bytes(4096))
            os.fdatasync(file.fileno())
            seconds.append(time.perf_counter() - started)
    return statistics.median(seconds) * 1e3


def commit() -> str:
    changed = " with changes" if first_line(["git", "-C", str(ROOT), "status", "--porcelain", "--untracked-files=no"]) else ""
    return first_line(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]) + changed


def first_line(words: Sequence[str]) -> str:
    """The first output line of a program, empty if the program is missing. wrk prints its version and fails."""
    try:
        output = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    except OSError:
        return ""
    return (output.splitlines() or [""])[0]
