"""Copies of files through Microsoft's SDK: start, poll, abort, and ranges and blobs from a URL."""

import threading
import time
import uuid
from collections.abc import Iterator

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobSasPermissions, ContainerClient, generate_blob_sas
from azure.storage.fileshare import (
    FileSasPermissions,
    ShareClient,
    ShareFileClient,
    ShareServiceClient,
    generate_file_sas,
)

from tests.rest.copies import Elsewhere, File, elsewhere
from tests.rest.running import PATIENCE_SECONDS, Running
from tests.sdk.codes import code_of

LARGE = bytes(range(256)) * 8000


@pytest.fixture
def share(account: Running) -> Iterator[ShareClient]:
    url = f"http://127.0.0.1:{account.app.servers['file'].port}/{account.account}"
    with ShareServiceClient(url, account.key, retry_total=0) as service:
        share = service.create_share(f"sdk-{uuid.uuid4().hex[:16]}")
        yield share
        share.delete_share()


@pytest.fixture
def source(share: ShareClient) -> ShareFileClient:
    source = share.get_file_client("source")
    source.upload_file(LARGE, metadata={"a": "1"})
    return source


@pytest.fixture
def target(share: ShareClient) -> ShareFileClient:
    return share.get_file_client("target")


@pytest.fixture
def remote() -> Iterator[Elsewhere]:
    with elsewhere() as remote:
        yield remote


def signed(account: Running, file: ShareFileClient) -> str:
    sas = generate_file_sas(
        account.account,
        file.share_name,
        list(file.file_path),  # the SDK joins the parts of a path
        account.key,
        permission=FileSasPermissions(read=True),
        expiry="2099-01-01T00:00:00Z",
    )
    return f"{file.url}?{sas}"


def finished(file: ShareFileClient) -> str:
    end = time.monotonic() + PATIENCE_SECONDS
    while (status := file.get_file_properties().copy.status) == "pending":
        assert time.monotonic() < end
        time.sleep(0.01)
    return str(status)


def test_a_file_is_copied_and_shows_its_state(source: ShareFileClient, target: ShareFileClient) -> None:
    started = target.start_copy_from_url(source.url)
    assert started["copy_status"] == "success"
    copied = target.get_file_properties()
    assert (copied.copy.id, copied.copy.source, copied.copy.status) == (started["copy_id"], source.url, "success")
    assert copied.copy.progress == f"{len(LARGE)}/{len(LARGE)}"
    assert copied.metadata == {"a": "1"}
    assert target.download_file().readall() == LARGE
    with pytest.raises(ResourceExistsError) as refused:
        target.abort_copy(str(started["copy_id"]))
    assert code_of(refused.value) == "NoPendingCopyOperation"


def test_properties_of_the_source_are_kept_on_request(source: ShareFileClient, target: ShareFileClient) -> None:
    target.start_copy_from_url(
        source.url,
        file_permission="source",
        file_attributes="source",
        file_creation_time="source",
        file_last_write_time="source",
        file_change_time="source",
        ignore_read_only=True,
        set_archive_attribute=True,
    )
    before, after = source.get_file_properties(), target.get_file_properties()
    assert (after.creation_time, after.last_write_time, after.change_time, after.permission_key) == (
        before.creation_time,
        before.last_write_time,
        before.change_time,
        before.permission_key,
    )


def test_a_copy_from_elsewhere_is_polled_until_it_is_done(target: ShareFileClient, remote: Elsewhere) -> None:
    started = target.start_copy_from_url(remote.add("file", File(LARGE)))
    assert started["copy_status"] == "pending"
    assert finished(target) == "success"
    assert target.download_file().readall() == LARGE


def test_an_aborted_copy_leaves_an_empty_file(target: ShareFileClient, remote: Elsewhere) -> None:
    file = File(LARGE, gate=threading.Event())
    started = target.start_copy_from_url(remote.add("file", file))
    target.abort_copy(str(started["copy_id"]))
    aborted = target.get_file_properties()
    assert (aborted.copy.status, aborted.size) == ("aborted", 0)


def test_a_range_is_uploaded_from_a_url(account: Running, source: ShareFileClient, target: ShareFileClient) -> None:
    target.create_file(4096)
    target.upload_range_from_url(signed(account, source), offset=512, length=1024, source_offset=100)
    assert target.download_file(offset=512, length=1024).readall() == LARGE[100:1124]
    with pytest.raises(HttpResponseError) as refused:
        target.upload_range_from_url(source.url, offset=0, length=512, source_offset=0)
    headers = getattr(refused.value.response, "headers", {})
    assert headers["x-ms-copy-source-status-code"] == "401"
    assert headers["x-ms-copy-source-error-code"] == "NoAuthenticationInformation"


def test_files_and_blobs_are_copied_into_each_other(
    account: Running, container: ContainerClient, source: ShareFileClient, target: ShareFileClient
) -> None:
    blob = container.get_blob_client("blob")
    assert blob.start_copy_from_url(signed(account, source))["copy_status"] == "success"
    assert blob.download_blob().readall() == LARGE
    sas = generate_blob_sas(
        account.account,
        blob.container_name,
        blob.blob_name,
        account_key=account.key,
        permission=BlobSasPermissions(read=True),
        expiry="2099-01-01T00:00:00Z",
    )
    assert target.start_copy_from_url(f"{blob.url}?{sas}")["copy_status"] == "success"
    assert target.download_file().readall() == LARGE
    blob.upload_blob_from_url(signed(account, source), overwrite=True)
    assert blob.download_blob().readall() == LARGE
