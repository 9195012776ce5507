"""Fixtures: one server for the whole run, Verditer or Debian's smbd, and a share for each test file."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.storage.fileshare import ShareClient, ShareServiceClient

from tests.simulation.servers import Server
from tests.smb_judges import samba
from tests.smb_judges.samba import Samba
from tests.smb_judges.target import HOST, Target
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--target", choices=["verditer", "samba"], default="verditer", help="the server that is judged")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "verditer: needs REST or Verditer's processes; left out with --target samba")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--target") == "samba":
        left_out = [item for item in items if item.get_closest_marker("verditer")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Verditer, with two workers."""
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Samba]:
    server = Samba(tmp_path_factory.mktemp("samba"), DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY).start()
    yield server
    server.stop()


@pytest.fixture
def shares(server: Server) -> Iterator[ShareServiceClient]:
    """The File service of the judged server over REST."""
    with ShareServiceClient.from_connection_string(connection_string(server)) as service:
        yield service


@pytest.fixture(scope="module")
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A new share of the judged server. An error in Verditer's log fails the tests of the file."""
    folder = tmp_path_factory.mktemp("judge")
    if request.config.getoption("--target") == "samba":
        yield reference_target(request.getfixturevalue("reference"), folder)
        return
    server: Server = request.getfixturevalue("server")
    before = server.log
    yield verditer_target(server, folder)
    assert server.log == before


def reference_target(server: Samba, folder: Path) -> Target:
    return Target(port=server.port, share=samba.SHARE, account=DEVELOPMENT_ACCOUNT, key=DEVELOPMENT_KEY, folder=folder)


def verditer_target(server: Server, folder: Path) -> Target:
    name = f"judged-{uuid.uuid4().hex[:12]}"
    with ShareServiceClient.from_connection_string(connection_string(server)) as service:
        service.create_share(name)
    return Target(port=server.ports["smb"], share=name, account=DEVELOPMENT_ACCOUNT, key=DEVELOPMENT_KEY, folder=folder)


@pytest.fixture
def share(shares: ShareServiceClient, target: Target) -> ShareClient:
    """The judged share over REST."""
    return shares.get_share_client(target.share)


def connection_string(server: Server) -> str:
    endpoint = f"http://{HOST}:{server.ports['file']}/{DEVELOPMENT_ACCOUNT}"
    account = f"AccountName={DEVELOPMENT_ACCOUNT};AccountKey={DEVELOPMENT_KEY}"
    return f"DefaultEndpointsProtocol=http;{account};FileEndpoint={endpoint};"
