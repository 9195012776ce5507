"""An SMB client and an SDK on the same files: the operations that Microsoft's table leaves out, directories, shares and leases.

`test_interplay.py` has the table itself."""

from collections.abc import Callable
from typing import NamedTuple

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.fileshare import (
    ContentSettings,
    FileSasPermissions,
    ShareClient,
    ShareFileClient,
    ShareLeaseClient,
    generate_file_sas,
)

from tests.rest.files import FileClient, ShareBox
from tests.rest.history import settled
from tests.rest.running import Running
from tests.sdk.codes import code_of
from tests.smb.mounted import ALL_ACCESS, DIRECTORY_FILE, READ_DATA, SHARE_ALL, SHARE_NONE, WRITE_DATA, Mounted, refused
from tests.smb.requests import EXCLUSIVE_LOCK, SHARED_LOCK, lock, set_disposition, unlock
from tests.smb.test_interplay import LOCKED, PENDING, READ, REMOVE, SHARING, WRITE, answer
from verditer.smb.status import Status

READ_ONLY = "ReadOnlyAttribute"


class Row(NamedTuple):
    """An operation, the share mode that it needs, and its answer beside an exclusive lock and for a read-only file."""

    call: Callable[[ShareClient, ShareFileClient, str], object]  # the last argument is a signed URL of another file
    needs: int
    locked: str = "ok"
    read_only: str = "ok"


def copy_from(share: ShareClient, file: ShareFileClient, url: str) -> object:
    return share.get_file_client("copied").start_copy_from_url(file.url)


def rename_over(share: ShareClient, file: ShareFileClient, url: str) -> object:
    share.get_file_client("moved").create_file(3)
    return share.get_file_client("moved").rename_file(str(file.file_name), overwrite=True)


ROWS = {
    "list": Row(lambda share, file, url: list(share.list_directories_and_files()), 0),
    "list handles": Row(lambda share, file, url: list(file.list_handles()), 0),
    "get properties": Row(lambda share, file, url: file.get_file_properties(), 0),
    "clear range": Row(lambda share, file, url: file.clear_range(0, 512), WRITE, LOCKED, READ_ONLY),
    "put range from URL": Row(lambda share, file, url: file.upload_range_from_url(url, 0, 5, 0), WRITE, LOCKED, READ_ONLY),
    "resize": Row(lambda share, file, url: file.resize_file(7), WRITE, LOCKED, READ_ONLY),
    "set metadata": Row(lambda share, file, url: file.set_file_metadata({"a": "b"}), WRITE, "ok", READ_ONLY),
    "create over": Row(lambda share, file, url: file.create_file(5), WRITE | REMOVE, LOCKED, READ_ONLY),
    "copy over": Row(lambda share, file, url: file.start_copy_from_url(url), WRITE | REMOVE, LOCKED, READ_ONLY),
    "copy from": Row(copy_from, READ, LOCKED),
    "rename": Row(lambda share, file, url: file.rename_file(f"renamed-{file.file_name}"), REMOVE),
    "rename over": Row(rename_over, WRITE | REMOVE, LOCKED, READ_ONLY),
}
every_row = pytest.mark.parametrize("operation", ROWS)


@pytest.fixture
def url(account: Running, mounted: Mounted, sdk: ShareClient) -> str:
    """Another file, as a source."""
    mounted.put("source", b"abcde")
    permission = FileSasPermissions(read=True)
    expiry = "2099-01-01T00:00:00Z"
    token = generate_file_sas(account.account, sdk.share_name, ["source"], account.key, permission=permission, expiry=expiry)
    return f"{sdk.get_file_client('source').url}?{token}"


@every_row
def test_the_share_mode_of_an_smb_handle_decides_about_every_rest_operation(
    mounted: Mounted, sdk: ShareClient, url: str, operation: str
) -> None:  # contract F2
    row = ROWS[operation]
    for share_mode in range(8):
        name = f"file{share_mode}"
        mounted.put(name, bytes(512))
        handle = mounted.open(name, READ_DATA | WRITE_DATA, share_mode)
        file = sdk.get_file_client(name)
        expected = SHARING if row.needs & ~share_mode else "ok"
        assert answer(lambda f=file: row.call(sdk, f, url)) == expected, share_mode  # type: ignore[misc]
        handle.close()
        if expected != "ok":
            row.call(sdk, file, url)


