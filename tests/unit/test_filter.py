"""`$filter`: grammar, literals, errors, and the meaning of each comparison for each type."""

import base64
import contextlib
import math
import operator
import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.entities import NAMES, Value, entity, literal_of, nodes, predicate, properties, values
from verditer.core.edm import Edm
from verditer.core.errors import Code, StorageError
from verditer.core.records.table import Entity
from verditer.services.table import compare
from verditer.services.table.filter import MAX_DEPTH, MAX_NAMES, And, Compare, Constant, Literal, Node, Not, Or, parse_filter


def text(value: str) -> Literal:
    return Literal(Edm.STRING, value)


A, B, C = (Compare(name, "eq", Literal(Edm.INT32, 1)) for name in "ABC")

# fmt: off
GRAMMAR: list[tuple[str, Node | None]] = [
    ("",                                    None),                                # T505
    ("   ",                                 None),
    ("true",                                Constant(True)),
    ("false",                               Constant(False)),
    ("A eq 1",                              A),
    ("  A   eq   1  ",                      A),
    ("1 eq A",                              A),                                   # T502
    ("1 lt A",                              Compare("A", "gt", Literal(Edm.INT32, 1))),
    ("1 ge A",                              Compare("A", "le", Literal(Edm.INT32, 1))),
    ("A eq 1 or B eq 1 and C eq 1",         Or((A, And((B, C))))),                # T500
    ("(A eq 1 or B eq 1) and C eq 1",       And((Or((A, B)), C))),
    ("not A eq 1",                          Not(A)),
    ("not not A eq 1",                      Not(Not(A))),
    ("not (A eq 1) and B eq 1",             And((Not(A), B))),
    ("(A eq 1)and(B eq 1)",                 And((A, B))),                         # T503
    ("((((A eq 1))))",                      A),
    ("A",                                   Compare("A", "eq", Literal(Edm.BOOLEAN, True))),
    ("not A",                               Not(Compare("A", "eq", Literal(Edm.BOOLEAN, True)))),
    ("A eq 'o''clock'",                     Compare("A", "eq", text("o'clock"))), # T510
    ("A eq ''",                             Compare("A", "eq", text(""))),
    ("A eq ' and B eq 1'",                  Compare("A", "eq", text(" and B eq 1"))),
    ("größe eq 1",                          Compare("größe", "eq", Literal(Edm.INT32, 1))),
]
LITERALS = [
    ("123",                                     Literal(Edm.INT32, 123)),         # T511
    ("-2147483648",                             Literal(Edm.INT32, -2147483648)),
    ("123L",                                    Literal(Edm.INT64, 123)),         # T512
    ("-5l",                                     Literal(Edm.INT64, -5)),
    ("9223372036854775807L",                    Literal(Edm.INT64, 2**63 - 1)),
    ("1.5",                                     Literal(Edm.DOUBLE, 1.5)),        # T513
    ("1e5",                                     Literal(Edm.DOUBLE, 1e5)),
    ("-2.0",                                    Literal(Edm.DOUBLE, -2.0)),
    (".5",                                      Literal(Edm.DOUBLE, 0.5)),
    ("3d",                                      Literal(Edm.DOUBLE, 3.0)),
    ("INF",                                     Literal(Edm.DOUBLE, math.inf)),
    ("-INF",                                    Literal(Edm.DOUBLE, -math.inf)),
    ("true",                                    Literal(Edm.BOOLEAN, True)),      # T514
    ("datetime'2008-07-10T00:00:00Z'",          Literal(Edm.DATETIME, "2008-07-10T00:00:00")),  # T515
    ("datetime'2008-07-10T00:00:00.1230000Z'",  Literal(Edm.DATETIME, "2008-07-10T00:00:00.123")),
    ("datetime'2008-07-10T00:00'",              Literal(Edm.DATETIME, "2008-07-10T00:00:00")),
    ("datetime'0001-01-01T00:00:00Z'",          Literal(Edm.DATETIME, "0001-01-01T00:00:00")),
    ("guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", Literal(Edm.GUID, "a455c695-df98-5678-aaaa-81d3367e5a34")),  # T516
    ("X'0aFF'",                                 Literal(Edm.BINARY, b"\x0a\xff")),  # T517
    ("binary'0aFF'",                            Literal(Edm.BINARY, b"\x0a\xff")),
    ("X''",                                     Literal(Edm.BINARY, b"")),
]
BROKEN = [
    ("aaa bbb ccc",          Code.InvalidInput,   "Syntax error at position 7 in 'aaa bbb ccc'."),   # T540
    ("1",                    Code.InvalidInput,   "The $filter expression must evaluate to a single boolean value."),  # T541
    ("'x'",                  Code.InvalidInput,   "The $filter expression must evaluate to a single boolean value."),
    ("(A eq 1",              Code.InvalidInput,   "Syntax error at position 7 in '(A eq 1'."),       # T542
    ("A eq 1)",              Code.InvalidInput,   "Syntax error at position 7 in 'A eq 1)'."),
    ("A eq 'x",              Code.InvalidInput,   "Syntax error at position 4 in 'A eq 'x'."),
    ("A eq",                 Code.InvalidInput,   "Syntax error at position 4 in 'A eq'."),
    ("A EQ 1",               Code.InvalidInput,   "Syntax error at position 4 in 'A EQ 1'."),        # T501
    ("A eq 1 and",           Code.InvalidInput,   "Syntax error at position 10 in 'A eq 1 and'."),
    ("A eq 2147483648",      Code.InvalidInput,   "Unrecognized 'Edm.Int32' literal '2147483648'."), # T511
    ("A eq 9223372036854775808L", Code.InvalidInput, "Unrecognized 'Edm.Int64' literal '9223372036854775808L'."),
    ("A eq 1x",              Code.InvalidInput,   "Syntax error at position 4 in 'A eq 1x'."),
    ("A eq guid'12'",        Code.InvalidInput,   "Syntax error at position 13 in 'A eq guid'12''."),
    ("A eq X'0'",            Code.InvalidInput,   "Syntax error at position 9 in 'A eq X'0''."),
    ("A eq 5.5L",            Code.InvalidInput,   "Unrecognized 'Edm.Int64' literal '5.5L'."),       # T512
    ("A eq 1e0L",            Code.InvalidInput,   "Unrecognized 'Edm.Int64' literal '1e0L'."),
    ("A eq X'0a\t0b'",       Code.InvalidInput,   "Syntax error at position 13 in 'A eq X'0a\t0b''."),
    ("A eq datetime'today'", Code.InvalidInput,   "Syntax error at position 20 in 'A eq datetime'today''."),
    ("A eq B",               Code.InvalidInput,   "One of the request inputs is not valid."),        # T502
    ("1 eq 1",               Code.InvalidInput,   "One of the request inputs is not valid."),
    ("A eq True",            Code.InvalidInput,   "One of the request inputs is not valid."),
    ("A eq null",            Code.InvalidInput,   "One of the request inputs is not valid."),        # T506
    ("startswith(A,'x')",    Code.NotImplemented, "The requested operation is not implemented on the specified resource."),
]
# fmt: on


