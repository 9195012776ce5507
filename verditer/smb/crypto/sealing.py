"""Encryption of messages: one transform header (MS-SMB2 2.2.41) and the encrypted bytes of a whole chain."""

import itertools
import struct
from collections.abc import Sequence
from typing import NamedTuple

from verditer.smb.crypto.signing import Buffer
from verditer.smb.wire.header import ENCRYPTED_MAGIC
from verditer.smb.wire.negotiate import Cipher

TRANSFORM_BYTES = 52
_TAG_BYTES = 16
_TRANSFORM = struct.Struct("<4s16s16sIHHQ")
_AUTHENTICATED = slice(20, TRANSFORM_BYTES)
_IS_ENCRYPTED = 1


class CipherRow(NamedTuple):
    key_bytes: int
    nonce_bytes: int
    is_gcm: bool


CIPHERS = {
    Cipher.AES_128_CCM: CipherRow(16, 11, False),
    Cipher.AES_128_GCM: CipherRow(16, 12, True),
    Cipher.AES_256_CCM: CipherRow(32, 11, False),
    Cipher.AES_256_GCM: CipherRow(32, 12, True),
}


class Sealing:
    """Encrypts for the client and decrypts what comes from it. No nonce is used twice with a key: nonces count."""

    def __init__(self, cipher: int, session_id: int, client_to_server: bytes, server_to_client: bytes) -> None:
        from cryptography.exceptions import InvalidTag  # with the first key: see signing.py
        from cryptography.hazmat.primitives.ciphers.aead import AESCCM, AESGCM

        self._invalid: type[Exception] = InvalidTag
        row = CIPHERS[Cipher(cipher)]
        self._nonce_bytes = row.nonce_bytes
        self._session_id = session_id
        self._nonces = itertools.count(1)
        self._incoming: AESGCM | AESCCM = AESGCM(client_to_server) if row.is_gcm else AESCCM(client_to_server)
        self._outgoing: AESGCM | AESCCM = AESGCM(server_to_client) if row.is_gcm else AESCCM(server_to_client)

    def seal(self, parts: Sequence[Buffer]) -> tuple[bytes, memoryview]:
        """The transform header and the encrypted bytes."""
        plain = b"".join(parts)
        nonce = next(self._nonces).to_bytes(self._nonce_bytes, "little")
        header = _TRANSFORM.pack(
            ENCRYPTED_MAGIC, bytes(16), nonce.ljust(16, b"\0"), len(plain), 0, _IS_ENCRYPTED, self._session_id
        )
        sealed = memoryview(self._outgoing.encrypt(nonce, plain, header[_AUTHENTICATED]))
        return header[:4] + sealed[-_TAG_BYTES:] + header[20:], sealed[:-_TAG_BYTES]

    def unseal(self, frame: memoryview) -> bytearray | None:
        """The messages inside the frame; None when it was not made with the key of this session."""
        _, tag, nonce, size, _, flags, _ = _TRANSFORM.unpack_from(frame)
        sealed = frame[TRANSFORM_BYTES:]
        if flags != _IS_ENCRYPTED or size != len(sealed):
            return None
        try:
            plain = self._incoming.decrypt(nonce[: self._nonce_bytes], b"".join((sealed, tag)), bytes(frame[_AUTHENTICATED]))
        except self._invalid:
            return None
        return bytearray(plain)


def session_of_frame(frame: memoryview) -> int:
    """The id of the session that an encrypted frame belongs to."""
    return int(_TRANSFORM.unpack_from(frame)[6])
