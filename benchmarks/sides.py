"""The sides: Azurite from npm, Samba from Debian, Verditer from this checkout or from another revision, and the minimal loop."""

import compileall
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.sas import ACCOUNT, KEY
from benchmarks.servers import HOST, ROOT, CannotMeasure, Side
from tests.smb_judges.samba import SYNCED, Samba, program

AZURITE_FOLDER = ROOT / "benchmarks" / ".azurite"
AZURITE_VERSION = "3.37.0"
NODE_VERSION = "22"


def azurite() -> Side:
    """Azurite's program for one service, with the Node.js that npm installs next to it; installed on first use."""
    programs = AZURITE_FOLDER / "node_modules" / ".bin"
    install_azurite()

    def command(folder: Path, ports: dict[str, int], service: str) -> list[str]:
        address = [f"--{service}Host", HOST, f"--{service}Port", str(ports[service])]
        quiet = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        return [str(programs / "node"), str(programs / f"azurite-{service}"), "--location", str(folder), *address, *quiet]

    return Side(label=f"Azurite {AZURITE_VERSION}", command=command)


def install_azurite() -> None:
    manifest = AZURITE_FOLDER / "node_modules" / "azurite" / "package.json"
    node = AZURITE_FOLDER / "node_modules" / ".bin" / "node"
    if manifest.exists() and node.exists() and json.loads(manifest.read_text())["version"] == AZURITE_VERSION:
        return
    if shutil.which("npm") is None:
        raise CannotMeasure("npm is missing: it fetches Azurite and its Node. Install it with: apt-get install npm")
    print(f"installing Azurite {AZURITE_VERSION} and Node {NODE_VERSION} into {AZURITE_FOLDER.relative_to(ROOT)} ...", flush=True)
    AZURITE_FOLDER.mkdir(exist_ok=True)
    (AZURITE_FOLDER / "package.json").write_text('{"private": true}\n')
    packages = [f"azurite@{AZURITE_VERSION}", f"node@{NODE_VERSION}"]
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages], cwd=AZURITE_FOLDER, check=True)


def verditer(label: str = "Verditer", source: Path = ROOT, wrapper: tuple[str, ...] = (), options: tuple[str, ...] = ()) -> Side:
    """Verditer from the package in `source`; `wrapper` are interpreter options such as a profiler."""
    compileall.compile_dir(source / "verditer", quiet=1)  # as after `pip install`
    unknown = () if (source / "verditer" / "smb").exists() else ("smb",)  # to an earlier revision

    def command(folder: Path, ports: dict[str, int], service: str) -> list[str]:
        others = ["--adminPort", "0"]  # any free port: it is not used
        addresses = [word for service, port in ports.items() if service not in unknown for word in words_of(service, port)]
        return [sys.executable, *wrapper, "-m", "verditer", "--location", str(folder), *addresses, *others, *options, "--silent"]

    return Side(label=label, command=command, environment={"PYTHONPATH": str(source)})


def words_of(service: str, port: int) -> tuple[str, str]:
    return f"--{service}Port", str(port)


def samba() -> Side:
    """Debian's smbd, which syncs every write, signs and grants no oplocks. Its user is root, so it needs root."""

    def command(folder: Path, ports: dict[str, int], service: str) -> list[str]:
        if not Path(program("smbd")).exists():
            raise CannotMeasure(
                "smbd is missing: SMB is compared with it. Install it with: apt-get install samba samba-vfs-modules"
            )
        server = Samba(folder, ACCOUNT, KEY, SYNCED, port=ports["smb"])
        server.prepare()
        return server.command

    return Side(label="Samba", command=command, has_rest=False)


@contextmanager
def revision(name: str, folder: Path) -> Iterator[Side]:
    """Verditer at a git revision, from a worktree that is removed afterwards."""
    worktree = Path(tempfile.mkdtemp(prefix="verditer-base-", dir=folder)) / "tree"
    try:
        git("worktree", "add", "--quiet", "--detach", str(worktree), name)
        yield verditer(label=f"Verditer at {name}", source=worktree)
    finally:
        shutil.rmtree(worktree.parent)
        git("worktree", "prune")


def git(*words: str) -> None:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"git {' '.join(words)}: {done.stderr.strip()}")


def bare() -> Side:
    def command(folder: Path, ports: dict[str, int], service: str) -> list[str]:
        return [sys.executable, "-m", "benchmarks.bare", str(folder), str(ports[service])]

    return Side(label="bare", command=command, environment={"PYTHONPATH": str(ROOT)})
