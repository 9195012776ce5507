"""Fixtures for tests that run on both engines. A test file imports `server` by name."""

from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.running import Running


@pytest.fixture(params=("sqlite", "postgres"))
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))
