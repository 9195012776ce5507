"""SPNEGO (RFC 4178): the tokens around NTLM messages, as far as a server needs them that offers NTLM only."""

from collections.abc import Iterator
from typing import NamedTuple

ACCEPT_COMPLETED, ACCEPT_INCOMPLETE = 0, 1
_SPNEGO = bytes.fromhex("2b0601050502")
_NTLMSSP = bytes.fromhex("2b06010401823702020a")
_APPLICATION, _SEQUENCE, _OID, _OCTETS, _ENUMERATED = 0x60, 0x30, 0x06, 0x04, 0x0A
_INIT, _RESPONSE = 0xA0, 0xA1
MAX_MECHANISMS = 32


class TokenError(ValueError):
    """The bytes are no token of SPNEGO."""


class ClientToken(NamedTuple):
    """`mechanisms` is the encoded list of a first token, which the MIC covers; b"" in later ones."""

    token: bytes
    mic: bytes
    mechanisms: bytes
    offers_ntlm: bool
    prefers_ntlm: bool  # the token is already one of NTLM


def first_offer() -> bytes:
    """What the answer to NEGOTIATE says: this server speaks NTLM."""
    types = _element(0xA0, _element(_SEQUENCE, _element(_OID, _NTLMSSP)))
    return _element(_APPLICATION, _element(_OID, _SPNEGO) + _element(_INIT, _element(_SEQUENCE, types)))


def parse_token(data: bytes) -> ClientToken:
    tag, content = _single(data)
    if tag == _APPLICATION:
        parts = list(_elements(content))
        if len(parts) != 2 or parts[0] != (_OID, _SPNEGO) or parts[1][0] != _INIT:
            raise TokenError("not a first token")
        return _parse_init(parts[1][1])
    if tag != _RESPONSE:
        raise TokenError("neither a first token nor an answer")
    fields = _fields(content)
    return ClientToken(_octets(fields.get(0xA2)), _octets(fields.get(0xA3)), b"", True, True)


def _parse_init(content: bytes) -> ClientToken:
    fields = _fields(content)
    mechanisms = fields.get(0xA0, b"")
    tag, listed = _single(mechanisms)
    offered = [value for kind, value in _elements(listed) if kind == _OID]
    if tag != _SEQUENCE or not 1 <= len(offered) <= MAX_MECHANISMS:
        raise TokenError("no list of mechanisms")
    return ClientToken(
        _octets(fields.get(0xA2)), _octets(fields.get(0xA3)), mechanisms, _NTLMSSP in offered, offered[0] == _NTLMSSP
    )


def answer(state: int, *, token: bytes = b"", mic: bytes = b"", names_mechanism: bool = False) -> bytes:
    fields = _element(0xA0, _element(_ENUMERATED, bytes([state])))
    if names_mechanism:
        fields += _element(0xA1, _element(_OID, _NTLMSSP))
    if token:
        fields += _element(0xA2, _element(_OCTETS, token))
    if mic:
        fields += _element(0xA3, _element(_OCTETS, mic))
    return _element(_RESPONSE, _element(_SEQUENCE, fields))


def _fields(content: bytes) -> dict[int, bytes]:
    tag, sequence = _single(content)
    if tag != _SEQUENCE:
        raise TokenError("not a sequence")
    return dict(_elements(sequence))


def _octets(content: bytes | None) -> bytes:
    if content is None:
        return b""
    tag, value = _single(content)
    if tag != _OCTETS:
        raise TokenError("not an octet string")
    return value


def _single(data: bytes) -> tuple[int, bytes]:
    """The first element. What follows it is ignored, since some clients pad their tokens."""
    for element in _elements(data):
        return element
    raise TokenError("nothing where an element is expected")


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        if at + 2 > len(data):
            raise TokenError("an element ends early")
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4 or at + size > len(data):
                raise TokenError("a length has no valid form")
            length, at = int.from_bytes(data[at : at + size], "big"), at + size
        if at + length > len(data):
            raise TokenError("an element is longer than the token")
        yield tag, data[at : at + length]
        at += length


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + content
