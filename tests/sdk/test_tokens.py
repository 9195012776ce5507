"""Microsoft's SDK with a token: it reads the challenge, gets delegation keys, and signs with them.

The SDK sends tokens over TLS only, so the server has a self-signed certificate.
"""

import asyncio
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.blob import (
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    UserDelegationKey,
    generate_blob_sas,
    generate_container_sas,
)
from azure.storage.blob.aio import BlobServiceClient as AsyncBlobServiceClient

from tests.rest.running import Running
from tests.sdk.credentials import AsyncCredential, Credential
from verditer.rest.auth.issuer import TENANT, USER


@pytest.fixture
def url(token_server: Running) -> str:
    return token_server.base_url.replace("http://", "https://")


@pytest.fixture
def service(token_server: Running, url: str, options: dict[str, Any]) -> Iterator[BlobServiceClient]:
    with BlobServiceClient(url, credential=Credential(token_server), **options) as service:
        yield service


@pytest.fixture
def container(service: BlobServiceClient) -> Iterator[ContainerClient]:
    with service.create_container(f"sdk-{uuid.uuid4().hex[:12]}") as container:
        yield container


def test_a_token_credential_works_as_on_azure(container: ContainerClient) -> None:
    container.upload_blob("b", b"hello", tags=None)
    assert container.download_blob("b").readall() == b"hello"
    assert [blob.name for blob in container.list_blobs()] == ["b"]


def test_an_async_client_takes_a_token_too(
    token_server: Running, url: str, container: ContainerClient, options: dict[str, Any]
) -> None:
    async def roundtrip() -> bytes:
        async with AsyncBlobServiceClient(url, credential=AsyncCredential(token_server), **options) as service:
            blob = service.get_blob_client(container.container_name, "async")
            await blob.upload_blob(b"hello")
            return await (await blob.download_blob()).readall()

    assert asyncio.run(roundtrip()) == b"hello"


def test_the_sdk_follows_our_challenge_to_a_new_token(token_server: Running, url: str, options: dict[str, Any]) -> None:
    credential = Credential(token_server, -10)  # the first token has expired
    with BlobServiceClient(url, credential=credential, **options) as service:
        assert service.get_service_properties()
    assert credential.asked == [
        (("https://storage.azure.com/.default",), None),
        (("https://storage.azure.com/.default",), TENANT),  # as the challenge says
    ]


def test_a_token_that_stays_wrong_is_an_authentication_error(token_server: Running, url: str, options: dict[str, Any]) -> None:
    credential = Credential(token_server, audience="https://vault.azure.net")
    with BlobServiceClient(url, credential=credential, **options) as service, pytest.raises(ClientAuthenticationError) as refused:
        service.get_service_properties()
    assert refused.value.status_code == 401
    assert refused.value.error_code == "InvalidAuthenticationInfo"  # type: ignore[attr-defined]
    assert len(credential.asked) == 2


def delegation_key(service: BlobServiceClient, **more: Any) -> UserDelegationKey:
    now = datetime.now(UTC)
    return service.get_user_delegation_key(now - timedelta(minutes=5), now + timedelta(days=6), **more)


def expiry() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def test_a_delegation_key_of_the_sdk_signs_for_a_blob(
    service: BlobServiceClient, container: ContainerClient, options: dict[str, Any]
) -> None:
    key = delegation_key(service)
    assert (key.signed_oid, key.signed_tid, key.signed_service) == (USER, TENANT, "b")
    name = "a folder/ä b.txt"
    container.upload_blob(name, b"hello")
    blob = container.get_blob_client(name)
    account = str(service.account_name)
    sas = generate_blob_sas(account, blob.container_name, name, user_delegation_key=key, permission="r", expiry=expiry())
    with BlobClient.from_blob_url(blob.url, credential=sas, **options) as reader:
        assert reader.download_blob().readall() == b"hello"
        with pytest.raises(HttpResponseError) as refused:
            reader.upload_blob(b"no", overwrite=True)
        assert refused.value.error_code == "AuthorizationPermissionMismatch"  # type: ignore[attr-defined]


def test_a_delegation_key_of_the_sdk_signs_for_a_container(
    service: BlobServiceClient, container: ContainerClient, options: dict[str, Any]
) -> None:
    account = str(service.account_name)
    sas = generate_container_sas(
        account,
        container.container_name,
        user_delegation_key=delegation_key(service),
        permission="rwl",
        expiry=expiry(),
        protocol="https",
        correlation_id=str(uuid.uuid4()),
    )
    with ContainerClient(container.url.partition(container.container_name)[0], container.container_name, sas, **options) as there:
        there.upload_blob("b", b"hello")
        assert [blob.name for blob in there.list_blobs()] == ["b"]
        assert there.download_blob("b").readall() == b"hello"


def test_a_signature_may_be_tied_to_headers_and_to_one_user(
    token_server: Running, service: BlobServiceClient, container: ContainerClient, options: dict[str, Any]
) -> None:
    container.upload_blob("b", b"hello")
    blob = container.get_blob_client("b")
    key = delegation_key(service, delegated_user_tid="their-tenant")
    assert key.signed_delegated_user_tid == "their-tenant"
    sas = generate_blob_sas(
        str(service.account_name),
        blob.container_name,
        "b",
        user_delegation_key=key,
        permission="r",
        expiry=expiry(),
        user_delegation_oid="their-user",
        request_headers={"x-ms-meta-purpose": "this"},
    )
    theirs = Credential(token_server, oid="their-user", tid="their-tenant")
    with BlobClient.from_blob_url(f"{blob.url}?{sas}", credential=theirs, **options) as reader:
        assert reader.download_blob(headers={"x-ms-meta-purpose": "this"}).readall() == b"hello"
        with pytest.raises(HttpResponseError):
            reader.download_blob(headers={"x-ms-meta-purpose": "that"})
    stranger = BlobClient.from_blob_url(f"{blob.url}?{sas}", credential=Credential(token_server), **options)
    with stranger, pytest.raises(ClientAuthenticationError):
        stranger.download_blob(headers={"x-ms-meta-purpose": "this"})
