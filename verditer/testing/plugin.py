"""The pytest fixtures of Verditer. Installing the package is enough: pytest finds this plugin by its entry point."""

from collections.abc import Iterator

import pytest

from verditer.testing.server import StorageServer


@pytest.fixture
def verditer_server() -> Iterator[StorageServer]:
    """A fresh and empty server for one test."""
    with StorageServer() as server:
        yield server


@pytest.fixture(scope="session")
def verditer_session_server() -> Iterator[StorageServer]:
    """One server for all tests of a run; `reset()` empties it."""
    with StorageServer() as server:
        yield server
