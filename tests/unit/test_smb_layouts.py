"""Layouts of the commands on files, with requests that smbprotocol encoded and answers that it decodes."""

import contextlib
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smbprotocol import change_notify, ioctl
from smbprotocol import open as smb_open
from smbprotocol.header import SMB2HeaderResponse

from verditer.core.errors import StorageError
from verditer.core.names import ShareName
from verditer.smb.handlers.create_contexts import answer_contexts, read_contexts
from verditer.smb.handlers.paths import parse_version_token, requested_path, version_token
from verditer.smb.info import changes
from verditer.smb.info.access import granted_access
from verditer.smb.status import SmbError, Status
from verditer.smb.wire import copychunk, create, data, information, locks
from verditer.smb.wire.create import CreateContext, CreateResponse, Times
from verditer.smb.wire.ioctl import build_ioctl, parse_ioctl

HEADER = bytes(64)
FILE_ID = bytes(range(16))
SHARE = ShareName("account", "share")


def message(request: Any) -> memoryview:
    if "file_id" in request.fields:
        request["file_id"] = FILE_ID
    return memoryview(HEADER + request.pack())


def decoded(structure: Any, body: bytes) -> Any:
    value = structure()
    value.unpack(body)
    return value


def test_create_is_what_a_client_encodes() -> None:
    request = smb_open.SMB2CreateRequest()
    request["requested_oplock_level"] = 9
    request["impersonation_level"] = 2
    request["desired_access"] = 0x120089
    request["share_access"] = 7
    request["create_disposition"] = 1
    request["create_options"] = 0x40
    request["buffer_path"] = "dir\\näme".encode("utf-16-le")
    parsed = create.parse_create(message(request))
    assert (parsed.oplock, parsed.impersonation, parsed.access, parsed.share_mode) == (9, 2, 0x120089, 7)
    assert (parsed.disposition, parsed.options, parsed.name) == (1, 0x40, "dir\\näme")


def test_the_answer_of_create_is_what_a_client_decodes() -> None:
    contexts = [CreateContext(b"MxAc", struct.pack("<II", 0, 0x1F01FF)), CreateContext(b"QFid", bytes(32))]
    body = create.build_create(CreateResponse(9, 1, Times(1, 2, 3, 4), 4096, 10, 0x20, FILE_ID, contexts))
    answer = decoded(smb_open.SMB2CreateResponse, body)
    assert (answer["oplock_level"].get_value(), answer["create_action"].get_value()) == (9, 1)
    assert (answer["end_of_file"].get_value(), answer["file_id"].pack()) == (10, FILE_ID)
    found = [each["buffer_name"].get_value() for each in answer["buffer"].get_value()]
    assert found == [b"MxAc", b"QFid"]
    assert create.parse_contexts(memoryview(create.build_contexts(contexts))) == contexts


@pytest.mark.parametrize(
    "damaged",
    [
        struct.pack("<IHHHHI", 0, 16, 4, 0, 0, 0),  # the tag lies behind the end
        struct.pack("<IHHHHI", 0, 16, 2, 0, 0, 0) + b"XX",  # the tag is too short
        struct.pack("<IHHHHI", 12, 16, 4, 0, 0, 0) + b"MxAc",  # the next one is not aligned
        struct.pack("<IHHHHI", 64, 16, 4, 0, 0, 0) + b"MxAc",  # the next one lies behind the end
        struct.pack("<IHHHHI", 0, 16, 4, 0, 20, 0xFFFFFFFF) + b"MxAc",
        struct.pack("<IHHHHI", 0, 0, 4, 0, 0, 0) + b"MxAc",  # the tag lies in the header
        b"123",
    ],
)
def test_damaged_contexts_are_refused(damaged: bytes) -> None:
    with pytest.raises(SmbError) as error:
        create.parse_contexts(memoryview(damaged))
    assert error.value.status is Status.INVALID_PARAMETER


def test_contexts_ask_for_what_the_service_has() -> None:
    wanted = read_contexts(
        [
            CreateContext(b"MxAc", b""),
            CreateContext(b"QFid", b""),
            CreateContext(b"RqLs", bytes(32)),
            CreateContext(b"AlSi", struct.pack("<Q", 9)),
        ]
    )
    assert wanted.allocation_bytes == 9
    answers = answer_contexts(wanted, 5, 6)
    assert [answer.tag for answer in answers] == [b"MxAc", b"QFid"]
    assert answers[1].data == struct.pack("<QQ16x", 5, 6)


