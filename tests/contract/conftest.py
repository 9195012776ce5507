"""Fixtures of the contract suites: each test runs on every engine, and each test has a store of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.postgres import PostgresServer, running_server
from tests.contract.s3 import S3Server, missing, running_s3_server
from tests.contract.stores import PostgresStore, SqliteStore, Store, WorkersStore


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    if reason := missing():
        pytest.skip(reason)
    with running_s3_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "sqlite-memory", "sqlite-workers", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    yield from _made(request, tmp_path)


@pytest.fixture(params=["sqlite", "sqlite-workers", "postgres"])
def kept_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """What one engine wrote, the next one finds."""
    yield from _made(request, tmp_path)


@pytest.fixture(params=["sqlite-workers", "postgres"])
def shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Several engines may have it open at once."""
    yield from _made(request, tmp_path)


@pytest.fixture(params=["sqlite", "sqlite-workers"])
def timed_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """Its clock is the machine's, and it outlives its engines."""
    yield from _made(request, tmp_path)


def _made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "postgres":
        yield PostgresStore(request.getfixturevalue("postgres_server"))
    elif request.param == "sqlite-workers":
        workers = WorkersStore(tmp_path / "store")
        yield workers
        workers.together.close()
    else:
        yield SqliteStore(tmp_path / "store" if request.param == "sqlite" else None)


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> PostgresStore:
    return PostgresStore(postgres_server)
