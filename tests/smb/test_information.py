"""QUERY_INFO and SET_INFO: files, volumes, security descriptors; renames and marks for deletion."""

import struct
from datetime import UTC, datetime

import pytest
from azure.storage.fileshare import ShareClient
from smbprotocol.file_info import FileAllInformation, FileBasicInformation

from tests.smb.mounted import (
    ALL_ACCESS,
    CREATE,
    DELETE,
    DIRECTORY_FILE,
    READ_ATTRIBUTES,
    READ_DATA,
    SHARE_READ,
    WRITE_ATTRIBUTES,
    Mounted,
    refused,
)
from tests.smb.requests import (
    FILE_SYSTEM_INFORMATION,
    SECURITY_INFORMATION,
    query_information,
    rename,
    set_basic,
    set_disposition,
    set_information,
)
from verditer.smb.status import Status

OWNER_GROUP_DACL = 0x7


def test_all_information_of_a_file(mounted: Mounted) -> None:
    mounted.make_directory("dir")
    handle = mounted.make("dir\\File.txt", b"abc")
    found = FileAllInformation()
    found.unpack(query_information(handle, 18))
    assert found["standard_information"]["end_of_file"].get_value() == 3
    assert found["standard_information"]["directory"].get_value() is False
    assert found["name_information"]["file_name"].get_value() == "\\dir\\File.txt"
    assert found["access_information"]["access_flags"].get_value() == ALL_ACCESS
    handle.close()


@pytest.mark.parametrize("number", [4, 5, 6, 7, 8, 14, 16, 17, 18, 22, 28, 34, 35, 48, 59])
def test_every_class_is_answered_and_checks_its_buffer(mounted: Mounted, number: int) -> None:
    handle = mounted.make("file", b"abc")
    assert query_information(handle, number)
    with refused(Status.INFO_LENGTH_MISMATCH):
        query_information(handle, number, max_bytes=1)
    handle.close()


@pytest.mark.parametrize(
    ("number", "status"), [(21, Status.NOT_SUPPORTED), (15, Status.NO_EAS_ON_FILE), (99, Status.INVALID_INFO_CLASS)]
)
def test_what_files_do_not_have_is_said(mounted: Mounted, number: int, status: Status) -> None:
    handle = mounted.make("file")
    with refused(status):
        query_information(handle, number)
    handle.close()


@pytest.mark.parametrize("number", [1, 3, 4, 5, 7, 8, 11])
def test_every_volume_class_is_answered(mounted: Mounted, number: int) -> None:
    root = mounted.open("", READ_ATTRIBUTES)
    assert query_information(root, number, FILE_SYSTEM_INFORMATION)
    with refused(Status.INFO_LENGTH_MISMATCH):
        query_information(root, number, FILE_SYSTEM_INFORMATION, max_bytes=1)
    root.close()


def test_a_volume_is_a_mounted_disk(mounted: Mounted) -> None:
    root = mounted.open("", READ_ATTRIBUTES)
    assert query_information(root, 4, FILE_SYSTEM_INFORMATION) == struct.pack("<II", 7, 0x20)
    root.close()


def test_the_quota_of_a_share_is_the_size_of_its_volume(mounted: Mounted, sdk: ShareClient) -> None:
    sdk.set_share_quota(3)
    mounted.put("file", b"x" * 100_000)
    root = mounted.open("", READ_ATTRIBUTES)
    total, free, actual, sectors, size = struct.unpack("<QQQII", query_information(root, 7, FILE_SYSTEM_INFORMATION))
    assert total * sectors * size == 3 << 30
    assert free == actual
    assert 100_000 <= (total - free) * sectors * size <= 200_000
    root.close()


def test_times_and_attributes_are_set_and_seen_over_rest(mounted: Mounted, sdk: ShareClient) -> None:  # contract F5
    moment = datetime(2001, 2, 3, 4, 5, 6, tzinfo=UTC)
    handle = mounted.make("file", b"abc")
    filetime = 126_256_467_060_000_000
    set_basic(handle, creation_time=filetime, last_write_time=filetime, file_attributes=0x2 | 0x20)
    basic = FileBasicInformation()
    basic.unpack(query_information(handle, 4))
    assert basic["file_attributes"].get_value() == 0x22
    handle.close()
    properties = sdk.get_file_client("file").get_file_properties()
    assert (properties.creation_time, properties.last_write_time) == (moment, moment)
    assert properties.file_attributes == "Hidden | Archive"


