"""An SMB client and an SDK on the same files: what the one has open, the other is told (Managing file locks in Azure Files).

Every cell of the tables is driven with a real client on either side.
"""

from collections.abc import Callable

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.storage.fileshare import ContentSettings, ShareClient, ShareFileClient

from tests.sdk.codes import code_of
from tests.smb.mounted import (
    ALL_ACCESS,
    DELETE,
    DELETE_ON_CLOSE,
    OVERWRITE,
    OVERWRITE_IF,
    READ_ATTRIBUTES,
    READ_DATA,
    SHARE_ALL,
    SUPERSEDE,
    WRITE_DATA,
    Mounted,
    refused,
)
from tests.smb.requests import EXCLUSIVE_LOCK, SHARED_LOCK, lock, set_disposition
from verditer.smb.status import Status

SHARING, LOCKED, PENDING = "SharingViolation", "FileLockConflict", "SMBDeletePending"
READ, WRITE, REMOVE = 1, 2, 4

OPERATIONS: dict[str, Callable[[ShareFileClient], object]] = {
    "create": lambda file: file.create_file(5),
    "get": lambda file: file.download_file().readall(),
    "set properties": lambda file: file.set_http_headers(ContentSettings(content_type="text/plain")),
    "set metadata": lambda file: file.set_file_metadata({"a": "b"}),
    "put range": lambda file: file.upload_range(b"abc", 0, 3),
    "list ranges": lambda file: file.get_ranges(),
    "delete": lambda file: file.delete_file(),
    "lease": lambda file: file.acquire_lease(lease_duration=-1),
}
X = False
# One SMB handle with access to read and write, and the share mode of the row. X: 409 SharingViolation.
# fmt: off
SHARE_MODES = {
    #                          create get   props meta  range list  delete lease
    0:                         (X,    X,    X,    X,    X,    X,    X,     X),
    READ:                      (X,    True, X,    X,    X,    True, X,     X),
    WRITE:                     (X,    X,    True, True, True, X,    X,     X),
    REMOVE:                    (X,    X,    X,    X,    X,    X,    X,     X),
    READ | WRITE:              (X,    True, True, True, True, True, X,     X),
    READ | REMOVE:             (X,    True, X,    X,    X,    True, X,     X),
    WRITE | REMOVE:            (True, X,    True, True, True, X,    X,     X),
    READ | WRITE | REMOVE:     (True, True, True, True, True, True, X,     X),
}
# fmt: on


@pytest.fixture
def file(mounted: Mounted, sdk: ShareClient) -> ShareFileClient:
    mounted.put("file", b"12345")
    return sdk.get_file_client("file")


def answer(operation: Callable[[], object]) -> str:
    try:
        operation()
    except HttpResponseError as error:
        if error.status_code != 409:
            raise
        return code_of(error)
    return "ok"


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("share_mode", SHARE_MODES)
def test_the_share_mode_of_an_smb_handle_decides_about_a_rest_operation(
    mounted: Mounted, file: ShareFileClient, share_mode: int, operation: str
) -> None:  # contract F2
    allowed = SHARE_MODES[share_mode][list(OPERATIONS).index(operation)]
    handle = mounted.open("file", READ_DATA | WRITE_DATA, share_mode)
    assert answer(lambda: OPERATIONS[operation](file)) == ("ok" if allowed else SHARING)
    handle.close()
    assert answer(lambda: OPERATIONS[operation](file)) == "ok"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_handle_for_attributes_stands_in_the_way_of_delete_alone(
    mounted: Mounted, file: ShareFileClient, operation: str
) -> None:  # contract F2
    handle = mounted.open("file", READ_ATTRIBUTES, 0)
    assert answer(lambda: OPERATIONS[operation](file)) == (SHARING if operation == "delete" else "ok")
    handle.close()


