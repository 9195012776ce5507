"""Digests: MD5 and CRC64 (CRC-64/NVME, as Azure's x-ms-content-crc64) of bytes while they pass, and the client's own to compare.

Both release the GIL on large inputs, so `intake.py` runs `Digest.update` beside the loop.
"""

import hashlib

import msgspec

from verditer.core.crc64 import crc64nvme
from verditer.core.errors import Code, digest_mismatch


class Checksums(msgspec.Struct, frozen=True, kw_only=True):
    """What the client says its bytes add up to; None where it says nothing."""

    md5: bytes | None = None
    crc64: bytes | None = None


def digest(data: bytes) -> tuple[bytes, bytes]:
    """MD5 and CRC64 of a body that is all here."""
    return hashlib.md5(data, usedforsecurity=False).digest(), crc64nvme(data).to_bytes(8, "little")


class Digest:
    """The same for a body that arrives in pieces."""

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
    """Refuse bytes that are not what the client meant to send."""
    if expected.md5 is not None and expected.md5 != md5:
        raise digest_mismatch(Code.Md5Mismatch, "Md5", expected.md5, md5)
    if expected.crc64 is not None and expected.crc64 != crc64:
        raise digest_mismatch(Code.Crc64Mismatch, "Crc64", expected.crc64, crc64)
