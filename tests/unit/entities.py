"""Entities and filters for tests: constants, and hypothesis strategies with few names and values, so that filters match."""

import base64
from collections.abc import Callable, Mapping

from hypothesis import strategies as st

from verditer.core.edm import ANNOTATION, Edm, JsonValue, Members, double_of, encode_members
from verditer.core.records.table import Entity
from verditer.services.table.compare import compile_filter
from verditer.services.table.filter import And, Compare, Constant, Literal, Node, Not, Or
from verditer.services.table.query import SYSTEM

Value = tuple[Edm, JsonValue]

KEYS = ["", "a", "ab", "b", "ba", "\uffff", "𝄞"]
NAMES = ["A", "B", "Ab"]
OPS = ["eq", "ne", "gt", "ge", "lt", "le"]


def put(members: Members, name: str, kind: Edm, value: JsonValue) -> None:
    """Set a property: one member, or a type annotation and its member."""
    if value.__class__ is str and kind is not Edm.STRING:
        members[name + ANNOTATION] = kind.value
    members[name] = value


def entity(partition_key: str, row_key: str, known: Mapping[str, Value], *, etag: int = 1, table_id: int = 1) -> Entity:
    members: Members = {}
    for name, (kind, value) in known.items():
        put(members, name, kind, value)
    return Entity(properties=encode_members(members), table_id=table_id, partition_key=partition_key, row_key=row_key, etag=etag)


def predicate(node: Node) -> Callable[[Entity], bool]:
    """The complete filter, compiled as in a query."""
    return compile_filter(node, SYSTEM, document_of)


def document_of(entity: Entity) -> bytes:
    return entity.properties


values: st.SearchStrategy[Value] = st.one_of(
    st.tuples(st.just(Edm.STRING), st.sampled_from([*KEYS, '"', '"A":"a"'])),
    st.tuples(st.just(Edm.INT32), st.integers(-2, 2)),
    st.tuples(st.just(Edm.INT64), st.integers(-2, 2).map(str)),
    st.tuples(st.just(Edm.INT64), st.sampled_from([str(2**63 - 1), str(-(2**63)), str(2**53 + 1)])),
    st.tuples(st.just(Edm.DOUBLE), st.sampled_from([-1.0, 0.5, 1.0, 1e22, 4.35, "NaN", "Infinity", "-Infinity"])),
    st.tuples(st.just(Edm.BOOLEAN), st.booleans()),
    st.tuples(st.just(Edm.DATETIME), st.sampled_from(["2020-01-01T00:00:00Z", "2020-01-01T00:00:00.5Z", "2021-01-01T00:00:00Z"])),
    st.tuples(st.just(Edm.GUID), st.sampled_from([f"{digit}0000000-0000-0000-0000-000000000000" for digit in "0af"])),
    st.tuples(st.just(Edm.BINARY), st.sampled_from(["", "AA==", "AAE=", "/w=="])),
)
properties = st.dictionaries(st.sampled_from(NAMES), values, max_size=3)


def literal_of(value: Value) -> Literal:
    """The literal that equals a stored value."""
    kind, wire = value
    if kind is Edm.INT64:
        return Literal(kind, int(wire))
    if kind is Edm.DOUBLE:
        return Literal(kind, double_of(wire))
    if kind is Edm.DATETIME:
        return Literal(kind, str(wire)[:-1])
    return Literal(kind, base64.b64decode(str(wire)) if kind is Edm.BINARY else wire)


def nodes(names: list[str] | None = None) -> st.SearchStrategy[Node]:
    names = names or [*NAMES, "PartitionKey", "RowKey"]
    of_keys = st.builds(
        Compare, st.sampled_from(["PartitionKey", "RowKey"]), st.sampled_from(OPS), st.sampled_from(KEYS).map(_text)
    )
    compare = st.builds(Compare, st.sampled_from(names), st.sampled_from(OPS), values.map(literal_of))
    leaves: st.SearchStrategy[Node] = st.one_of(of_keys, compare, st.booleans().map(Constant))
    return st.recursive(leaves, _grown, max_leaves=8)


def _grown(parts: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    some = st.lists(parts, min_size=2, max_size=3).map(tuple)
    return st.one_of(some.map(And), some.map(Or), parts.map(Not))


def _text(value: str) -> Literal:
    return Literal(Edm.STRING, value)
