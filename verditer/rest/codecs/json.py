"""JSON bodies of the Table service, read so that nothing a client sent is lost: members twice, and whole numbers as such."""

import json
from typing import Any, NoReturn

from verditer.core.errors import Code, StorageError
from verditer.services.table.properties import Pairs, own_properties, sent_keys


def parse_new_table(document: bytes) -> dict[str, Any]:
    sent = dict(_pairs(document))
    name = sent.get("TableName")
    if name is None:
        raise StorageError(Code.PropertiesNeedValue)
    if not isinstance(name, str):
        raise StorageError(Code.InvalidInput)
    return {"table": name}


def parse_new_entity(document: bytes) -> dict[str, Any]:
    pairs = _pairs(document)
    partition_key, row_key = sent_keys(pairs)
    return {"partition_key": partition_key, "row_key": row_key, "properties": own_properties(pairs)}


def parse_entity(document: bytes) -> dict[str, Any]:
    """The body of an update or merge; the keys are the URL's, and an empty body has no properties."""
    return {"properties": own_properties(_pairs(document)) if document.strip() else {}}


class _Object(list[tuple[str, object]]):
    """A JSON object as its members in order. A type of its own, so that an array is not taken for one."""


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and Infinity are no JSON


_decode = json.JSONDecoder(object_pairs_hook=_Object, parse_constant=_refuse).decode


def _pairs(document: bytes) -> Pairs:
    try:
        found = _decode(document.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise StorageError(Code.InvalidInput) from None
    if not isinstance(found, _Object):
        raise StorageError(Code.InvalidInput)
    return found
