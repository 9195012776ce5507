"""Microsoft's queue client with a bearer token, and with a user delegation SAS."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.queue import AccessPolicy, QueueClient, QueueSasPermissions, QueueServiceClient, generate_queue_sas

from tests.rest.running import Running
from tests.sdk.codes import code_of
from tests.sdk.credentials import Credential


@pytest.fixture
def url(token_server: Running) -> str:
    return f"https://127.0.0.1:{token_server.app.servers['queue'].port}/{token_server.account}"


@pytest.fixture
def service(token_server: Running, url: str, options: dict[str, Any]) -> Iterator[QueueServiceClient]:
    with QueueServiceClient(url, credential=Credential(token_server), **options) as service:
        yield service


def test_a_token_credential_works_as_on_azure(service: QueueServiceClient) -> None:
    with service.create_queue(f"sdk-{uuid.uuid4().hex[:12]}") as queue:
        queue.send_message("by token")
        received = queue.receive_message()
        assert received is not None
        assert received.content == "by token"
        queue.delete_message(received)
        queue.set_queue_access_policy({"policy": AccessPolicy(permission="r")})  # seen on Azure
        assert list(queue.get_queue_access_policy()) == ["policy"]


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