@pytest.mark.parametrize("access", [0, READ, WRITE, REMOVE, READ | WRITE, READ | REMOVE, WRITE | REMOVE, READ | WRITE | REMOVE])
def test_a_lease_is_acquired_beside_readers_only(mounted: Mounted, file: ShareFileClient, access: int) -> None:  # contract F2
    handle = mounted.open("file", smb_access(access), SHARE_ALL)
    assert answer(lambda: file.acquire_lease(lease_duration=-1)) == (SHARING if access & (WRITE | REMOVE) else "ok")
    handle.close()


@pytest.mark.parametrize("access", [0, READ, WRITE, REMOVE, READ | WRITE, READ | REMOVE, WRITE | REMOVE, READ | WRITE | REMOVE])
def test_a_leased_file_opens_over_smb_for_readers_only(
    mounted: Mounted, file: ShareFileClient, access: int
) -> None:  # contract F2
    lease = file.acquire_lease(lease_duration=-1)
    if access & (WRITE | REMOVE):
        with refused(Status.SHARING_VIOLATION):
            mounted.open("file", smb_access(access), SHARE_ALL)
        lease.release()
    mounted.open("file", smb_access(access), SHARE_ALL).close()


def test_a_leased_file_is_not_overwritten_over_smb(mounted: Mounted, file: ShareFileClient) -> None:  # contract F2
    lease = file.acquire_lease(lease_duration=-1)
    for disposition in (SUPERSEDE, OVERWRITE, OVERWRITE_IF):
        with refused(Status.SHARING_VIOLATION):
            mounted.open("file", READ_DATA, SHARE_ALL, disposition)
    assert file.download_file().readall() == b"12345"
    lease.break_lease()
    mounted.open("file", READ_DATA, SHARE_ALL, OVERWRITE).close()
    assert file.get_file_properties().size == 0


def smb_access(access: int) -> int:
    bits = {READ: READ_DATA, WRITE: WRITE_DATA, REMOVE: DELETE}
    return READ_ATTRIBUTES | sum(bit for wanted, bit in bits.items() if access & wanted)


# --- byte-range locks -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "operation", "expected"),
    [
        (EXCLUSIVE_LOCK, "get", LOCKED),
        (EXCLUSIVE_LOCK, "put range", LOCKED),
        (EXCLUSIVE_LOCK, "create", LOCKED),
        (EXCLUSIVE_LOCK, "set metadata", "ok"),
        (EXCLUSIVE_LOCK, "set properties", "ok"),
        (EXCLUSIVE_LOCK, "delete", SHARING),
        (EXCLUSIVE_LOCK, "lease", SHARING),
        (EXCLUSIVE_LOCK, "list ranges", "ok"),
        (SHARED_LOCK, "get", "ok"),
        (SHARED_LOCK, "put range", LOCKED),
        (SHARED_LOCK, "create", LOCKED),
    ],
)
def test_a_byte_range_lock_decides_about_a_rest_operation(
    mounted: Mounted, file: ShareFileClient, flags: int, operation: str, expected: str
) -> None:  # contract F2
    handle = mounted.open("file")
    lock(handle, 1, 2, flags)
    assert answer(lambda: OPERATIONS[operation](file)) == expected
    handle.close()
    assert answer(lambda: OPERATIONS[operation](file)) == "ok"


def test_a_lock_elsewhere_lets_get_file_read_but_put_range_write_nowhere(
    mounted: Mounted, file: ShareFileClient
) -> None:  # contract F2
    handle = mounted.open("file")
    lock(handle, 1000, 10, EXCLUSIVE_LOCK)
    assert file.download_file().readall() == b"12345"
    assert answer(lambda: file.upload_range(b"abc", 0, 3)) == LOCKED
    handle.close()


# --- delete ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_rest_operation_on_a_file_that_is_being_deleted_is_answered_so(
    mounted: Mounted, file: ShareFileClient, operation: str
) -> None:  # contract F3
    handle = mounted.open("file")
    set_disposition(handle, delete=True)
    assert answer(lambda: OPERATIONS[operation](file)) == PENDING
    handle.close()
    if operation != "create":
        with pytest.raises(ResourceNotFoundError):
            OPERATIONS[operation](file)


