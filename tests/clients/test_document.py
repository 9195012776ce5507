"""The table of clients in docs/clients.md lists the clients that `make clients` installs."""

import re
from pathlib import Path

import pytest

from tests.clients.install import PACKAGES, POM, PROGRAMS

TABLE = [line for line in (Path(__file__).parents[2] / "docs/clients.md").read_text().splitlines() if line.startswith("|")]


GO_MODULE = Path(__file__).with_name("go") / "go.mod"
LIBRARIES = {
    "azfile for Go": re.findall(r"/azfile v([0-9.]+)", GO_MODULE.read_text())[0],
    "azure-storage-file-share for Java": re.findall(r"<version>([0-9.]+[0-9])</version>\n +</dependency>", POM.read_text())[0],
}


@pytest.mark.parametrize(("name", "version"), [*PACKAGES.items(), *PROGRAMS.items(), *LIBRARIES.items()])
def test_a_client_is_listed_with_its_version(name: str, version: str) -> None:
    assert [line.split("|")[2].strip() for line in TABLE if name in line.split("|")[1]] == [version]