@every_row
def test_a_byte_range_lock_decides_about_every_rest_operation(
    mounted: Mounted, sdk: ShareClient, url: str, operation: str
) -> None:  # contract F2
    mounted.put("file", bytes(512))
    handle = mounted.open("file")
    lock(handle, 1, 2, EXCLUSIVE_LOCK)
    assert answer(lambda: ROWS[operation].call(sdk, sdk.get_file_client("file"), url)) == ROWS[operation].locked
    handle.close()


@every_row
def test_every_rest_operation_meets_a_file_that_is_being_deleted(
    mounted: Mounted, sdk: ShareClient, url: str, operation: str
) -> None:  # contract F3
    mounted.put("file", b"12345")
    handle = mounted.open("file")
    set_disposition(handle, delete=True)
    expected = "ok" if operation in ("list", "list handles") else PENDING
    assert answer(lambda: ROWS[operation].call(sdk, sdk.get_file_client("file"), url)) == expected
    handle.close()


@every_row
def test_a_file_that_smb_made_read_only_is_not_changed_over_rest(
    mounted: Mounted, sdk: ShareClient, url: str, operation: str
) -> None:  # contract F2
    handle = mounted.make("file", bytes(512), attributes=1)
    handle.close()
    file = sdk.get_file_client("file")
    row = ROWS[operation]
    assert answer(lambda: row.call(sdk, file, url)) == row.read_only
    if row.read_only != "ok":
        file.set_http_headers(ContentSettings(), file_attributes="Archive")
        row.call(sdk, file, url)


def test_a_lease_is_changed_broken_and_released_whatever_is_open(mounted: Mounted, sdk: ShareClient) -> None:  # contract F2
    mounted.put("file", b"12345")
    file = sdk.get_file_client("file")
    lease = file.acquire_lease(lease_duration=-1)
    handle = mounted.open("file", READ_DATA, SHARE_ALL)
    lease.change("11111111-2222-3333-4444-555555555555")
    lease.release()
    file.acquire_lease(lease_duration=-1)
    with refused(Status.SHARING_VIOLATION):
        mounted.open("file", WRITE_DATA, SHARE_ALL)
    ShareLeaseClient(file, "any").break_lease()
    mounted.open("file", WRITE_DATA, SHARE_ALL).close()
    handle.close()


def test_a_file_that_is_being_deleted_has_no_lease_operations(mounted: Mounted, sdk: ShareClient) -> None:  # contract F3
    handle = mounted.make("file", b"12345")
    file = sdk.get_file_client("file")
    set_disposition(handle, delete=True)
    lease = ShareLeaseClient(file, "11111111-2222-3333-4444-555555555555")
    operations: list[Callable[[], object]] = [
        lease.acquire,
        lambda: lease.change("21111111-2222-3333-4444-555555555555"),
        lease.release,
        lease.break_lease,
    ]
    assert [answer(operation) for operation in operations] == [PENDING] * len(operations)
    set_disposition(handle, delete=False)
    handle.close()
    lease.acquire(lease_duration=-1)


def test_a_handle_follows_a_rename_over_rest(mounted: Mounted, sdk: ShareClient) -> None:  # contract F5
    handle = mounted.make("file", b"12345", access=READ_DATA | WRITE_DATA)
    sdk.create_directory("dir")
    renamed = sdk.get_file_client("file").rename_file("dir/renamed")
    handle.write(b"abc")
    assert handle.read(0, 5) == b"abc45"
    assert renamed.download_file().readall() == b"abc45"
    assert [found.path for found in renamed.list_handles()] == ["dir/renamed"]
    handle.close()
    renamed.delete_file()


def test_a_handle_on_a_directory_stands_in_the_way_of_its_removal_and_rename_alone(
    mounted: Mounted, sdk: ShareClient
) -> None:  # contract F2
    directory = sdk.create_directory("dir")
    handle = mounted.open("dir", READ_DATA, SHARE_NONE, options=DIRECTORY_FILE)
    directory.get_directory_properties()
    directory.set_directory_metadata({"a": "b"})
    directory.set_http_headers()
    directory.create_subdirectory("sub").delete_directory()
    directory.upload_file("file", b"x").delete_file()
    assert [found["path"] for found in directory.list_handles()] == ["dir"]
    assert answer(directory.delete_directory) == SHARING
    assert answer(lambda: directory.rename_directory("other")) == SHARING
    handle.close()
    directory.rename_directory("other").delete_directory()


