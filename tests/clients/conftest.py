"""Fixtures: one server process for the whole run, and a container or a share for each test.

A test marked `needs("CopyBlob")` is skipped until that operation is implemented, and the run reports it.
"""

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ResourceTypes,
    Services,
    generate_account_sas,
)
from azure.storage.fileshare import ShareClient, ShareDirectoryClient, ShareServiceClient

from tests.simulation.servers import Server
from verditer.rest.operations.__main__ import TABLES
from verditer.services.account import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY

PATIENCE_SECONDS = 120
BUILT = {op.name for operations in TABLES.values() for op in operations if op.is_built}
LEFT_OUT = pytest.StashKey[list[pytest.Item]]()


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    name = DEVELOPMENT_ACCOUNT
    key = DEVELOPMENT_KEY
    blob: str
    queue: str
    table: str
    file: str
    sas: str

    @property
    def connection_string(self) -> str:
        urls = {"Blob": self.blob, "Queue": self.queue, "Table": self.table, "File": self.file}
        endpoints = "".join(f"{service}Endpoint={url};" for service, url in urls.items())
        return f"DefaultEndpointsProtocol=http;AccountName={self.name};AccountKey={self.key};{endpoints}"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("server") / "data").start()
    yield server
    assert server.stop() == 0


@pytest.fixture(autouse=True)
def nothing_goes_wrong_in_the_server(server: Server) -> Iterator[None]:
    before = server.log
    yield
    assert server.log == before


@pytest.fixture(scope="session")
def account(server: Server) -> Account:
    sas = generate_account_sas(
        Account.name,
        Account.key,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, write=True, delete=True, list=True, add=True, create=True, tag=True),
        datetime.now(UTC) + timedelta(hours=8),
        services=Services(blob=True, queue=True, fileshare=True),
    )
    urls = {service: f"http://127.0.0.1:{port}/{Account.name}" for service, port in server.ports.items()}
    return Account(blob=urls["blob"], queue=urls["queue"], table=urls["table"], file=urls["file"], sas=sas)


@pytest.fixture
def container(account: Account) -> Iterator[ContainerClient]:
    """To check the effects of a client with a library that other tests cover."""
    with BlobServiceClient.from_connection_string(account.connection_string) as service:
        yield service.create_container(f"clients-{uuid.uuid4().hex[:16]}")


@pytest.fixture
def share(account: Account) -> Iterator[ShareClient]:
    with ShareServiceClient.from_connection_string(
        account.connection_string, allow_trailing_dot=True, allow_source_trailing_dot=True
    ) as service:
        yield service.create_share(f"clients-{uuid.uuid4().hex[:16]}")


def contents(container: ContainerClient) -> dict[str, bytes]:
    return {name: container.download_blob(name).readall() for name in container.list_blob_names()}


def share_contents(directory: ShareDirectoryClient, prefix: str = "") -> dict[str, bytes]:
    """Path → content of every file below the directory."""
    found: dict[str, bytes] = {}
    for item in directory.list_directories_and_files():
        if item.is_directory:
            found |= share_contents(directory.get_subdirectory_client(item.name), f"{prefix}{item.name}/")
        else:
            found[prefix + item.name] = directory.get_file_client(item.name).download_file().readall()
    return found


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run the command and return its output; a failure shows all of it."""
    outcome = subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert outcome.returncode == 0, f"{command}\n{outcome.stdout}\n{outcome.stderr}"
    return outcome.stdout


# --- what is not built --------------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs(*operations): left out until these operations are built")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_out = config.stash[LEFT_OUT] = [item for item in items if not needs(item) <= BUILT]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for item in config.stash[LEFT_OUT]:
        terminalreporter.line(f"left out: {item.name}; not built: {', '.join(sorted(needs(item) - BUILT))}")


def needs(item: pytest.Item) -> set[str]:
    return {operation for mark in item.iter_markers("needs") for operation in mark.args}
