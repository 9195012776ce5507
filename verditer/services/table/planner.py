"""The query planner: the keys that a filter can match, and the part of the filter that remains to be checked for each entity.

Entities are ordered by PartitionKey and then RowKey. A comparison with either is an interval of that key's bytes; a filter is a
union of boxes, each a pair of intervals; and a box whose partition is one value, or which has all rows, is one span of stored
keys. So equality, ranges, prefixes (`ge` with `lt`) and an `or` of keys become sorted, disjoint spans. The part of the filter
that the spans do not guarantee is `residual` and is evaluated during the scan.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from verditer.core.edm import Edm
from verditer.core.limits import MAX_PROPERTY_NAME
from verditer.core.records.record import Span, key_of, successor
from verditer.partition.engine import Condition, MemberBetween, MemberEquals
from verditer.services.table.filter import And, Compare, Constant, Node, Or

MAX_BOXES = 2000  # more than a request can name; an `and` of many `or`s multiplies, and beyond this only one side is used
END = b"\xff"  # after every key: text never encodes to this byte


class Plan(NamedTuple):
    """`spans` are relative to the table: prefix them with its id. `residual` is None when the spans are exact.

    Every match meets the `conditions`: an engine may leave out entities that do not.
    """

    spans: tuple[Span, ...]
    residual: Node | None
    conditions: tuple[Condition, ...] = ()


class Box(NamedTuple):
    """Partition keys and row keys, as the keys' bytes from `low` to `high`."""

    partition: Span
    row: Span

    @property
    def is_span(self) -> bool:
        return self.row == ALL or self.partition.high == successor(self.partition.low) != END

    def span(self) -> Span:
        """The stored keys of the box; a superset of them when the box is not one span."""
        partition, row = self
        if row == ALL or not self.is_span:
            return partition
        return Span(partition.low + row.low, partition.low + row.high)


ALL = Span(b"", END)
EVERYTHING = Box(ALL, ALL)


def plan(node: Node | None) -> Plan:
    if node is None:
        return Plan((ALL,), None)
    parts = node.parts if isinstance(node, And) else (node,)
    found = [_key_boxes(part) for part in parts]
    boxes, exact = _common_boxes(found)
    residual = _conjunction([part for part, one in zip(parts, found, strict=True) if not one.exact])
    if not exact or not all(box.is_span for box in boxes):
        residual = node
    return Plan(tuple(merged(box.span() for box in boxes)), residual, _conditions(residual))


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same keys as sorted spans that neither touch nor overlap."""
    result: list[Span] = []
    for span in sorted(span for span in spans if span.low < span.high):
        if result and span.low <= result[-1].high:
            result[-1] = Span(result[-1].low, max(result[-1].high, span.high))
        else:
            result.append(span)
    return result


class KeyBoxes(NamedTuple):
    """Boxes that contain every key that a filter can match; `exact` when they contain no other key."""

    boxes: list[Box]
    exact: bool


def _key_boxes(node: Node) -> KeyBoxes:
    if isinstance(node, Constant):
        return KeyBoxes([EVERYTHING] if node.value else [], exact=True)
    if isinstance(node, Or):
        found = [_key_boxes(part) for part in node.parts]
        boxes = [box for one in found for box in one.boxes]
        if len(boxes) <= MAX_BOXES:
            return KeyBoxes(boxes, exact=all(one.exact for one in found))
    if isinstance(node, And):
        found = [_key_boxes(part) for part in node.parts]
        boxes, exact = _common_boxes(found)
        return KeyBoxes(boxes, exact and all(one.exact for one in found))
    if isinstance(node, Compare) and _is_of_key(node):
        interval = _interval(node.op, str(node.literal.value))
        if interval is not None:
            return KeyBoxes([Box(interval, ALL) if node.name == "PartitionKey" else Box(ALL, interval)], exact=True)
    return KeyBoxes([EVERYTHING], exact=False)


def _is_of_key(node: Compare) -> bool:
    return node.name in ("PartitionKey", "RowKey") and node.literal.kind is Edm.STRING


def _interval(op: str, key: str) -> Span | None:
    """The encoded keys that a comparison allows; None for `ne`, which excludes only one key."""
    low = key_of(key)
    after = successor(low)
    return {
        "eq": Span(low, after),
        "ge": Span(low, END),
        "gt": Span(after, END),
        "lt": Span(b"", low),
        "le": Span(b"", after),
    }.get(op)


def _common_boxes(found: list[KeyBoxes]) -> tuple[list[Box], bool]:
    """The intersection; False when it would have too many boxes, and boxes of one side were used instead."""
    common, exact, most = [EVERYTHING], True, MAX_BOXES
    for boxes in [one.boxes for one in found if one.boxes != [EVERYTHING]]:
        if common == [EVERYTHING]:
            common = boxes
        elif len(common) * len(boxes) > most:
            common, exact = min(common, boxes, key=len), False
        else:
            most -= len(common) * len(boxes)
            pairs = [Box(_common(a.partition, b.partition), _common(a.row, b.row)) for a in common for b in boxes]
            common = [box for box in pairs if box.partition.low < box.partition.high and box.row.low < box.row.high]
    return common, exact


def _common(a: Span, b: Span) -> Span:
    return Span(max(a.low, b.low), min(a.high, b.high))


def _conjunction(parts: list[Node]) -> Node | None:
    if len(parts) > 1:
        return And(tuple(parts))
    return parts[0] if parts else None


def _conditions(residual: Node | None) -> tuple[Condition, ...]:
    """The conditions on every match that can be expressed to an engine. The predicate checks all of them again."""
    parts = residual.parts if isinstance(residual, And) else (residual,)
    found = [_condition(part) for part in parts if isinstance(part, Compare) and part.name not in _NOT_STORED]
    return tuple(condition for condition in found if condition is not None)


def _condition(node: Compare) -> Condition | None:
    kind, value = node.literal.kind, node.literal.value
    if len(node.name) > MAX_PROPERTY_NAME or node.op == "ne":
        return None
    if node.op == "eq" and kind in _ONE_SPELLING:
        return MemberEquals(node.name, value if isinstance(value, bool) else str(value) + ("Z" if kind is Edm.DATETIME else ""))
    if not isinstance(value, int | float) or kind not in _NUMBERS or not math.isfinite(value):
        return None
    low = value if node.op in ("eq", "ge", "gt") else -math.inf
    high = value if node.op in ("eq", "le", "lt") else math.inf
    return MemberBetween(node.name, low, high)


_NOT_STORED = frozenset({"PartitionKey", "RowKey", "Timestamp"})  # not members of the document
_ONE_SPELLING = frozenset({Edm.STRING, Edm.BOOLEAN, Edm.GUID, Edm.DATETIME})  # equal values are equal text
_NUMBERS = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})
