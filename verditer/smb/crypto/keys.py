"""The keys of a session, derived from the session key of its login (MS-SMB2 3.1.4.2)."""

import hashlib
import hmac
from typing import NamedTuple

from verditer.smb.wire.negotiate import SmbDialect

KEY_BYTES = 16


class SessionKeys(NamedTuple):
    signing: bytes
    client_to_server: bytes
    server_to_client: bytes


def derive_keys(session_key: bytes, dialect: int, preauth_hash: bytes, cipher_key_bytes: int) -> SessionKeys:
    """Before 3.0 messages are signed with the session key itself and never encrypted."""
    key = session_key[:KEY_BYTES].ljust(KEY_BYTES, b"\0")
    if dialect < SmbDialect.SMB_3_0:
        return SessionKeys(key, b"", b"")
    if dialect < SmbDialect.SMB_3_1_1:
        return SessionKeys(
            _derive(key, b"SMB2AESCMAC\0", b"SmbSign\0", KEY_BYTES),
            _derive(key, b"SMB2AESCCM\0", b"ServerIn \0", KEY_BYTES),
            _derive(key, b"SMB2AESCCM\0", b"ServerOut\0", KEY_BYTES),
        )
    cipher_key = session_key if cipher_key_bytes > KEY_BYTES else key
    return SessionKeys(
        _derive(key, b"SMBSigningKey\0", preauth_hash, KEY_BYTES),
        _derive(cipher_key, b"SMBC2SCipherKey\0", preauth_hash, cipher_key_bytes),
        _derive(cipher_key, b"SMBS2CCipherKey\0", preauth_hash, cipher_key_bytes),
    )


def _derive(key: bytes, label: bytes, context: bytes, length: int) -> bytes:
    """SP 800-108 in counter mode with HMAC-SHA256. One round gives enough for every key of SMB."""
    data = b"\0\0\0\1" + label + b"\0" + context + (length * 8).to_bytes(4, "big")
    return hmac.digest(key, data, hashlib.sha256)[:length]
