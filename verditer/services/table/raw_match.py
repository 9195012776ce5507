"""Matching a filter on the stored bytes of a document, without decoding it: the document contains each requested member.

After the prefilter of an engine nearly all records match. A document that does not match here may still match: `compare.py`,
which defines what a filter means, decides about it.
"""

from collections.abc import Callable, Container
from typing import Any

from verditer.core.edm import ANNOTATION, Edm, JsonValue, Members, encode_members
from verditer.services.table.filter import And, Compare, Node

RawTest = Callable[[bytes], bool]
"""True when a stored document certainly matches."""

# Types whose equal values have equal text, and that text. Doubles are not among them: NaN can be stored, and equals nothing.
_STORED: dict[Edm, Callable[[Any], JsonValue]] = {
    Edm.STRING: str,
    Edm.BOOLEAN: bool,
    Edm.INT32: int,
    Edm.INT64: str,
    Edm.GUID: str,
    Edm.DATETIME: "{}Z".format,
}


def raw_match(node: Node, elsewhere: Container[str]) -> RawTest | None:
    """A test for a filter of equalities; None for any other filter, and for `elsewhere`, the properties outside the document."""
    if isinstance(node, And):
        tests = [test for part in node.parts if (test := raw_match(part, elsewhere)) is not None]
        return (lambda document: all(test(document) for test in tests)) if len(tests) == len(node.parts) else None
    if not isinstance(node, Compare) or node.op != "eq" or node.name in elsewhere or node.literal.kind not in _STORED:
        return None
    return _equality(node.name, node.literal.kind, _STORED[node.literal.kind](node.literal.value))


def _equality(name: str, kind: Edm, stored: JsonValue) -> RawTest:
    annotation = name + ANNOTATION
    if not isinstance(stored, str):
        return _contains({name: stored})
    if kind is not Edm.STRING:
        return _contains({annotation: kind.value, name: stored})
    contains, typed = _contains({name: stored}), encode_members(annotation)
    return lambda document: contains(document) and document.find(typed) < 0


def _contains(members: Members) -> RawTest:
    """Names have no quotes and quotes in values are escaped, so no value contains the text of a member. `find` is used because
    `in` on bytes first tries to read its operand as a number, and raises and catches an exception."""
    text = encode_members(members)[1:-1]
    between, last = text + b",", text + b"}"
    return lambda document: document.find(between) >= 0 or document.find(last) >= 0
