"""The parser of `$filter`: text becomes a small tree.

    or = and *("or" and)    and = unary *("and" unary)    unary = "not" unary | "(" or ")" | operand [op operand]

One operand of a comparison is a property, the other a literal. `compare.py` defines what a comparison means for a stored value;
`planner.py` derives the keys that a tree can match.
"""

import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from verditer.core.caches import bounded_cache
from verditer.core.dates import parse_iso
from verditer.core.edm import Edm, canonical, datetime_text, double_of
from verditer.core.errors import Code, StorageError

MAX_DEPTH = 100  # of parentheses and `not`: real queries are not deeper, and each level costs a stack frame
MAX_NAMES = 255  # of different properties: an entity has no more


@dataclass(frozen=True, slots=True)
class Literal:
    """`value` is text, a number, or bytes; a moment is its text without the `Z`, which sorts in the order of time."""

    kind: Edm
    value: str | int | float | bool | bytes


@dataclass(frozen=True, slots=True)
class Compare:
    name: str
    op: str  # eq ne gt ge lt le
    literal: Literal


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: "Node"


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool


Node = Compare | And | Or | Not | Constant

_MIRRORED = {"eq": "eq", "ne": "ne", "gt": "lt", "ge": "le", "lt": "gt", "le": "ge"}
_WORDS = frozenset({"and", "or", "not", *_MIRRORED})
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<typed>(?P<prefix>datetime|guid|binary|X)'(?P<body>[^']*)')
      | (?P<text>'(?:[^']|'')*')
      | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[LlDd]?(?!\w) | -INF(?!\w))
      | (?P<word>[^\W0-9]\w*)
      | (?P<symbol>[(),])
    )""",
    re.VERBOSE,
)


class _FilterToken(NamedTuple):
    kind: str  # literal, word, symbol, end
    value: str | Literal
    end: int  # where it ends in the text


@bounded_cache(256, 1024)
def parse_filter(text: str) -> Node | None:
    """None for an empty filter."""
    if not text.strip():
        return None
    return _FilterParser(text).whole()


class _FilterParser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _tokens(text)
        self._at = 0
        self._depth = 0
        self._names = set[str]()

    def whole(self) -> Node:
        node = self._either()
        if self._token.kind != "end":
            raise self._error()
        if len(self._names) > MAX_NAMES:
            raise StorageError(Code.InvalidInput)
        return node

    @property
    def _token(self) -> _FilterToken:
        return self._tokens[self._at]

    def _next(self) -> _FilterToken:
        token = self._token
        self._at += token.kind != "end"
        return token

    def _accept(self, word: str) -> bool:
        found = self._token.kind in ("word", "symbol") and self._token.value == word
        self._at += found
        return found

    def _error(self) -> StorageError:
        return syntax_error(self._token.end, self._text)

    def _either(self) -> Node:
        parts = [self._both()]
        while self._accept("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _both(self) -> Node:
        parts = [self._unary()]
        while self._accept("and"):
            parts.append(self._unary())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error()
        node = self._negation_or_group()
        self._depth -= 1
        return node

    def _negation_or_group(self) -> Node:
        if self._accept("not"):
            return Not(self._unary())
        if self._accept("("):
            node = self._either()
            if not self._accept(")"):
                raise self._error()
            return node
        return self._comparison()

    def _comparison(self) -> Node:
        left = self._operand()
        op = self._token.value if self._token.kind == "word" else None
        if op not in _MIRRORED:
            return _alone(left)
        assert isinstance(op, str)
        self._next()
        right = self._operand()
        if isinstance(left, str) and isinstance(right, Literal):
            return Compare(left, op, right)
        if isinstance(left, Literal) and isinstance(right, str):
            return Compare(right, _MIRRORED[op], left)
        raise StorageError(Code.InvalidInput)

    def _operand(self) -> str | Literal:
        """A property's name, or a literal."""
        token = self._token
        if token.kind == "literal":
            self._next()
            return token.value
        if token.kind != "word" or token.value in _WORDS:
            raise self._error()
        self._next()
        if self._token.value == "(" and self._token.kind == "symbol":
            raise StorageError(Code.NotImplemented)  # a function: startswith, substringof, …
        if token.value == "null":
            raise StorageError(Code.InvalidInput)
        self._names.add(name := str(token.value))
        return name


def _alone(operand: str | Literal) -> Node:
    """An operand without an operator: a boolean constant, or a boolean property."""
    if isinstance(operand, str):
        return Compare(operand, "eq", Literal(Edm.BOOLEAN, True))
    if isinstance(operand.value, bool):
        return Constant(operand.value)
    raise StorageError(Code.InvalidInput, message="The $filter expression must evaluate to a single boolean value.")


def syntax_error(position: int, text: str) -> StorageError:
    return StorageError(Code.InvalidInput, message=f"Syntax error at position {position} in '{text}'.")


def _tokens(text: str) -> list[_FilterToken]:
    tokens, at, end = list[_FilterToken](), 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise syntax_error(at, text)
        at = match.end()
        tokens.append(_token(match, text))
    tokens.append(_FilterToken("end", "", len(text)))
    return tokens


def _token(match: re.Match[str], text: str) -> _FilterToken:
    end = match.end()
    if match["symbol"]:
        return _FilterToken("symbol", match["symbol"], end)
    word = match["word"]
    if word is not None:
        constant = _NAMED.get(word)
        return _FilterToken("word", word, end) if constant is None else _FilterToken("literal", constant, end)
    if match["text"]:
        return _FilterToken("literal", Literal(Edm.STRING, match["text"][1:-1].replace("''", "'")), end)
    literal = _number(match["number"]) if match["number"] else _typed(match["prefix"], match["body"])
    if literal is None:
        raise syntax_error(end, text)
    return _FilterToken("literal", literal, end)


_NAMED = {
    "true": Literal(Edm.BOOLEAN, True),
    "false": Literal(Edm.BOOLEAN, False),
    "NaN": Literal(Edm.DOUBLE, double_of("NaN")),
    "INF": Literal(Edm.DOUBLE, double_of("Infinity")),
}


def _number(text: str) -> Literal:
    if text == "-INF":
        return Literal(Edm.DOUBLE, double_of("-Infinity"))
    digits, suffix = (text[:-1], text[-1].lower()) if text[-1].isalpha() else (text, "")
    whole = digits.lstrip("-").isdigit()
    kind = Edm.INT64 if suffix == "l" else Edm.DOUBLE if suffix == "d" or not whole else Edm.INT32
    try:
        return Literal(kind, _READ[kind](canonical(kind, digits)))
    except StorageError:
        raise StorageError(Code.InvalidInput, message=f"Unrecognized '{kind.value}' literal '{text}'.") from None


def _typed(prefix: str, body: str) -> Literal | None:
    try:
        if prefix == "datetime":  # also a moment that no property can have, such as the first one of .NET
            ticks = parse_iso(body)
            return Literal(Edm.DATETIME, datetime_text(ticks)[:-1]) if ticks is not None else None
        if prefix == "guid":
            return Literal(Edm.GUID, canonical(Edm.GUID, body))
        return Literal(Edm.BINARY, binascii.unhexlify(body))
    except (StorageError, ValueError):
        return None


_READ: dict[Edm, Callable[[str | int | float | bool], int | float]] = {Edm.INT32: int, Edm.INT64: int, Edm.DOUBLE: double_of}
