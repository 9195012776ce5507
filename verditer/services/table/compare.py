"""The meaning of a filter for a stored record, compiled to one function.

A comparison with an absent property is false, also for `ne`, so its negation is true. Values of different types never compare as
true, except that a whole number in the filter is widened to the type of the property: Int32 → Int64 → Double, never narrowed.
Text is ordered by UTF-16 code unit, GUIDs by their text, binary by its bytes, moments by their ticks; NaN differs from every
value.
"""

import base64
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from verditer.core.edm import ANNOTATION, Edm, JsonValue, double_of
from verditer.services.table.filter import And, Compare, Constant, Literal, Node, Not, Or

T = TypeVar("T")
MemberTest = Callable[[Any, str | None], bool]
"""Whether the value of a member, with its annotation, meets a comparison."""
System = Mapping[str, Callable[[Any], tuple[str, str | None]]]
"""The properties that are fields of a record instead of members of its document, and how to read them."""

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
}
_INT64, _DOUBLE, _BINARY = Edm.INT64.value, Edm.DOUBLE.value, Edm.BINARY.value


def compile_filter(node: Node, system: System, document: Callable[[T], bytes]) -> Callable[[T], bool]:
    """A predicate over records."""
    matching = compile_selection(node, system, document)
    return lambda record: bool(matching([record]))


def compile_selection(node: Node, system: System, document: Callable[[T], bytes]) -> Callable[[Sequence[T]], list[T]]:
    """A function that selects the matching records. It decodes only the members that the filter names, for all records at once,
    and decodes nothing when the filter names none."""
    names = tuple(sorted(_names(node) - set(system)))
    test = _compile(node, system, {name: index for index, name in enumerate(names)})
    if not names:
        return lambda records: [record for record in records if test(record, None)]
    decode = _rows_decoder(names)

    def matching(records: Sequence[T]) -> list[T]:
        rows = decode(b"[%b]" % b",".join(map(document, records)))
        return [record for record, row in zip(records, rows, strict=True) if test(record, row)]

    return matching


def _names(node: Node) -> set[str]:
    if isinstance(node, Compare):
        return {node.name}
    if isinstance(node, And | Or):
        return set().union(*[_names(part) for part in node.parts])
    return _names(node.part) if isinstance(node, Not) else set()


def _rows_decoder(names: tuple[str, ...]) -> Callable[[bytes], list[Any]]:
    fields: list[tuple[str, Any, None]] = []
    wire: dict[str, str] = {}
    for index, name in enumerate(names):
        fields += [(f"v{index}", JsonValue | None, None), (f"a{index}", str | None, None)]
        wire |= {f"v{index}": name, f"a{index}": name + ANNOTATION}
    row = msgspec.defstruct("Row", fields, rename=wire, gc=False)
    return msgspec.json.Decoder(list[row]).decode  # type: ignore[valid-type]


def _compile(node: Node, system: System, slots: dict[str, int]) -> Callable[[Any, Any], bool]:
    if isinstance(node, Compare):
        return _comparison(test_of(node.op, node.literal), system.get(node.name), slots.get(node.name))
    if isinstance(node, Constant):
        value = node.value
        return lambda record, row: value
    if isinstance(node, Not):
        part = _compile(node.part, system, slots)
        return lambda record, row: not part(record, row)
    parts = [_compile(part, system, slots) for part in node.parts]
    if len(parts) == 2:
        first, second = parts
        if isinstance(node, And):
            return lambda record, row: first(record, row) and second(record, row)
        return lambda record, row: first(record, row) or second(record, row)
    if isinstance(node, And):
        return lambda record, row: all(part(record, row) for part in parts)
    return lambda record, row: any(part(record, row) for part in parts)


def _comparison(
    test: MemberTest, read: Callable[[Any], tuple[str, str | None]] | None, slot: int | None
) -> Callable[[Any, Any], bool]:
    if read is not None:
        reader = read
        return lambda record, row: test(*reader(record))
    members = operator.attrgetter(f"v{slot}", f"a{slot}")
    return lambda record, row: test(*members(row))


def test_of(op: str, literal: Literal) -> MemberTest:
    return _TESTS[literal.kind](op, literal.value)


test_of.__test__ = False  # type: ignore[attr-defined]  # pytest would take it for a test


def _text(op: str, value: Any) -> MemberTest:
    compare = _OPERATORS[op]
    if op == "eq":
        return lambda found, annotation: annotation is None and found == value
    if op == "ne":
        return lambda found, annotation: annotation is None and type(found) is str and found != value
    is_ascii, units, enough = (
        value.isascii(),
        _units(value),
        len(value) + 1,
    )  # characters beyond this cannot decide the comparison
    return lambda found, annotation: (
        annotation is None
        and type(found) is str
        and (compare(found, value) if is_ascii and found.isascii() else compare(_units(found[:enough]), units))
    )


def _units(text: str) -> bytes:
    """Bytes that sort in the order of the UTF-16 code units of the text."""
    return text.encode("utf-16-be", "surrogatepass")


def _binary(op: str, value: Any) -> MemberTest:
    compare, enough = _OPERATORS[op], (len(value) + 3) // 3 * 4  # characters of base64 for one byte more than the literal has
    return lambda found, annotation: annotation == _BINARY and compare(base64.b64decode(found[:enough]), value)


def _whole(plain: tuple[type, ...], op: str, value: Any) -> MemberTest:
    """`plain` are the types of values without annotation that the literal compares with."""
    compare = _OPERATORS[op]

    def test(found: Any, annotation: str | None) -> bool:
        if annotation is None:
            return type(found) in plain and compare(found, value)
        if annotation == _INT64:
            return compare(int(found), value)
        return annotation == _DOUBLE and compare(double_of(found), value)

    return test


def _double(op: str, value: Any) -> MemberTest:
    compare = _OPERATORS[op]

    def test(found: Any, annotation: str | None) -> bool:
        if annotation is None:
            return type(found) is float and compare(found, value)
        return annotation == _DOUBLE and compare(double_of(found), value)

    return test


def _boolean(op: str, value: Any) -> MemberTest:
    compare = _OPERATORS[op]
    return lambda found, annotation: type(found) is bool and compare(found, value)


def _annotated(kind: Edm, read: Callable[[str], Any]) -> Callable[[str, Any], MemberTest]:
    name = kind.value

    def factory(op: str, value: Any) -> MemberTest:
        compare = _OPERATORS[op]
        return lambda found, annotation: annotation == name and compare(read(found), value)

    return factory


_TESTS: dict[Edm, Callable[[str, Any], MemberTest]] = {
    Edm.STRING: _text,
    Edm.INT32: partial(_whole, (int, float)),
    Edm.INT64: partial(_whole, (float,)),
    Edm.DOUBLE: _double,
    Edm.BOOLEAN: _boolean,
    Edm.DATETIME: _annotated(Edm.DATETIME, lambda text: text[:-1]),
    Edm.GUID: _annotated(Edm.GUID, str),
    Edm.BINARY: _binary,
}
