"""Batches through Microsoft's SDK: deleting many blobs and setting many tiers in one request."""

import asyncio
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from azure.storage.blob import ContainerClient, PartialBatchErrorException, StandardBlobTier
from azure.storage.blob.aio import ContainerClient as AsyncContainerClient

from tests.rest.running import Running


def fill(container: ContainerClient, count: int) -> list[str]:
    names = [f"blob {number}/é" for number in range(count)]
    for name in names:
        container.upload_blob(name, b"x")
    return names


def test_blobs_are_deleted_in_one_request(container: ContainerClient) -> None:
    names = fill(container, 20)
    assert [answer.status_code for answer in container.delete_blobs(*names)] == [202] * 20
    assert list(container.list_blobs()) == []


def test_what_fails_in_a_batch_is_reported_and_the_rest_is_done(container: ContainerClient) -> None:
    first, second = fill(container, 2)
    with pytest.raises(PartialBatchErrorException) as partial:
        container.delete_blobs(first, "absent", second)
    assert [part.status_code for part in partial.value.parts] == [202, 404, 202]
    answers = list(container.delete_blobs(first, "absent", raise_on_any_failure=False))
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].headers["x-ms-error-code"] == "BlobNotFound"
    assert list(container.list_blobs()) == []


def test_options_of_a_batch_hold_for_each_blob(container: ContainerClient) -> None:
    (name,) = fill(container, 1)
    container.get_blob_client(name).create_snapshot()
    container.delete_blobs(name, delete_snapshots="include")
    assert list(container.list_blobs(include=["snapshots"])) == []


def test_batches_are_sent_to_a_machine_of_any_name(
    account: Running, container: ContainerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library leaves the account out of the parts unless it knows the host as localhost."""
    names = fill(container, 3)
    monkeypatch.setattr(socket, "getaddrinfo", partial(resolved, socket.getaddrinfo))
    for host in ("storage", "storage.default.svc"):
        text = account.connection_string.replace("127.0.0.1", host)
        with ContainerClient.from_connection_string(text, container.container_name) as client:
            client.set_standard_blob_tier_blobs("Cool", *names)
            assert [answer.status_code for answer in client.delete_blobs(names.pop())] == [202]
    assert [(blob.name, blob.blob_tier) for blob in container.list_blobs()] == [(names[0], "Cool")]


def resolved(resolve: Callable[..., Any], host: str, *more: Any, **named: Any) -> Any:
    return resolve("127.0.0.1" if host.startswith("storage") else host, *more, **named)


def test_tiers_are_set_in_one_request(container: ContainerClient) -> None:
    names = fill(container, 5)
    container.set_standard_blob_tier_blobs(StandardBlobTier.COOL, *names)
    assert {blob.blob_tier for blob in container.list_blobs()} == {"Cool"}


def test_the_asynchronous_client_sends_batches_too(account: Running, container: ContainerClient) -> None:
    names = fill(container, 3)

    async def delete() -> list[int]:
        async with AsyncContainerClient.from_connection_string(account.connection_string, container.container_name) as client:
            return [answer.status_code async for answer in await client.delete_blobs(*names)]

    assert asyncio.run(delete()) == [202] * 3
