"""Fixtures: a server of its own for each file of tests."""

from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.running import Running


@pytest.fixture
def server(module_server: Running) -> Iterator[Running]:
    yield from watched(module_server)
