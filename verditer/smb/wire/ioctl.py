"""IOCTL (MS-SMB2 2.2.31 and 2.2.32): a control code with an input, answered with an output."""

import struct
from typing import NamedTuple

from verditer.smb.wire.fields import HEADER_BYTES, part

IOCTL_RESPONSE_SIZE = 49
IS_FSCTL = 0x1
FILE_ID_AT = HEADER_BYTES + 8

_IOCTL = struct.Struct("<HHI16sIIIIIIII")
_RESPONSE = struct.Struct("<HHI16sIIIIII")
_OUTPUT_AT = HEADER_BYTES + _RESPONSE.size


class IoctlRequest(NamedTuple):
    code: int
    file_id: bytes
    input: memoryview
    max_output_bytes: int
    flags: int


def parse_ioctl(message: memoryview) -> IoctlRequest:
    _, _, code, file_id, input_at, input_bytes, _, _, _, max_output, flags, _ = _IOCTL.unpack_from(message, HEADER_BYTES)
    given = part(message, input_at, input_bytes, earliest=HEADER_BYTES + _IOCTL.size)
    return IoctlRequest(code, file_id, given, max_output, flags)


def build_ioctl(code: int, file_id: bytes, output: bytes) -> bytes:
    return _RESPONSE.pack(IOCTL_RESPONSE_SIZE, 0, code, file_id, _OUTPUT_AT, 0, _OUTPUT_AT, len(output), 0, 0) + output
