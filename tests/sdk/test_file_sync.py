"""azure-storage-file-share, Microsoft's client for Python: the flows that its own tests run against the real service."""

import random
import uuid
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any

import pytest
from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.storage.fileshare import (
    AccessPolicy,
    AccountSasPermissions,
    ContentSettings,
    CorsRule,
    FileRange,
    FileSasPermissions,
    Metrics,
    NTFSAttributes,
    ResourceTypes,
    RetentionPolicy,
    ShareClient,
    ShareFileClient,
    ShareLeaseClient,
    ShareSasPermissions,
    ShareServiceClient,
    generate_account_sas,
    generate_file_sas,
    generate_share_sas,
)

from tests.rest.history import settled
from tests.rest.running import Running
from tests.sdk.codes import code_of

DOTS: Any = {"allow_trailing_dot": True, "allow_source_trailing_dot": True}
KIB, MIB = 1024, 1024 * 1024
SDDL = (
    "O:S-1-5-21-2127521184-1604012920-1887927527-21560751G:S-1-5-21-2127521184-1604012920-1887927527-513"
    "D:AI(A;;FA;;;SY)(A;;FA;;;BA)(A;;0x1200a9;;;S-1-5-21-397955417-626881126-188441444-3053964)"
)


def endpoint(server: Running) -> str:
    return f"http://127.0.0.1:{server.app.servers['file'].port}/{server.account}"


def key(server: Running) -> dict[str, str]:
    return {"account_name": server.account, "account_key": server.key}


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(hours=1)


@pytest.fixture
def service(account: Running) -> Iterator[ShareServiceClient]:
    """Small limits, so that a few megabytes are sent in several parts. No retries, so that the first response counts."""
    with ShareServiceClient(
        endpoint(account),
        credential=key(account),
        max_range_size=256 * KIB,
        max_single_get_size=256 * KIB,
        max_chunk_get_size=256 * KIB,
        retry_total=0,
    ) as service:
        yield service


@pytest.fixture
def share(service: ShareServiceClient) -> ShareClient:
    return service.create_share(f"sdk-{uuid.uuid4().hex[:16]}", metadata={"Owner": "test"})


def test_shares_are_listed_with_what_was_set(service: ShareServiceClient, share: ShareClient) -> None:
    share.set_share_properties(access_tier="Cool", quota=7)
    share.set_share_metadata({"UP": "1"})
    snapshot = share.create_snapshot()
    entries = list(service.list_shares(name_starts_with=share.share_name, include_metadata=True, include_snapshots=True))
    assert [entry.snapshot for entry in entries] == [snapshot["snapshot"], None]
    found = entries[-1]
    assert (found.quota, found.access_tier, found.metadata, found.protocols) == (7, "Cool", {"UP": "1"}, ["SMB"])
    properties = share.get_share_properties()
    assert (properties.etag, properties.quota, properties.metadata) == (found.etag, 7, {"UP": "1"})
    assert properties.lease.state == "available"
    with pytest.raises(ResourceExistsError):
        share.create_share()


def test_policies_and_statistics(share: ShareClient) -> None:
    policy = AccessPolicy(permission=ShareSasPermissions(read=True), start=datetime.now(UTC), expiry=soon())
    share.set_share_access_policy({"one": policy, "two": policy})
    found = share.get_share_access_policy()["signed_identifiers"]
    assert [item.id for item in found] == ["one", "two"]
    assert found[0].access_policy.permission == "r"
    share.get_file_client("file").upload_file(b"x" * 1000)
    assert share.get_share_stats() == 1000


def test_service_properties_come_back(service: ShareServiceClient) -> None:
    metrics = Metrics(enabled=True, include_apis=True, retention_policy=RetentionPolicy(enabled=True, days=5))
    rules = [CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=60)]
    service.set_service_properties(hour_metrics=metrics, cors=rules)
    found = service.get_service_properties()
    assert found["hour_metrics"].retention_policy.days == 5
    assert found["cors"][0].allowed_origins == "http://a.example"
    service.set_service_properties(hour_metrics=Metrics(), cors=[])
    assert service.get_service_properties()["cors"] == []


def test_a_deleted_share_comes_back_by_its_version(account: Running, service: ShareServiceClient, share: ShareClient) -> None:
    with settled(account, share_soft_delete_days=7):
        share.get_file_client("file").upload_file(b"kept")
        share.delete_share()
        [entry] = service.list_shares(name_starts_with=share.share_name, include_deleted=True)
        assert entry.deleted
        assert entry.version is not None
        service.create_share(share.share_name)
        with pytest.raises(HttpResponseError) as refused:
            service.undelete_share(share.share_name, entry.version)
        assert refused.value.status_code == 409
        share.delete_share()
        restored = service.undelete_share(share.share_name, entry.version)
        assert restored.get_file_client("file").download_file().readall() == b"kept"


