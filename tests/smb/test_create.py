"""CREATE: dispositions, options, names, contexts, and the order of its checks."""

import struct

import pytest
from azure.storage.fileshare import ShareClient
from smbprotocol.create_contexts import (
    CreateContextName,
    SMB2CreateContextRequest,
    SMB2CreateQueryMaximalAccessRequest,
)

from tests.smb.mounted import (
    ALL_ACCESS,
    APPEND_DATA,
    CREATE,
    DELETE,
    DELETE_ON_CLOSE,
    DIRECTORY_FILE,
    MAXIMUM_ALLOWED,
    NON_DIRECTORY_FILE,
    OPEN,
    OPEN_IF,
    OVERWRITE,
    OVERWRITE_IF,
    READ_ATTRIBUTES,
    READ_DATA,
    SHARE_ALL,
    SHARE_READ,
    SUPERSEDE,
    WRITE_DATA,
    Mounted,
    refused,
)
from tests.smb.requests import create, query_information, set_disposition, set_information
from verditer.smb.status import Status

SUPERSEDED, OPENED, CREATED, OVERWRITTEN = range(4)


@pytest.mark.parametrize(
    ("disposition", "action", "size"),
    [
        (SUPERSEDE, SUPERSEDED, 0),
        (OPEN, OPENED, 3),
        (OPEN_IF, OPENED, 3),
        (OVERWRITE, OVERWRITTEN, 0),
        (OVERWRITE_IF, OVERWRITTEN, 0),
    ],
)
def test_what_a_disposition_does_to_a_file_that_exists(mounted: Mounted, disposition: int, action: int, size: int) -> None:
    mounted.put("file", b"abc")
    opened = mounted.open("file", disposition=disposition)
    assert (opened.create_action, opened.end_of_file) == (action, size)
    opened.close()
    assert mounted.get("file") == b"abc"[:size]
    with refused(Status.OBJECT_NAME_COLLISION):
        mounted.open("file", disposition=CREATE)


@pytest.mark.parametrize("disposition", [SUPERSEDE, CREATE, OPEN_IF, OVERWRITE_IF])
def test_what_a_disposition_does_when_there_is_no_file(mounted: Mounted, disposition: int) -> None:
    opened = mounted.open("new", disposition=disposition)
    assert opened.create_action == CREATED
    opened.close()
    for absent in (OPEN, OVERWRITE):
        with refused(Status.OBJECT_NAME_NOT_FOUND):
            mounted.open("absent", disposition=absent)


@pytest.mark.parametrize(
    ("name", "how", "status"),
    [
        ("\\file", {}, Status.INVALID_PARAMETER),
        ("a:stream", {}, Status.OBJECT_NAME_INVALID),
        ("a*b", {}, Status.OBJECT_NAME_INVALID),
        ("a\\\\b", {}, Status.OBJECT_NAME_INVALID),
        ("no\\file", {}, Status.OBJECT_PATH_NOT_FOUND),
        ("file", {"options": DIRECTORY_FILE | NON_DIRECTORY_FILE}, Status.INVALID_PARAMETER),
        ("file", {"options": 0x01000000}, Status.INVALID_PARAMETER),
        ("file", {"options": 0x2000}, Status.NOT_SUPPORTED),
        ("file", {"options": DIRECTORY_FILE}, Status.NOT_A_DIRECTORY),
        ("dir", {"options": NON_DIRECTORY_FILE}, Status.FILE_IS_A_DIRECTORY),
        ("file", {"disposition": 6}, Status.INVALID_PARAMETER),
        ("file", {"access": 0}, Status.ACCESS_DENIED),
        ("file", {"access": 0x0C000000}, Status.ACCESS_DENIED),
        ("file", {"attributes": 0x8000}, Status.INVALID_PARAMETER),
        ("file", {"share": 8}, Status.INVALID_PARAMETER),
        ("file", {"access": READ_DATA, "options": DELETE_ON_CLOSE}, Status.ACCESS_DENIED),
        ("dir", {"options": DIRECTORY_FILE, "disposition": OVERWRITE_IF}, Status.INVALID_PARAMETER),
    ],
)
def test_a_request_that_cannot_be_served_is_refused(mounted: Mounted, name: str, how: dict[str, int], status: Status) -> None:
    mounted.put("file")
    mounted.make_directory("dir")
    with refused(status):
        create(mounted, name, **how)


def test_names_are_found_in_any_case_and_keep_theirs(mounted: Mounted) -> None:
    mounted.make_directory("Dir")
    mounted.put("dIR\\File", b"x")
    assert mounted.get("DIR\\FILE") == b"x"
    with refused(Status.OBJECT_NAME_COLLISION):
        mounted.put("dir\\file")


def test_names_in_the_private_area_stand_for_characters_that_windows_forbids(mounted: Mounted) -> None:
    mounted.put("a\uf022b", b"x")
    assert mounted.get("a\uf022b") == b"x"


def test_two_handles_share_or_exclude_each_other(mounted: Mounted, mounted_again: Mounted) -> None:
    mounted.put("file")
    reading = mounted.open("file", READ_DATA, SHARE_READ)
    mounted_again.open("file", READ_DATA, SHARE_READ).close()
    with refused(Status.SHARING_VIOLATION):
        mounted_again.open("file", WRITE_DATA, SHARE_ALL)
    mounted_again.open("file", READ_ATTRIBUTES, 0).close()
    reading.close()
    mounted_again.open("file", WRITE_DATA, SHARE_ALL).close()


