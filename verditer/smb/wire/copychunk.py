"""Buffers of the server-side copy (MS-SMB2 2.2.31.1 and 2.2.32.1): resume keys, chunks, and what was copied."""

import struct
from typing import NamedTuple

from verditer.smb.status import SmbError, Status

MAX_CHUNKS, MAX_CHUNK_BYTES, MAX_TOTAL_BYTES = 256, 1 << 20, 16 << 20

_HEADER = struct.Struct("<24sII")
_CHUNK = struct.Struct("<QQII")
_RESULT = struct.Struct("<III")
RESULT_BYTES = _RESULT.size
RESUME_KEY_OUTPUT_BYTES = 32


class CopyRequest(NamedTuple):
    """`chunks` are (offset in the source, offset in the target, length)."""

    resume_key: bytes
    chunks: list[tuple[int, int, int]]


def build_resume_key(key: bytes) -> bytes:
    """The key, and a context that is empty."""
    return key.ljust(RESUME_KEY_OUTPUT_BYTES, b"\0")


def parse_copy(data: memoryview) -> CopyRequest | None:
    """None: the request is beyond the limits, which are the answer then."""
    if len(data) < _HEADER.size:
        raise SmbError(Status.INVALID_PARAMETER)
    key, count, _ = _HEADER.unpack_from(data)
    if count > MAX_CHUNKS:
        return None
    end = _HEADER.size + count * _CHUNK.size
    if end > len(data):
        raise SmbError(Status.INVALID_PARAMETER)
    chunks = [(source, target, length) for source, target, length, _ in _CHUNK.iter_unpack(data[_HEADER.size : end])]
    is_valid = all(0 < length <= MAX_CHUNK_BYTES for _, _, length in chunks)
    if not is_valid or sum(length for _, _, length in chunks) > MAX_TOTAL_BYTES:
        return None
    return CopyRequest(key, chunks)


def build_copied(chunks: int, total_bytes: int) -> bytes:
    return _RESULT.pack(chunks, 0, total_bytes)


def build_limits() -> bytes:
    return _RESULT.pack(MAX_CHUNKS, MAX_CHUNK_BYTES, MAX_TOTAL_BYTES)