def test_leases_of_a_share_and_its_snapshot_are_independent(account: Running, share: ShareClient) -> None:
    taken = share.create_snapshot()["snapshot"]
    snapshot = ShareClient(endpoint(account), share.share_name, snapshot=taken, credential=key(account), retry_total=0)
    one, two = share.acquire_lease(), snapshot.acquire_lease(lease_duration=15)
    for client, lease in ((share, two), (snapshot, one)):
        with pytest.raises(HttpResponseError) as refused:
            client.get_share_properties(lease=lease)
        assert refused.value.status_code == 412
    with pytest.raises(HttpResponseError):
        share.delete_share(delete_snapshots=True, lease=one)
    share.delete_share(delete_snapshots="include-leased", lease=one)


def test_a_share_lease_goes_through_its_life(share: ShareClient) -> None:
    lease = share.acquire_lease(lease_duration=15)
    assert share.get_share_properties().lease.duration == "fixed"
    lease.renew()
    lease.change(str(uuid.uuid4()))
    with pytest.raises(HttpResponseError) as refused:
        share.set_share_metadata({"a": "1"})
    assert code_of(refused.value) == "LeaseIdMissing"
    share.set_share_metadata({"a": "1"}, lease=lease)
    assert lease.break_lease(lease_break_period=5) == 5
    lease.release()
    assert share.get_share_properties().lease.state == "available"


def test_a_permission_is_the_same_in_every_form(share: ShareClient) -> None:
    one = share.create_permission_for_share(SDDL)
    assert one is not None
    text = share.get_permission_for_share(one)
    assert share.create_permission_for_share(text) == one
    binary = share.get_permission_for_share(one, file_permission_format="binary")
    directory = share.create_directory("d", file_permission=binary, file_permission_format="binary")
    assert directory.get_directory_properties().permission_key == one
    with pytest.raises(HttpResponseError):
        share.create_permission_for_share("abcde")


def test_directories_have_attributes_and_times(share: ShareClient) -> None:
    directory = share.create_directory("d", file_attributes=NTFSAttributes(read_only=True, hidden=True), metadata={"m": "1"})
    found = directory.get_directory_properties()
    assert str(found.file_attributes).replace(" ", "") == "ReadOnly|Hidden|Directory"
    directory.set_http_headers(file_attributes="None", file_creation_time=datetime(3005, 5, 10, 17, 26, 28, tzinfo=UTC))
    found = directory.get_directory_properties()
    assert (str(found.file_attributes), found.metadata) == ("Directory", {"m": "1"})
    assert isinstance(found.creation_time, datetime)
    assert (found.creation_time.year, found.server_encrypted) == (3005, True)
    with pytest.raises(ResourceExistsError):
        share.create_directory("d")
    with pytest.raises(ResourceNotFoundError) as missing:
        share.get_directory_client("no/d").get_directory_properties()
    assert missing.value.status_code == 404


@pytest.mark.parametrize("fraction", ["", *(f".{'123456'[:digits]}" for digits in range(1, 7))])
def test_times_keep_every_digit(share: ShareClient, fraction: str) -> None:
    file = share.get_file_client("file")
    file.create_file(0)
    file.set_http_headers(ContentSettings(), file_creation_time=f"2019-05-10T17:26:28{fraction}Z", file_last_write_time="now")
    moment = file.get_file_properties().creation_time
    assert isinstance(moment, datetime)
    assert moment.microsecond == int(fraction[1:].ljust(6, "0") or 0)


def test_a_listing_has_what_was_asked_for(share: ShareClient) -> None:
    directory = share.create_directory("d")
    for name in ("b", "a", "C"):
        directory.upload_file(name, name.encode() * 10)
    directory.create_subdirectory("sub")
    include: list[Any] = ["timestamps", "Etag", "Attributes", "PermissionKey"]
    entries = list(directory.list_directories_and_files(include=include, results_per_page=2))
    assert {entry.name: entry.is_directory for entry in entries} == {"a": False, "b": False, "C": False, "sub": True}
    assert entries[0]["size"] == 10
    for entry in entries:
        assert entry.last_modified is not None
        assert entry.etag
        assert entry.file_attributes
        assert entry.permission_key
        assert entry.file_id
    assert [entry["name"] for entry in share.list_directories_and_files("d", name_starts_with="s")] == ["sub"]


