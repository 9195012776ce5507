"""Connection-oriented remote procedure calls (C706 chapter 12, MS-RPCE): bind, request, and their answers. Only the server
service can be bound, and only with NDR."""

import logging
import struct
from collections.abc import Iterator
from typing import NamedTuple

from verditer.services.context import Context
from verditer.smb.pipes.ndr import NdrError, NdrReader
from verditer.smb.pipes.srvsvc import CALLS, SRVSVC, SRVSVC_VERSION

logger = logging.getLogger("verditer")
_HEADER = struct.Struct("<BBBBIHHI")
_BIND = struct.Struct("<HHIB3x")
_CONTEXT = struct.Struct("<HBx16sI")
_BIND_ACK = struct.Struct("<HHI")
_RESULT = struct.Struct("<HH16sI")
_REQUEST = struct.Struct("<IHH")
_RESPONSE = struct.Struct("<IHH")
_FAULT = struct.Struct("<IHHII")
_REQUEST_TYPE, _RESPONSE_TYPE, _FAULT_TYPE, _BIND_TYPE, _BIND_ACK_TYPE, _BIND_NAK_TYPE, _ALTER_TYPE, _ALTER_ACK_TYPE = (
    0, 2, 3, 11, 12, 13, 14, 15,
)  # fmt: skip
_FIRST, _LAST, _HAS_OBJECT = 0x1, 0x2, 0x80
_LITTLE_ENDIAN = 0x10
_NDR = bytes.fromhex("045d888aeb1cc9119fe808002b104860")  # 8a885d04-1ceb-11c9-9fe8-08002b104860, version 2.0
_NDR_VERSION = 2
_NO_SYNTAX = bytes(16)
_ACCEPTED, _REJECTED = 0, 2
_WRONG_INTERFACE, _WRONG_TRANSFER = 1, 2
_FAULT_NO_OPERATION, _FAULT_NO_INTERFACE, _FAULT_ARGUMENTS = 0x1C010002, 0x1C010003, 0x000006F7
_NAK_NO_AUTHENTICATION = 8
MIN_FRAGMENT, MAX_FRAGMENT = 1024, 4280
MAX_REQUEST = 64 * 1024
MAX_BOUND = 16


class RpcError(ValueError):
    """The bytes are no remote procedure call."""


class Fragment(NamedTuple):
    kind: int
    flags: int
    call_id: int
    body: bytes
    is_authenticated: bool


