"""The entity that a client sent → its keys and `Members`: the rules for names, types, nulls and sizes."""

from collections.abc import Mapping

from verditer.core.caches import BoundedCache
from verditer.core.edm import (
    ANNOTATION,
    Edm,
    Members,
    binary_bytes,
    encode_members,
    infer_value,
    invalid_value,
    kind_of,
    read_annotated,
    size_of,
    utf16_units,
)
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_ENTITY_BYTES, MAX_PROPERTIES, MAX_PROPERTY_BYTES, MAX_PROPERTY_NAME

Sent = Mapping[str, object]
"""The members of the JSON object a client sent."""

_SYSTEM = frozenset(
    {"PartitionKey", "RowKey", "Timestamp", "__metadata"}
)  # ignored when a client sends them: the server sets them
_STRING, _BINARY = Edm.STRING.value, Edm.BINARY.value
_MAX_CACHED, _MAX_CACHED_LENGTH = 256, 4096  # entries of the cache, and characters of one of them
_SHORT_DOCUMENT = MAX_PROPERTY_BYTES // 4  # bytes of JSON: no property of an entity this small is too long
_SMALL_DOCUMENT = MAX_ENTITY_BYTES // 4  # bytes of JSON: the size by Azure's formula is at most a little more than double


def own_properties(sent: Sent) -> Members:
    """The properties that are stored: not the keys, not the Timestamp, not `odata.…`, and nothing that is null."""
    names = tuple(sent)
    members: Members = {}
    for name, annotation in _NAMES_CACHE.get(names) or _own_names(names):
        value = sent[name]
        if value is None:
            continue
        if annotation is None or (kind := sent[annotation]) is None:
            members[name] = value if isinstance(value, (str, bool)) else infer_value(value)
            continue
        wire = read_annotated(kind, value)
        if isinstance(wire, str) and kind != _STRING:
            members[annotation] = str(kind)
        members[name] = wire
    return members


Names = tuple[tuple[str, str | None], ...]
_NAMES_CACHE = BoundedCache[tuple[str, ...], Names](_MAX_CACHED)  # a program sends entities with few different sets of names


def _own_names(names: tuple[str, ...]) -> Names:
    """The names to store, each with the name of its annotation if it has one."""
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
    if sum(map(len, names)) < _MAX_CACHED_LENGTH:
        _NAMES_CACHE.keep(names, tuple(found))
    return tuple(found)


def sent_keys(sent: Sent) -> tuple[str, str]:
    """PartitionKey and RowKey of an insert. Both are required and have to be strings."""
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
    """The document to store; StorageError when the entity is too large."""
    names = sum(not name.endswith(ANNOTATION) for name in members) if len(members) > MAX_PROPERTIES else 0
    if names > MAX_PROPERTIES:
        raise StorageError(Code.TooManyProperties)
    try:
        document = encode_members(members)
    except UnicodeEncodeError:  # half a surrogate pair
        raise invalid_value() from None
    if len(document) > _SHORT_DOCUMENT:
        _check_lengths(members)
    if len(document) > _SMALL_DOCUMENT and _entity_bytes(members, partition_key, row_key) > MAX_ENTITY_BYTES:
        raise StorageError(Code.EntityTooLarge)
    return document


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
    """The sent properties replace stored ones, together with their types; the others stay."""
    kept = {name: value for name, value in current.items() if name.removesuffix(ANNOTATION) not in change}
    return kept | change
