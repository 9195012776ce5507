"""Keys of clients, encryption scopes, immutability, last access, incremental copies and static websites with Microsoft's SDK.

The SDK sends keys over TLS only, so their server has a self-signed certificate.
"""

import base64
import hashlib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobBlock,
    BlobServiceClient,
    BlobType,
    ContainerClient,
    ContainerEncryptionScope,
    CustomerProvidedEncryptionKey,
    ImmutabilityPolicy,
    StaticWebsite,
)

from tests.rest.client import Box, Client
from tests.rest.history import protect, settled
from tests.rest.running import Running
from tests.sdk.codes import code_of

BODY = b"0123456789" * 300_000


def key(value: bytes) -> CustomerProvidedEncryptionKey:
    digest = base64.b64encode(hashlib.sha256(value).digest()).decode()
    return CustomerProvidedEncryptionKey(base64.b64encode(value).decode(), digest)


KEY, OTHER = key(b"k" * 32), key(b"o" * 32)


def refused(work: Any) -> tuple[int | None, str | None]:
    with pytest.raises(HttpResponseError) as error:
        work()
    return error.value.status_code, code_of(error.value)


@pytest.fixture
def keyed(token_server: Running, options: dict[str, Any]) -> Iterator[ContainerClient]:
    url = token_server.base_url.replace("http://", "https://")
    sizes: dict[str, Any] = {
        "max_single_put_size": 1 << 20,
        "max_block_size": 1 << 20,
        "max_single_get_size": 1 << 20,
        "max_chunk_get_size": 1 << 20,
    }
    with BlobServiceClient(url, credential=token_server.key, **options, **sizes) as service:
        yield service.create_container(f"keys-{uuid.uuid4().hex[:12]}")