def test_names_that_xml_cannot_carry(share: ShareClient) -> None:
    name = "\ufffe\uffff"
    directory = share.create_directory(f"d{name}")
    directory.upload_file(f"f{name}", b"x")
    assert [entry.name for entry in directory.list_directories_and_files()] == [f"f{name}"]
    assert [entry.name for entry in share.list_directories_and_files(name_starts_with=f"d{name}")] == [f"d{name}"]


def test_trailing_dots(account: Running, share: ShareClient) -> None:
    with ShareServiceClient(endpoint(account), credential=key(account), **DOTS) as service:
        dotted = service.get_share_client(share.share_name)
        dotted.create_directory("d.").upload_file("f.", b"x")
        assert [entry.name for entry in dotted.list_directories_and_files("d.")] == ["f."]
        file = dotted.get_file_client("d./f.")
        assert file.rename_file("d./g...").get_file_properties().name == "g..."
    plain = share.create_directory("plain.")
    plain.upload_file("f...", b"x")
    assert [entry.name for entry in share.list_directories_and_files("plain")] == ["f"]


def test_a_large_file_goes_in_and_out_in_parts(share: ShareClient) -> None:
    data = random.Random(1).randbytes(2 * MIB + 77)
    file = share.get_file_client("large")
    file.upload_file(data, max_concurrency=2, validate_content=True, metadata={"m": "1"})
    assert file.download_file(max_concurrency=2, validate_content=True).readall() == data
    assert file.download_file(offset=300 * KIB, length=MIB).readall() == data[300 * KIB : 300 * KIB + MIB]
    stream = BytesIO()
    assert file.download_file().readinto(stream) == len(data)
    assert stream.getvalue() == data
    properties = file.get_file_properties()
    assert (properties.size, properties.metadata) == (len(data), {"m": "1"})


def test_an_empty_file_is_downloaded_after_a_range_that_fails(share: ShareClient) -> None:
    file = share.get_file_client("empty")
    file.upload_file(b"")
    assert file.download_file().readall() == b""


def test_a_download_notices_that_the_file_has_changed(share: ShareClient) -> None:
    file = share.get_file_client("file")
    file.upload_file(b"x" * MIB)
    download = file.download_file()
    file.upload_range(b"y", offset=0, length=1)
    with pytest.raises(HttpResponseError):
        download.readall()


def test_ranges_are_listed_clipped_and_compared(share: ShareClient) -> None:
    file = share.get_file_client("file")
    file.create_file(4 * KIB)
    file.upload_range(b"x" * 1536, offset=0, length=1536)
    file.upload_range(b"x" * 512, offset=2048, length=512)
    assert spans(file.list_ranges()) == [(0, 1535, False), (2048, 2559, False)]
    assert spans(file.list_ranges(offset=1024, length=1024)) == [(1024, 1535, False)]
    assert spans(file.list_ranges(results_per_page=1)) == [(0, 1535, False), (2048, 2559, False)]
    snapshot = share.create_snapshot()
    file.upload_range(b"y" * 512, offset=1536, length=512)
    file.clear_range(offset=512, length=512)
    changed = [(512, 1023, True), (1536, 2047, False)]
    assert spans(file.list_ranges_diff(previous_sharesnapshot=snapshot)) == changed
    renamed = file.rename_file("renamed")
    with pytest.raises(HttpResponseError) as refused:
        list(renamed.list_ranges_diff(previous_sharesnapshot=snapshot))
    assert refused.value.status_code == 409
    assert spans(renamed.list_ranges_diff(previous_sharesnapshot=snapshot, include_renames=True)) == changed


def spans(ranges: Iterable[FileRange]) -> list[tuple[int, int, bool]]:
    return [(found.start, found.end, found.cleared) for found in ranges]


def test_http_headers_and_size(share: ShareClient) -> None:
    file = share.get_file_client("file")
    settings = ContentSettings(content_type="text/plain", content_language="spanish", content_disposition="inline")
    file.create_file(10, content_settings=settings)
    file.resize_file(20)
    found = file.get_file_properties()
    assert (found.size, found.content_settings.content_language) == (20, "spanish")
    assert (found.lease.state, found.lease.status, found.server_encrypted) == ("available", "unlocked", True)
    file.set_http_headers(ContentSettings(content_type="text/html"))
    assert file.get_file_properties().content_settings.content_language is None
    file.set_file_metadata({"hello": "world", "UP": "x"})
    assert file.get_file_properties().metadata == {"hello": "world", "UP": "x"}


def test_a_snapshot_is_read_through_a_client_of_its_own(account: Running, share: ShareClient) -> None:
    file = share.get_file_client("file")
    file.upload_file(b"before")
    taken = share.create_snapshot()
    file.upload_file(b"after")
    old = ShareFileClient(
        endpoint(account), share.share_name, "file", snapshot=taken["snapshot"], credential=key(account), retry_total=0
    )
    assert old.download_file().readall() == b"before"
    with pytest.raises(HttpResponseError) as refused:
        old.delete_file()
    assert refused.value.status_code == 400


