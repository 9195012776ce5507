"""Fixtures: servers that all tests share, one of each kind per run, and a client and a container for each test."""

import asyncio
import inspect
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests.contract.postgres import PostgresServer, running_server
from tests.rest.client import Box, Client
from tests.rest.files import FileClient, ShareBox
from tests.rest.running import Running, running

settings.register_profile("any host", deadline=None)  # a test does not fail because the machine is busy
settings.load_profile("any host")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files come before short ones, so that all test processes end at about the same time. The simulations, which mostly
    wait for the servers that they start, come at equal distances among them, so that the processors are never idle."""
    files = defaultdict[Path, list[pytest.Item]](list)
    for item in items:
        files[item.path].append(item)
    by_length = sorted(files, key=lambda path: len(files[path]), reverse=True)
    waiting = [path for path in by_length if path.parent.name == "simulation"]
    computing = [path for path in by_length if path.parent.name != "simulation"]
    place = {path: float(number) for number, path in enumerate(computing)}
    distance = len(computing) / 2 / max(len(waiting), 1)  # none begins in the second half
    place |= {path: number * distance for number, path in enumerate(waiting)}
    items.sort(key=lambda item: place[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def` test runs in an event loop of its own."""
    return run_async_test(pyfuncitem, asyncio.run)


def run_async_test(pyfuncitem: pytest.Function, run: Callable[[Coroutine[Any, Any, object]], object]) -> bool | None:
    """None: it is an ordinary function, which pytest calls."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server with the embedded database in a folder. Tests move its clock."""
    with running(tmp_path_factory.mktemp("sqlite")) as server:
        yield server


@pytest.fixture(scope="session")
def databases() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def postgres(databases: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("postgres"), database=databases.make_database()) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_ahead(databases: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Another one, whose clock tests move by days."""
    with running(tmp_path_factory.mktemp("ahead"), database=databases.make_database()) as server:
        yield server


@pytest.fixture(scope="session")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server in memory whose clock no test moves: real clients sign with the time of the machine."""
    with running(tmp_path_factory.mktemp("steady"), in_memory=True) as server:
        yield server


@pytest.fixture(scope="session")
def steady_postgres(databases: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same with PostgreSQL."""
    with running(tmp_path_factory.mktemp("steady"), database=databases.make_database()) as server:
        yield server


@pytest.fixture(scope="module")
def module_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server in memory for the tests of one file."""
    with running(tmp_path_factory.mktemp("module"), in_memory=True) as server:
        yield server


@pytest.fixture
def server(sqlite: Running) -> Iterator[Running]:
    """The server of a test; an error in its log fails the test."""
    yield from watched(sqlite)


def watched(server: Running) -> Iterator[Running]:
    server.errors.clear()
    yield server
    assert server.errors == []


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    client = Client(server)
    yield client
    client.close()


@pytest.fixture
def box(client: Client) -> Box:
    return Box(client).create()


@pytest.fixture
def files(server: Running) -> Iterator[FileClient]:
    """A client of the File service."""
    client = FileClient(server)
    yield client
    client.close()


@pytest.fixture
def share(files: FileClient) -> ShareBox:
    return ShareBox(files).create()
