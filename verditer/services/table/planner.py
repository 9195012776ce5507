"""The query planner: which keys a filter can match, and what is left to ask of each entity there.

Entities are ordered by PartitionKey and then RowKey. A comparison with either is an interval of that key's bytes; a filter is a
union of boxes, a pair of intervals each; and a box whose partition is one value, or whose rows are all, is one span of stored
keys. So equality, ranges, prefixes (`ge` with `lt`) and an `or` of keys become spans, sorted and apart, and everything
that the spans do not already guarantee stays in `rest` and is evaluated while scanning.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from verditer.core.edm import Edm, encode_members
from verditer.core.limits import MAX_PROPERTY_NAME
from verditer.core.records.record import Span, key_of, successor
from verditer.partition.engine import Mark
from verditer.services.table.filter import And, Compare, Constant, Node, Or

MAX_BOXES = 2000  # more than a request names; but an `and` of many `or`s multiplies, and past this one side alone decides
END = b"\xff"  # behind every key: text never encodes to this byte


class Plan(NamedTuple):
    """`spans` are relative to the table: prefix them with its id. `rest` is None when the spans say it all.

    `marks` are what the stored form of every match contains: an engine may pass over entities by them.
    """

    spans: tuple[Span, ...]
    rest: Node | None
    marks: tuple[Mark, ...] = ()


class Box(NamedTuple):
    """Partition keys and row keys, as the keys' bytes from `low` to `high`."""

    partition: Span
    row: Span

    @property
    def is_span(self) -> bool:
        return self.row == ALL or self.partition.high == successor(self.partition.low) != END

    def span(self) -> Span:
        """The stored keys of the box, or more than those where it is no span."""
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
    looks = [_look(part) for part in parts]
    boxes, exact = _common_boxes(looks)
    rest = _conjunction([part for part, look in zip(parts, looks, strict=True) if not look.exact])
    if not exact or not all(box.is_span for box in boxes):
        rest = node
    return Plan(tuple(merged(box.span() for box in boxes)), rest, _marks(rest))


def merged(spans: Iterable[Span]) -> list[Span]:
    """The same keys as sorted spans that neither touch nor overlap."""
    result: list[Span] = []
    for span in sorted(span for span in spans if span.low < span.high):
        if result and span.low <= result[-1].high:
            result[-1] = Span(result[-1].low, max(result[-1].high, span.high))
        else:
            result.append(span)
    return result


class Look(NamedTuple):
    """Boxes that hold every key a filter can match; `exact` when they hold no other."""

    boxes: list[Box]
    exact: bool


def _look(node: Node) -> Look:
    if isinstance(node, Constant):
        return Look([EVERYTHING] if node.value else [], exact=True)
    if isinstance(node, Or):
        looks = [_look(part) for part in node.parts]
        boxes = [box for look in looks for box in look.boxes]
        if len(boxes) <= MAX_BOXES:
            return Look(boxes, exact=all(look.exact for look in looks))
    if isinstance(node, And):
        looks = [_look(part) for part in node.parts]
        boxes, exact = _common_boxes(looks)
        return Look(boxes, exact and all(look.exact for look in looks))
    if isinstance(node, Compare) and _is_of_key(node):
        interval = _interval(node.op, str(node.literal.value))
        if interval is not None:
            return Look([Box(interval, ALL) if node.name == "PartitionKey" else Box(ALL, interval)], exact=True)
    return Look([EVERYTHING], exact=False)


def _is_of_key(node: Compare) -> bool:
    return node.name in ("PartitionKey", "RowKey") and node.literal.kind is Edm.STRING


def _interval(op: str, key: str) -> Span | None:
    """The encoded keys that a comparison allows; None for `ne`, which excludes one key only."""
    low = key_of(key)
    behind = successor(low)
    return {
        "eq": Span(low, behind),
        "ge": Span(low, END),
        "gt": Span(behind, END),
        "lt": Span(b"", low),
        "le": Span(b"", behind),
    }.get(op)


def _common_boxes(looks: list[Look]) -> tuple[list[Box], bool]:
    """What all of them hold; False when that would be too many boxes, and some were left out of the reckoning."""
    common, exact, most = [EVERYTHING], True, MAX_BOXES
    for boxes in [look.boxes for look in looks if look.boxes != [EVERYTHING]]:
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


def _marks(rest: Node | None) -> tuple[Mark, ...]:
    """What the stored document of every match contains. Other comparisons, and more than a few, are left to the predicate."""
    parts = rest.parts if isinstance(rest, And) else (rest,)
    found = [_mark(part) for part in parts if isinstance(part, Compare) and part.name not in _NOT_STORED]
    return tuple(sorted(filter(None, found), key=lambda mark: mark.bounds is not None)[:MAX_MARKS])


def _mark(node: Compare) -> Mark | None:
    kind, value = node.literal.kind, node.literal.value
    if len(node.name) > MAX_PROPERTY_NAME:  # there is none
        return None
    name = encode_members(node.name) + b":"
    if node.op == "eq" and kind in _ONE_SPELLING:
        text = encode_members(str(value) + "Z" if kind is Edm.DATETIME else value).decode()
        return Mark(name, values=(text[:MAX_MARK_TEXT].encode(),))
    if node.op == "ne" or not isinstance(value, int | float) or kind not in _NUMBERS or not math.isfinite(value):
        return None
    if node.op == "eq" and isinstance(value, int) and 0 < abs(value) < 10**15:  # larger doubles have an exponent
        digits = b"%d" % value
        return Mark(name, values=(digits + b",", digits + b"}", digits + b".", b'"' + digits))
    slack = abs(value) * 1e-9  # an engine may read a number a little differently
    low = value - slack if node.op in ("eq", "ge", "gt") else -math.inf
    high = value + slack if node.op in ("eq", "le", "lt") else math.inf
    return Mark(name, (low, high))


MAX_MARKS = 2
MAX_MARK_TEXT = 128  # characters of a value: few values begin alike for longer
_NOT_STORED = frozenset({"PartitionKey", "RowKey", "Timestamp"})
_ONE_SPELLING = frozenset({Edm.STRING, Edm.BOOLEAN, Edm.GUID, Edm.DATETIME})  # equal values are equal text
_NUMBERS = frozenset({Edm.INT32, Edm.INT64, Edm.DOUBLE})
