"""CHANGE_NOTIFY: what a watched directory tells, and what ends a wait."""

import struct
from typing import Any

import pytest
from azure.storage.fileshare import ShareClient
from smbprotocol.change_notify import SMB2ChangeNotifyRequest, SMB2ChangeNotifyResponse
from smbprotocol.exceptions import SMBResponseException
from smbprotocol.open import Open

from tests.smb.mounted import DELETE, DIRECTORY_FILE, READ_ATTRIBUTES, READ_DATA, Mounted, refused
from tests.smb.requests import rename, set_disposition, start
from verditer.smb.status import Status

ADDED, REMOVED, MODIFIED, OLD_NAME, NEW_NAME = 1, 2, 3, 4, 5
NAMES = 0x3
WAIT = 30.0
ALL = 0xFFF


@pytest.fixture
def directory(mounted: Mounted) -> Open:
    mounted.make_directory("dir")
    return mounted.open("dir", READ_DATA | READ_ATTRIBUTES, options=DIRECTORY_FILE)


def watch(directory: Open, wanted: int = NAMES, *, tree: bool = False, max_bytes: int = 4096) -> Any:
    message = SMB2ChangeNotifyRequest()
    message["flags"] = int(tree)
    message["output_buffer_length"] = max_bytes
    message["file_id"] = directory.file_id
    message["completion_filter"] = wanted
    request = start(directory, message)
    assert request.response_event.wait(WAIT)  # changes, or that they come later: the watch has begun
    return request


def changes(directory: Open, request: Any) -> list[tuple[int, str]]:
    answer = SMB2ChangeNotifyResponse()
    answer.unpack(directory.connection.receive(request)["data"].get_value())
    data = bytes(answer["buffer"].get_value())
    found = []
    while data:
        following, action, length = struct.unpack_from("<III", data)
        found.append((action, data[12 : 12 + length].decode("utf-16-le")))
        data = data[following:] if following else b""
    return found


def test_a_watched_directory_shows_what_other_clients_do_in_it(directory: Open, mounted_again: Mounted) -> None:
    request = watch(directory)
    mounted_again.put("dir\\new")
    assert changes(directory, request) == [(ADDED, "new")]
    handle = mounted_again.open("dir\\new")
    rename(handle, "dir\\newer")
    assert changes(directory, watch(directory)) == [(OLD_NAME, "new"), (NEW_NAME, "newer")]
    request = watch(directory)
    set_disposition(handle, delete=True)
    handle.close()
    assert changes(directory, request) == [(REMOVED, "newer")]
    directory.close()


def test_changes_between_two_requests_are_kept(directory: Open, mounted: Mounted) -> None:
    request = watch(directory)
    for number in range(4):
        mounted.make_directory(f"dir\\{number}")
    seen = changes(directory, request)
    while len(seen) < 4:
        seen += changes(directory, watch(directory))
    assert seen == [(ADDED, str(number)) for number in range(4)]
    directory.close()


def test_a_tree_is_watched_with_names_below_the_directory(directory: Open, mounted: Mounted) -> None:
    mounted.make_directory("dir\\inner")
    request = watch(directory, tree=True)
    mounted.put("dir\\inner\\file")
    assert changes(directory, request) == [(ADDED, "inner\\file")]
    directory.close()


def test_changes_of_rest_raise_nothing(directory: Open, mounted: Mounted, sdk: ShareClient) -> None:
    request = watch(directory)
    sdk.get_file_client("dir/by-rest").create_file(0)
    mounted.put("dir\\by-smb")
    assert changes(directory, request) == [(ADDED, "by-smb")]
    directory.close()


def test_changes_that_do_not_fit_are_not_reported_one_by_one(directory: Open, mounted: Mounted) -> None:
    request = watch(directory, max_bytes=8)
    mounted.put("dir\\new")
    with pytest.raises(SMBResponseException) as error:
        directory.connection.receive(request)
    assert error.value.status == Status.NOTIFY_ENUM_DIR
    directory.close()


def test_a_wait_ends_when_it_is_cancelled_or_its_directory_closed(directory: Open, mounted: Mounted) -> None:
    request = watch(directory)
    request.cancel()
    with refused(Status.CANCELLED):
        directory.connection.receive(request)
    request = watch(directory)
    directory.close()
    with refused(Status.NOTIFY_CLEANUP):
        mounted.connection.receive(request)


def test_a_wait_ends_when_the_watched_directory_is_going_to_be_deleted(
    directory: Open, mounted: Mounted, mounted_again: Mounted
) -> None:
    request = watch(directory)
    other = mounted_again.open("dir", DELETE, options=DIRECTORY_FILE)
    set_disposition(other, delete=True)
    with refused(Status.DELETE_PENDING):
        directory.connection.receive(request)
    other.close()
    directory.close()


def test_a_request_that_was_cancelled_takes_no_change_from_the_next(directory: Open, mounted: Mounted) -> None:
    """The CANCEL follows its request so closely that the request does not wait yet."""
    request = watch(directory)
    request.cancel()
    with refused(Status.CANCELLED):
        directory.connection.receive(request)
    mounted.put("dir\\new")
    assert changes(directory, watch(directory)) == [(ADDED, "new")]
    directory.close()


def test_what_cannot_be_watched_is_refused(mounted: Mounted, directory: Open) -> None:
    file = mounted.make("file")
    with refused(Status.INVALID_PARAMETER):
        changes(file, watch(file))
    unlisted = mounted.open("dir", READ_ATTRIBUTES)
    with refused(Status.ACCESS_DENIED):
        changes(unlisted, watch(unlisted))
    with refused(Status.INVALID_PARAMETER):
        changes(directory, watch(directory, max_bytes=64 << 20))