@pytest.mark.parametrize(("source", "tree"), GRAMMAR)
def test_a_filter_becomes_a_tree(source: str, tree: Node | None) -> None:
    assert parse_filter(source) == tree


@pytest.mark.parametrize(("source", "literal"), LITERALS)
def test_a_literal_has_a_type_and_a_value(source: str, literal: Literal) -> None:
    found = parse_filter(f"A eq {source}")
    assert found == Compare("A", "eq", literal)
    assert isinstance(found, Compare)
    assert type(found.literal.value) is type(literal.value)


@pytest.mark.parametrize(("source", "code", "message"), BROKEN)
def test_a_broken_filter_is_refused_with_its_place(source: str, code: Code, message: str) -> None:
    with pytest.raises(StorageError) as error:
        parse_filter(source)
    assert (error.value.code, error.value.message) == (code, message)


@pytest.mark.parametrize("source", ["(" * 5000 + "true" + ")" * 5000, "not " * 5000 + "true"])
def test_a_bottomless_filter_is_refused(source: str) -> None:
    with pytest.raises(StorageError):
        parse_filter(source)
    assert parse_filter("(" * (MAX_DEPTH - 1) + "true" + ")" * (MAX_DEPTH - 1)) == Constant(True)


def test_a_filter_may_have_many_comparisons() -> None:  # T504
    tree = parse_filter(" or ".join(f"RowKey eq '{number}'" for number in range(1000)))
    assert isinstance(tree, Or)
    assert len(tree.parts) == 1000