@pytest.mark.parametrize(
    ("tag", "value", "status"),
    [
        (b"ExtA", b"x", Status.EAS_NOT_SUPPORTED),
        (b"DHnC", bytes(16), Status.OBJECT_NAME_NOT_FOUND),
        (b"DH2C", bytes(36), Status.OBJECT_NAME_NOT_FOUND),
        (b"AlSi", b"123", Status.INVALID_PARAMETER),
        (b"TWrp", b"1", Status.INVALID_PARAMETER),
    ],
)
def test_contexts_that_cannot_be_honoured_are_refused(tag: bytes, value: bytes, status: Status) -> None:
    with pytest.raises(SmbError) as error:
        read_contexts([CreateContext(tag, value)])
    assert error.value.status is status


def test_reads_writes_and_closes_are_what_a_client_speaks() -> None:
    reading = smb_open.SMB2ReadRequest()
    reading["length"], reading["offset"], reading["minimum_count"] = 100, 5, 1
    assert data.parse_read(message(reading)) == data.ReadRequest(100, 5, 1, 0)
    answer = decoded(smb_open.SMB2ReadResponse, data.build_read(3) + b"abc")
    assert answer["buffer"].get_value() == b"abc"
    writing = smb_open.SMB2WriteRequest()
    writing["offset"], writing["buffer"] = 7, b"hello"
    parsed = data.parse_write(message(writing))
    assert (parsed.offset, bytes(parsed.data)) == (7, b"hello")
    assert decoded(smb_open.SMB2WriteResponse, data.build_write(5))["count"].get_value() == 5
    closing = smb_open.SMB2CloseRequest()
    closing["flags"] = 1
    assert data.parse_close(message(closing)) == 1
    assert decoded(smb_open.SMB2CloseResponse, data.build_close(1, Times(1, 2, 3, 4), 5, 6, 7))["end_of_file"].get_value() == 6


@pytest.mark.parametrize(("offset", "length"), [(0, 10), (63, 10), (112, 11), (0xFFFF, 1), (112, 0xFFFFFFFF)])
def test_data_outside_of_its_message_is_refused(offset: int, length: int) -> None:
    request = struct.pack("<HHIQ16sIIHHI", 49, offset, length, 0, FILE_ID, 0, 0, 0, 0, 0) + b"0123456789"
    with pytest.raises(SmbError) as error:
        data.parse_write(memoryview(HEADER + request))
    assert error.value.status is Status.INVALID_PARAMETER


def test_queries_are_what_a_client_encodes() -> None:
    query = smb_open.SMB2QueryDirectoryRequest()
    query["file_information_class"], query["flags"], query["output_buffer_length"] = 37, 1, 65536
    query["buffer"] = "*.txt".encode("utf-16-le")
    assert information.parse_query_directory(message(query)) == information.QueryDirectoryRequest(37, 1, "*.txt", 65536)
    notify = change_notify.SMB2ChangeNotifyRequest()
    notify["flags"], notify["output_buffer_length"], notify["completion_filter"] = 1, 4096, 0x17
    assert information.parse_change_notify(message(notify)) == information.ChangeNotifyRequest(1, 4096, 0x17)
    asked = smb_open.SMB2QueryInfoRequest()
    asked["info_type"], asked["file_info_class"], asked["output_buffer_length"] = 1, 18, 4096
    parsed = information.parse_query_info(message(asked))
    assert (parsed.type, parsed.information_class, parsed.max_bytes) == (1, 18, 4096)
    assert decoded(smb_open.SMB2QueryInfoResponse, information.build_buffer(b"abc"))["buffer"].get_value() == b"abc"
    setting = smb_open.SMB2SetInfoRequest()
    setting["info_type"], setting["file_info_class"], setting["buffer"] = 1, 13, b"\1"
    changed = information.parse_set_info(message(setting))
    assert (changed.type, changed.information_class, bytes(changed.buffer)) == (1, 13, b"\1")


def test_ioctls_and_locks_are_what_a_client_speaks() -> None:
    request = ioctl.SMB2IOCTLRequest()
    request["ctl_code"], request["file_id"], request["max_output_response"] = 0x00140078, FILE_ID, 32
    request["flags"] = 1
    parsed = parse_ioctl(message(request))
    assert (parsed.code, parsed.file_id, parsed.max_output_bytes, parsed.flags) == (0x00140078, FILE_ID, 32, 1)
    answer = decoded(ioctl.SMB2IOCTLResponse, build_ioctl(0x00140078, FILE_ID, b"output"))
    assert answer["buffer"].get_value() == b"output"
    elements = struct.pack("<HHI16s", 48, 2, 0, FILE_ID) + struct.pack("<QQII", 1, 2, 3, 0) + struct.pack("<QQII", 4, 5, 6, 0)
    assert locks.parse_lock(memoryview(HEADER + elements)) == [locks.LockElement(1, 2, 3), locks.LockElement(4, 5, 6)]
    for count in (0, 3):
        with pytest.raises(SmbError):
            locks.parse_lock(memoryview(HEADER + struct.pack("<HHI16s", 48, count, 0, FILE_ID) + elements[24:]))


