"""Signatures of messages. A signature covers one message of a chain with its padding; its own field counts as zero.

The library of ciphers is imported with the first key, because importing it takes 40 ms of the start of every server.
"""

import hashlib
import hmac
import struct
from collections.abc import Callable, Sequence

from verditer.smb.wire.negotiate import SigningAlgorithm

Buffer = bytes | bytearray | memoryview
SIGNATURE_BYTES = 16
_COPY_BYTES = 32 * 1024  # joining the parts of a smaller message costs less than a second call of the cipher
_NONCE = struct.Struct("<QI")
_FROM_SERVER, _OF_CANCEL = 1, 2


class Signing:
    """Signs and verifies with one key. `message_id` and the direction are part of a GMAC and ignored by the others."""

    def __init__(self, algorithm: int, key: bytes) -> None:
        self.algorithm = algorithm
        self._mac = _MACS[algorithm](key)

    def sign(self, parts: Sequence[Buffer], message_id: int) -> bytes:
        return self._mac(parts, message_id, _FROM_SERVER)

    def verify(self, message: memoryview, message_id: int, *, is_cancel: bool = False) -> bool:
        """`message` is writable: its signature is cleared."""
        received = bytes(message[48:64])
        message[48:64] = bytes(SIGNATURE_BYTES)
        return hmac.compare_digest(received, self._mac((message,), message_id, _OF_CANCEL if is_cancel else 0))


Mac = Callable[[Sequence[Buffer], int, int], bytes]


def _hmac_sha256(key: bytes) -> Mac:
    start = hmac.new(key, digestmod=hashlib.sha256)

    def mac(parts: Sequence[Buffer], message_id: int, direction: int) -> bytes:
        running = start.copy()
        for part in parts:
            running.update(part)
        return running.digest()[:SIGNATURE_BYTES]

    return mac


def _aes_cmac(key: bytes) -> Mac:
    from cryptography.hazmat.primitives.ciphers import algorithms
    from cryptography.hazmat.primitives.cmac import CMAC

    start = CMAC(algorithms.AES(key))

    def mac(parts: Sequence[Buffer], message_id: int, direction: int) -> bytes:
        running = start.copy()
        for part in parts:
            running.update(part)  # type: ignore[arg-type]  # any buffer will do
        return running.finalize()

    return mac


def _aes_gmac(key: bytes) -> Mac:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, algorithm = AESGCM(key), algorithms.AES(key)

    def mac(parts: Sequence[Buffer], message_id: int, direction: int) -> bytes:
        nonce = _NONCE.pack(message_id, direction)
        if len(parts) == 1:
            return cipher.encrypt(nonce, b"", parts[0])
        if sum(map(len, parts)) <= _COPY_BYTES:
            return cipher.encrypt(nonce, b"", b"".join(parts))
        running = Cipher(algorithm, modes.GCM(nonce)).encryptor()
        for part in parts:
            running.authenticate_additional_data(part)
        running.finalize()
        return running.tag

    return mac


_MACS: dict[int, Callable[[bytes], Mac]] = {
    SigningAlgorithm.HMAC_SHA256: _hmac_sha256,
    SigningAlgorithm.AES_CMAC: _aes_cmac,
    SigningAlgorithm.AES_GMAC: _aes_gmac,
}