def test_a_filter_names_no_more_properties_than_an_entity_has() -> None:
    source = " or ".join(f"A{number} eq 1" for number in range(MAX_NAMES))
    assert parse_filter(source) is not None
    with pytest.raises(StorageError):
        parse_filter(f"{source} or B eq 1")


@given(st.text(max_size=40) | st.text("()' \"AeqX1.-Land or not", max_size=40))
def test_any_text_is_understood_or_refused(source: str) -> None:
    with contextlib.suppress(StorageError):
        parse_filter(source)  # any other exception fails the test


# --- meaning ----------------------------------------------------------------------------------------------------------------


def matches(source: str, stored: Entity) -> bool:
    tree = parse_filter(source)
    assert tree is not None
    return predicate(tree)(stored)


texts = st.text(st.sampled_from("a\u007f\u0080é\ud7ff\ue000\uffff\U00010000\U0010ffff"), max_size=4)


@given(texts, texts)
def test_texts_are_ordered_by_their_units_and_bytes_by_themselves(found: str, sought: str) -> None:  # T526, T529
    code = found.encode("utf-8"), sought.encode("utf-8")
    stored = entity("p", "r", {"S": (Edm.STRING, found), "X": (Edm.BINARY, base64.b64encode(code[0]).decode())})
    units = [[*struct.unpack(f">{len(text.encode('utf-16-be')) // 2}H", text.encode("utf-16-be"))] for text in (found, sought)]
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        is_so = getattr(operator, op)
        assert matches(f"S {op} '{sought}'", stored) == is_so(*units)
        assert matches(f"X {op} X'{code[1].hex()}'", stored) == is_so(*code)