class RpcServer:
    """The calls of one pipe. `account` is the account whose shares it shows."""

    def __init__(self, ctx: Context, account: str) -> None:
        self._ctx = ctx
        self._account = account
        self._bound: set[int] = set()
        self._max_fragment = MAX_FRAGMENT
        self._arguments = b""

    async def answer(self, fragment: Fragment) -> list[bytes]:
        """The fragments that answer a fragment: none while a request is incomplete."""
        if fragment.is_authenticated:
            return [_fragment(_BIND_NAK_TYPE, fragment.call_id, struct.pack("<HB", _NAK_NO_AUTHENTICATION, 0))]
        if fragment.kind in (_BIND_TYPE, _ALTER_TYPE):
            kind = _BIND_ACK_TYPE if fragment.kind == _BIND_TYPE else _ALTER_ACK_TYPE
            return [_fragment(kind, fragment.call_id, self._bind(fragment.body))]
        if fragment.kind != _REQUEST_TYPE:
            raise RpcError("neither a bind nor a request")
        return await self._request(fragment)

    def _bind(self, body: bytes) -> bytes:
        if len(body) < _BIND.size:
            raise RpcError("a bind is too short")
        _, receives, group, count = _BIND.unpack_from(body)
        self._max_fragment = max(MIN_FRAGMENT, min(receives, MAX_FRAGMENT))
        results = b"".join(self._bind_context(*context) for context in _contexts(body, count))
        address = b"\\PIPE\\srvsvc\0"
        ack = _BIND_ACK.pack(self._max_fragment, self._max_fragment, group or 1) + struct.pack("<H", len(address)) + address
        ack += bytes(-(len(ack) + _HEADER.size) % 4)
        return ack + struct.pack("<B3x", count) + results

    def _bind_context(self, number: int, interface: bytes, version: int, offers_ndr: bool) -> bytes:
        if interface != SRVSVC or version & 0xFFFF != SRVSVC_VERSION:
            return _RESULT.pack(_REJECTED, _WRONG_INTERFACE, _NO_SYNTAX, 0)
        if not offers_ndr or len(self._bound) >= MAX_BOUND:
            return _RESULT.pack(_REJECTED, _WRONG_TRANSFER, _NO_SYNTAX, 0)
        self._bound.add(number)
        return _RESULT.pack(_ACCEPTED, 0, _NDR, _NDR_VERSION)

    async def _request(self, fragment: Fragment) -> list[bytes]:
        if len(fragment.body) < _REQUEST.size:
            raise RpcError("a request is too short")
        _, context, operation = _REQUEST.unpack_from(fragment.body)
        start = _REQUEST.size + (16 if fragment.flags & _HAS_OBJECT else 0)
        self._arguments = (b"" if fragment.flags & _FIRST else self._arguments) + fragment.body[start:]
        if len(self._arguments) > MAX_REQUEST:
            raise RpcError("a request is too long")
        if not fragment.flags & _LAST:
            return []
        call, arguments, self._arguments = CALLS.get(operation), self._arguments, b""
        if context not in self._bound:
            return [_fault(fragment.call_id, context, _FAULT_NO_INTERFACE)]
        if call is None:
            return [_fault(fragment.call_id, context, _FAULT_NO_OPERATION)]
        try:
            result = await call(self._ctx, self._account, NdrReader(arguments))
        except NdrError:
            return [_fault(fragment.call_id, context, _FAULT_ARGUMENTS)]
        return list(self._response(fragment.call_id, context, result.bytes()))

    def _response(self, call_id: int, context: int, result: bytes) -> Iterator[bytes]:
        room = self._max_fragment - _HEADER.size - _RESPONSE.size
        for at in range(0, len(result), room):
            flags = (0 if at else _FIRST) | (_LAST if at + room >= len(result) else 0)
            body = _RESPONSE.pack(len(result) - at, context, 0) + result[at : at + room]
            yield _fragment(_RESPONSE_TYPE, call_id, body, flags)


def _contexts(body: bytes, count: int) -> Iterator[tuple[int, bytes, int, bool]]:
    """The interfaces that a bind names: number, interface, version, and whether NDR is among the encodings."""
    at = _BIND.size
    for _ in range(count):
        if at + _CONTEXT.size > len(body):
            raise RpcError("a bind is too short")
        number, syntaxes, interface, version = _CONTEXT.unpack_from(body, at)
        at += _CONTEXT.size
        offered = body[at : at + 20 * syntaxes]
        at += 20 * syntaxes
        yield number, interface, version, any(offered[start : start + 16] == _NDR for start in range(0, len(offered), 20))


def parse_fragment(data: bytes) -> tuple[Fragment, int]:
    """The first fragment of what a client wrote, and its length."""
    version, minor, kind, flags, representation, length, authentication, call_id = _HEADER.unpack_from(data)
    if version != 5 or minor > 1 or representation & 0xFF != _LITTLE_ENDIAN or length < _HEADER.size:
        raise RpcError("no fragment of a remote procedure call")
    return Fragment(kind, flags, call_id, data[_HEADER.size : length], bool(authentication)), length


HEADER_SIZE = _HEADER.size


def fragment_length(data: bytes) -> int:
    """How long the first fragment is."""
    return int(_HEADER.unpack_from(data)[5])


def _fragment(kind: int, call_id: int, body: bytes, flags: int = _FIRST | _LAST) -> bytes:
    return _HEADER.pack(5, 0, kind, flags, _LITTLE_ENDIAN, _HEADER.size + len(body), 0, call_id) + body


def _fault(call_id: int, context: int, status: int) -> bytes:
    return _fragment(_FAULT_TYPE, call_id, _FAULT.pack(32, context, 0, status, 0))
