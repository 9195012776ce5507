"""Microsoft's Python client with sequential calls."""

import base64
import random
from collections.abc import Iterator

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    BlobBlock,
    BlobLeaseClient,
    BlobServiceClient,
    ContainerClient,
    ContentSettings,
    CorsRule,
    RetentionPolicy,
)

from tests.rest.running import Running
from tests.sdk.codes import code_of

KIB, MIB = 1024, 1024 * 1024
SIZES = (0, 1, 64 * KIB - 1, 64 * KIB, 64 * KIB + 1, MIB, 9 * MIB + 1)


def random_bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


@pytest.mark.parametrize("size", SIZES)
def test_what_is_uploaded_is_downloaded(container: ContainerClient, size: int) -> None:
    data = random_bytes(size)
    blob = container.upload_blob("blob", data, validate_content=True, max_concurrency=2)
    assert blob.download_blob(validate_content=True, max_concurrency=2).readall() == data
    assert blob.get_blob_properties().size == size


def test_a_stream_of_unknown_length_is_uploaded_in_blocks(container: ContainerClient) -> None:
    data = random_bytes(3 * MIB + 5)

    def pieces() -> Iterator[bytes]:
        yield from (data[start : start + 100_000] for start in range(0, len(data), 100_000))

    blob = container.get_blob_client("blob")
    blob.upload_blob(pieces())
    assert blob.download_blob().readall() == data
    committed, uncommitted = blob.get_block_list("all")
    assert (len(committed), uncommitted) == (4, [])


def test_ranges_and_chunks(container: ContainerClient) -> None:
    data = random_bytes(3 * MIB)
    blob = container.upload_blob("blob", data)
    assert blob.download_blob(offset=MIB - 3, length=MIB + 7).readall() == data[MIB - 3 : 2 * MIB + 4]
    assert blob.download_blob(offset=len(data) - 1).readall() == data[-1:]
    assert b"".join(blob.download_blob().chunks()) == data
    with pytest.raises(HttpResponseError) as refusal:
        blob.download_blob(offset=len(data), length=1)
    assert (refusal.value.status_code, code_of(refusal.value)) == (416, "InvalidRange")


def test_an_existing_blob_is_not_overwritten_by_accident(container: ContainerClient) -> None:
    container.upload_blob("blob", b"first")
    with pytest.raises(ResourceExistsError) as refusal:
        container.upload_blob("blob", b"second")
    assert code_of(refusal.value) == "BlobAlreadyExists"
    container.upload_blob("blob", b"third", overwrite=True)
    assert container.download_blob("blob").readall() == b"third"


def test_properties_metadata_and_settings(container: ContainerClient) -> None:
    settings = ContentSettings(content_type="text/plain", content_language="en", cache_control="no-cache")
    blob = container.upload_blob(
        "blob", b"x", metadata={"Camel": "Case", "b": "2"}, content_settings=settings, tags={"tag": "value"}
    )
    properties = blob.get_blob_properties()
    assert properties.metadata == {"Camel": "Case", "b": "2"}
    assert properties.content_settings.content_type == "text/plain"
    assert properties.content_settings.content_language == "en"
    assert properties.tag_count == 1
    assert properties.blob_tier == "Hot"
    assert properties.blob_tier_inferred
    assert properties.server_encrypted
    changed = blob.set_blob_metadata({"only": "this"})
    assert changed["etag"] != properties.etag
    blob.set_http_headers(ContentSettings(content_type="a/b"))
    properties = blob.get_blob_properties()
    assert (properties.metadata, properties.content_settings.content_type) == ({"only": "this"}, "a/b")
    assert properties.content_settings.content_language is None
    assert blob.exists()
    assert not container.get_blob_client("absent").exists()