def test_a_read_only_file_is_neither_written_nor_deleted_on_close(mounted: Mounted) -> None:
    mounted.open("file", disposition=CREATE, attributes=0x1).close()
    with refused(Status.ACCESS_DENIED):
        mounted.open("file", WRITE_DATA)
    with refused(Status.ACCESS_DENIED):
        mounted.open("file", READ_ATTRIBUTES, disposition=OVERWRITE)
    with refused(Status.CANNOT_DELETE):
        mounted.open("file", DELETE, options=DELETE_ON_CLOSE)
    mounted.open("file", DELETE).close()


def test_a_hidden_file_is_overwritten_by_a_hidden_file_only(mounted: Mounted) -> None:
    mounted.open("file", disposition=CREATE, attributes=0x2).close()
    with refused(Status.ACCESS_DENIED):
        mounted.open("file", disposition=OVERWRITE)
    mounted.open("file", disposition=OVERWRITE, attributes=0x2).close()


def test_contexts_that_ask_for_access_and_id_are_answered(mounted: Mounted) -> None:
    access = SMB2CreateContextRequest()
    access["buffer_name"] = CreateContextName.SMB2_CREATE_QUERY_MAXIMAL_ACCESS_REQUEST
    access["buffer_data"] = SMB2CreateQueryMaximalAccessRequest()
    disk_id = SMB2CreateContextRequest()
    disk_id["buffer_name"] = CreateContextName.SMB2_CREATE_QUERY_ON_DISK_ID
    opened = mounted.open("file", disposition=CREATE, contexts=[access, disk_id])
    assert opened.file_id is not None
    opened.close()


def test_extended_attributes_are_refused(mounted: Mounted) -> None:
    attributes = SMB2CreateContextRequest()
    attributes["buffer_name"] = CreateContextName.SMB2_CREATE_EA_BUFFER
    attributes["buffer_data"] = struct.pack("<IBBH", 0, 0, 1, 1) + b"a\0b"
    with refused(Status.EAS_NOT_SUPPORTED):
        mounted.open("file", disposition=CREATE, contexts=[attributes])


def test_file_ids_are_never_used_again(mounted: Mounted) -> None:
    mounted.put("file")
    seen = set()
    for _ in range(50):
        opened = mounted.open("file", READ_DATA)
        seen.add(opened.file_id)
        opened.close()
    assert len(seen) == 50


def test_a_client_that_takes_what_access_it_can_get_reads_a_read_only_file(mounted: Mounted) -> None:
    mounted.open("file", disposition=CREATE, attributes=0x1).close()
    opened = mounted.open("file", MAXIMUM_ALLOWED)
    assert query_information(opened, 8) == struct.pack("<I", ALL_ACCESS & ~(WRITE_DATA | APPEND_DATA))
    opened.close()
    with refused(Status.ACCESS_DENIED):
        mounted.open("file", MAXIMUM_ALLOWED | WRITE_DATA)
    mounted.put("other")
    opened = mounted.open("other", MAXIMUM_ALLOWED)
    assert query_information(opened, 8) == struct.pack("<I", ALL_ACCESS)
    opened.close()


def test_an_allocation_is_shown_by_its_handle_and_has_to_fit_into_the_share(mounted: Mounted, sdk: ShareClient) -> None:
    def allocation(size: int) -> list[SMB2CreateContextRequest]:
        context = SMB2CreateContextRequest()
        context["buffer_name"] = CreateContextName.SMB2_CREATE_ALLOCATION_SIZE
        context["buffer_data"] = struct.pack("<Q", size)
        return [context]

    sdk.set_share_quota(1)
    opened = mounted.open("file", disposition=CREATE, contexts=allocation(100_000))
    assert opened.allocation_size == 102_400
    assert query_information(opened, 5)[:16] == struct.pack("<QQ", 102_400, 0)
    set_information(opened, 19, struct.pack("<Q", 200_000))
    assert query_information(opened, 5)[:16] == struct.pack("<QQ", 200_704, 0)
    with refused(Status.DISK_FULL):
        set_information(opened, 19, struct.pack("<Q", (1 << 30) + 1))
    opened.close()
    with refused(Status.DISK_FULL):
        mounted.open("file", disposition=OVERWRITE, contexts=allocation((1 << 30) + 1))
    opened = mounted.open("file", contexts=allocation(1 << 40))  # of a file that exists nothing is allocated
    assert opened.allocation_size == 0
    opened.close()


def test_nothing_is_created_in_a_directory_that_is_being_deleted(mounted: Mounted) -> None:
    directory = mounted.open("dir", disposition=CREATE, options=DIRECTORY_FILE)
    set_disposition(directory, delete=True)
    with refused(Status.DELETE_PENDING):
        mounted.put("dir\\file")
    directory.close()


def test_the_root_cannot_be_deleted_on_close(mounted: Mounted, sdk: ShareClient) -> None:
    with refused(Status.CANNOT_DELETE):
        mounted.open("", DELETE, options=DIRECTORY_FILE | DELETE_ON_CLOSE)
    mounted.open("").close()
    assert list(sdk.list_directories_and_files()) == []