@pytest.mark.parametrize("kind", list(BlobType))
def test_every_type_of_blob_takes_a_key(keyed: ContainerClient, kind: BlobType) -> None:
    blob = keyed.get_blob_client("blob")
    body = BODY[: len(BODY) // 512 * 512]
    blob.upload_blob(body, blob_type=kind, cpk=KEY, metadata={"a": "b"})
    assert blob.download_blob(cpk=KEY, max_concurrency=2).readall() == body
    assert blob.download_blob(offset=1_000_003, length=77, cpk=KEY).readall() == body[1_000_003:1_000_080]
    assert blob.get_blob_properties(cpk=KEY).encryption_key_sha256 == KEY.key_hash
    assert blob.set_blob_metadata({"c": "d"}, cpk=KEY)["encryption_key_sha256"] == KEY.key_hash
    moment = str(blob.create_snapshot(cpk=KEY)["snapshot"])
    old = keyed.get_blob_client("blob", snapshot=moment)
    assert old.download_blob(offset=0, length=3, cpk=KEY).readall() == body[:3]
    for given in (None, OTHER):
        assert refused(lambda given=given: blob.download_blob(cpk=given)) == (409, "BlobUsesCustomerSpecifiedEncryption")
        assert refused(lambda given=given: old.get_blob_properties(cpk=given))[0] == 409
        assert refused(lambda given=given: blob.set_blob_metadata({}, cpk=given))[0] == 409


def test_a_blob_is_read_from_a_url_with_one_key_and_written_with_another(keyed: ContainerClient) -> None:
    source, blob = keyed.get_blob_client("source"), keyed.get_blob_client("blob")
    source.upload_blob(b"1,a\n2,b\n", cpk=KEY)
    assert source.query_blob("SELECT _2 FROM BlobStorage WHERE _1 = 2", cpk=KEY).readall() == b"b\n"
    assert refused(lambda: source.query_blob("SELECT * FROM BlobStorage", cpk=OTHER))[0] == 409
    blob.stage_block("AAAA", b"one", cpk=OTHER)
    assert refused(lambda: blob.commit_block_list([BlobBlock("AAAA")], cpk=KEY))[0] == 409
    blob.commit_block_list([BlobBlock("AAAA")], cpk=OTHER)
    assert blob.download_blob(cpk=OTHER).readall() == b"one"


def test_scopes_of_containers_and_blobs(account: Running, service: BlobServiceClient) -> None:
    with settled(account, encryption_scopes=["finance", "other"]):
        strict = ContainerEncryptionScope("finance", prevent_encryption_scope_override=True)
        with service.create_container(f"scope-{uuid.uuid4().hex[:12]}", container_encryption_scope=strict) as container:
            shown = container.get_container_properties().encryption_scope
            assert shown is not None
            assert (shown.default_encryption_scope, shown.prevent_encryption_scope_override) == ("finance", True)
            assert container.upload_blob("blob", b"x").get_blob_properties().encryption_scope == "finance"
            assert refused(lambda: container.upload_blob("blob", b"x", encryption_scope="other", overwrite=True))[0] == 409
            [blob] = container.list_blobs()
            assert blob.encryption_scope == "finance"
            container.delete_container()


def test_policies_and_holds_of_blobs(account: Running, service: BlobServiceClient) -> None:
    box = Box(Client(account)).create()
    container = service.get_container_client(box.name)
    with settled(account, versioning=True):
        assert protect(box, version_level_immutability=True)[0] == 200
        blob = container.get_blob_client("blob")

        def policy(days: int, mode: str) -> ImmutabilityPolicy:
            return ImmutabilityPolicy(
                expiry_time=datetime.fromtimestamp(account.now(), UTC) + timedelta(days=days), policy_mode=mode
            )

        first = str(blob.upload_blob(b"one", immutability_policy=policy(1, "Unlocked"), legal_hold=True)["version_id"])
        shown = blob.get_blob_properties()
        assert (shown.immutability_policy.policy_mode, shown.has_legal_hold) == ("unlocked", True)
        assert refused(lambda: blob.set_blob_metadata({"a": "b"})) == (409, "BlobImmutableDueToLegalHold")
        blob.set_legal_hold(False)
        assert refused(lambda: blob.set_http_headers()) == (409, "BlobImmutableDueToPolicy")
        blob.upload_blob(b"two", overwrite=True)
        assert refused(lambda: blob.delete_blob(version_id=first)) == (409, "BlobImmutableDueToPolicy")
        blob.set_immutability_policy(policy(2, "Locked"), version_id=first)
        assert refused(lambda: blob.set_immutability_policy(policy(1, "Locked"), version_id=first))[0] == 409
        assert refused(lambda: blob.delete_immutability_policy(version_id=first))[0] == 409
        [listed, _] = container.list_blobs(include=["versions", "immutabilitypolicy", "legalhold"])
        assert (listed.version_id, listed.immutability_policy.policy_mode) == (first, "locked")


def test_last_access_is_reported_when_it_is_tracked(account: Running, container: ContainerClient) -> None:
    with settled(account, last_access_tracking=True):
        blob = container.upload_blob("blob", b"x")
        [listed] = container.list_blobs()
        told = blob.get_blob_properties().last_accessed_on
        assert (told, told) == (listed.last_accessed_on, listed.last_modified)


def test_snapshots_are_copied_one_after_the_other(container: ContainerClient) -> None:
    disk, copy = container.get_blob_client("disk"), container.get_blob_client("copy")
    disk.create_page_blob(1024)
    for content in (b"a" * 512, b"b" * 512):
        disk.upload_page(content, 0, 512)
        moment = disk.create_snapshot()["snapshot"]
        assert copy.start_copy_from_url(f"{disk.url}?snapshot={moment}", incremental_copy=True)["copy_status"] == "success"
        shown = copy.get_blob_properties().copy
        taken = container.get_blob_client("copy", snapshot=str(shown.destination_snapshot))
        assert (shown.incremental_copy, taken.download_blob().readall()) == (True, content + bytes(512))


def test_a_website_is_a_property_of_the_service(service: BlobServiceClient) -> None:
    site = StaticWebsite(enabled=True, index_document="index.html", error_document404_path="404.html")
    service.set_service_properties(static_website=site)
    shown = service.get_service_properties()["static_website"]
    assert (shown.enabled, shown.index_document, shown.error_document404_path) == (True, "index.html", "404.html")
    service.set_service_properties(static_website=StaticWebsite())


def test_renaming_a_container_is_refused_as_on_azure(service: BlobServiceClient, container: ContainerClient) -> None:
    answer = refused(lambda: service._rename_container(str(container.container_name), "renamed"))
    assert answer == (400, "InvalidQueryParameterValue")
