"""Fixtures of the contract suites: each test runs on every engine, and each test has a store of its own."""

import asyncio
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.postgres import PostgresServer, running_server
from tests.contract.stores import PostgresStore, SqliteStore, Store, WorkersStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def` test runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "sqlite-memory", "sqlite-workers", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
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
