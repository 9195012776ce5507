"""What tests with Microsoft's client library share: a service client, and a container of the test's own."""

import asyncio
import inspect
import uuid
from collections.abc import Iterator

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient

from tests.conftest import watched
from tests.rest.running import Running


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def` test runs in a loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def account(steady: Running) -> Iterator[Running]:
    yield from watched(steady)


@pytest.fixture
def service(account: Running) -> Iterator[BlobServiceClient]:
    """Small limits, so that a few megabytes already travel in several parts. No retries: the first answer counts."""
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
