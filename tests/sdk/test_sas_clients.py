"""Signatures from Microsoft's generators, anonymous clients, and clients with the wrong key."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError
from azure.storage.blob import (
    AccessPolicy,
    AccountSasPermissions,
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from tests.rest.running import Running
from tests.sdk.codes import code_of

NAME = "a name with spaces/ünï&?#%.txt"
WRONG_KEY = "d3Jvbmcga2V5IHdyb25nIGtleSB3cm9uZyBrZXkgd3JvbmcgaQ=="


@pytest.fixture
def filled(container: ContainerClient) -> ContainerClient:
    container.upload_blob(NAME, b"content")
    return container


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


def client(account: Running, container: ContainerClient, sas: str, snapshot: str | None = None) -> BlobClient:
    return BlobClient(account.base_url, container.container_name, NAME, snapshot=snapshot, credential=sas, retry_total=0)


def blob_sas(account: Running, container: ContainerClient, **options: Any) -> str:
    options.setdefault("expiry", soon())
    return generate_blob_sas(account.account, container.container_name, NAME, account_key=account.key, **options)


def test_a_blob_sas_reads_and_does_nothing_else(account: Running, filled: ContainerClient) -> None:
    with client(account, filled, blob_sas(account, filled, permission=BlobSasPermissions(read=True))) as blob:
        assert blob.download_blob().readall() == b"content"
        with pytest.raises(HttpResponseError) as refusal:
            blob.delete_blob()
        assert (refusal.value.status_code, code_of(refusal.value)) == (403, "AuthorizationPermissionMismatch")


def test_a_blob_sas_may_override_headers(account: Running, filled: ContainerClient) -> None:
    sas = blob_sas(
        account,
        filled,
        permission="r",
        content_type="text/x",
        content_disposition="inline",
        ip="127.0.0.1",
        protocol="https,http",
    )
    with client(account, filled, sas) as blob:
        settings = blob.get_blob_properties().content_settings
        assert (settings.content_type, settings.content_disposition) == ("text/x", "inline")


def test_a_snapshot_sas_reads_that_snapshot(account: Running, filled: ContainerClient) -> None:
    moment = str(filled.get_blob_client(NAME).create_snapshot()["snapshot"])
    sas = blob_sas(account, filled, permission="r", snapshot=moment)
    with client(account, filled, sas, moment) as blob:
        assert blob.download_blob().readall() == b"content"
    filled.get_blob_client(NAME).delete_blob(delete_snapshots="only")


def test_a_create_only_sas_never_overwrites(account: Running, filled: ContainerClient) -> None:
    with client(account, filled, blob_sas(account, filled, permission="c")) as blob, pytest.raises(HttpResponseError) as refusal:
        blob.upload_blob(b"new", overwrite=True)
    assert code_of(refusal.value) == "UnauthorizedBlobOverwrite"


def test_a_container_sas_lists_and_writes(account: Running, filled: ContainerClient) -> None:
    permission = ContainerSasPermissions(read=True, write=True, list=True)
    sas = generate_container_sas(
        account.account, filled.container_name, account_key=account.key, permission=permission, expiry=soon()
    )
    with ContainerClient(account.base_url, filled.container_name, credential=sas, retry_total=0) as limited:
        limited.upload_blob("second", b"2")
        assert [blob.name for blob in limited.list_blobs()] == [NAME, "second"]
        with pytest.raises(HttpResponseError):
            limited.delete_blob("second")


def test_a_stored_policy_can_be_withdrawn(account: Running, filled: ContainerClient) -> None:
    # contract G2
    policy = AccessPolicy(permission="r", expiry=soon(), start=datetime.now(UTC) - timedelta(minutes=1))
    filled.set_container_access_policy({"readers": policy})
    stored = filled.get_container_access_policy()["signed_identifiers"]
    assert [(identifier.id, identifier.access_policy.permission) for identifier in stored] == [("readers", "r")]
    sas = generate_blob_sas(account.account, filled.container_name, NAME, account_key=account.key, policy_id="readers")
    with client(account, filled, sas) as blob:
        assert blob.download_blob().readall() == b"content"
        filled.set_container_access_policy({})
        with pytest.raises(ClientAuthenticationError):
            blob.download_blob()


def test_an_account_sas_serves_a_whole_service(account: Running, filled: ContainerClient) -> None:
    sas = generate_account_sas(
        account.account,
        account.key,
        ResourceTypes(service=True, container=True, object=True),
        AccountSasPermissions(read=True, list=True),
        soon(),
    )
    with BlobServiceClient(account.base_url, credential=sas, retry_total=0) as service:
        assert filled.container_name in [found.name for found in service.list_containers()]
        assert service.get_blob_client(filled.container_name, NAME).download_blob().readall() == b"content"
        with pytest.raises(HttpResponseError):
            service.create_container("not-with-this-sas")


def test_an_expired_sas_is_refused(account: Running, filled: ContainerClient) -> None:
    past = datetime.now(UTC) - timedelta(minutes=1)
    with client(account, filled, blob_sas(account, filled, permission="r", expiry=past)) as blob:
        with pytest.raises(ClientAuthenticationError) as refusal:
            blob.download_blob()
        assert code_of(refusal.value) == "AuthenticationFailed"


def test_an_anonymous_client_reads_what_is_public(account: Running, filled: ContainerClient) -> None:
    # contract G2
    with ContainerClient(account.base_url, filled.container_name, retry_total=0) as anyone:
        with pytest.raises(ClientAuthenticationError) as refusal:
            anyone.download_blob(NAME)
        assert refusal.value.status_code == 401
        filled.set_container_access_policy({}, public_access="blob")
        assert anyone.download_blob(NAME).readall() == b"content"
        with pytest.raises(ClientAuthenticationError):
            list(anyone.list_blobs())
        filled.set_container_access_policy({}, public_access="container")
        assert [blob.name for blob in anyone.list_blobs()] == [NAME]
        with pytest.raises(ClientAuthenticationError):
            anyone.upload_blob("new", b"")


def test_a_wrong_key_is_an_authentication_error(account: Running, filled: ContainerClient) -> None:
    credential = {"account_name": account.account, "account_key": WRONG_KEY}
    with BlobServiceClient(account.base_url, credential=credential, retry_total=0) as service:
        with pytest.raises(ClientAuthenticationError) as refusal:
            service.get_blob_client(filled.container_name, NAME).download_blob()
        assert (refusal.value.status_code, code_of(refusal.value)) == (403, "AuthenticationFailed")


def test_a_container_that_exists_differs_from_a_missing_right(service: BlobServiceClient, filled: ContainerClient) -> None:
    with pytest.raises(ResourceExistsError):
        service.create_container(filled.container_name)
