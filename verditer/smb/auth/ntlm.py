"""NTLMv2 as a server sees it (MS-NLMP): the challenge, the check of the client's response, and the session key.

The response is checked over the bytes that the client sent, never over a decoded and encoded form of them: clients differ in how
they write the same structure. NTLMv1 and anonymous logins are refused.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterable, Iterator
from enum import IntFlag
from typing import NamedTuple

from verditer.smb.auth.md4 import md4
from verditer.smb.auth.rc4 import rc4

SIGNATURE = b"NTLMSSP\0"
NEGOTIATE, CHALLENGE, AUTHENTICATE = 1, 2, 3
_CHALLENGE = struct.Struct("<8sIHHII8s8sHHI8s")
_VERSION = bytes([10, 0, 0, 0, 0, 0, 0, 15])  # as Windows 10 says it; 15 is the revision of NTLMSSP
_FIELD = struct.Struct("<HHI")
_PAIR = struct.Struct("<HH")
_AUTHENTICATE_BYTES = 64
_MIC = slice(72, 88)
_PROOF_BYTES = 16
_BLOB_PAIRS_AT = 28  # in the part of the response that follows the proof
_V1_RESPONSE_BYTES = 24
_AV_END, _AV_COMPUTER, _AV_DOMAIN, _AV_DNS_COMPUTER, _AV_DNS_DOMAIN, _AV_FLAGS, _AV_TIME = 0, 1, 2, 3, 4, 6, 7
_HAS_MIC = 0x2


class NtlmFlags(IntFlag):
    UNICODE = 0x1
    REQUEST_TARGET = 0x4
    SIGN = 0x10
    SEAL = 0x20
    NTLM = 0x200
    ALWAYS_SIGN = 0x8000
    TARGET_IS_SERVER = 0x20000
    EXTENDED_SECURITY = 0x80000
    TARGET_INFO = 0x800000
    VERSION = 0x2000000
    KEY_128 = 0x20000000
    KEY_EXCHANGE = 0x40000000
    KEY_56 = 0x80000000


_ALWAYS = NtlmFlags.UNICODE | NtlmFlags.REQUEST_TARGET | NtlmFlags.NTLM | NtlmFlags.TARGET_IS_SERVER | NtlmFlags.TARGET_INFO
_IF_ASKED = (
    NtlmFlags.SIGN
    | NtlmFlags.SEAL
    | NtlmFlags.ALWAYS_SIGN
    | NtlmFlags.EXTENDED_SECURITY
    | NtlmFlags.VERSION
    | NtlmFlags.KEY_128
    | NtlmFlags.KEY_EXCHANGE
    | NtlmFlags.KEY_56
)


class NtlmError(ValueError):
    """The message is malformed, or asks for what is not offered."""


class MalformedResponse(NtlmError):
    """The attributes in a response do not fit into it."""


class AuthenticateMessage(NamedTuple):
    """An AUTHENTICATE message."""

    user: str
    domain: str
    workstation: str
    proof: bytes
    blob: bytes
    encrypted_key: bytes
    flags: int
    message: bytes


def message_type(message: bytes) -> int:
    if len(message) < 16 or message[:8] != SIGNATURE:
        raise NtlmError("no NTLM message")
    return int.from_bytes(message[8:12], "little")


def build_challenge(negotiate: bytes, nonce: bytes, server_name: str, filetime: int) -> bytes:
    """`nonce` is eight random bytes; `negotiate` is the message that the client began with."""
    asked = int.from_bytes(negotiate[12:16], "little")
    name = server_name.encode("utf-16-le")
    pairs = (
        (_AV_DOMAIN, name),
        (_AV_COMPUTER, name),
        (_AV_DNS_DOMAIN, name),
        (_AV_DNS_COMPUTER, name),
        (_AV_TIME, filetime.to_bytes(8, "little")),
        (_AV_END, b""),
    )
    info = b"".join(_PAIR.pack(kind, len(value)) + value for kind, value in pairs)
    at = _CHALLENGE.size
    fixed = _CHALLENGE.pack(
        SIGNATURE,
        CHALLENGE,
        len(name),
        len(name),
        at,
        _ALWAYS | (asked & _IF_ASKED),
        nonce,
        bytes(8),
        len(info),
        len(info),
        at + len(name),
        _VERSION,
    )
    return fixed + name + info


def parse_authenticate(message: bytes) -> AuthenticateMessage:
    if len(message) < _AUTHENTICATE_BYTES:
        raise NtlmError("the message is too short")
    response, domain, user, workstation, key = (_field(message, at) for at in (20, 28, 36, 44, 52))
    flags = int.from_bytes(message[60:64], "little")
    if not flags & NtlmFlags.UNICODE:
        raise NtlmError("names are not in Unicode")
    if len(response) <= max(_V1_RESPONSE_BYTES, _PROOF_BYTES + _BLOB_PAIRS_AT):
        raise NtlmError("not NTLMv2")
    if not user:
        raise NtlmError("no user name")
    list(_pairs(response[_PROOF_BYTES:]))  # complains about a malformed list
    names = [part.decode("utf-16-le", "replace") for part in (user, domain, workstation)]
    return AuthenticateMessage(
        names[0], names[1], names[2], response[:_PROOF_BYTES], response[_PROOF_BYTES:], key, flags, message
    )


def is_anonymous(message: bytes) -> bool:
    """An AUTHENTICATE message of an anonymous client: without a user and without a response."""
    return len(message) >= _AUTHENTICATE_BYTES and not _field(message, 20) and not _field(message, 36)


def anonymous_session_key(message: bytes) -> tuple[bytes, int]:
    """The session key of an anonymous login, which is no secret, and the flags of the message."""
    flags, key = int.from_bytes(message[60:64], "little"), _field(message, 52)
    return (rc4(bytes(16), key) if flags & NtlmFlags.KEY_EXCHANGE and len(key) == 16 else bytes(16)), flags


def _field(message: bytes, at: int) -> bytes:
    length, _, start = _FIELD.unpack_from(message, at)
    if start + length > len(message):
        raise NtlmError("a field is outside the message")
    return message[start : start + length]


def session_key_of(response: AuthenticateMessage, nonce: bytes, nt_hashes: Iterable[bytes]) -> bytes | None:
    """The session key, when the response was made with one of the keys whose hashes are given."""
    identity = (response.user.upper() + response.domain).encode("utf-16-le", "surrogatepass")
    found = None
    for nt_hash in nt_hashes:  # all of them: the time must not tell which one was right
        owner_key = _hmac_md5(nt_hash, identity)
        if hmac.compare_digest(_hmac_md5(owner_key, nonce + response.blob), response.proof):
            found = _hmac_md5(owner_key, response.proof)
    if found is None or not response.flags & NtlmFlags.KEY_EXCHANGE:
        return found
    if len(response.encrypted_key) != 16:
        raise NtlmError("the session key has the wrong length")
    return rc4(found, response.encrypted_key)


def has_valid_mic(response: AuthenticateMessage, session_key: bytes, negotiate: bytes, challenge: bytes) -> bool:
    """True also when the client says that it sends none."""
    if not _says_mic(response.blob):
        return True
    message = response.message
    if len(message) < _MIC.stop:
        return False
    cleared = message[: _MIC.start] + bytes(16) + message[_MIC.stop :]
    return hmac.compare_digest(_hmac_md5(session_key, negotiate + challenge + cleared), message[_MIC])


def _says_mic(blob: bytes) -> bool:
    return any(kind == _AV_FLAGS and int.from_bytes(value[:4], "little") & _HAS_MIC for kind, value in _pairs(blob))


def _pairs(blob: bytes) -> Iterator[tuple[int, bytes]]:
    at = _BLOB_PAIRS_AT
    while at + _PAIR.size <= len(blob):
        kind, length = _PAIR.unpack_from(blob, at)
        if kind == _AV_END:
            return
        at += _PAIR.size
        if at + length > len(blob):
            raise MalformedResponse("an attribute is longer than the response")
        yield kind, blob[at : at + length]
        at += length


def nt_hash(password: str) -> bytes:
    return md4(password.encode("utf-16-le"))


def message_signatures(session_key: bytes, flags: int, signed: bytes) -> tuple[bytes, bytes]:
    """The first NTLM signatures of both sides over the same bytes: the client's and the server's."""
    return (
        _signature(session_key, flags, signed, b"client-to-server"),
        _signature(session_key, flags, signed, b"server-to-client"),
    )


def _signature(session_key: bytes, flags: int, signed: bytes, direction: bytes) -> bytes:
    signing_key = hashlib.md5(session_key + b"session key to " + direction + b" signing key magic constant\0").digest()
    check = _hmac_md5(signing_key, bytes(4) + signed)[:8]
    if flags & NtlmFlags.KEY_EXCHANGE:
        sealing_key = hashlib.md5(session_key + b"session key to " + direction + b" sealing key magic constant\0").digest()
        check = rc4(sealing_key, check)
    return b"\1\0\0\0" + check + bytes(4)


def _hmac_md5(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, hashlib.md5)
