"""The table of SMB clients in docs/clients.md lists the judges that `make smb` installs, with their versions."""

import re
from pathlib import Path

import pytest

from tests.smb_judges.install import HERE, PYTHON_CLIENTS
from tests.smb_judges.torture_tests import GATED

TEXT = (Path(__file__).parents[2] / "docs/clients.md").read_text()
ROWS = {cells[1].strip(): cells[2].strip() for cells in (line.split("|") for line in TEXT.splitlines() if line.startswith("| "))}


@pytest.mark.parametrize(("name", "version"), PYTHON_CLIENTS.items())
def test_a_python_client_is_listed_with_its_version(name: str, version: str) -> None:
    assert ROWS[name] == version


@pytest.mark.parametrize("owner", ["cloudsoda", "hirochachacha"])
def test_a_go_client_is_listed_with_its_version(owner: str) -> None:
    required = re.search(rf"github.com/{owner}/go-smb2 v(\S+)", (HERE / "go/go.mod").read_text())
    assert required is not None
    assert ROWS[f"go-smb2 ({owner})"] == required[1].rpartition("-")[2]


@pytest.mark.parametrize("name", ["smbj", "jcifs-ng"])
def test_a_java_client_is_listed_with_its_version(name: str) -> None:
    required = re.search(rf"<artifactId>{name}</artifactId><version>(.+?)</version>", (HERE / "java/pom.xml").read_text())
    assert required is not None
    assert ROWS[name] == required[1]


def test_the_number_of_tests_of_smbtorture_is_right() -> None:
    assert f"{len(GATED)} tests by name" in TEXT
