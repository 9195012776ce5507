"""azure-storage-queue, Microsoft's client for Python, sync and async, against a running server."""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.queue import (
    AccessPolicy,
    AccountSasPermissions,
    BinaryBase64DecodePolicy,
    BinaryBase64EncodePolicy,
    CorsRule,
    Metrics,
    QueueAnalyticsLogging,
    QueueClient,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    RetentionPolicy,
    TextBase64DecodePolicy,
    TextBase64EncodePolicy,
    generate_account_sas,
    generate_queue_sas,
)
from azure.storage.queue.aio import QueueServiceClient as AsyncQueueServiceClient

from tests.rest.running import Running
from tests.sdk.codes import code_of

TEXT: dict[str, Any] = {"message_encode_policy": TextBase64EncodePolicy(), "message_decode_policy": TextBase64DecodePolicy()}
BYTES: dict[str, Any] = {"message_encode_policy": BinaryBase64EncodePolicy(), "message_decode_policy": BinaryBase64DecodePolicy()}


def endpoint(server: Running) -> str:
    return f"http://127.0.0.1:{server.app.servers['queue'].port}/{server.account}"


def key(server: Running) -> dict[str, str]:
    return {"account_name": server.account, "account_key": server.key}


@pytest.fixture
def service(account: Running) -> Iterator[QueueServiceClient]:
    with QueueServiceClient(endpoint(account), credential=key(account)) as service:
        yield service


@pytest.fixture
def queue(service: QueueServiceClient) -> QueueClient:
    return service.create_queue(f"q-{uuid.uuid4().hex[:16]}", metadata={"Owner": "test"})


def test_a_message_goes_in_comes_out_and_is_deleted(queue: QueueClient) -> None:
    sent = queue.send_message("hello <&> ü", visibility_timeout=0, time_to_live=60)
    assert queue.get_queue_properties().approximate_message_count == 1
    assert [message.content for message in queue.peek_messages(5)] == ["hello <&> ü"]
    received = queue.receive_message(visibility_timeout=30)
    assert received is not None
    assert (received.id, received.content, received.dequeue_count) == (sent.id, "hello <&> ü", 1)
    assert queue.receive_message() is None
    queue.delete_message(received)
    assert queue.get_queue_properties().approximate_message_count == 0


def test_pages_of_messages_are_read_to_the_end(queue: QueueClient) -> None:
    for number in range(70):
        queue.send_message(str(number))
    texts = [message.content for message in queue.receive_messages(messages_per_page=32, visibility_timeout=60)]
    assert texts == [str(number) for number in range(70)]


def test_an_update_gives_a_new_receipt_and_the_old_one_is_refused(queue: QueueClient) -> None:
    # race Q3
    queue.send_message("first")
    received = queue.receive_message()
    assert received is not None
    updated = queue.update_message(received, content="second", visibility_timeout=0)
    assert updated.pop_receipt != received.pop_receipt
    with pytest.raises(ResourceNotFoundError) as refusal:
        queue.delete_message(received.id, received.pop_receipt)
    assert code_of(refusal.value) == "MessageNotFound"
    assert queue.peek_messages()[0].content == "second"
    queue.delete_message(updated.id, updated.pop_receipt)
    assert queue.peek_messages() == []


@pytest.mark.parametrize(("policies", "content"), [(TEXT, "täxt\x00\x01"), (BYTES, bytes(range(256)))], ids=["text", "bytes"])
def test_base64_is_the_clients_affair(account: Running, queue: QueueClient, policies: dict[str, Any], content: object) -> None:
    encoded = QueueClient(endpoint(account), queue.queue_name, credential=key(account), **policies)
    encoded.send_message(content)
    received = encoded.receive_message()
    assert received is not None
    assert received.content == content
    encoded.close()


def test_a_message_of_48_kib_fits_in_base64_and_one_byte_more_does_not(account: Running, queue: QueueClient) -> None:
    encoded = QueueClient(endpoint(account), queue.queue_name, credential=key(account), **BYTES)
    encoded.send_message(b"\0" * 48 * 1024)
    with pytest.raises(HttpResponseError) as refusal:
        encoded.send_message(b"\0" * (48 * 1024 + 1))
    assert refusal.value.status_code == 413
    encoded.close()


def test_a_message_that_never_expires(queue: QueueClient) -> None:
    sent = queue.send_message("for ever", time_to_live=-1)
    assert sent.expires_on is not None
    assert sent.expires_on.year == 9999


def test_clear_empties_the_queue(queue: QueueClient) -> None:
    for _ in range(3):
        queue.send_message("x")
    queue.receive_message()
    queue.clear_messages()
    assert queue.peek_messages() == []
    assert queue.get_queue_properties().approximate_message_count == 0


