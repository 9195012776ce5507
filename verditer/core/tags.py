"""Blob index tags: what a valid set of tags is, and conditions on the tags of a blob.

A front end parses a condition once per request, and `conditions.py` evaluates it. Codecs use `validate` for tags that arrive.
Microsoft's pages: Set Blob Tags, Specifying conditional headers.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping

import msgspec

from verditer.core.errors import Code, StorageError

MAX_TAGS = 10  # on a blob; also the number of distinct keys in a condition
MAX_KEY_LENGTH = 128
MAX_VALUE_LENGTH = 256

_ALLOWED = re.compile(r"[a-zA-Z0-9 +\-./:=_]*")


def is_tag_value(text: str) -> bool:
    """Whether a tag can have this value. A condition that compares a tag with another one is malformed."""
    return len(text) <= MAX_VALUE_LENGTH and _ALLOWED.fullmatch(text) is not None


def validate(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The tags as a mapping; StorageError for the first rule that they break."""
    tags: dict[str, str] = {}
    for key, value in pairs:
        if not key:
            raise StorageError(Code.EmptyTagName)
        if key in tags:
            raise StorageError(Code.DuplicateTagNames)
        if len(key) > MAX_KEY_LENGTH or len(value) > MAX_VALUE_LENGTH or len(tags) == MAX_TAGS:
            raise StorageError(Code.TagsTooLarge)
        if not (_ALLOWED.fullmatch(key) and _ALLOWED.fullmatch(value)):
            raise StorageError(Code.InvalidTag)
        tags[key] = value
    return tags


# Tags are ASCII, so Python's order of strings is the ordinal order that Azure documents.
_OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}


class Comparison(msgspec.Struct, frozen=True):
    key: str
    operator: str
    value: str

    def holds(self, tags: Mapping[str, str]) -> bool:
        """Every comparison with an absent tag is false, `<>` included."""
        return self.key in tags and _OPERATORS[self.operator](tags[self.key], self.value)


class AllOf(msgspec.Struct, frozen=True):
    terms: tuple["TagCondition", ...]

    def holds(self, tags: Mapping[str, str]) -> bool:
        return all(term.holds(tags) for term in self.terms)


class AnyOf(msgspec.Struct, frozen=True):
    terms: tuple["TagCondition", ...]

    def holds(self, tags: Mapping[str, str]) -> bool:
        return any(term.holds(tags) for term in self.terms)


TagCondition = Comparison | AllOf | AnyOf


def parse_condition(text: str) -> TagCondition | None:
    """Comparisons joined by AND, OR (AND binds tighter) and parentheses; None when the text is not a condition."""
    try:
        return _Parser(text).parse()
    except _SyntaxError:
        return None


_TOKEN = re.compile(
    r"""\s*(?:(?P<operator><>|>=|<=|=|>|<)|(?P<parenthesis>[()])|"(?P<quoted>[a-zA-Z0-9 +\-./:=_]+)\""""
    r"""|'(?P<value>(?:[^']|'')*)'|(?P<word>[A-Za-z0-9_]+))"""
)
_KEYWORDS = ("AND", "OR")
_MAX_DEPTH = 32  # of parentheses; keeps a hostile request from exhausting the stack


class _SyntaxError(Exception):
    pass


class _Parser:
    """Recursive descent over (kind, text) tokens; keywords are tokens of kind AND and OR."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokenize(text.rstrip())
        self._position = 0
        self._depth = 0
        self._keys: set[str] = set()

    def parse(self) -> TagCondition:
        condition = self._any_of()
        if self._position < len(self._tokens) or len(self._keys) > MAX_TAGS:
            raise _SyntaxError
        return condition

    def _any_of(self) -> TagCondition:
        terms = [self._all_of()]
        while self._accept("OR"):
            terms.append(self._all_of())
        return terms[0] if len(terms) == 1 else AnyOf(tuple(terms))

    def _all_of(self) -> TagCondition:
        terms = [self._term()]
        while self._accept("AND"):
            terms.append(self._term())
        return terms[0] if len(terms) == 1 else AllOf(tuple(terms))

    def _term(self) -> TagCondition:
        if not self._accept("("):
            return self._comparison()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise _SyntaxError
        inner = self._any_of()
        self._expect(")")
        self._depth -= 1
        return inner

    def _comparison(self) -> Comparison:
        key = self._expect("key")
        if len(key) > MAX_KEY_LENGTH:
            raise _SyntaxError
        self._keys.add(key)
        operator, value = self._expect("operator"), self._expect("value")
        if not is_tag_value(value):
            raise _SyntaxError
        return Comparison(key, operator, value)

    def _accept(self, kind: str) -> bool:
        found = self._position < len(self._tokens) and self._tokens[self._position][0] == kind
        self._position += found
        return found

    def _expect(self, kind: str) -> str:
        if not self._accept(kind):
            raise _SyntaxError
        return self._tokens[self._position - 1][1]


def _tokenize(text: str) -> list[tuple[str, str]]:
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _SyntaxError
        tokens.append(_token(str(match.lastgroup), match[str(match.lastgroup)]))
        position = match.end()
    return tokens


def _token(group: str, text: str) -> tuple[str, str]:
    if group == "parenthesis":
        return text, text
    if group == "word" and text.upper() in _KEYWORDS:
        return text.upper(), text
    return ("key" if group in ("word", "quoted") else group), text