def test_only_as_much_of_a_text_is_looked_at_as_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter may compare a large property a thousand times."""
    looked: list[int] = []

    def units(text: str) -> bytes:
        looked.append(len(text))
        return text.encode("utf-16-be")

    monkeypatch.setattr(compare, "_units", units)
    stored = entity("p", "r", {"S": (Edm.STRING, "é" * 30_000)})
    assert matches("S gt 'éé' and S lt 'ü'", stored)
    assert max(looked) == 3


GUID = "a455c695-df98-5678-aaaa-81d3367e5a34"
ENTITY = entity(
    "p",
    "r",
    {
        "S": (Edm.STRING, "b"),
        "I": (Edm.INT32, 5),
        "L": (Edm.INT64, "5"),
        "D": (Edm.DOUBLE, 5.0),
        "N": (Edm.DOUBLE, "NaN"),
        "Inf": (Edm.DOUBLE, "Infinity"),
        "T": (Edm.BOOLEAN, True),
        "W": (Edm.DATETIME, "2020-01-01T00:00:00.5Z"),
        "G": (Edm.GUID, GUID),
        "X": (Edm.BINARY, base64.b64encode(b"\x01\xff").decode()),
    },
    etag=637134336000000000,  # 2020-01-01T00:00:00Z
)


@pytest.mark.parametrize(
    "source",
    [
        "S eq 'b'", "S ne 'a'", "S gt 'a'", "S ge 'b'", "S lt 'c'", "S gt 'B'",  # T526
        "I eq 5", "I lt 6", "I ne 4",
        "L eq 5", "L eq 5L", "L lt 6", "D eq 5", "D eq 5L", "D eq 5.0", "D lt 5.5",  # T524
        "N ne 1.0", "N ne NaN", "Inf gt 1e300", "Inf gt 5", "Inf eq INF",  # T531
        "T eq true", "T ne false", "T gt false", "T",  # T527
        "W eq datetime'2020-01-01T00:00:00.5Z'", "W gt datetime'2020-01-01T00:00:00Z'", "W lt datetime'2020-01-01T00:00:00.51Z'",
        "G eq guid'A455C695-DF98-5678-AAAA-81D3367E5A34'", "G lt guid'b455c695-df98-5678-aaaa-81d3367e5a34'",
        "X eq X'01ff'", "X gt X'01'", "X lt binary'02'",  # T529
        "PartitionKey eq 'p'", "RowKey lt 's'", "Timestamp eq datetime'2020-01-01T00:00:00Z'", "'p' eq PartitionKey",  # T533
        "not (Missing eq 'x')", "not (S eq 5)", "S eq 'x' or I eq 5", "S eq 'b' and I eq 5 and L eq 5L and T eq true",  # T521
    ],
)  # fmt: skip
def test_a_comparison_that_holds(source: str) -> None:
    assert matches(source, ENTITY)


@pytest.mark.parametrize(
    "source",
    [
        "Missing eq 'x'", "Missing ne 'x'", "Missing gt ''", "Missing ge ''", "Missing lt ''", "Missing",  # T520, T522, T543
        "s eq 'b'", "S eq 'B'",  # T435
        "S eq 5", "S ne 5", "I eq '5'", "I ne '5'", "I eq true", "T eq 1", "G eq 'a455c695-df98-5678-aaaa-81d3367e5a34'",  # T523
        "W eq '2020-01-01T00:00:00.5Z'", "L eq '5'", "X eq 'Af8='", "N eq 'NaN'",
        "I eq 5L", "I eq 5.0", "L eq 5.0", "I lt 6L", "I ne 4.0",  # T525
        "N eq NaN", "N lt 1.0", "N ge 1.0",  # T531
        "PartitionKey eq 5", "PartitionKey ne 5", "Timestamp eq '2020'",  # T532
        "S eq 'b' and I eq 6", "not true",
    ],
)  # fmt: skip
def test_a_comparison_that_does_not_hold(source: str) -> None:
    assert not matches(source, ENTITY)


def test_text_is_ordered_by_utf16_unit() -> None:
    stored = entity("p", "r", {"S": (Edm.STRING, "𝄞"), "U": (Edm.STRING, "\uffff")})
    assert matches("S lt '\uffff'", stored)  # U+1D11E begins with the unit D834
    assert matches("U gt '𝄞'", stored)
    assert matches("S gt 'z'", stored)
    assert matches("S gt '\ud7ff'", stored)


# An independent, simple evaluator: Python values and a table of comparable types.
MEETS: dict[Edm, dict[Edm, Callable[[Any], Any]]] = {
    Edm.INT32: {Edm.INT32: int, Edm.INT64: int, Edm.DOUBLE: float},
    Edm.INT64: {Edm.INT64: int, Edm.DOUBLE: float},
    Edm.DOUBLE: {Edm.DOUBLE: float},
}
OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le,
}  # fmt: skip


def naive(node: Node, known: dict[str, Value]) -> bool:
    if isinstance(node, Constant):
        return node.value
    if isinstance(node, Not):
        return not naive(node.part, known)
    if isinstance(node, And):
        return all(naive(part, known) for part in node.parts)
    if isinstance(node, Or):
        return any(naive(part, known) for part in node.parts)
    if node.name not in known:
        return False
    kind, stored = known[node.name]
    meets = MEETS.get(node.literal.kind, {node.literal.kind: READERS.get(kind, str)})
    reader = meets.get(kind)
    literal: Any = node.literal.value
    if reader is None:
        return False
    if kind is Edm.STRING:
        reader, literal = _units, _units(literal)
    return OPERATORS[node.op](reader(stored), literal)


def _units(value: Any) -> bytes:
    return str(value).encode("utf-16-be")


READERS: dict[Edm, Callable[[Any], Any]] = {
    Edm.BOOLEAN: bool,
    Edm.DATETIME: lambda value: value[:-1],
    Edm.BINARY: base64.b64decode,
}


@given(properties, nodes())
def test_a_compiled_filter_agrees_with_the_plain_evaluator(known: dict[str, Value], node: Node) -> None:
    stored = entity("p", "r", known)
    everything = known | {"PartitionKey": (Edm.STRING, "p"), "RowKey": (Edm.STRING, "r")}
    assert predicate(node)(stored) == naive(node, everything)


equalities = st.builds(Compare, st.sampled_from(NAMES), st.just("eq"), values.map(literal_of))


@settings(max_examples=300)
@given(properties, st.lists(equalities, min_size=1, max_size=2).map(tuple))
def test_equalities_agree_with_the_plain_evaluator(known: dict[str, Value], parts: tuple[Compare, ...]) -> None:
    assert predicate(And(parts))(entity("p", "r", known)) == naive(And(parts), known)
