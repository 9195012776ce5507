"""Microsoft's JavaScript libraries: each script in `node` runs once, and each of its tests is a test here.

The name of a test in a script has the operations that it needs in brackets: `test("a blob is copied [CopyBlob]", …)`.
"""

import functools
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import PATIENCE_SECONDS, Account
from tests.clients.install import NODE

SCRIPTS = sorted(Path(__file__).with_name("node").glob("*.test.cjs"))


def sentences_of(script: Path) -> list[str]:
    return re.findall(r'^test\("(.+?)", ', script.read_text(), re.MULTILINE)


def needs_of(sentence: str) -> list[str]:
    return re.findall(r"\w+", sentence.partition("[")[2])


@functools.cache
def outcomes(script: Path, account: Account) -> dict[str, str]:
    """Name of a test → its result from Node's test runner, which begins with `ok` or `not ok`."""
    node = shutil.which("node")
    assert node is not None
    ran = subprocess.run(
        [node, "--test-reporter=tap", str(script)],
        env={
            "NODE_PATH": str(NODE / "node_modules"),
            "CONNECTION_STRING": account.connection_string,
            "ACCOUNT_NAME": account.name,
            "ACCOUNT_KEY": account.key,
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    said = re.split(r"^# Subtest: (.+)\n", ran.stdout, flags=re.MULTILINE)
    assert len(said) > 1, ran.stdout + ran.stderr
    return dict(zip(said[1::2], said[2::2], strict=True))


@pytest.mark.parametrize(
    ("script", "name"),
    [
        pytest.param(script, name, marks=pytest.mark.needs(*needs_of(name)), id=f"{script.name.partition('.')[0]}: {name}")
        for script in SCRIPTS
        for name in sentences_of(script)
    ],
)
def test_javascript(account: Account, script: Path, name: str) -> None:
    outcome = outcomes(script, account)[name]
    assert outcome.startswith("ok "), outcome