def test_a_directory_that_is_being_deleted_has_no_rest_operations(mounted: Mounted, sdk: ShareClient) -> None:  # contract F3
    directory = sdk.create_directory("dir")
    handle = mounted.open("dir", ALL_ACCESS, SHARE_ALL, options=DIRECTORY_FILE)
    set_disposition(handle, delete=True)
    operations: list[Callable[[], object]] = [
        directory.get_directory_properties,
        lambda: directory.set_directory_metadata({"a": "b"}),
        lambda: list(directory.list_directories_and_files()),
        lambda: directory.create_subdirectory("sub"),
        lambda: directory.get_file_client("file").create_file(1),
        lambda: directory.rename_directory("other"),
        directory.delete_directory,
        lambda: sdk.create_directory("dir"),
    ]
    assert [answer(operation) for operation in operations] == [PENDING] * len(operations)
    with pytest.raises(ResourceNotFoundError):  # it is empty, or it could not have been marked
        directory.get_file_client("file").get_file_properties()
    assert [entry.name for entry in sdk.list_directories_and_files()] == []
    set_disposition(handle, delete=False)
    directory.create_subdirectory("sub").delete_directory()
    set_disposition(handle, delete=True)
    handle.close()
    with pytest.raises(ResourceNotFoundError):
        directory.get_directory_properties()


def test_a_share_is_read_changed_and_snapshotted_whatever_is_open(mounted: Mounted, sdk: ShareClient) -> None:  # contract F2
    handle = mounted.make("file", b"12345", share=SHARE_NONE)
    sdk.get_share_properties()
    sdk.set_share_metadata({"a": "b"})
    sdk.set_share_quota(3)
    snapshot = sdk.create_snapshot()["snapshot"]
    handle.write(b"abcde")
    with ShareClient.from_share_url(sdk.url, snapshot, credential=sdk.credential) as former:
        assert former.get_file_client("file").download_file().readall() == b"12345"
    handle.close()


def test_deleting_a_share_ends_its_handles(mounted: Mounted, sdk: ShareClient) -> None:  # contract F2
    handle = mounted.make("file", b"12345", share=SHARE_NONE)
    sdk.delete_share()
    with refused(Status.FILE_CLOSED):
        handle.read(0, 5)
    with pytest.raises(HttpResponseError) as gone:
        sdk.get_share_properties()
    assert code_of(gone.value) == "ShareNotFound"
    sdk.create_share()  # its fixture deletes it


def test_a_handle_whose_file_a_rename_replaced_leaves_nothing_behind(mounted: Mounted, sdk: ShareClient) -> None:
    directory = sdk.create_directory("directory")
    mounted.put("directory\\replaced")
    mounted.put("new")
    opened = mounted.open("directory\\replaced")
    lock(opened, 0, 1, SHARED_LOCK)
    unlock(opened, 0, 1)
    sdk.get_file_client("new").rename_file("directory/replaced", overwrite=True)
    with refused(Status.FILE_CLOSED):
        opened.read(0, 1)
    assert list(directory.list_handles(recursive=True)) == []
    directory.rename_directory("renamed")


def test_a_mark_for_deletion_ends_with_its_handles_also_while_the_share_is_deleted(
    account: Running, mounted: Mounted, sdk: ShareClient
) -> None:
    marked = mounted.make("marked")
    set_disposition(marked, delete=True)
    share = ShareBox(FileClient(account), sdk.share_name)
    with settled(account, share_soft_delete_days=7):
        sdk.delete_share()
        marked.close()
        [item] = share.client.shares({"include": "deleted", "prefix": share.name})
        sent = {"x-ms-deleted-share-name": share.name, "x-ms-deleted-share-version": item.findtext("Version") or ""}
        assert share.share("PUT", "undelete", sent).status == 201
    assert (share.head("marked").status, share.names()) == (200, ["marked"])
    share.client.close()