def test_queues_are_listed_with_their_metadata(service: QueueServiceClient) -> None:
    prefix = f"l{uuid.uuid4().hex[:8]}-"
    for letter in "cab":
        service.create_queue(prefix + letter, metadata={"letter": letter})
    pages = service.list_queues(name_starts_with=prefix, include_metadata=True, results_per_page=2).by_page()
    found = [[(each.name, each.metadata) for each in page] for page in pages]
    assert found == [[(prefix + "a", {"letter": "a"}), (prefix + "b", {"letter": "b"})], [(prefix + "c", {"letter": "c"})]]


def test_creating_deleting_and_metadata(service: QueueServiceClient, queue: QueueClient) -> None:
    for metadata in ({"owner": "test"}, None):  # the client reports 204 as an error
        with pytest.raises(ResourceExistsError):
            service.create_queue(queue.queue_name, metadata=metadata)
    queue.set_queue_metadata({"a": "1"})
    assert queue.get_queue_properties().metadata == {"a": "1"}
    queue.delete_queue()
    with pytest.raises(ResourceNotFoundError):
        queue.get_queue_properties()


def test_service_properties_are_kept(service: QueueServiceClient) -> None:
    retention = RetentionPolicy(enabled=True, days=5)
    service.set_service_properties(
        analytics_logging=QueueAnalyticsLogging(read=True, write=True, delete=True, retention_policy=retention),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=retention),
        cors=[CorsRule(["http://a.example"], ["GET"], allowed_headers=["x-ms-*"], exposed_headers=["*"], max_age_in_seconds=5)],
    )
    properties = service.get_service_properties()
    assert properties["analytics_logging"].retention_policy.days == 5
    assert properties["hour_metrics"].include_apis is True
    assert properties["cors"][0].allowed_origins == "http://a.example"
    service.set_service_properties(cors=[])
    assert service.get_service_properties()["cors"] == []


def test_statistics_come_from_the_secondary_endpoint(account: Running) -> None:
    host = endpoint(account).removeprefix("http://").partition("/")[0]
    with QueueServiceClient(f"{endpoint(account)}-secondary", credential=key(account), secondary_hostname=host) as service:
        assert service.get_service_stats()["geo_replication"]["status"] == "live"


def test_a_queue_sas_does_what_its_letters_say(account: Running, queue: QueueClient) -> None:
    expiry = datetime.now(UTC) + timedelta(hours=1)
    sas = generate_queue_sas(
        account.account, queue.queue_name, account.key, permission=QueueSasPermissions(add=True, read=True), expiry=expiry
    )
    with QueueClient(endpoint(account), queue.queue_name, credential=sas) as limited:
        limited.send_message("by SAS")
        assert limited.peek_messages()[0].content == "by SAS"
        with pytest.raises(HttpResponseError) as refusal:
            limited.receive_message()
        assert code_of(refusal.value) == "AuthorizationPermissionMismatch"


def test_a_stored_policy_counts_and_can_be_taken_back(account: Running, queue: QueueClient) -> None:
    now = datetime.now(UTC)
    policy = AccessPolicy(permission="rap", start=now - timedelta(hours=1), expiry=now + timedelta(hours=1))
    queue.set_queue_access_policy({"workers": policy})
    assert queue.get_queue_access_policy()["workers"].permission == "rap"
    sas = generate_queue_sas(account.account, queue.queue_name, account.key, policy_id="workers")
    with QueueClient(endpoint(account), queue.queue_name, credential=sas) as worker:
        worker.send_message("work")
        assert worker.receive_message() is not None
        queue.set_queue_access_policy({})
        with pytest.raises(ClientAuthenticationError):
            worker.receive_message()


def test_an_account_sas_reaches_every_queue(account: Running, queue: QueueClient) -> None:
    sas = generate_account_sas(
        account.account,
        account.key,
        resource_types=ResourceTypes(service=True, container=True, object=True),
        permission=AccountSasPermissions(list=True, add=True, process=True),
        expiry=datetime.now(UTC) + timedelta(hours=1),
    )
    with QueueServiceClient(endpoint(account), credential=sas) as service:
        service.get_queue_client(queue.queue_name).send_message("x")
        assert queue.queue_name in [each.name for each in service.list_queues()]
        assert service.get_queue_client(queue.queue_name).receive_message() is not None


def test_the_async_client_does_the_same(account: Running) -> None:
    async def work() -> None:
        async with AsyncQueueServiceClient(endpoint(account), credential=key(account)) as service:
            queue = await service.create_queue(f"q-{uuid.uuid4().hex[:16]}")
            async with queue:
                await asyncio.gather(*[queue.send_message(f"{number}") for number in range(20)])
                seen = set()
                async for message in queue.receive_messages(messages_per_page=8):
                    updated = await queue.update_message(message, visibility_timeout=60)
                    await queue.delete_message(updated.id, updated.pop_receipt)
                    seen.add(message.content)
                assert seen == {str(number) for number in range(20)}
                assert (await queue.get_queue_properties()).approximate_message_count == 0
                await queue.delete_queue()

    asyncio.run(work())
