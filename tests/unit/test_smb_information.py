"""Information classes, decoded by the structures of smbprotocol, an independent implementation."""

import struct
from datetime import UTC, datetime
from typing import Any

import pytest
from smbprotocol import file_info

from verditer.core.files.times import to_filetime
from verditer.smb.info import changes
from verditer.smb.info.directory_entries import DIRECTORY_CLASSES, EntryList
from verditer.smb.info.entries import ShownEntry
from verditer.smb.info.files import FILE_CLASSES, FileState, file_information
from verditer.smb.info.notifications import ADDED, RENAMED_NEW_NAME, NamedChange, build_changes
from verditer.smb.info.volume import VOLUME_CLASSES, VolumeState, volume_information
from verditer.smb.status import SmbError, Status
from verditer.smb.wire.create import Times

MOMENT = datetime(2025, 11, 23, 14, 0, 1, tzinfo=UTC)
FILETIME = 134_083_800_010_000_000
ENTRY = ShownEntry(Times(FILETIME, FILETIME + 10_000_000, FILETIME, FILETIME), 8192, 5000, 0x20, 77, "näme.txt", False, 1)
STATE = FileState(ENTRY, "\\dir\\näme.txt", False, 0x120089, 12, 0x20, 99)
VOLUME = VolumeState("share", 0x1122334455, FILETIME, 5 << 40, 1 << 40)

DIRECTORY_STRUCTURES = {
    1: file_info.FileDirectoryInformation,
    2: file_info.FileFullDirectoryInformation,
    3: file_info.FileBothDirectoryInformation,
    12: file_info.FileNamesInformation,
    37: file_info.FileIdBothDirectoryInformation,
    38: file_info.FileIdFullDirectoryInformation,
}
FILE_STRUCTURES = {
    4: file_info.FileBasicInformation,
    5: file_info.FileStandardInformation,
    6: file_info.FileInternalInformation,
    22: file_info.FileStreamInformation,
    35: file_info.FileAttributeTagInformation,
    18: file_info.FileAllInformation,
}


def unpacked(structure: Any, data: bytes) -> Any:
    value = structure()
    value.unpack(data)
    return value


@pytest.mark.parametrize("number", DIRECTORY_STRUCTURES)
def test_directory_entries_are_what_a_client_decodes(number: int) -> None:
    entries = EntryList(DIRECTORY_CLASSES[number], 4096)
    assert entries.add(ENTRY)
    assert entries.add(ENTRY._replace(name="b"))
    data = entries.data()
    following = int.from_bytes(data[:4], "little")
    assert following % 8 == 0
    first, second = (
        unpacked(DIRECTORY_STRUCTURES[number], data[:following]),
        unpacked(DIRECTORY_STRUCTURES[number], data[following:]),
    )
    assert first["file_name"].get_value().decode("utf-16-le") == "näme.txt"
    assert second["file_name"].get_value().decode("utf-16-le") == "b"
    assert second["next_entry_offset"].get_value() == 0
    if number != 12:
        assert first["creation_time"].get_value() == MOMENT
        assert first["end_of_file"].get_value() == 5000
        assert first["allocation_size"].get_value() == 8192
    if number in (37, 38):
        assert first["file_id"].get_value() == 77


def test_every_directory_class_has_the_fixed_size_of_its_row() -> None:
    for row in DIRECTORY_CLASSES.values():
        assert len(row.build(ENTRY, 0)) == row.fixed_bytes


def test_entries_stop_where_the_buffer_ends() -> None:
    row = DIRECTORY_CLASSES[1]
    size = row.fixed_bytes + len(ENTRY.name) * 2
    entries = EntryList(row, 2 * size)
    assert [entries.add(ENTRY) for _ in range(3)] == [True, True, False]
    assert len(entries.data()) <= 2 * size
    with pytest.raises(SmbError) as error:
        EntryList(row, row.fixed_bytes - 1)
    assert error.value.status is Status.INFO_LENGTH_MISMATCH
    with pytest.raises(SmbError) as error:
        EntryList(row, row.fixed_bytes + 2).add(ENTRY)
    assert error.value.status is Status.BUFFER_OVERFLOW