def test_the_last_access_time_is_listed_over_rest(mounted: Mounted, sdk: ShareClient) -> None:  # contract F5
    handle = mounted.make("file", b"abc")
    set_basic(handle, last_access_time=126_256_467_060_000_000)
    handle.close()
    [listed] = sdk.list_directories_and_files(include=["timestamps"])
    assert str(listed.last_access_time) == "2001-02-03T04:05:06.0000000Z" != str(listed.last_write_time)


def test_attributes_that_a_kind_cannot_have_are_refused(mounted: Mounted) -> None:
    file, directory = mounted.make("file"), mounted.open("dir", disposition=CREATE, options=DIRECTORY_FILE)
    with refused(Status.INVALID_PARAMETER):
        set_basic(file, file_attributes=0x10)
    with refused(Status.INVALID_PARAMETER):
        set_basic(directory, file_attributes=0x100)
    reading = mounted.open("file", READ_ATTRIBUTES)
    with refused(Status.ACCESS_DENIED):
        set_basic(reading, file_attributes=0x2)
    for each in (file, directory, reading):
        each.close()


def test_a_rename_moves_the_file_and_its_handles_follow(mounted: Mounted, sdk: ShareClient) -> None:
    mounted.make_directory("dir")
    handle, other = mounted.make("file", b"abc"), mounted.open("file")
    rename(handle, "dir\\New Name")
    assert query_information(other, 48)[4:].decode("utf-16-le") == "dir\\New Name"
    assert other.read(0, 3) == b"abc"
    assert sdk.get_file_client("dir/New Name").download_file().readall() == b"abc"  # contract F5
    rename(handle, "dir\\new NAME")
    assert [entry.name for entry in sdk.list_directories_and_files("dir")] == ["new NAME"]
    handle.close()
    other.close()


def test_renames_that_are_refused(mounted: Mounted) -> None:
    mounted.make_directory("dir")
    mounted.put("target", b"target")
    handle = mounted.make("file", b"abc")
    with refused(Status.OBJECT_NAME_COLLISION):
        rename(handle, "target")
    with refused(Status.OBJECT_PATH_NOT_FOUND):
        rename(handle, "absent\\file")
    with refused(Status.OBJECT_NAME_INVALID):
        rename(handle, "a*b")
    held = mounted.open("target", READ_DATA)
    with refused(Status.ACCESS_DENIED):
        rename(handle, "target", replace=True)
    held.close()
    rename(handle, "target", replace=True)
    assert mounted.get("target") == b"abc"
    handle.close()
    plain = mounted.open("target", READ_DATA)
    with refused(Status.ACCESS_DENIED):
        rename(plain, "other")
    plain.close()
    inner = mounted.make("dir\\inner")
    directory = mounted.open("dir", DELETE, options=DIRECTORY_FILE)
    with refused(Status.ACCESS_DENIED):
        rename(directory, "moved")
    inner.close()
    rename(directory, "moved")
    directory.close()
    assert mounted.get("moved\\inner") == b""


def test_a_rename_needs_that_others_share_delete(mounted: Mounted, mounted_again: Mounted) -> None:
    mounted.put("file")
    other = mounted_again.open("file", READ_ATTRIBUTES | READ_DATA, SHARE_READ | 0x4)
    handle = mounted.open("file", DELETE)
    rename(handle, "renamed")
    handle.close()
    other.close()


def test_a_directory_with_entries_is_not_marked_for_deletion(mounted: Mounted) -> None:
    mounted.make_directory("dir")
    mounted.put("dir\\file")
    directory = mounted.open("dir", DELETE)
    with refused(Status.DIRECTORY_NOT_EMPTY):
        set_disposition(directory, delete=True)
    file = mounted.open("dir\\file", DELETE)
    set_disposition(file, delete=True)
    file.close()
    set_disposition(directory, delete=True)
    directory.close()
    with refused(Status.OBJECT_NAME_NOT_FOUND):
        mounted.open("dir")


