"""Microsoft's client library against versions, soft delete, container restore and tiers."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobServiceClient, ContainerClient, RehydratePriority, RetentionPolicy, StandardBlobTier

from tests.rest.history import settle, settled
from tests.rest.running import Running
from tests.sdk.codes import code_of


@pytest.fixture(autouse=True)
def plain(account: Running) -> Iterator[None]:
    with settled(account):
        yield


def test_versions_are_listed_read_and_deleted(account: Running, container: ContainerClient) -> None:
    settle(account, versioning=True)
    blob = container.get_blob_client("b")
    first = blob.upload_blob(b"one")["version_id"]
    second = blob.upload_blob(b"two", overwrite=True)["version_id"]
    assert blob.get_blob_properties().version_id == second
    assert blob.get_blob_properties().is_current_version
    assert blob.download_blob(version_id=first).readall() == b"one"
    listed = [(item.version_id, bool(item.is_current_version)) for item in container.list_blobs(include=["versions"])]
    assert listed == [(first, False), (second, True)]
    with pytest.raises(ResourceNotFoundError):
        blob.download_blob(version_id="2020-01-01T00:00:00.0000000Z")
    blob.delete_blob(version_id=first)
    blob.delete_blob()
    [only] = container.list_blobs(include=["deletedwithversions"])
    assert (only.name, only.has_versions_only) == ("b", True)
    assert [item.version_id for item in container.list_blobs(include=["versions"])] == [second]


def test_soft_delete_is_set_used_and_undone(service: BlobServiceClient, container: ContainerClient) -> None:
    service.set_service_properties(delete_retention_policy=RetentionPolicy(enabled=True, days=2))
    assert service.get_service_properties()["delete_retention_policy"].days == 2
    blob = container.get_blob_client("b")
    blob.upload_blob(b"one", metadata={"m": "1"})
    snapshot = str(blob.create_snapshot()["snapshot"])
    blob.upload_blob(b"two", overwrite=True)
    blob.delete_blob(delete_snapshots="include")
    assert not blob.exists()
    assert list(container.list_blobs()) == []
    deleted = list(container.list_blobs(include=["deleted", "snapshots"]))
    assert [(item.deleted, item.remaining_retention_days, bool(item.snapshot)) for item in deleted] == [
        (True, 1, True),
        (True, 1, True),
        (True, 1, False),
    ]
    assert all(item.deleted_time is not None for item in deleted)
    blob.undelete_blob()
    assert blob.download_blob().readall() == b"two"
    assert container.get_blob_client("b", snapshot=snapshot).download_blob().readall() == b"one"
    blob.delete_blob(delete_snapshots="include")


def test_a_container_is_restored(account: Running, service: BlobServiceClient) -> None:
    settle(account, container_soft_delete_days=3)
    container = service.create_container(f"restored-{account.port}")
    container.upload_blob("b", b"bytes")
    container.delete_container()
    [deleted] = service.list_containers(name_starts_with=container.container_name, include_deleted=True)
    assert deleted.deleted
    assert deleted.version is not None
    restored = service.undelete_container(deleted.name, deleted.version)
    assert restored.download_blob("b").readall() == b"bytes"
    settle(account, container_soft_delete_days=0)
    restored.delete_container()


def test_tiers_and_rehydration(container: ContainerClient) -> None:
    blob = container.get_blob_client("b")
    blob.upload_blob(b"bytes", standard_blob_tier=StandardBlobTier.ARCHIVE)
    with pytest.raises(ResourceExistsError) as refused:  # how the library reports every 409
        blob.download_blob()
    assert code_of(refused.value) == "BlobArchived"
    blob.set_standard_blob_tier(StandardBlobTier.COOL, rehydrate_priority=RehydratePriority("High"))
    properties = blob.get_blob_properties()
    assert (properties.blob_tier, properties.archive_status) == ("Archive", "rehydrate-pending-to-cool")
    assert properties.rehydrate_priority == "High"
    [item] = container.list_blobs()
    assert item.archive_status == "rehydrate-pending-to-cool"
    assert properties.blob_tier_change_time is not None


def test_account_information_is_what_is_set(account: Running, service: BlobServiceClient) -> None:
    settle(account, sku="Standard_ZRS", kind="BlobStorage")
    shown = service.get_account_information()
    assert (shown["sku_name"], shown["account_kind"], bool(shown["is_hns_enabled"])) == ("Standard_ZRS", "BlobStorage", False)


def test_a_blob_is_deleted_by_the_age_of_its_tier(container: ContainerClient) -> None:
    blob = container.get_blob_client("b")
    blob.upload_blob(b"one", standard_blob_tier=StandardBlobTier.COOL)
    earlier, later = (datetime.now(UTC) + timedelta(minutes=minutes) for minutes in (-10, 10))
    for since, until in ((later, None), (None, earlier)):
        with pytest.raises(ResourceModifiedError) as refused:
            blob.delete_blob(access_tier_if_modified_since=since, access_tier_if_unmodified_since=until)
        assert code_of(refused.value) == "ConditionNotMet"
    blob.delete_blob(access_tier_if_modified_since=earlier)
    assert not blob.exists()
