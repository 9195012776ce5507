"""CREATE (MS-SMB2 2.2.13 and 2.2.14): the request, its list of contexts, and the answer.

A context is a tag and a value; `smb/handlers/create_contexts.py` knows the tags.
"""

import struct
from collections.abc import Sequence
from typing import NamedTuple

from verditer.smb.status import SmbError, Status
from verditer.smb.wire.fields import HEADER_BYTES, part, text

RESPONSE_SIZE = 89
MAX_CONTEXTS = 64  # of this server: clients send up to six

_REQUEST = struct.Struct("<HBBIQQIIIIIHHII")
_RESPONSE = struct.Struct("<HBBI6QII16sII")
_CONTEXT = struct.Struct("<IHHHHI")
_CONTEXTS_AT = HEADER_BYTES + _RESPONSE.size


class CreateContext(NamedTuple):
    tag: bytes
    data: bytes


class CreateRequest(NamedTuple):
    oplock: int
    impersonation: int
    access: int
    attributes: int
    share_mode: int
    disposition: int
    options: int
    name: str
    contexts: list[CreateContext]


class Times(NamedTuple):
    """FILETIMEs, in the order in which every structure has them."""

    creation: int
    last_access: int
    last_write: int
    change: int


class CreateResponse(NamedTuple):
    oplock: int
    action: int
    times: Times
    allocation_bytes: int
    size_bytes: int
    attributes: int
    file_id: bytes
    contexts: Sequence[CreateContext] = ()


def parse_create(message: memoryview) -> CreateRequest:
    fields = _REQUEST.unpack_from(message, HEADER_BYTES)
    _, _, oplock, impersonation, _, _, access, attributes, share_mode, disposition, options = fields[:11]
    name_at, name_bytes, contexts_at, contexts_bytes = fields[11:]
    name = part(message, name_at, name_bytes, earliest=HEADER_BYTES + _REQUEST.size)
    contexts = part(message, contexts_at, contexts_bytes, earliest=HEADER_BYTES + _REQUEST.size)
    return CreateRequest(
        oplock, impersonation, access, attributes, share_mode, disposition, options, text(name), parse_contexts(contexts)
    )


def build_create(response: CreateResponse) -> bytes:
    contexts = build_contexts(response.contexts)
    fixed = _RESPONSE.pack(
        RESPONSE_SIZE,
        response.oplock,
        0,
        response.action,
        *response.times,
        response.allocation_bytes,
        response.size_bytes,
        response.attributes,
        0,
        response.file_id,
        _CONTEXTS_AT if contexts else 0,
        len(contexts),
    )
    return fixed + contexts


def parse_contexts(data: memoryview) -> list[CreateContext]:
    """Every context lies within its own part of the list, and every part begins at a multiple of eight bytes."""
    found: list[CreateContext] = []
    while data:
        if len(data) < _CONTEXT.size or len(found) == MAX_CONTEXTS:
            raise SmbError(Status.INVALID_PARAMETER)
        following, tag_at, tag_bytes, _, data_at, data_bytes = _CONTEXT.unpack_from(data)
        if following % 8 or following > len(data) or (following and following < _CONTEXT.size):
            raise SmbError(Status.INVALID_PARAMETER)
        own = data[:following] if following else data
        tag = part(own, tag_at, tag_bytes, earliest=_CONTEXT.size)
        value = part(own, data_at, data_bytes, earliest=_CONTEXT.size)
        if tag_bytes < 4:
            raise SmbError(Status.INVALID_PARAMETER)
        found.append(CreateContext(bytes(tag), bytes(value)))
        data = data[following:] if following else data[:0]
    return found


def build_contexts(contexts: Sequence[CreateContext]) -> bytes:
    """The tag follows the header, and the value the tag, each at a multiple of eight bytes."""
    built = bytearray()
    for number, context in enumerate(contexts, start=1):
        value_at = -(-(_CONTEXT.size + len(context.tag)) // 8) * 8
        size = value_at + len(context.data)
        padded = -(-size // 8) * 8
        is_last = number == len(contexts)
        header = _CONTEXT.pack(0 if is_last else padded, _CONTEXT.size, len(context.tag), 0, value_at, len(context.data))
        block = (header + context.tag).ljust(value_at, b"\0") + context.data
        built += block if is_last else block.ljust(padded, b"\0")
    return bytes(built)