def test_a_file_is_hidden_while_it_is_being_deleted_and_comes_back_when_the_mark_is_taken_off(
    mounted: Mounted, sdk: ShareClient, file: ShareFileClient
) -> None:  # contract F3
    handle, other = mounted.open("file"), mounted.open("file")
    set_disposition(handle, delete=True)
    assert [entry.name for entry in sdk.list_directories_and_files()] == []
    assert answer(file.get_file_properties) == PENDING
    set_disposition(other, delete=False)
    assert [entry.name for entry in sdk.list_directories_and_files()] == ["file"]
    assert file.download_file().readall() == b"12345"
    set_disposition(handle, delete=True)
    handle.close()
    assert answer(file.get_file_properties) == PENDING
    other.close()
    with pytest.raises(ResourceNotFoundError):
        file.get_file_properties()


def test_delete_on_close_marks_the_file_when_its_handle_closes(mounted: Mounted, file: ShareFileClient) -> None:  # contract F3
    deleting = mounted.open("file", ALL_ACCESS, options=DELETE_ON_CLOSE)
    other = mounted.open("file")
    assert file.download_file().readall() == b"12345"
    deleting.close()
    assert answer(file.get_file_properties) == PENDING
    with refused(Status.DELETE_PENDING):
        mounted.open("file")
    other.close()
    with pytest.raises(ResourceNotFoundError):
        file.get_file_properties()


def test_rest_delete_is_atomic_and_never_pending(
    mounted: Mounted, sdk: ShareClient, file: ShareFileClient
) -> None:  # contract F4
    handle = mounted.open("file", READ_DATA, SHARE_ALL)
    assert answer(file.delete_file) == SHARING
    assert [entry.name for entry in sdk.list_directories_and_files()] == ["file"]
    handle.close()
    file.delete_file()
    with refused(Status.OBJECT_NAME_NOT_FOUND):
        mounted.open("file")


def test_a_lost_connection_closes_its_handles(
    mounted: Mounted, mounted_again: Mounted, file: ShareFileClient
) -> None:  # contract F2
    """The server learns of the end of a connection by itself, so the test asks until it has."""
    mounted_again.open("file", READ_DATA | WRITE_DATA, 0)
    assert answer(lambda: OPERATIONS["get"](file)) == SHARING
    mounted_again.close()
    for _ in range(1000):
        if answer(lambda: OPERATIONS["get"](file)) == "ok":
            break
    assert answer(lambda: OPERATIONS["get"](file)) == "ok"
    mounted.open("file", ALL_ACCESS, 0).close()


# --- handles -----------------------------------------------------------------------------------------------------------


def test_rest_lists_smb_handles_and_closes_them_by_force(
    mounted: Mounted, sdk: ShareClient, file: ShareFileClient
) -> None:  # contract F2
    handle = mounted.open("file", READ_DATA | WRITE_DATA, 0)
    [listed] = list(file.list_handles())
    assert (listed.path, int(listed.id)) == ("file", int.from_bytes(handle.file_id[:8], "little"))
    assert listed.client_ip.startswith("127.0.0.1")
    assert answer(lambda: OPERATIONS["get"](file)) == SHARING
    assert file.close_all_handles()["closed_handles_count"] == 1
    assert list(file.list_handles()) == []
    assert file.download_file().readall() == b"12345"
    with refused(Status.FILE_CLOSED):
        handle.read(0, 5)


def test_force_close_ends_a_delete_that_is_stuck(mounted: Mounted, file: ShareFileClient) -> None:  # contract F3
    handle = mounted.open("file")
    set_disposition(handle, delete=True)
    assert len(list(file.list_handles())) == 1
    assert file.close_all_handles()["closed_handles_count"] == 1
    with pytest.raises(ResourceNotFoundError):
        file.get_file_properties()
