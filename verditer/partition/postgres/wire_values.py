"""Values in PostgreSQL's binary format: the few types that the engine's statements take and return."""

import struct
from collections.abc import Collection, Sequence

_array = struct.Struct(">iiiii").pack  # dimensions, has NULLs, element type, length, lower bound
_int64 = struct.Struct(">q")
_length = struct.Struct(">i").pack
_BYTEA, _INT8, _BOOL = 17, 20, 16


def bytes_array(values: Collection[bytes]) -> bytes:
    parts = [_array(1, 0, _BYTEA, len(values), 1)]
    for value in values:
        parts.append(_length(len(value)))
        parts.append(value)
    return b"".join(parts)


def int_array(values: Sequence[int]) -> bytes:
    return _array(1, 0, _INT8, len(values), 1) + b"".join([b"\0\0\0\x08" + _int64.pack(value) for value in values])


def bool_array(values: Sequence[bool]) -> bytes:
    return _array(1, 0, _BOOL, len(values), 1) + b"".join([b"\0\0\0\x01\x01" if value else b"\0\0\0\x01\x00" for value in values])


def int_value(value: int) -> bytes:
    return _int64.pack(value)


def int_of(value: bytes | None) -> int:
    assert value is not None
    number: int = _int64.unpack(value)[0]
    return number
