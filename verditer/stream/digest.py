"""Digests: MD5 and CRC64 (CRC-64/NVME) of a body while it is received, and their comparison with those of the client.

Both release the interpreter lock on large inputs, so `intake.py` runs `Digest.update` in a thread.
"""

import hashlib

import msgspec

from verditer.core.crc64 import crc64nvme
from verditer.core.errors import Code, Digests, StorageError

_OF_NOTHING = hashlib.md5(usedforsecurity=False).digest(), bytes(8)


class Checksums(msgspec.Struct, frozen=True, kw_only=True):
    """The digests that the client sent; None where it sent none."""

    md5: bytes | None = None
    crc64: bytes | None = None


def digest(data: bytes) -> tuple[bytes, bytes]:
    """MD5 and CRC64 of a complete body."""
    if not data:
        return _OF_NOTHING
    return hashlib.md5(data, usedforsecurity=False).digest(), crc64nvme(data).to_bytes(8, "little")


class Digest:
    """MD5 and CRC64 of a body that is received in pieces."""

    __slots__ = ("_crc64", "_md5")

    def __init__(self) -> None:
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._crc64 = 0

    def update(self, *pieces: bytes | bytearray) -> None:
        for piece in pieces:
            self._md5.update(piece)
            self._crc64 = crc64nvme(piece, self._crc64)

    def md5(self) -> bytes:
        return self._md5.digest()

    def crc64(self) -> bytes:
        return self._crc64.to_bytes(8, "little")


def verify(expected: Checksums, md5: bytes, crc64: bytes) -> None:
    """Refuse a body whose digests differ from those of the client."""
    if expected.md5 is not None and expected.md5 != md5:
        raise StorageError(Code.Md5Mismatch, details=Digests(expected.md5, md5))
    if expected.crc64 is not None and expected.crc64 != crc64:
        raise StorageError(Code.Crc64Mismatch, details=Digests(expected.crc64, crc64))