@pytest.mark.parametrize("number", FILE_STRUCTURES)
def test_file_classes_are_what_a_client_decodes(number: int) -> None:
    data, status = file_information(number, STATE, 4096, 0x0311)
    assert status is Status.SUCCESS
    decoded = unpacked(FILE_STRUCTURES[number], data)
    if number == 4:
        assert decoded["creation_time"].get_value() in (MOMENT, FILETIME)
        assert decoded["file_attributes"].get_value() == 0x20
    if number == 5:
        assert decoded["end_of_file"].get_value() == 5000
        assert decoded["directory"].get_value() is False
    if number == 18:
        assert decoded["name_information"]["file_name"].get_value() == "\\dir\\näme.txt"
        assert decoded["position_information"]["current_byte_offset"].get_value() == 12


def test_a_buffer_without_room_for_the_fixed_part_is_refused_and_a_name_is_cut() -> None:
    for number, row in FILE_CLASSES.items():
        if number in (15, 21):
            continue
        with pytest.raises(SmbError) as error:
            file_information(number, STATE, row.fixed_bytes - 1, 0x0311)
        assert error.value.status is Status.INFO_LENGTH_MISMATCH
    data, status = file_information(18, STATE, 104, 0x0311)
    assert (len(data), status) == (104, Status.BUFFER_OVERFLOW)


@pytest.mark.parametrize(
    ("number", "status"), [(15, Status.ACCESS_DENIED), (21, Status.NOT_SUPPORTED), (99, Status.INVALID_INFO_CLASS)]
)
def test_what_the_service_does_not_have_is_refused(number: int, status: Status) -> None:
    with pytest.raises(SmbError) as error:
        file_information(number, STATE._replace(access=0x80), 4096, 0x0311)
    assert error.value.status is status


def test_a_normalized_name_exists_since_the_newest_dialect() -> None:
    with pytest.raises(SmbError) as error:
        file_information(48, STATE, 4096, 0x0302)
    assert error.value.status is Status.NOT_SUPPORTED
    data, _ = file_information(48, STATE, 4096, 0x0311)
    assert data[4:].decode("utf-16-le") == "dir\\näme.txt"


def test_volume_classes_are_what_a_client_decodes() -> None:
    assert {number: len(volume_information(number, VOLUME, 4096)[0]) for number in (3, 4, 7, 8, 11)} == {
        3: 24,
        4: 8,
        7: 32,
        8: 64,
        11: 28,
    }
    total, free, actual, sectors, size = struct.unpack("<QQQII", volume_information(7, VOLUME, 4096)[0])
    assert (total * sectors * size, free * sectors * size, actual) == (5 << 40, 1 << 40, free)
    label = volume_information(1, VOLUME, 4096)[0]
    assert label[18:].decode("utf-16-le") == "share"
    with pytest.raises(SmbError) as error:
        volume_information(6, VOLUME, 4096)
    assert error.value.status is Status.NOT_SUPPORTED
    assert set(VOLUME_CLASSES) == {1, 3, 4, 5, 7, 8, 11}


def test_times_of_a_basic_change_may_be_kept_frozen_or_thawed() -> None:
    asked = changes.parse_basic(memoryview(struct.pack("<4qII", FILETIME, 0, -1, -2, 0x80, 0)))
    assert asked.created is not None
    assert to_filetime(asked.created) == FILETIME
    assert (asked.accessed, asked.written, asked.changed) == (None, None, None)
    assert (asked.frozen, asked.thawed) == (frozenset({"written"}), frozenset({"changed"}))
    assert asked.attributes == 0x80
    with pytest.raises(SmbError) as error:
        changes.parse_basic(memoryview(struct.pack("<4qII", -3, 0, 0, 0, 0, 0)))
    assert error.value.status is Status.INVALID_PARAMETER


def test_a_rename_is_what_a_client_encodes() -> None:
    rename = file_info.FileRenameInformation()
    rename["replace_if_exists"] = True
    rename["file_name"] = "dir\\new"
    assert changes.parse_rename(memoryview(rename.pack()), extended=False) == changes.RenameChange("dir\\new", True)
    with pytest.raises(SmbError) as error:
        changes.parse_rename(memoryview(rename.pack()[:-2]), extended=False)
    assert error.value.status is Status.INVALID_PARAMETER


def test_changes_of_a_directory_are_a_list_that_fits_or_nothing() -> None:
    data = build_changes([NamedChange(ADDED, "abc"), NamedChange(RENAMED_NEW_NAME, "d")], 100)
    assert data is not None
    following, action, length = struct.unpack_from("<III", data)
    assert (following % 4, action, data[12 : 12 + length].decode("utf-16-le")) == (0, ADDED, "abc")
    assert struct.unpack_from("<III", data, following) == (0, RENAMED_NEW_NAME, 2)
    assert build_changes([NamedChange(ADDED, "abc")], 17) is None
