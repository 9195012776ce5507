"""NEGOTIATE (MS-SMB2 2.2.3, 2.2.4), its contexts, and the SMB1 request by which old clients ask for SMB2."""

import struct
from enum import IntEnum
from typing import NamedTuple

from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import HEADER_BYTES, part

_REQUEST = struct.Struct("<HHHHI16sIHH")
_RESPONSE = struct.Struct("<HHHH16sIIIIQQHHI")
_CONTEXT = struct.Struct("<HHI")
_PREAUTH = struct.Struct("<HH")
MAX_DIALECTS = 64
MAX_CONTEXTS = 32
_SMB1_NEGOTIATE = 0x72
_SMB1_DIALECTS_AT = 35  # 32 bytes of header, a word count of 0, a byte count


class SmbDialect(IntEnum):
    SMB_2_0_2 = 0x0202
    SMB_2_1 = 0x0210
    SMB_3_0 = 0x0300
    SMB_3_0_2 = 0x0302
    SMB_3_1_1 = 0x0311
    WILDCARD = 0x02FF  # the answer to an SMB1 client that may speak any SMB2


class ContextType(IntEnum):
    PREAUTH = 1
    ENCRYPTION = 2
    SIGNING = 8


class Cipher(IntEnum):
    AES_128_CCM = 1
    AES_128_GCM = 2
    AES_256_CCM = 3
    AES_256_GCM = 4


class SigningAlgorithm(IntEnum):
    HMAC_SHA256 = 0
    AES_CMAC = 1
    AES_GMAC = 2


SHA_512 = 1


class NegotiateRequest(NamedTuple):
    dialects: tuple[int, ...]
    security_mode: int
    capabilities: int
    client_guid: bytes
    contexts: dict[int, memoryview]  # by type; of several of one type the first


class NegotiateAnswer(NamedTuple):
    security_mode: int
    dialect: int
    server_guid: bytes
    capabilities: int
    max_bytes: int
    system_time: int
    token: bytes
    contexts: tuple[tuple[int, bytes], ...]


def parse_negotiate(message: memoryview) -> NegotiateRequest:
    _, count, mode, _, capabilities, guid, contexts_at, context_count, _ = _REQUEST.unpack_from(message, HEADER_BYTES)
    if not 1 <= count <= MAX_DIALECTS:
        raise SmbError(Status.INVALID_PARAMETER)
    start = HEADER_BYTES + _REQUEST.size
    dialects = struct.unpack(f"<{count}H", part(message, start, 2 * count))
    contexts = _contexts(message, contexts_at, context_count) if SmbDialect.SMB_3_1_1 in dialects else {}
    return NegotiateRequest(dialects, mode, capabilities, guid, contexts)


def _contexts(message: memoryview, at: int, count: int) -> dict[int, memoryview]:
    if count > MAX_CONTEXTS:
        raise SmbError(Status.INVALID_PARAMETER)
    found: dict[int, memoryview] = {}
    for _ in range(count):
        kind, length, _ = _CONTEXT.unpack(part(message, at, _CONTEXT.size))
        data = part(message, at + _CONTEXT.size, length)
        if kind in (ContextType.PREAUTH, ContextType.ENCRYPTION, ContextType.SIGNING) and kind in found:
            raise SmbError(Status.INVALID_PARAMETER)
        found[kind] = data
        at += _CONTEXT.size + length + (-length % 8)
    return found


def numbers_of(context: memoryview) -> tuple[int, ...]:
    """The list of algorithms in an ENCRYPTION or SIGNING context."""
    if len(context) < 2:
        raise SmbError(Status.INVALID_PARAMETER)
    count = int.from_bytes(context[:2], "little")
    if not count or 2 + 2 * count > len(context):
        raise SmbError(Status.INVALID_PARAMETER)
    return struct.unpack_from(f"<{count}H", context, 2)


def hash_algorithms_of(context: memoryview) -> tuple[int, ...]:
    """The hash algorithms of a PREAUTH context."""
    if len(context) < _PREAUTH.size:
        raise SmbError(Status.INVALID_PARAMETER)
    count, salt_bytes = _PREAUTH.unpack_from(context)
    if not count or _PREAUTH.size + 2 * count + salt_bytes > len(context):
        raise SmbError(Status.INVALID_PARAMETER)
    return struct.unpack_from(f"<{count}H", context, _PREAUTH.size)


def preauth_context(salt: bytes) -> tuple[int, bytes]:
    return ContextType.PREAUTH, _PREAUTH.pack(1, len(salt)) + struct.pack("<H", SHA_512) + salt


def choice_context(kind: ContextType, choice: int) -> tuple[int, bytes]:
    return kind, struct.pack("<HH", 1, choice)


def build_negotiate(answer: NegotiateAnswer) -> bytes:
    token_at = HEADER_BYTES + _RESPONSE.size
    padding = -len(answer.token) % 8 if answer.contexts else 0
    contexts_at = token_at + len(answer.token) + padding if answer.contexts else 0
    fixed = _RESPONSE.pack(
        65,
        answer.security_mode,
        answer.dialect,
        len(answer.contexts),
        answer.server_guid,
        answer.capabilities,
        answer.max_bytes,
        answer.max_bytes,
        answer.max_bytes,
        answer.system_time,
        0,
        token_at,
        len(answer.token),
        contexts_at,
    )
    return fixed + answer.token + bytes(padding) + _build_contexts(answer.contexts)


def _build_contexts(contexts: tuple[tuple[int, bytes], ...]) -> bytes:
    built = b""
    for kind, data in contexts:
        built += bytes(-len(built) % 8) + _CONTEXT.pack(kind, len(data), 0) + data
    return built


def parse_smb1_negotiate(message: memoryview) -> frozenset[bytes] | None:
    """The dialects that an SMB1 client offers; None when it is another request."""
    if len(message) < _SMB1_DIALECTS_AT or message[4] != _SMB1_NEGOTIATE or message[32] != 0:
        return None
    names = bytes(message[_SMB1_DIALECTS_AT:]).split(b"\0")
    return frozenset(name.removeprefix(b"\x02") for name in names if name)
