"""Fixtures of the tests with Microsoft's client libraries: a service client, and a container for each test."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from tests.conftest import watched
from tests.rest.running import Running, running
from verditer.config import OAuth


@pytest.fixture
def account(steady: Running) -> Iterator[Running]:
    yield from watched(steady)


@pytest.fixture
def service(account: Running) -> Iterator[BlobServiceClient]:
    """Small limits, so that a few megabytes are sent in several parts. No retries, so that the first response counts."""
    with BlobServiceClient.from_connection_string(
        account.connection_string,
        max_single_put_size=1024 * 1024,
        max_block_size=1024 * 1024,
        max_single_get_size=1024 * 1024,
        max_chunk_get_size=1024 * 1024,
        retry_total=0,
    ) as service:
        yield service


@pytest.fixture
def container(service: BlobServiceClient) -> Iterator[ContainerClient]:
    with service.create_container(f"sdk-{uuid.uuid4().hex[:16]}") as container:
        yield container
        container.delete_container()


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("secured"), oauth=OAuth(mode="development"), development_tls=True) as server:
        yield server


@pytest.fixture
def token_server(secured: Running) -> Iterator[Running]:
    """A server that trusts the development issuer. Clients send tokens over TLS only, so it has a self-signed certificate."""
    yield from watched(secured)


@pytest.fixture
def options(token_server: Running) -> dict[str, Any]:
    """For a client of it."""
    return {"connection_verify": str(token_server.app.config.location / "tls" / "localhost.crt"), "retry_total": 0}
