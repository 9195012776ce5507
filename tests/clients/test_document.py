"""The table of clients in docs/clients.md names what `make clients` installs."""

from pathlib import Path

import pytest

from tests.clients.install import PACKAGES, PROGRAMS

TABLE = [line for line in (Path(__file__).parents[2] / "docs/clients.md").read_text().splitlines() if line.startswith("|")]


@pytest.mark.parametrize(("name", "version"), [*PACKAGES.items(), *PROGRAMS.items()])
def test_a_client_is_listed_with_its_version(name: str, version: str) -> None:
    assert [line.split("|")[2].strip() for line in TABLE if name in line.split("|")[1]] == [version]
