"""READ, WRITE, FLUSH and CLOSE."""

import struct

import pytest

from tests.smb.mounted import (
    APPEND_DATA,
    CREATE,
    DIRECTORY_FILE,
    NON_DIRECTORY_FILE,
    READ_ATTRIBUTES,
    READ_DATA,
    WRITE_DATA,
    Mounted,
    refused,
)
from tests.smb.requests import (
    EXCLUSIVE_LOCK,
    SHARED_LOCK,
    control,
    lock,
    query_information,
    send,
    set_end_of_file,
    set_information,
)
from verditer.smb.status import Status


def test_what_is_written_is_read(mounted: Mounted) -> None:
    handle = mounted.make("file")
    assert handle.write(b"hello", 3) == 5
    assert handle.read(0, 100) == b"\0\0\0hello"
    assert handle.read(4, 2) == b"el"
    handle.close()


def test_a_megabyte_passes_in_one_request(mounted: Mounted) -> None:
    data = bytes(range(256)) * 4096
    handle = mounted.make("file")
    assert handle.write(data) == len(data)
    assert handle.read(0, len(data)) == data
    handle.close()


def test_reads_at_the_end_of_a_file(mounted: Mounted) -> None:
    handle = mounted.make("file", b"abc")
    assert handle.read(2, 10) == b"c"
    for offset in (3, 1000):
        with refused(Status.END_OF_FILE):
            handle.read(offset, 1)
    with refused(Status.END_OF_FILE):
        handle.read(0, 10, min_length=4)
    assert handle.read(3, 0) == b""
    handle.close()


def test_access_of_the_handle_decides(mounted: Mounted) -> None:
    mounted.put("file", b"abc")
    handle = mounted.open("file", READ_ATTRIBUTES)
    for use in (lambda: handle.read(0, 1), lambda: handle.write(b"x"), handle.flush):
        with refused(Status.ACCESS_DENIED):
            use()
    handle.close()
    writing = mounted.open("file", WRITE_DATA)
    with refused(Status.ACCESS_DENIED):
        writing.read(0, 1)
    writing.flush()
    writing.close()


def test_data_that_take_another_way_than_the_connection_are_refused(mounted: Mounted) -> None:
    handle = mounted.make("file", b"abc")
    for message, _ in (handle.read(0, 3, send=False), handle.write(b"x", send=False)):
        message["channel"] = 1  # RDMA
        with refused(Status.INVALID_PARAMETER):
            send(handle, message)
    handle.close()


def test_append_access_writes_at_the_end(mounted: Mounted) -> None:
    mounted.put("file", b"abc")
    handle = mounted.open("file", APPEND_DATA | READ_DATA)
    handle.write(b"def", 3)
    handle.write(b"ghi", 2**64 - 1)
    assert handle.read(0, 10) == b"abcdefghi"
    handle.close()


def test_a_directory_has_no_bytes(mounted: Mounted) -> None:
    directory = mounted.open("dir", disposition=CREATE, options=DIRECTORY_FILE)
    with refused(Status.INVALID_DEVICE_REQUEST):
        directory.read(0, 1)
    with refused(Status.INVALID_DEVICE_REQUEST):
        directory.write(b"x")
    directory.close()


def test_a_closed_file_id_is_unknown(mounted: Mounted) -> None:
    handle = mounted.make("file", b"abc")
    file_id = handle.file_id
    handle.close()
    again = mounted.open("file")
    again.file_id, kept = file_id, again.file_id
    with refused(Status.FILE_CLOSED):
        again.read(0, 1)
    again.file_id = kept
    again.close()


def test_close_shows_the_last_state_when_asked(mounted: Mounted) -> None:
    handle = mounted.make("file", b"abc")
    handle.close(get_attributes=True)
    assert handle.end_of_file == 3
    assert handle.allocation_size == 4096


