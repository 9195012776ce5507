"""Servers that tests share, one of each kind for the whole run, and what a test has of its own: a client and a container."""

from collections.abc import Iterator

import pytest

from tests.contract.postgres import PostgresServer, running_server
from tests.rest.client import Box, Client
from tests.rest.running import Running, running


@pytest.fixture(scope="session")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The embedded store in a folder. Tests move its clock."""
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
    """Another one, whose clock is moved by days."""
    with running(tmp_path_factory.mktemp("ahead"), database=databases.make_database()) as server:
        yield server


@pytest.fixture(scope="session")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A store in memory whose clock nobody moves: real clients sign with the time of the machine."""
    with running(tmp_path_factory.mktemp("steady"), in_memory=True) as server:
        yield server


@pytest.fixture(scope="session")
def steady_postgres(databases: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The same on PostgreSQL."""
    with running(tmp_path_factory.mktemp("steady"), database=databases.make_database()) as server:
        yield server


@pytest.fixture
def server(sqlite: Running) -> Iterator[Running]:
    """The server a test talks to; whatever it logs as an error fails the test."""
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
