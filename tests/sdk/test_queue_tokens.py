"""Microsoft's queue client with a bearer token, and with a SAS that a user's delegation key has signed."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import QueueClient, QueueSasPermissions, QueueServiceClient, generate_queue_sas

from tests.conftest import watched
from tests.rest.running import Running, running
from tests.sdk.codes import code_of
from tests.sdk.test_tokens import Credential
from verditer.config import OAuth


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("secured"), oauth=OAuth(mode="development"), development_tls=True) as server:
        yield server


@pytest.fixture
def server(secured: Running) -> Iterator[Running]:
    yield from watched(secured)


@pytest.fixture
def options(server: Running) -> dict[str, Any]:
    return {"connection_verify": str(server.app.config.location / "tls" / "localhost.crt"), "retry_total": 0}


@pytest.fixture
def url(server: Running) -> str:
    return f"https://127.0.0.1:{server.app.servers['queue'].port}/{server.account}"


@pytest.fixture
def service(server: Running, url: str, options: dict[str, Any]) -> Iterator[QueueServiceClient]:
    with QueueServiceClient(url, credential=Credential(server), **options) as service:
        yield service


def test_a_token_credential_works_as_on_azure(service: QueueServiceClient) -> None:
    with service.create_queue(f"sdk-{uuid.uuid4().hex[:12]}") as queue:
        queue.send_message("by token")
        received = queue.receive_message()
        assert received is not None
        assert received.content == "by token"
        queue.delete_message(received)


def test_a_delegation_key_signs_for_one_queue(service: QueueServiceClient, url: str, options: dict[str, Any]) -> None:
    now = datetime.now(UTC)
    key = service.get_user_delegation_key(expiry=now + timedelta(days=6), start=now - timedelta(minutes=5))
    assert key.signed_service == "q"
    queues = [service.create_queue(f"sdk-{uuid.uuid4().hex[:12]}") for _ in range(2)]
    sas = generate_queue_sas(
        str(service.account_name),
        queues[0].queue_name,
        user_delegation_key=key,
        permission=QueueSasPermissions(add=True, read=True),
        expiry=now + timedelta(hours=1),
    )
    with QueueClient(url, queues[0].queue_name, credential=sas, **options) as limited:
        limited.send_message("delegated")
        assert limited.peek_messages()[0].content == "delegated"
        with pytest.raises(HttpResponseError) as refused:
            limited.receive_message()
        assert code_of(refused.value) == "AuthorizationPermissionMismatch"
    with QueueClient(url, queues[1].queue_name, credential=sas, **options) as other, pytest.raises(ClientAuthenticationError):
        other.peek_messages()
    for queue in queues:
        queue.close()
