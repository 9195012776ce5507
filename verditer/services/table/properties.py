"""What a client sends as an entity becomes its keys and `Members`: the rules for names, types, nulls and sizes."""

from collections.abc import Mapping

from verditer.core.caches import Kept
from verditer.core.edm import (
    ANNOTATION,
    Edm,
    Members,
    annotated,
    binary_bytes,
    encode_members,
    inferred,
    invalid_value,
    kind_of,
    size_of,
    utf16_units,
)
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_ENTITY_BYTES, MAX_PROPERTIES, MAX_PROPERTY_BYTES, MAX_PROPERTY_NAME
from verditer.core.records.table import padded

Sent = Mapping[str, object]
"""The members of the JSON object a client sent."""

_SYSTEM = frozenset({"PartitionKey", "RowKey", "Timestamp", "__metadata"})  # a client may send them; the server knows better
_STRING, _BINARY = Edm.STRING.value, Edm.BINARY.value
_MOST_FORMS, _SMALL_FORM = 256, 4096  # what is kept of them: how many, and of how many characters
_SURELY_SHORT = MAX_PROPERTY_BYTES // 4  # bytes of JSON: no property of an entity this small is too long
_SURELY_SMALL = MAX_ENTITY_BYTES // 4  # bytes of JSON: the size by Azure's formula is at most double, and a little


def own_properties(sent: Sent) -> Members:
    """The properties that are stored: not the keys, not the Timestamp, not `odata.…`, and nothing that is null."""
    names = tuple(sent)
    members: Members = {}
    for name, annotation in _KNOWN.get(names) or _own_names(names):
        value = sent[name]
        if value is None:
            continue
        if annotation is None or (kind := sent[annotation]) is None:
            members[name] = value if isinstance(value, (str, bool)) else inferred(value)
            continue
        wire = annotated(kind, value)
        if isinstance(wire, str) and kind != _STRING:
            members[annotation] = str(kind)
        members[name] = wire
    return members


Names = tuple[tuple[str, str | None], ...]
_KNOWN = Kept[tuple[str, ...], Names](_MOST_FORMS)  # a program sends entities of few forms


def _own_names(names: tuple[str, ...]) -> Names:
    """The names to store, each with that of its annotation if it has one."""
    annotations = {name for name in names if name.endswith(ANNOTATION)}
    found: list[tuple[str, str | None]] = []
    for name in names:
        if not name.isidentifier():
            if "@odata." in name or name.startswith("odata."):
                continue
            raise StorageError(Code.PropertyNameInvalid)
        if name in _SYSTEM:
            continue
        if len(name) > MAX_PROPERTY_NAME:
            raise StorageError(Code.PropertyNameTooLong)
        found.append((name, name + ANNOTATION if name + ANNOTATION in annotations else None))
    if sum(map(len, names)) < _SMALL_FORM:
        _KNOWN.keep(names, tuple(found))
    return tuple(found)


def sent_keys(sent: Sent) -> tuple[str, str]:
    """PartitionKey and RowKey of an insert. Both have to be there, and to be strings."""
    return _key(sent, "PartitionKey", _PARTITION_TYPE), _key(sent, "RowKey", _ROW_TYPE)


_PARTITION_TYPE, _ROW_TYPE = "PartitionKey" + ANNOTATION, "RowKey" + ANNOTATION


def _key(sent: Sent, name: str, annotation: str) -> str:
    value = sent.get(name)
    if value is None:
        raise StorageError(Code.PropertiesNeedValue)
    if not isinstance(value, str) or (annotation in sent and sent[annotation] not in (None, _STRING)):
        raise StorageError(Code.InvalidInput)
    return value


def document_of(members: Members, partition_key: str, row_key: str) -> bytes:
    """The stored document, refused when the entity would be too large."""
    names = sum(not name.endswith(ANNOTATION) for name in members) if len(members) > MAX_PROPERTIES else 0
    if names > MAX_PROPERTIES:
        raise StorageError(Code.TooManyProperties)
    try:
        document = encode_members(members)
    except UnicodeEncodeError:  # half a surrogate pair
        raise invalid_value() from None
    if len(document) > _SURELY_SHORT:
        _check_lengths(members)
    if len(document) > _SURELY_SMALL and _entity_bytes(members, partition_key, row_key) > MAX_ENTITY_BYTES:
        raise StorageError(Code.EntityTooLarge)
    return padded(document)


def _check_lengths(members: Members) -> None:
    for name, value in members.items():
        if isinstance(value, str):
            is_binary = members.get(name + ANNOTATION) == _BINARY
            if (binary_bytes(value) if is_binary else 2 * utf16_units(value)) > MAX_PROPERTY_BYTES:
                raise StorageError(Code.PropertyValueTooLarge)


def _entity_bytes(members: Members, partition_key: str, row_key: str) -> int:
    size = 4 + 2 * (utf16_units(partition_key) + utf16_units(row_key))
    for name, value in members.items():
        if not name.endswith(ANNOTATION):
            annotation = members.get(name + ANNOTATION)
            kind = kind_of(value, None if annotation is None else str(annotation))
            size += 8 + 2 * utf16_units(name) + size_of(kind, value)
    return size


def merged(current: Members, change: Members) -> Members:
    """What is sent replaces what was there, with its type; the rest stays."""
    kept = {name: value for name, value in current.items() if name.removesuffix(ANNOTATION) not in change}
    return kept | change