def test_locks_of_others_refuse_reads_and_writes(mounted: Mounted, mounted_again: Mounted) -> None:
    handle, other = mounted.make("file", b"0123456789"), mounted_again.open("file")
    lock(handle, 2, 3, EXCLUSIVE_LOCK)
    with refused(Status.FILE_LOCK_CONFLICT):
        other.read(0, 3)
    with refused(Status.FILE_LOCK_CONFLICT):
        other.write(b"x", 4)
    assert other.read(5, 5) == b"56789"
    handle.write(b"x", 2)
    lock(handle, 8, 1, SHARED_LOCK)
    assert other.read(8, 1) == b"8"
    for each in (handle, other):
        with refused(Status.FILE_LOCK_CONFLICT):
            each.write(b"x", 8)
    handle.close()
    other.write(b"x", 2)
    other.close()


def test_the_size_is_set_and_bytes_between_read_as_zeros(mounted: Mounted) -> None:
    handle = mounted.make("file", b"abcdef")
    set_end_of_file(handle, 3)
    assert handle.read(0, 10) == b"abc"
    set_end_of_file(handle, 5)
    assert handle.read(0, 10) == b"abc\0\0"
    set_information(handle, 19, struct.pack("<Q", 1))  # an allocation below the size cuts the file
    assert handle.read(0, 10) == b"a"
    handle.close()


def test_zeroed_ranges_are_not_allocated(mounted: Mounted) -> None:
    handle = mounted.make("file", b"x" * 65536)
    assert control(handle, 0x000900C4) == b""  # SET_SPARSE
    control(handle, 0x000980C8, struct.pack("<qq", 4096, 8192))  # SET_ZERO_DATA
    assert handle.read(4096, 4096) == bytes(4096)
    found = control(handle, 0x000940CF, struct.pack("<qq", 0, 65536))  # QUERY_ALLOCATED_RANGES
    assert list(struct.iter_unpack("<qq", found)) == [(0, 4096), (8192, 65536 - 8192)]
    with refused(Status.INVALID_PARAMETER):
        control(handle, 0x000980C8, struct.pack("<qq", 10, 5))
    handle.close()


@pytest.mark.parametrize("offset", [2**63 - 1, 2**63, 2**64 - 2])
def test_offsets_that_no_file_has_are_refused(mounted: Mounted, offset: int) -> None:
    handle = mounted.make("file")
    with refused(Status.INVALID_PARAMETER):
        handle.write(b"x", offset)
    with refused(Status.INVALID_PARAMETER):
        handle.read(offset, 1)
    handle.close()


def test_the_position_follows_reads_and_writes_and_can_be_set(mounted: Mounted) -> None:
    handle = mounted.open("file", disposition=CREATE, options=NON_DIRECTORY_FILE)
    handle.write(b"abc")
    assert query_information(handle, 14) == struct.pack("<Q", 3)
    set_information(handle, 14, struct.pack("<Q", 77))
    assert query_information(handle, 14) == struct.pack("<Q", 77)
    handle.close()


def test_a_server_side_copy_moves_bytes_between_two_open_files(mounted: Mounted) -> None:
    source, target = mounted.make("source", b"0123456789" * 1000), mounted.make("target")
    key = control(source, 0x00140078, max_bytes=32)[:24]

    def copy(*chunks: tuple[int, int, int], key: bytes = key) -> bytes:
        packed = b"".join(struct.pack("<QQII", *chunk, 0) for chunk in chunks)
        return control(target, 0x001480F2, key + struct.pack("<II", len(chunks), 0) + packed, max_bytes=12)

    assert copy((0, 0, 5000), (5000, 5000, 5000)) == struct.pack("<III", 2, 0, 10000)
    assert target.read(0, 20000) == b"0123456789" * 1000
    with refused(Status.INVALID_VIEW_SIZE):
        copy((9999, 0, 2))
    with refused(Status.INVALID_PARAMETER):
        copy((0, 0, (1 << 20) + 1))
    with refused(Status.OBJECT_NAME_NOT_FOUND):
        copy((0, 0, 1), key=bytes(24))
    source.close()
    with refused(Status.OBJECT_NAME_NOT_FOUND):
        copy((0, 0, 1))
    target.close()
