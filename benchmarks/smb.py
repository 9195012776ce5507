"""SMB clients for measurements: a Go program for small requests over several connections, and smbclient for large files.

`smb_load` is built on first use. It signs with AES-CMAC, smbclient with the algorithm that the server prefers.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.benchmark import Invalid, Load, Reading
from benchmarks.sas import ACCOUNT, KEY
from benchmarks.servers import HOST, ROOT, CannotMeasure, Server
from tests.smb_judges.samba import SHARE

SOURCE = ROOT / "benchmarks" / "smb_load"
PROGRAM = ROOT / "benchmarks" / ".smb_load" / "smb_load"


def build() -> None:
    sources = max(path.stat().st_mtime for path in SOURCE.iterdir())
    if PROGRAM.exists() and PROGRAM.stat().st_mtime >= sources:
        return
    if shutil.which("go") is None:
        raise CannotMeasure("go is missing: it builds the SMB load. Install Go 1.25 or newer")
    print("building the SMB load ...", flush=True)
    subprocess.run(["go", "build", "-o", str(PROGRAM), "."], cwd=SOURCE, check=True)


def fill(server: Server, connections: int) -> None:
    """A directory of a thousand files, and a file of 8 MiB for each connection."""
    _start(server, "fill", Load(connections=connections, seconds=0))


def run(server: Server, action: str, load: Load) -> Reading:
    """Requests per second. The detail shows how many cores the client itself used: it shares the machine with the server."""
    requests, seconds, median, p99, cpu = map(float, _start(server, action, load).split())
    detail = f"p50 {median:.2f} ms, p99 {p99:.2f} ms, client {cpu / seconds:.2f} cores"
    return Reading(value=requests / seconds, detail=detail)


def _start(server: Server, action: str, load: Load) -> str:
    build()
    address = [f"{HOST}:{server.port}", SHARE, ACCOUNT, KEY]
    words = [str(PROGRAM), action, *address, str(load.connections), str(load.seconds)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Invalid((done.stderr.strip().splitlines() or ["the SMB load failed"])[-1])
    return done.stdout


def transfer(server: Server, command: str, protection: str = "sign") -> float:
    """Run one `get` or `put` of smbclient. Returns MiB per second, as smbclient measures it: without connecting."""
    if shutil.which("smbclient") is None:
        raise CannotMeasure("smbclient is missing. Install it with: apt-get install smbclient")
    with login() as file:
        words = ["smbclient", f"//{HOST}/{SHARE}", "--port", str(server.port), "--authentication-file", str(file)]
        words += [f"--client-protection={protection}", "--configfile", "/dev/null", "--command", command]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    output = done.stdout + done.stderr
    rates = re.findall(r"\(([0-9.]+) (?:KiloBytes/sec|kb/s)\)", output)
    if "NT_STATUS" in output or not rates:
        raise Invalid(output.strip() or "smbclient printed nothing")
    return float(rates[0]) / 1024


@contextmanager
def login() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "login"
        path.write_text(f"username={ACCOUNT}\npassword={KEY}\n")
        yield path
