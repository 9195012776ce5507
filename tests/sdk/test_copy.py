"""Copies through Microsoft's SDK: start, poll, abort, synchronous copies, and the from-URL family."""

import threading
import time
from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobBlock, BlobClient, BlobSasPermissions, ContainerClient, generate_blob_sas

from tests.rest.copies import Elsewhere, File, elsewhere
from tests.rest.running import PATIENCE_SECONDS, Running
from tests.sdk.codes import code_of

LARGE = bytes(range(256)) * 8000


@pytest.fixture
def source(container: ContainerClient) -> BlobClient:
    source = container.get_blob_client("source")
    source.upload_blob(LARGE, metadata={"a": "1"}, tags={"k": "v"})
    return source


@pytest.fixture
def target(container: ContainerClient) -> BlobClient:
    return container.get_blob_client("target")


@pytest.fixture
def remote() -> Iterator[Elsewhere]:
    with elsewhere() as remote:
        yield remote


def signed(account: Running, blob: BlobClient) -> str:
    sas = generate_blob_sas(
        account.account,
        blob.container_name,
        blob.blob_name,
        account_key=account.key,
        permission=BlobSasPermissions(read=True, tag=True),
        expiry="2099-01-01T00:00:00Z",
    )
    return f"{blob.url}?{sas}"


def finished(blob: BlobClient) -> str:
    end = time.monotonic() + PATIENCE_SECONDS
    while (status := blob.get_blob_properties().copy.status) == "pending":
        assert time.monotonic() < end
        time.sleep(0.01)
    return str(status)


def test_a_blob_is_copied_and_shows_its_state(source: BlobClient, target: BlobClient) -> None:
    started = target.start_copy_from_url(source.url)
    assert started["copy_status"] == "success"
    copied = target.get_blob_properties()
    assert (copied.copy.id, copied.copy.source, copied.copy.status) == (started["copy_id"], source.url, "success")
    assert copied.copy.progress == f"{len(LARGE)}/{len(LARGE)}"
    assert copied.copy.completion_time == copied.last_modified
    assert (copied.metadata, copied.tag_count) == ({"a": "1"}, None)
    assert target.download_blob().readall() == LARGE
    with pytest.raises(ResourceExistsError) as refused:
        target.abort_copy(str(started["copy_id"]))
    assert code_of(refused.value) == "NoPendingCopyOperation"


def test_a_synchronous_copy_with_tags_and_metadata(account: Running, source: BlobClient, target: BlobClient) -> None:
    target.start_copy_from_url(signed(account, source), requires_sync=True, tags="COPY", metadata={"b": "2"})
    copied = target.get_blob_properties()
    assert (copied.metadata, copied.tag_count, copied.copy.source) == ({"b": "2"}, 1, source.url)


def test_a_copy_from_elsewhere_is_polled_until_it_is_done(target: BlobClient, remote: Elsewhere) -> None:
    started = target.start_copy_from_url(remote.add("file", File(LARGE)))
    assert started["copy_status"] == "pending"
    assert finished(target) == "success"
    assert target.download_blob().readall() == LARGE


def test_a_copy_from_elsewhere_is_aborted(target: BlobClient, remote: Elsewhere) -> None:
    started = target.start_copy_from_url(remote.add("file", File(LARGE, gate=threading.Event())))
    target.abort_copy(str(started["copy_id"]))
    properties = target.get_blob_properties()
    assert (properties.copy.status, properties.size) == ("aborted", 0)


def test_a_source_that_is_not_there_is_reported(target: BlobClient, remote: Elsewhere) -> None:
    with pytest.raises(HttpResponseError) as refused:
        target.start_copy_from_url(remote.add("file", File(b"", {"x-ms-error-code": "Gone"}, status=404)))
    assert (refused.value.status_code, code_of(refused.value)) == (404, "CannotVerifyCopySource")


def test_a_blob_is_uploaded_from_a_url(account: Running, source: BlobClient, target: BlobClient) -> None:
    target.upload_blob_from_url(signed(account, source), metadata={"c": "3"})
    assert target.download_blob().readall() == LARGE
    with pytest.raises(ResourceExistsError):
        target.upload_blob_from_url(signed(account, source))
    target.upload_blob_from_url(signed(account, source), overwrite=True)


def test_blocks_pages_and_appends_come_from_a_url(account: Running, container: ContainerClient, source: BlobClient) -> None:
    address = signed(account, source)
    blocks = container.get_blob_client("blocks")
    half = len(LARGE) // 2
    for number, offset in enumerate((half, 0)):
        blocks.stage_block_from_url(f"{number}", address, source_offset=offset, source_length=half)
    blocks.commit_block_list([BlobBlock("0"), BlobBlock("1")])
    assert blocks.download_blob().readall() == LARGE[half:] + LARGE[:half]
    log = container.get_blob_client("log")
    log.create_append_blob()
    assert log.append_block_from_url(address, source_offset=10, source_length=1000)["blob_append_offset"] == "0"
    assert log.download_blob().readall() == LARGE[10:1010]
    disk = container.get_blob_client("disk")
    disk.create_page_blob(2048)
    disk.upload_pages_from_url(address, offset=512, length=1024, source_offset=512)
    assert disk.download_blob().readall() == bytes(512) + LARGE[512:1536] + bytes(512)
