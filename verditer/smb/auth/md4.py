"""MD4 (RFC 1320), which NTLM hashes passwords with. OpenSSL 3 no longer offers it."""

import struct
from collections.abc import Callable

_WORDS = struct.Struct("<16I")
_LENGTH = struct.Struct("<Q")
_DIGEST = struct.Struct("<4I")
_MASK = 0xFFFFFFFF
_START = (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476)
Mix = Callable[[int, int, int], int]
_ROUNDS: tuple[tuple[int, tuple[int, ...], tuple[int, ...], Mix], ...] = (
    (0x00000000, (3, 7, 11, 19), tuple(range(16)), lambda b, c, d: (b & c) | (~b & d)),
    (
        0x5A827999,
        (3, 5, 9, 13),
        (0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
        lambda b, c, d: (b & c) | (b & d) | (c & d),
    ),
    (0x6ED9EBA1, (3, 9, 11, 15), (0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15), lambda b, c, d: b ^ c ^ d),
)


def md4(data: bytes) -> bytes:
    padded = data + b"\x80" + bytes((55 - len(data)) % 64) + _LENGTH.pack(len(data) * 8)
    state = _START
    for at in range(0, len(padded), 64):
        state = _block(state, _WORDS.unpack_from(padded, at))
    return _DIGEST.pack(*state)


def _block(state: tuple[int, int, int, int], words: tuple[int, ...]) -> tuple[int, int, int, int]:
    a, b, c, d = state
    for constant, shifts, order, mix in _ROUNDS:
        for step, word in enumerate(order):
            total = (a + (mix(b, c, d) & _MASK) + words[word] + constant) & _MASK
            shift = shifts[step % 4]
            a, b, c, d = d, (total << shift | total >> (32 - shift)) & _MASK, b, c
    return tuple((old + new) & _MASK for old, new in zip(state, (a, b, c, d), strict=True))  # type: ignore[return-value]
