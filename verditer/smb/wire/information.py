"""QUERY_DIRECTORY, CHANGE_NOTIFY, QUERY_INFO and SET_INFO (MS-SMB2 2.2.33 to 2.2.40). Their buffers are made in `smb/info`."""

import struct
from typing import NamedTuple

from verditer.smb.wire.fields import HEADER_BYTES, part, text

BUFFER_RESPONSE_SIZE = 9

RESTART_SCANS, RETURN_SINGLE_ENTRY, REOPEN = 0x1, 0x2, 0x10
WATCH_TREE = 0x1
FILE_INFORMATION, FILE_SYSTEM_INFORMATION, SECURITY_INFORMATION, QUOTA_INFORMATION = 1, 2, 3, 4

_QUERY_DIRECTORY = struct.Struct("<HBBI16sHHI")
_CHANGE_NOTIFY = struct.Struct("<HHI16sII")
_QUERY_INFO = struct.Struct("<HBBIHHIII16s")
_SET_INFO = struct.Struct("<HBBIHHI16s")
_BUFFER_RESPONSE = struct.Struct("<HHI")
_BUFFER_AT = HEADER_BYTES + _BUFFER_RESPONSE.size
INFORMATION_SET = struct.pack("<H", 2)


class QueryDirectoryRequest(NamedTuple):
    information_class: int
    flags: int
    pattern: str
    max_bytes: int


class ChangeNotifyRequest(NamedTuple):
    flags: int
    max_bytes: int
    filter: int


class QueryInfoRequest(NamedTuple):
    type: int
    information_class: int
    max_bytes: int
    additional: int
    input: memoryview


class SetInfoRequest(NamedTuple):
    type: int
    information_class: int
    additional: int
    buffer: memoryview


def parse_query_directory(message: memoryview) -> QueryDirectoryRequest:
    _, kind, flags, _, _, name_at, name_bytes, max_bytes = _QUERY_DIRECTORY.unpack_from(message, HEADER_BYTES)
    pattern = part(message, name_at, name_bytes, earliest=HEADER_BYTES + _QUERY_DIRECTORY.size)
    return QueryDirectoryRequest(kind, flags, text(pattern), max_bytes)


def parse_change_notify(message: memoryview) -> ChangeNotifyRequest:
    _, flags, max_bytes, _, wanted, _ = _CHANGE_NOTIFY.unpack_from(message, HEADER_BYTES)
    return ChangeNotifyRequest(flags, max_bytes, wanted)


def parse_query_info(message: memoryview) -> QueryInfoRequest:
    _, kind, number, max_bytes, input_at, _, input_bytes, additional, _, _ = _QUERY_INFO.unpack_from(message, HEADER_BYTES)
    given = part(message, input_at, input_bytes, earliest=HEADER_BYTES + _QUERY_INFO.size)
    return QueryInfoRequest(kind, number, max_bytes, additional, given)


def parse_set_info(message: memoryview) -> SetInfoRequest:
    _, kind, number, length, buffer_at, _, additional, _ = _SET_INFO.unpack_from(message, HEADER_BYTES)
    return SetInfoRequest(kind, number, additional, part(message, buffer_at, length, earliest=HEADER_BYTES + _SET_INFO.size))


def build_buffer(data: bytes) -> bytes:
    """The answer of QUERY_DIRECTORY, CHANGE_NOTIFY and QUERY_INFO."""
    return _BUFFER_RESPONSE.pack(BUFFER_RESPONSE_SIZE, _BUFFER_AT if data else 0, len(data)) + data
