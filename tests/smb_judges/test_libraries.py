"""Client libraries for Python, Go and Java: each stores, reads, renames, lists and deletes in a directory of its own."""

import subprocess
import uuid
from pathlib import Path

import pytest

from tests.smb_judges.install import GO_CLIENTS, JAVA_CLIENTS, PYTHON
from tests.smb_judges.target import HOST, Target

HERE = Path(__file__).parent
PATIENCE_SECONDS = 180
CLASSES = f"{JAVA_CLIENTS}/scenarios-1.jar:{JAVA_CLIENTS}/libraries/*"


def run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert (done.returncode, done.stdout.strip()[-4:]) == (0, "done"), f"{done.stdout}\n{done.stderr}"


def arguments(target: Target, last: str) -> list[str]:
    return [HOST, str(target.port), target.share, target.account, target.key, directory(), last]


def directory() -> str:
    return f"d{uuid.uuid4().hex[:8]}"


@pytest.mark.parametrize("protection", ["sign", "encrypt"])
def test_smbprotocol(target: Target, protection: str) -> None:
    run(PYTHON, HERE / "smbprotocol_scenario.py", *arguments(target, protection))


@pytest.mark.parametrize("dialect", ["0x210", "0x300", "0x311"])
def test_impacket(target: Target, dialect: str) -> None:
    run(PYTHON, HERE / "impacket_scenario.py", *arguments(target, dialect))


def test_pysmb(target: Target) -> None:
    run(PYTHON, HERE / "pysmb_scenario.py", *arguments(target, ""))


@pytest.mark.parametrize("library", ["cloudsoda", "hirochachacha"])
def test_go(target: Target, library: str) -> None:
    run(GO_CLIENTS / library, f"{HOST}:{target.port}", target.share, target.account, target.key, directory())


@pytest.mark.parametrize("protection", ["sign", "encrypt"])
def test_smbj(target: Target, protection: str) -> None:
    run("java", "-cp", CLASSES, "Smbj", *arguments(target, protection))


@pytest.mark.parametrize("protection", ["sign", "encrypt"])
def test_jcifs_ng(target: Target, protection: str) -> None:
    run("java", "-cp", CLASSES, "JcifsNg", *arguments(target, protection))
