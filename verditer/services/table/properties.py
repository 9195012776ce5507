"""What a client sends as an entity becomes its keys and `Members`: the rules for names, types, nulls and sizes."""

from collections.abc import Sequence

from verditer.core.edm import (
    ANNOTATION,
    Edm,
    Members,
    Wire,
    binary_bytes,
    canonical,
    encode_members,
    infer,
    invalid_value,
    kind_of,
    put,
    size_of,
    type_named,
    utf16_units,
)
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_ENTITY_BYTES, MAX_PROPERTIES, MAX_PROPERTY_BYTES, MAX_PROPERTY_NAME

Pairs = Sequence[tuple[str, object]]
"""The members of a JSON object in the order sent, the same name twice included."""

KEYS = ("PartitionKey", "RowKey")
_SYSTEM = frozenset({*KEYS, "Timestamp", "__metadata"})  # a client may send them; the server knows better
_SURELY_SMALL = MAX_ENTITY_BYTES // 4  # bytes of JSON: the size by Azure's formula is at most double, and a little


def own_properties(pairs: Pairs) -> Members:
    """The properties that are stored: not the keys, not the Timestamp, not `odata.…`, and nothing that is null."""
    sent = _unique(pairs)
    annotated = ANNOTATION in "".join(sent)
    members: Members = {}
    for name, value in sent.items():
        if not name.isidentifier():
            if "@odata." in name or name.startswith("odata."):
                continue
            raise StorageError(Code.PropertyNameInvalid)
        if value is None or name in _SYSTEM:
            continue
        if len(name) > MAX_PROPERTY_NAME:
            raise StorageError(Code.PropertyNameTooLong)
        kind, wire = _typed(value, sent.get(name + ANNOTATION)) if annotated else infer(value)
        if wire.__class__ is str:
            _check_length(kind, wire)
        put(members, name, kind, wire)
    return members


def sent_keys(pairs: Pairs) -> tuple[str, str]:
    """PartitionKey and RowKey of an insert. Both have to be there, and to be strings."""
    sent = _unique(pairs)
    partition_key, row_key = (_key(sent.get(name), sent.get(name + ANNOTATION)) for name in KEYS)
    return partition_key, row_key


def _key(value: object, annotation: object) -> str:
    if value is None:
        raise StorageError(Code.PropertiesNeedValue)
    if not isinstance(value, str) or annotation not in (None, Edm.STRING.value):
        raise StorageError(Code.InvalidInput)
    return value


def _unique(pairs: Pairs) -> dict[str, object]:
    sent = dict(pairs)
    if len(sent) != len(pairs):
        raise StorageError(Code.DuplicatePropertiesSpecified)
    return sent


def _typed(value: object, annotation: object) -> tuple[Edm, Wire]:
    if annotation is None:
        return infer(value)
    kind = type_named(annotation)
    return kind, canonical(kind, value)


def _check_length(kind: Edm, value: Wire) -> None:
    text = str(value)
    if len(text) > MAX_PROPERTY_BYTES // 4:  # shorter text is small enough in any case
        size = binary_bytes(text) if kind is Edm.BINARY else 2 * utf16_units(text)
        if size > MAX_PROPERTY_BYTES:
            raise StorageError(Code.PropertyValueTooLarge)


def document_of(members: Members, partition_key: str, row_key: str) -> bytes:
    """The stored document, refused when the entity would be too large."""
    names = sum(not name.endswith(ANNOTATION) for name in members) if len(members) > MAX_PROPERTIES else 0
    if names > MAX_PROPERTIES:
        raise StorageError(Code.TooManyProperties)
    try:
        document = encode_members(members)
    except UnicodeEncodeError:  # half a surrogate pair
        raise invalid_value() from None
    if len(document) > _SURELY_SMALL and _entity_bytes(members, partition_key, row_key) > MAX_ENTITY_BYTES:
        raise StorageError(Code.EntityTooLarge)
    return document


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
