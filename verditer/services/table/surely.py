"""What surely matches a filter, seen without decoding it: the document contains each value that is asked for as it is stored.

After a sieve that is so for nearly all records. What is not sure is left to `compare.py`, which says what a filter means.
"""

from collections.abc import Callable, Container
from typing import Any

from verditer.core.edm import ANNOTATION, Edm, Members, Wire, encode_members
from verditer.services.table.filter import And, Compare, Node

Test = Callable[[bytes], bool]

# Types whose equal values are equal text, and that text. Of a double that is not so: NaN is stored, and equals nothing.
_STORED: dict[Edm, Callable[[Any], Wire]] = {
    Edm.STRING: str,
    Edm.BOOLEAN: bool,
    Edm.INT32: int,
    Edm.INT64: str,
    Edm.GUID: str,
    Edm.DATETIME: "{}Z".format,
}


def sure_test(node: Node, elsewhere: Container[str]) -> Test | None:
    """None where nothing is sure, as with properties that are stored elsewhere than in the document."""
    if isinstance(node, And):
        tests = [test for part in node.parts if (test := sure_test(part, elsewhere)) is not None]
        return (lambda document: all(test(document) for test in tests)) if len(tests) == len(node.parts) else None
    if not isinstance(node, Compare) or node.op != "eq" or node.name in elsewhere or node.literal.kind not in _STORED:
        return None
    return _equality(node.name, node.literal.kind, _STORED[node.literal.kind](node.literal.value))


def _equality(name: str, kind: Edm, stored: Wire) -> Test:
    annotation = name + ANNOTATION
    if not isinstance(stored, str):
        return _contains({name: stored})
    if kind is not Edm.STRING:
        return _contains({annotation: kind.value, name: stored})
    is_there, typed = _contains({name: stored}), encode_members(annotation)
    return lambda document: is_there(document) and document.find(typed) < 0


def _contains(members: Members) -> Test:
    """Names have no quotes, and those of values are escaped: no value contains a member. (`in` would first take the bytes for a
    number, and raise and catch what says that they are none.)"""
    text = encode_members(members)[1:-1]
    between, last = text + b",", text + b"}"
    return lambda document: document.find(between) >= 0 or document.find(last) >= 0
