"""JSON bodies of the Table service, read so that nothing a client sent is lost: members twice, and whole numbers as such."""

import json
from typing import Any, NoReturn

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.services.table.properties import Sent, own_properties, sent_keys, unique


def parse_new_table(document: bytes) -> dict[str, Any]:
    name = _sent(document).get("TableName")
    if name is None:
        raise StorageError(Code.PropertiesNeedValue)
    if not isinstance(name, str):
        raise StorageError(Code.InvalidInput)
    return {"table": name}


def parse_new_entity(document: bytes) -> dict[str, Any]:
    sent = _sent(document)
    partition_key, row_key = sent_keys(sent)
    return {"partition_key": partition_key, "row_key": row_key, "properties": own_properties(sent)}


def parse_entity(document: bytes) -> dict[str, Any]:
    """The body of an update or merge; the keys are the URL's, and an empty body has no properties."""
    return {"properties": own_properties(_sent(document)) if document.strip() else {}}


def _sent(document: bytes) -> Sent:
    """A flat object is read by the quick reader, which keeps only the last of two members with one name: that there are none
    is seen by the number of quotes. Whatever it cannot read or vouch for is read again, with care."""
    try:
        sent = _decode_quickly(document)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return unique(_pairs(document))
    texts = len(sent) + [*map(type, sent.values())].count(str)
    return sent if _quotes(document) == 2 * texts else unique(_pairs(document))


_BACKSLASH = ord("\\")  # bytes are asked for a number much faster than for bytes


def _quotes(document: bytes) -> int:
    """Those that begin or end a text."""
    if _BACKSLASH in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    return document.count(b'"')


class _Object(list[tuple[str, object]]):
    """A JSON object as its members in order. A type of its own, so that an array is not taken for one."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are no JSON


_decode_quickly = msgspec.json.Decoder(dict[str, Any]).decode
_decode = json.JSONDecoder(object_pairs_hook=_Object, parse_constant=_refuse).decode


def _pairs(document: bytes) -> _Object:
    try:
        found = _decode(document.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise StorageError(Code.InvalidInput) from None
    if not isinstance(found, _Object):
        raise StorageError(Code.InvalidInput)
    return found
