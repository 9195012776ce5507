"""The sides: Azurite from npm, Verditer from this checkout or from another revision, and the bare loops."""

import compileall
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.servers import HOST, ROOT, CannotMeasure, Side

RIVAL = ROOT / "benchmarks" / ".rival"
AZURITE_VERSION = "3.37.0"
NODE_VERSION = "22"


def azurite() -> Side:
    """Azurite's program for one service alone, on the Node that npm installs beside it; installed on first use."""
    programs = RIVAL / "node_modules" / ".bin"
    install_azurite()

    def command(folder: Path, ports: dict[str, int], service: str) -> list[str]:
        address = [f"--{service}Host", HOST, f"--{service}Port", str(ports[service])]
        quiet = ["--silent", "--skipApiVersionCheck", "--disableTelemetry"]
        return [str(programs / "node"), str(programs / f"azurite-{service}"), "--location", str(folder), *address, *quiet]

    return Side(label=f"Azurite {AZURITE_VERSION}", command=command)


def install_azurite() -> None:
    manifest = RIVAL / "node_modules" / "azurite" / "package.json"
    node = RIVAL / "node_modules" / ".bin" / "node"
    if manifest.exists() and node.exists() and json.loads(manifest.read_text())["version"] == AZURITE_VERSION:
        return
    if shutil.which("npm") is None:
        raise CannotMeasure("npm is missing: it fetches Azurite and its Node. Install it with: apt-get install npm")
    print(f"installing Azurite {AZURITE_VERSION} and Node {NODE_VERSION} into {RIVAL.relative_to(ROOT)} ...", flush=True)
    RIVAL.mkdir(exist_ok=True)
    (RIVAL / "package.json").write_text('{"private": true}\n')
    packages = [f"azurite@{AZURITE_VERSION}", f"node@{NODE_VERSION}"]
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages], cwd=RIVAL, check=True)


def verditer(label: str = "Verditer", source: Path = ROOT, wrapper: tuple[str, ...] = (), options: tuple[str, ...] = ()) -> Side:
    """Our server from the package in `source`; `wrapper` are interpreter options such as a profiler."""
    program = Path(sys.executable).parent / "verditer"
    if not program.exists():
        raise CannotMeasure(f"{program} is missing: run `make bench`, which installs it")
    compileall.compile_dir(source / "verditer", quiet=1)  # as `pip install` leaves it

    def command(folder: Path, ports: dict[str, int], service: str) -> list[str]:
        others = ["--filePort", "0", "--adminPort", "0"]  # any free one: nothing is asked there
        addresses = [word for service, port in ports.items() for word in (f"--{service}Port", str(port))]
        return [sys.executable, *wrapper, str(program), "--location", str(folder), *addresses, *others, *options, "--silent"]

    return Side(label=label, command=command, environment={"PYTHONPATH": str(source)})


@contextmanager
def revision(name: str, folder: Path) -> Iterator[Side]:
    """Our server as it was at a git revision, from a worktree that is removed again."""
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
