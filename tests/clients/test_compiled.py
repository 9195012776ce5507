"""Microsoft's Go and Java libraries for Azure Files: `go` and `java` run once, and each of their tests is a test here."""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import NamedTemporaryFile
from urllib.parse import urlsplit

import pytest

from tests.clients.conftest import Account
from tests.clients.install import GO, JAVA

FOLDER = Path(__file__).parent
PATIENCE_SECONDS = 300  # the first run compiles the libraries
GO_TESTS = re.findall(r"^func (Test\w+)", (FOLDER / "go/files_test.go").read_text(), re.MULTILINE)
JAVA_TESTS = re.findall(r'^ +test\("(.+?)", ', (FOLDER / "java/Files.java").read_text(), re.MULTILINE)


def output(account: Account, *command: str | Path) -> str:
    settings = {
        "CONNECTION_STRING": account.connection_string,
        "ACCOUNT_NAME": account.name,
        "ACCOUNT_KEY": account.key,
        "FILE_PORT": str(urlsplit(account.file).port),
    }
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=FOLDER / "go",
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    return ran.stdout + ran.stderr


@functools.cache
def go_output(account: Account) -> str:
    return output(account, GO, "test", "-count=1", "-v", "./...")


@functools.cache
def java_output(account: Account) -> str:
    java = shutil.which("java")
    assert java is not None
    with NamedTemporaryFile("w") as hosts:
        hosts.write(f"127.0.0.1 {account.name}.file.localhost\n")
        hosts.flush()
        return output(account, java, f"-Djdk.net.hosts.file={hosts.name}", "-cp", f"{JAVA}/*", FOLDER / "java/Files.java")


@pytest.mark.parametrize("name", GO_TESTS)
def test_go(account: Account, name: str) -> None:
    said = go_output(account)
    assert re.search(rf"^--- PASS: {name} ", said, re.MULTILINE), said


@pytest.mark.parametrize("name", JAVA_TESTS)
def test_java(account: Account, name: str) -> None:
    said = java_output(account).splitlines()
    assert f"ok {name}" in said, [line for line in said if name in line] or said