@pytest.mark.parametrize(
    ("number", "data", "status"),
    [
        (11, bytes(24), Status.NOT_SUPPORTED),
        (15, bytes(8), Status.EAS_NOT_SUPPORTED),
        (40, bytes(8), Status.NOT_SUPPORTED),
        (99, bytes(8), Status.INVALID_INFO_CLASS),
        (20, bytes(4), Status.INFO_LENGTH_MISMATCH),
        (20, b"\xff" * 8, Status.INVALID_PARAMETER),
        (10, bytes(10), Status.INFO_LENGTH_MISMATCH),
        (64, struct.pack("<I", 3), Status.NOT_SUPPORTED),
    ],
)
def test_what_cannot_be_set_is_refused(mounted: Mounted, number: int, data: bytes, status: Status) -> None:
    handle = mounted.make("file")
    with refused(status):
        set_information(handle, number, data)
    handle.close()


def test_all_data_up_to_the_end_of_a_file_is_valid(mounted: Mounted) -> None:
    handle = mounted.make("file", b"abc")
    set_information(handle, 39, (3).to_bytes(8, "little"))
    with refused(Status.INVALID_PARAMETER):
        set_information(handle, 39, (4).to_bytes(8, "little"))
    handle.close()
    handle = mounted.open("file", READ_DATA)
    with refused(Status.ACCESS_DENIED):
        set_information(handle, 39, (3).to_bytes(8, "little"))
    handle.close()


def test_a_security_descriptor_is_stored_and_returned(mounted: Mounted, sdk: ShareClient) -> None:  # contract F5
    handle = mounted.make("file")
    before = sdk.get_file_client("file").get_file_properties().permission_key
    descriptor = query_information(handle, 0, SECURITY_INFORMATION, additional=OWNER_GROUP_DACL)
    assert descriptor[:2] == b"\1\0"
    with refused(Status.BUFFER_TOO_SMALL):
        query_information(handle, 0, SECURITY_INFORMATION, max_bytes=10, additional=OWNER_GROUP_DACL)
    everyone = bytes.fromhex("010100000000000100000000")
    owner_only = struct.pack("<BBHIIII", 1, 0, 0x8000, 20, 0, 0, 0) + everyone
    set_information(handle, 0, owner_only, SECURITY_INFORMATION, additional=0x1)
    assert everyone in query_information(handle, 0, SECURITY_INFORMATION, additional=0x1)
    assert sdk.get_file_client("file").get_file_properties().permission_key != before
    with refused(Status.INVALID_SECURITY_DESCR):
        set_information(handle, 0, b"garbage", SECURITY_INFORMATION, additional=0x4)
    handle.close()
    plain = mounted.open("file", WRITE_ATTRIBUTES)
    with refused(Status.ACCESS_DENIED):
        query_information(plain, 0, SECURITY_INFORMATION, additional=OWNER_GROUP_DACL)
    plain.close()


def test_a_descriptor_is_stored_with_the_inheritance_that_it_settles(mounted: Mounted) -> None:
    """AUTO_INHERITED (0x400) is kept only beside a request for it (0x100), which is not stored itself."""
    handle = mounted.make("file")
    for given, kept in ((0x400, 0), (0x100, 0), (0x500, 0x400), (0x1400, 0x1000), (0x1500, 0x1400)):
        dacl = struct.pack("<BBHIIII", 1, 0, 0x8004 | given, 0, 0, 0, 20) + struct.pack("<BBHHH", 2, 0, 8, 0, 0)
        set_information(handle, 0, dacl, SECURITY_INFORMATION, additional=0x4)
        stored = query_information(handle, 0, SECURITY_INFORMATION, additional=0x4)
        assert hex(int.from_bytes(stored[2:4], "little")) == hex(0x8004 | kept)
    handle.close()


def test_audit_rules_are_neither_read_nor_set(mounted: Mounted) -> None:
    handle = mounted.make("file")
    descriptor = struct.pack("<BBHIIII", 1, 0, 0x8000, 0, 0, 0, 0)
    for parts in (0x8, 0xC, 0x10):
        with refused(Status.ACCESS_DENIED):
            set_information(handle, 0, descriptor, SECURITY_INFORMATION, additional=parts)
    with refused(Status.ACCESS_DENIED):
        query_information(handle, 0, SECURITY_INFORMATION, additional=0x8)
    handle.close()


def test_no_part_of_a_descriptor_needs_no_right(mounted: Mounted) -> None:
    mounted.put("file")
    handle = mounted.open("file", READ_ATTRIBUTES)
    assert query_information(handle, 0, SECURITY_INFORMATION) == struct.pack("<BBHIIII", 1, 0, 0x8000, 0, 0, 0, 0)
    handle.close()
