"""The words of a query, and a reader that walks over them. Everything that cannot be in a query is refused here."""

import re
from typing import NamedTuple

from verditer.core.errors import Code, StorageError

MAX_LENGTH = 256 << 10  # characters of an expression, as on Azure
MAX_DEPTH = 64

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
      | (?P<text>'(?:[^']|'')*')
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<symbol><>|!=|<=|>=|[-+*/%=<>(),.;\[\]])
    )""",
    re.VERBOSE,
)
_WORDS = """
    SELECT FROM WHERE LIMIT AS AND OR NOT IS NULL MISSING IN BETWEEN LIKE ESCAPE CASE WHEN THEN ELSE END CAST TRUE FALSE
"""
_KEYWORDS = frozenset(_WORDS.split())


class SqlToken(NamedTuple):
    kind: str  # number, text, quoted, word, keyword, symbol, end
    text: str
    position: int

    @property
    def name(self) -> str:
        return self.text[1:-1].replace('""', '"') if self.kind == "quoted" else self.text

    @property
    def value(self) -> str:
        """Of a text literal."""
        return self.text[1:-1].replace("''", "'")


class Name(NamedTuple):
    """A name in a path. Quoted names are case-sensitive."""

    text: str
    is_quoted: bool = False


PathStep = Name | int | None
"""One step of a path: a name, the number of an element, or all elements (None, only in the path of the table)."""
Path = tuple[PathStep, ...]


def invalid_query(position: int, reason: str) -> StorageError:
    return StorageError(
        Code.ErrorProcessingQueryExpression, message=f"Syntax error! The query is not valid at character {position + 1}: {reason}"
    )


def tokens_of(text: str) -> list[SqlToken]:
    if len(text) > MAX_LENGTH:
        raise invalid_query(MAX_LENGTH, "it is too long.")
    tokens, at, end = list[SqlToken](), 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            raise invalid_query(at, "there is a character that no query has.")
        group = str(match.lastgroup)
        found = match[group]
        is_keyword = group == "word" and found.upper() in _KEYWORDS
        tokens.append(
            SqlToken("keyword", found.upper(), match.start(group)) if is_keyword else SqlToken(group, found, match.start(group))
        )
        at = match.end()
    return [*tokens, SqlToken("end", "", len(text))]


class TokenReader:
    def __init__(self, tokens: list[SqlToken]) -> None:
        self.tokens = tokens
        self.at = 0
        self._depth = 0

    @property
    def token(self) -> SqlToken:
        return self.tokens[self.at]

    def next(self) -> SqlToken:
        token = self.token
        self.at += token.kind != "end"
        return token

    def is_symbol(self, text: str) -> bool:
        return self.token.kind == "symbol" and self.token.text == text

    def is_word(self, text: str) -> bool:
        return self.token.kind == "word" and self.token.text.upper() == text

    def accept(self, text: str) -> bool:
        """Take a keyword or a symbol."""
        found = self.token.kind in ("keyword", "symbol") and self.token.text == text
        self.at += found
        return found

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise invalid_query(self.token.position, f"{text} was expected.")

    def name(self) -> Name:
        token = self.next()
        if token.kind not in ("word", "quoted"):
            raise invalid_query(token.position, "a name was expected.")
        return Name(token.name, token.kind == "quoted")

    def whole_number(self, what: str) -> int:
        token = self.next()
        if token.kind != "number" or not token.text.isdigit() or len(token.text) > 18:
            raise invalid_query(token.position, f"{what} takes a whole number.")
        return int(token.text)

    def path_rest(self, *, all_elements: bool = False) -> list[PathStep]:
        """`.name` and `[0]`, and in the path of the table `[*]`."""
        steps: list[PathStep] = []
        while True:
            if self.accept("."):
                steps.append(self.name())
            elif self.accept("["):
                steps.append(None if all_elements and self.accept("*") else self.whole_number("[]"))
                self.expect("]")
            else:
                return steps

    def deeper(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise invalid_query(self.token.position, "it is nested too deeply.")

    def higher(self) -> None:
        self._depth -= 1
