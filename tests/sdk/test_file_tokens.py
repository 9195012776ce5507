"""Microsoft's share client with a bearer token, with a user delegation SAS, and with the links of an NFS share."""

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareClient,
    ShareFileClient,
    ShareServiceClient,
    generate_file_sas,
)

from tests.rest.running import Running
from tests.sdk.codes import code_of
from tests.sdk.credentials import Credential


@pytest.fixture
def url(token_server: Running) -> str:
    return f"https://127.0.0.1:{token_server.app.servers['file'].port}/{token_server.account}"


@pytest.fixture
def service(token_server: Running, url: str, options: dict[str, Any]) -> Iterator[ShareServiceClient]:
    credential = Credential(token_server)
    with ShareServiceClient(url, credential=credential, token_intent="backup", **options) as service:
        yield service


def new_share(service: ShareServiceClient, **more: Any) -> ShareClient:
    return service.create_share(f"sdk-{uuid.uuid4().hex[:12]}", **more)


def test_a_token_credential_works_as_on_azure(service: ShareServiceClient) -> None:
    with new_share(service) as share:
        file = share.get_directory_client("").upload_file("file", b"by token")
        assert file.download_file().readall() == b"by token"
        assert [entry["name"] for entry in share.list_directories_and_files()] == ["file"]
        assert share.share_name in [found.name for found in service.list_shares()]


def test_a_delegation_key_signs_for_one_file(service: ShareServiceClient, url: str, options: dict[str, Any]) -> None:
    now = datetime.now(UTC)
    key = service.get_user_delegation_key(expiry=now + timedelta(days=6), start=now - timedelta(minutes=5))
    assert key.signed_service == "f"
    with new_share(service) as share:
        for name in ("one", "two"):
            share.get_directory_client("").upload_file(name, b"delegated")
        sas = generate_file_sas(
            str(service.account_name),
            str(share.share_name),
            ["one"],
            user_delegation_key=key,
            permission=FileSasPermissions(read=True),
            expiry=now + timedelta(hours=1),
        )
        with ShareFileClient(url, str(share.share_name), "one", credential=sas, **options) as limited:
            assert limited.download_file().readall() == b"delegated"
            with pytest.raises(HttpResponseError) as refused:
                limited.delete_file()
            assert code_of(refused.value) == "AuthorizationPermissionMismatch"
        other = ShareFileClient(url, str(share.share_name), "two", credential=sas, **options)
        with other, pytest.raises(ClientAuthenticationError):
            other.download_file()


def test_links_of_an_nfs_share(service: ShareServiceClient) -> None:
    with new_share(service, protocols="NFS") as share:
        file = share.get_file_client("file")
        file.create_file(1024, owner="345", group="123", file_mode="7777")
        hard, symbolic = share.get_file_client("hard"), share.get_file_client("symbolic")
        created = hard.create_hardlink(target="/file")
        assert (created["link_count"], created["file_file_type"], created["owner"]) == (2, "Regular", "345")
        assert created["file_id"] == file.get_file_properties().file_id
        made = symbolic.create_symlink(target="/dir/file", metadata={"colour": "blue"}, owner="7", group="8")
        assert (made["file_file_type"], made["owner"], made["group"]) == ("SymLink", "7", "8")
        assert symbolic.get_symlink()["link_text"] == "/dir/file"
        properties = hard.get_file_properties()
        assert (properties.link_count, properties.file_mode) == (2, "7777")
        assert not properties.file_attributes
        file.delete_file()
        assert hard.get_file_properties().link_count == 1


def test_the_protocol_settings_of_the_service(service: ShareServiceClient) -> None:
    settings = service.get_service_properties()
    smb = settings["protocol"].smb
    assert smb.multichannel.enabled is False
    smb.multichannel.enabled = True
    service.set_service_properties(protocol=settings["protocol"])
    assert service.get_service_properties()["protocol"].smb.multichannel.enabled is True
