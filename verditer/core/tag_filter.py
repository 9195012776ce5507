"""The `where` of Find Blobs by Tags: comparisons joined by AND, on tags and on `@container`.

Stricter than a tag condition (`tags.py`): no OR, no `<>`, no parentheses, and a tag occurs twice only to form a range.
Microsoft's page: Find Blobs by Tags.
"""

import re
from collections.abc import Mapping

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.tags import MAX_KEY_LENGTH, MAX_TAGS, Comparison, is_tag_value

_COMPARISON = re.compile(
    r"""\s*(?:(?P<container>@container)|"(?P<quoted>[a-zA-Z0-9 +\-./:=_]+)"|(?P<word>[A-Za-z0-9_]+))"""
    r"""\s*(?P<operator>>=|<=|=|>|<)\s*'(?P<value>(?:[^']|'')*)'\s*""",
    re.IGNORECASE,
)
_AND = re.compile(r"and\b", re.IGNORECASE)


class TagFilter(msgspec.Struct, frozen=True, kw_only=True):
    comparisons: tuple[Comparison, ...]
    container: str | None = None

    def holds(self, tags: Mapping[str, str]) -> bool:
        return all(comparison.holds(tags) for comparison in self.comparisons)

    def driver(self) -> tuple[Comparison, ...]:
        """The comparisons on the tag whose index rows are read. An equality is preferred, since it selects the fewest rows."""
        equal = [comparison for comparison in self.comparisons if comparison.operator == "="]
        tag = (equal or self.comparisons)[0].key
        return tuple(comparison for comparison in self.comparisons if comparison.key == tag)

    def selected(self, tags: Mapping[str, str]) -> dict[str, str]:
        """The tags that a result carries: only those that the filter names."""
        named = {comparison.key for comparison in self.comparisons}
        return {key: value for key, value in tags.items() if key in named}


def parse_filter(text: str) -> TagFilter:
    comparisons: list[Comparison] = []
    container: str | None = None
    position = 0
    while True:
        match = _COMPARISON.match(text, position)
        if match is None:
            raise _refusal(text, position, "expected a comparison such as \"tag\" = 'value'")
        value = match["value"].replace("''", "'")
        if match["container"]:
            if container is not None or match["operator"] != "=":
                raise _refusal(text, position, "@container is compared once, with =")
            container = value
        else:
            if not is_tag_value(value):
                raise _refusal(text, position, "a value is too long or has characters that no tag has")
            comparisons.append(Comparison(match["quoted"] or match["word"], match["operator"], value))
        position = match.end()
        if position == len(text):
            break
        joined = _AND.match(text, position)
        if joined is None:
            raise _refusal(text, position, "expected AND")
        position = joined.end()
    _check(text, comparisons)
    return TagFilter(comparisons=tuple(comparisons), container=container)


def _check(text: str, comparisons: list[Comparison]) -> None:
    by_tag: dict[str, list[str]] = {}
    for comparison in comparisons:
        by_tag.setdefault(comparison.key, []).append(comparison.operator)
    if not comparisons:
        raise _refusal(text, len(text), "at least one tag has to be compared")
    if len(by_tag) > MAX_TAGS or any(len(tag) > MAX_KEY_LENGTH for tag in by_tag):
        raise _refusal(text, 0, "too many tags, or one too long")
    for operators in by_tag.values():
        if len(operators) > 1 and sorted(operator[0] for operator in operators) != ["<", ">"]:
            raise _refusal(text, 0, "a tag occurs twice only as a range")


def _refusal(text: str, position: int, reason: str) -> StorageError:
    return StorageError(
        Code.InvalidQueryParameterValue,
        message=f"Error parsing query at or near character position {position + 1}: {reason}",
        field="where",
        value=text,
    )
