"""Fixtures: shared fleets of servers, and the random seed. `VERDITER_SEED=n` replays a run; a failure prints its seed."""

import os
import random
from collections.abc import Iterator

import pytest
import uvloop

from tests.conftest import run_async_test
from tests.contract.postgres import PostgresServer, running_server
from tests.simulation.servers import Fleet, postgres_fleet, sqlite_fleet


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def` test runs in an event loop of its own, of the kind that the server uses."""
    return run_async_test(pyfuncitem, uvloop.run)


@pytest.fixture
def seed() -> int:
    seed = int(os.environ.get("VERDITER_SEED") or random.randrange(1 << 32))
    print(f"VERDITER_SEED={seed}")  # shown when the test fails
    return seed


@pytest.fixture
def chance(seed: int) -> random.Random:
    return random.Random(seed)


@pytest.fixture
def container(chance: random.Random) -> str:
    """A unique name, because fleets are shared."""
    return f"c-{random.Random().randrange(1 << 64):016x}"


@pytest.fixture(scope="session")
def simulation_postgres() -> Iterator[PostgresServer]:
    with running_server() as server:
        yield server


@pytest.fixture(scope="session")
def shared_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with sqlite_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


@pytest.fixture(scope="session")
def shared_postgres(tmp_path_factory: pytest.TempPathFactory, simulation_postgres: PostgresServer) -> Iterator[Fleet]:
    with postgres_fleet(tmp_path_factory.mktemp("fleet"), simulation_postgres.make_database) as fleet:
        yield fleet


@pytest.fixture(params=["sqlite", "postgres"])
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Two workers on SQLite, or two servers on one PostgreSQL. An error in their logs fails the test."""
    fleet: Fleet = request.getfixturevalue(f"shared_{request.param}")
    before = len(fleet.log)
    yield fleet
    assert "ERROR" not in fleet.log[before:], fleet.log[before:]


@pytest.fixture(params=["sqlite", "postgres"])
def own_fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A fleet that a test may kill."""
    folder = tmp_path_factory.mktemp("own")
    if request.param == "sqlite":
        with sqlite_fleet(folder) as fleet:
            yield fleet
    else:
        with postgres_fleet(folder, request.getfixturevalue("simulation_postgres").make_database) as fleet:
            yield fleet
