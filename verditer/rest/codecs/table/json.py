"""JSON bodies of the Table service. Duplicate members are found, and whole numbers stay distinct from doubles."""

from codecs import BOM_UTF8
from collections.abc import Callable
from typing import Any

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.services.table.properties import Sent, own_properties, sent_keys


def parse_new_table(document: bytes) -> dict[str, object]:
    name = _sent(document).get("TableName")
    if name is None:
        raise StorageError(Code.PropertiesNeedValue)
    if not isinstance(name, str):
        raise StorageError(Code.InvalidInput)
    return {"table": name}


def parse_new_entity(document: bytes) -> dict[str, object]:
    sent = _sent(document)
    partition_key, row_key = sent_keys(sent)
    return {"partition_key": partition_key, "row_key": row_key, "properties": own_properties(sent)}


def parse_entity(document: bytes) -> dict[str, object]:
    """The body of an update or merge; the keys are in the URL, and an empty body has no properties."""
    return {"properties": own_properties(_sent(document)) if document.strip() else {}}


def _sent(document: bytes) -> Sent:
    """The members of an object. The decoder keeps only the last of two members with one name, so duplicates are detected by the
    number of quotes."""
    document = document.removeprefix(BOM_UTF8)
    try:
        sent = _decode_flat(document)
        quotes = 2 * (len(sent) + [*map(type, sent.values())].count(str))
    except (msgspec.DecodeError, UnicodeDecodeError):
        sent, quotes = _with_nested(document)
    if len(sent) > MAX_MEMBERS:
        raise StorageError(Code.TooManyProperties)
    if _quotes(document) != quotes:
        raise StorageError(Code.DuplicatePropertiesSpecified)
    return sent


def _with_nested(document: bytes) -> tuple[dict[str, Any], int]:
    """The same for an object with arrays or objects among its members, whose contents are skipped; and the number of quotes."""
    try:
        document.decode()
        raw = _decode_raw(document)
        if len(raw) > MAX_MEMBERS:
            raise StorageError(Code.TooManyProperties)
        texts = {name: bytes(value) for name, value in raw.items()}
        sent = {name: NESTED if text[:1] in (b"[", b"{") else _decode_scalar(text) for name, text in texts.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise StorageError(Code.InvalidInput) from None
    return sent, sum(2 + _quotes(text) for text in texts.values())


_BACKSLASH = ord("\\")  # searching bytes for a number is much faster than for bytes


def _quotes(document: bytes) -> int:
    """The quotes that begin or end a string."""
    if _BACKSLASH in document:
        document = document.replace(b"\\\\", b"").replace(b'\\"', b"")
    return document.count(b'"')


NESTED = ()  # a placeholder of a type that no property can have
MAX_MEMBERS = 1000  # the largest entity with its annotations, and about as many members that are null or ignored
Scalar = str | int | float | bool | None
_decode_flat = msgspec.json.Decoder(dict[str, Scalar]).decode
_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_scalar: Callable[[bytes], Scalar] = msgspec.json.Decoder(Scalar).decode