def test_a_file_lease_is_honoured(share: ShareClient) -> None:
    file = share.get_file_client("file")
    file.create_file(1024)
    lease = file.acquire_lease(lease_id=str(uuid.uuid4()))
    assert file.get_file_properties().lease.duration == "infinite"
    with pytest.raises(HttpResponseError) as refused:
        file.upload_range(b"x", offset=0, length=1)
    assert code_of(refused.value) == "LeaseIdMissing"
    file.upload_range(b"x", offset=0, length=1, lease=lease)
    lease.change(str(uuid.uuid4()))
    assert ShareLeaseClient(file).break_lease() == 0
    file.delete_file()


def test_renames_replace_keep_and_need_leases(share: ShareClient) -> None:
    share.create_directory("d")
    one, two = share.get_file_client("one"), share.get_file_client("two")
    one.create_file(3, metadata={"m": "1"}, file_attributes="ReadOnly")
    two.upload_file(b"two")
    with pytest.raises(ResourceExistsError):
        one.rename_file("two")
    source, target = one.acquire_lease(), two.acquire_lease()
    moved = one.rename_file("two", overwrite=True, source_lease=source, destination_lease=target, content_type="text/plain")
    found = moved.get_file_properties()
    assert (found.metadata, found.content_settings.content_type) == ({"m": "1"}, "text/plain")
    assert str(found.file_attributes) == "ReadOnly"
    ShareLeaseClient(moved).break_lease()
    three = share.get_file_client("three")
    three.upload_file(b"three")
    with pytest.raises(HttpResponseError) as refused:
        three.rename_file("two", overwrite=True)
    assert code_of(refused.value) == "ReadOnlyAttribute"
    three.rename_file("two", overwrite=True, ignore_read_only=True)
    directory = share.get_directory_client("d").rename_directory("e", metadata={"a": "b"})
    assert directory.get_directory_properties().metadata == {"a": "b"}


def test_a_share_sas_renames_reads_and_writes(account: Running, share: ShareClient) -> None:
    share.create_directory("d").upload_file("file", b"content")
    sas = generate_share_sas(account.account, share.share_name, account.key, ShareSasPermissions(read=True, write=True), soon())
    with ShareClient(endpoint(account), share.share_name, credential=sas, retry_total=0) as client:
        renamed = client.get_file_client("d/file").rename_file(f"d/other?{sas}")
        assert renamed.download_file().readall() == b"content"
        client.get_directory_client("d").rename_directory(f"e?{sas}")
        with pytest.raises(HttpResponseError):
            client.get_file_client("e/other").delete_file()


def test_sas_of_files_and_accounts(account: Running, share: ShareClient) -> None:
    share.create_directory("d").upload_file("f o", b"content")
    parts: Any = {"account_name": account.account, "share_name": share.share_name, "file_path": ["d", "f o"]}
    sas = generate_file_sas(
        **parts, account_key=account.key, permission=FileSasPermissions(read=True), expiry=soon(), content_type="text/x"
    )
    with ShareFileClient(endpoint(account), share.share_name, "d/f o", credential=sas) as file:
        assert file.download_file().readall() == b"content"
        assert file.get_file_properties().content_settings.content_type == "text/x"
    late = datetime.now(UTC) - timedelta(hours=1)
    old = generate_file_sas(**parts, account_key=account.key, permission=FileSasPermissions(read=True), expiry=late)
    with ShareFileClient(endpoint(account), share.share_name, "d/f o", credential=old, retry_total=0) as file:
        with pytest.raises(ClientAuthenticationError) as refused:
            file.get_file_properties()
        with pytest.raises(ClientAuthenticationError) as refused:
            file.download_file()
        assert "authenticationerrordetail" in str(refused.value).lower()
    whole = generate_account_sas(
        account.account, account.key, ResourceTypes(service=True), AccountSasPermissions(list=True), soon()
    )
    with ShareServiceClient(endpoint(account), credential=whole) as service:
        assert share.share_name in [found.name for found in service.list_shares()]


def test_no_handles_are_open(share: ShareClient) -> None:
    directory = share.create_directory("d")
    directory.upload_file("file", b"x")
    assert list(directory.list_handles(recursive=True)) == []
    assert list(directory.get_file_client("file").list_handles()) == []
    assert directory.close_all_handles(recursive=True) == {"closed_handles_count": 0, "failed_handles_count": 0}
    assert directory.get_file_client("file").close_handle("1") == {"closed_handles_count": 0, "failed_handles_count": 0}