def test_a_copy_beyond_the_limits_is_told_the_limits() -> None:
    def request(*lengths: int) -> memoryview:
        chunks = b"".join(struct.pack("<QQII", 0, 0, length, 0) for length in lengths)
        return memoryview(struct.pack("<24sII", FILE_ID.ljust(24, b"\0"), len(lengths), 0) + chunks)

    found = copychunk.parse_copy(request(1, 1 << 20))
    assert found is not None
    assert len(found.chunks) == 2
    assert copychunk.parse_copy(request((1 << 20) + 1)) is None
    assert copychunk.parse_copy(request(0)) is None
    assert copychunk.parse_copy(request(*[1] * 257)) is None
    assert copychunk.parse_copy(request(*[1 << 20] * 17)) is None
    with pytest.raises(SmbError):
        copychunk.parse_copy(request(1)[:-1])


def test_paths_are_relative_and_may_name_a_previous_version() -> None:
    found = requested_path(SHARE, "dir\\File.txt")
    assert (found.path.names, found.path.folded, found.version) == (("dir", "File.txt"), ("DIR", "FILE.TXT"), None)
    assert requested_path(SHARE, "").path.names == ()
    token = "@GMT-2026.11.18-14.00.01"
    earlier = requested_path(SHARE, f"{token}\\dir\\x")
    assert earlier.path.names == ("dir", "x")
    assert earlier.version == parse_version_token(token)
    assert earlier.version is not None
    assert version_token(earlier.version) == token
    assert requested_path(SHARE, "a/b").path.names == ("a", "b")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("\\a", Status.INVALID_PARAMETER),
        ("a\\..\\b", Status.OBJECT_PATH_SYNTAX_BAD),
        ("a" * 3000, Status.OBJECT_NAME_INVALID),
        ("\\".join("a" * 300), Status.OBJECT_NAME_INVALID),
    ],
)
def test_paths_that_no_file_can_have_are_refused(name: str, expected: Status) -> None:
    with pytest.raises(SmbError) as error:
        requested_path(SHARE, name)
    assert error.value.status is expected


def test_generic_access_becomes_specific() -> None:
    assert granted_access(0x80000000) == 0x120089
    assert granted_access(0x40000000) == 0x120116
    assert granted_access(0x02000000) == 0x1F01FF
    assert granted_access(0x10000) == 0x10000
    assert granted_access(0) is None
    assert granted_access(0x100000) == 0x100000
    assert granted_access(0x0C000000) is None


def test_the_header_of_smbprotocol_has_the_size_that_offsets_count() -> None:
    assert len(SMB2HeaderResponse().pack()) == len(HEADER)


PARSERS: dict[str, tuple[int, Callable[[memoryview], object]]] = {
    "create": (56, create.parse_create),
    "close": (24, data.parse_close),
    "read": (48, data.parse_read),
    "write": (48, data.parse_write),
    "lock": (48, locks.parse_lock),
    "ioctl": (56, parse_ioctl),
    "query directory": (32, information.parse_query_directory),
    "change notify": (32, information.parse_change_notify),
    "query info": (40, information.parse_query_info),
    "set info": (32, information.parse_set_info),
    "oplock break": (24, locks.parse_oplock_break),
}


@pytest.mark.parametrize("name", PARSERS)
@given(st.data())
def test_a_body_of_any_bytes_is_parsed_or_refused(name: str, data: st.DataObject) -> None:
    """The dispatcher has checked that the fixed part is there."""
    fixed, parse = PARSERS[name]
    body = data.draw(st.binary(min_size=fixed, max_size=fixed + 80))
    with contextlib.suppress(SmbError):
        parse(memoryview(HEADER + body))


@given(st.binary(max_size=120))
def test_buffers_of_any_bytes_are_parsed_or_refused(buffer: bytes) -> None:
    view = memoryview(buffer)
    parsers: tuple[Callable[[memoryview], object], ...] = (
        create.parse_contexts,
        copychunk.parse_copy,
        changes.parse_basic,
        changes.parse_size,
        changes.parse_number,
        changes.parse_byte,
        lambda view: changes.parse_rename(view, extended=False),
        lambda view: changes.parse_rename(view, extended=True),
    )
    for parse in parsers:
        with contextlib.suppress(SmbError):
            parse(view)


@given(st.text(max_size=80))
def test_any_name_is_a_path_or_refused(name: str) -> None:
    with contextlib.suppress(SmbError, StorageError):
        requested_path(SHARE, name)