def test_conditions(container: ContainerClient) -> None:
    # contract B1, B2
    blob = container.upload_blob("blob", b"one")
    etag = blob.get_blob_properties().etag
    blob.upload_blob(b"two", overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
    with pytest.raises(ResourceModifiedError) as refusal:
        blob.upload_blob(b"three", overwrite=True, etag=etag, match_condition=MatchConditions.IfNotModified)
    assert (refusal.value.status_code, code_of(refusal.value)) == (412, "ConditionNotMet")
    current = blob.get_blob_properties().etag
    with pytest.raises(HttpResponseError) as unchanged:
        blob.download_blob(etag=current, match_condition=MatchConditions.IfModified)
    assert unchanged.value.status_code == 304
    with pytest.raises(HttpResponseError) as refused:
        blob.delete_blob(etag=etag, match_condition=MatchConditions.IfNotModified)
    assert refused.value.status_code == 412
    assert blob.download_blob(if_tags_match_condition=None).readall() == b"two"
    with pytest.raises(HttpResponseError):
        blob.download_blob(if_tags_match_condition="\"tag\" = 'other'")


def test_leases(container: ContainerClient) -> None:
    # contract L1, L3, L4
    blob = container.upload_blob("blob", b"x")
    lease = blob.acquire_lease(lease_duration=15)
    assert blob.get_blob_properties().lease.state == "leased"
    with pytest.raises(HttpResponseError) as refusal:
        blob.set_blob_metadata({"a": "1"})
    assert code_of(refusal.value) == "LeaseIdMissing"
    blob.set_blob_metadata({"a": "1"}, lease=lease)
    with pytest.raises(ResourceExistsError) as taken:
        blob.acquire_lease()
    assert code_of(taken.value) == "LeaseAlreadyPresent"
    lease.renew()
    lease.change("11111111-2222-3333-4444-555555555555")
    assert lease.id == "11111111-2222-3333-4444-555555555555"
    blob.upload_blob(b"y", overwrite=True, lease=lease)
    assert BlobLeaseClient(blob).break_lease(lease_break_period=0) == 0
    assert blob.get_blob_properties().lease.state == "broken"
    whole = container.acquire_lease()
    with pytest.raises(HttpResponseError):
        container.delete_container()
    whole.release()


def test_snapshots(container: ContainerClient) -> None:
    blob = container.upload_blob("blob", b"old")
    taken = blob.create_snapshot(metadata={"when": "then"})
    blob.upload_blob(b"new", overwrite=True)
    old = container.get_blob_client("blob", snapshot=str(taken["snapshot"]))
    assert old.download_blob().readall() == b"old"
    assert old.get_blob_properties().metadata == {"when": "then"}
    listed = [(item.name, item.snapshot) for item in container.list_blobs(include=["snapshots"])]
    assert listed == [("blob", taken["snapshot"]), ("blob", None)]
    with pytest.raises(ResourceExistsError):
        blob.delete_blob()
    blob.delete_blob(delete_snapshots="only")
    assert [item.snapshot for item in container.list_blobs(include=["snapshots"])] == [None]
    blob.delete_blob()


def test_block_lists(container: ContainerClient) -> None:
    blob = container.get_blob_client("blob")
    ids = [base64.b64encode(f"{number:06}".encode()).decode() for number in range(5)]
    for number, block_id in enumerate(ids):
        blob.stage_block(block_id, bytes([number]) * 1000, validate_content=True)
    committed, uncommitted = blob.get_block_list("all")
    assert (committed, sorted(block.id for block in uncommitted)) == ([], sorted(ids))
    blob.commit_block_list([BlobBlock(block_id) for block_id in reversed(ids)], metadata={"made": "of blocks"})
    assert blob.download_blob().readall() == b"".join(bytes([number]) * 1000 for number in range(4, -1, -1))
    committed, uncommitted = blob.get_block_list("all")
    assert ([block.id for block in committed], uncommitted) == (ids[::-1], [])
    with pytest.raises(HttpResponseError) as refusal:
        blob.commit_block_list([BlobBlock("bm90LXRoZXJl")])
    assert code_of(refusal.value) == "InvalidBlockList"


def test_listing_and_walking(container: ContainerClient) -> None:
    names = ["a/1", "a/2", "a/b/3", "c", "ünï/4", "x\x01y"]
    for name in names:
        container.upload_blob(name, b"", metadata={"n": "1"}, tags={"t": "v"})
    expected = sorted(names, key=lambda name: name.encode("utf-16-be"))
    assert [blob.name for blob in container.list_blobs(results_per_page=2)] == expected
    assert list(container.list_blob_names(name_starts_with="a/", results_per_page=2)) == ["a/1", "a/2", "a/b/3"]
    assert [blob.name for blob in container.list_blobs(name_starts_with="a/")] == ["a/1", "a/2", "a/b/3"]
    full = next(iter(container.list_blobs(include=["metadata", "tags"])))
    assert (full.metadata, full.tags) == ({"n": "1"}, {"t": "v"})
    assert [item.name for item in container.walk_blobs(results_per_page=1)] == ["a/", "c", "x\x01y", "ünï/"]
    assert {item.name for item in container.walk_blobs("a/")} == {"a/1", "a/2", "a/b/"}


def test_containers(service: BlobServiceClient, container: ContainerClient) -> None:
    name = container.container_name
    with pytest.raises(ResourceExistsError):
        service.create_container(name)
    container.set_container_metadata({"Key": "v"})
    assert container.get_container_properties().metadata == {"Key": "v"}
    listed = list(service.list_containers(name_starts_with=name, include_metadata=True))
    assert [(found.name, found.metadata) for found in listed] == [(name, {"Key": "v"})]
    with pytest.raises(ResourceNotFoundError) as refusal:
        service.get_container_client("not-there").get_container_properties()
    assert code_of(refusal.value) == "ContainerNotFound"


def test_service_properties_and_account(service: BlobServiceClient) -> None:
    rule = CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=5)
    service.set_service_properties(cors=[rule], delete_retention_policy=RetentionPolicy(enabled=False))
    found = service.get_service_properties()["cors"]
    assert [(rule.allowed_origins, rule.max_age_in_seconds) for rule in found] == [("http://a.example", 5)]
    service.set_service_properties(cors=[])
    assert service.get_service_properties()["cors"] == []
    assert service.get_account_information()["account_kind"] == "StorageV2"


def test_the_secondary_shows_statistics(account: Running) -> None:
    credential = {"account_name": account.account, "account_key": account.key}
    host = account.base_url.removeprefix("http://").partition("/")[0]
    with BlobServiceClient(f"{account.base_url}-secondary", credential, secondary_hostname=host, retry_total=0) as service:
        assert service.get_service_stats()["geo_replication"]["status"] == "live"
