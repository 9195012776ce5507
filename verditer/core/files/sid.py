"""Security identifiers (SID) of users and groups: text such as `S-1-5-32-544` and the binary form (MS-DTYP 2.4.2)."""

import re
import struct
from typing import NewType

Sid = NewType("Sid", str)  # always in the form of `format_sid`: equal identifiers are equal text

MAX_SUBAUTHORITIES = 15
_SID = re.compile(r"S-1-(0x[0-9A-F]{1,12}|[0-9]{1,15})((?:-[0-9]{1,10}){0,15})", re.IGNORECASE | re.ASCII)


class SecurityDescriptorError(ValueError):
    """The text or the bytes are not a security descriptor. The message is the reason."""


def parse_sid(text: str) -> Sid:
    """`S-1-5-32-544` in any case of letters; an identifier authority of 2^32 or more is hexadecimal."""
    match = _SID.fullmatch(text)
    if match is None:
        raise SecurityDescriptorError(f"{text[:200]!r} is not a security identifier")
    authority = int(match[1], 16) if match[1][:2] in ("0x", "0X") else int(match[1])
    return format_sid(authority, tuple(map(int, match[2].split("-")[1:])))


def format_sid(authority: int, subauthorities: tuple[int, ...]) -> Sid:
    if authority >= 1 << 48 or len(subauthorities) > MAX_SUBAUTHORITIES or any(value >> 32 for value in subauthorities):
        raise SecurityDescriptorError("a part of a security identifier is out of range")
    shown = str(authority) if authority < 1 << 32 else f"0x{authority:012X}"
    return Sid("-".join(("S-1", shown, *map(str, subauthorities))))


def encode_sid(sid: Sid) -> bytes:
    _, _, authority, *subauthorities = sid.split("-")
    number = int(authority, 16) if authority.startswith("0x") else int(authority)
    head = bytes((1, len(subauthorities))) + number.to_bytes(6, "big")
    return head + struct.pack(f"<{len(subauthorities)}I", *map(int, subauthorities))


def decode_sid(data: bytes, offset: int) -> tuple[Sid, int]:
    """The identifier at `offset`, and the offset after it."""
    if offset + 8 > len(data):
        raise SecurityDescriptorError("a security identifier lies outside its container")
    revision, count = data[offset], data[offset + 1]
    end = offset + 8 + 4 * count
    if revision != 1 or count > MAX_SUBAUTHORITIES or end > len(data):
        raise SecurityDescriptorError("a security identifier has an unknown revision or a wrong size")
    authority = int.from_bytes(data[offset + 2 : offset + 8], "big")
    return format_sid(authority, struct.unpack_from(f"<{count}I", data, offset + 8)), end
