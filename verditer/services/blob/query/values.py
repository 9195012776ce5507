"""Expressions of a query as SQL of the engine, what is known of their types, and the conversions between these types.

A value that cannot be converted becomes null, and its record is reported: `Conversions` collects when that happens.
"""

from collections.abc import Callable
from typing import NamedTuple

from verditer.services.blob.query.tokens import Path

TEXT, NUMBER, BOOLEAN, TIMESTAMP, OTHER = "text", "number", "boolean", "timestamp", "other"
# ISO 8601 in the forms of https://www.w3.org/TR/NOTE-datetime, and a `T` after a date. The engine's own cast ignores the offset.
_TIME_FORM = (
    r"^\s*([0-9]{4})(?:-([0-9]{2})(?:-([0-9]{2}))?)?T?"
    r"(?:([0-9]{2}:[0-9]{2})(?::([0-9]{2}(?:\.[0-9]{1,9})?))?)?(?:Z|([+-])([0-9]{2}):?([0-9]{2}))?\s*$"
)
_PARTS = f"regexp_extract(x, '{_TIME_FORM}', ['year', 'month', 'day', 'time', 'second', 'sign', 'hours', 'minutes'])"
_DAY = "p.year || '-' || if(p.month = '', '01', p.month) || '-' || if(p.day = '', '01', p.day)"
_TIME = f"TRY_CAST({_DAY} || ' ' || if(p.time = '', '00:00', p.time) || ':' || if(p.second = '', '00', p.second) AS TIMESTAMP)"
_OFFSET = "if(p.sign = '', 0, if(p.sign = '-', -1, 1) * (CAST(p.hours AS INTEGER) * 60 + CAST(p.minutes AS INTEGER)))"
MACROS = (  # a lambda binds the parts once
    f"CREATE MACRO text_to_time(x) AS list_transform([{_PARTS}], lambda p: {_TIME} - to_minutes({_OFFSET}))[1]",
    f"CREATE MACRO text_to_offset(x) AS list_transform([{_PARTS}], lambda p: if({_TIME} IS NULL, NULL, {_OFFSET}))[1]",
    "CREATE MACRO text_to_int(x) AS TRY_CAST(if(regexp_full_match(x, '\\s*[+-]?[0-9]+\\s*'), x, NULL) AS BIGINT)",
    "CREATE MACRO number_to_int(x) AS TRY_CAST(trunc(x) AS BIGINT)",
    "CREATE MACRO time_to_text(x) AS rtrim(rtrim(strftime(x, '%Y-%m-%dT%H:%M:%S.%f'), '0'), '.') || 'Z'",
)


class Expression(NamedTuple):
    """SQL of the engine. `name` is the name of the column if the expression is one."""

    sql: str
    kind: str = OTHER
    name: str | None = None
    raw: str | None = None  # of a value in JSON: the column of its JSON, which is null if the value is missing
    literal: str | None = None  # of a text literal: the text


Resolve = Callable[[Path, int], Expression]
"""(path, position in the text) → the column of the input, or StorageError."""


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Conversions:
    """Converts expressions. `failed` are conditions: one is true for a record with a value that is not of the type."""

    def __init__(self) -> None:
        self.failed: list[str] = []

    def taken(self) -> tuple[str, ...]:
        failed, self.failed = tuple(dict.fromkeys(self.failed)), []
        return failed

    def _checked(self, given: str, converted: str) -> str:
        self.failed.append(f"({given} IS NOT NULL AND {converted} IS NULL)")
        return converted

    def number(self, given: Expression) -> str:
        if given.kind == NUMBER:
            return given.sql
        if given.kind == BOOLEAN:
            return f"CAST({given.sql} AS BIGINT)"
        return self._checked(given.sql, f"TRY_CAST({given.sql} AS DOUBLE)")

    def integer(self, given: Expression) -> str:
        if given.kind == BOOLEAN:
            return f"CAST({given.sql} AS BIGINT)"
        if given.kind == NUMBER:
            return self._checked(given.sql, f"number_to_int({given.sql})")
        return self._checked(given.sql, f"text_to_int({self.text(given)})")

    def small(self, given: Expression) -> str:
        """A number of months or days, which the engine wants to be small."""
        return self._checked(given.sql, f"TRY_CAST({self.integer(given)} AS INTEGER)")

    def boolean(self, given: Expression) -> str:
        if given.kind == BOOLEAN:
            return given.sql
        return self._checked(given.sql, f"TRY_CAST({given.sql} AS BOOLEAN)")

    def time(self, given: Expression) -> str:
        if given.kind == TIMESTAMP:
            return given.sql
        return self._checked(given.sql, f"text_to_time({self.text(given)})")

    def text(self, given: Expression) -> str:
        if given.kind == TEXT:
            return given.sql
        return f"time_to_text({given.sql})" if given.kind == TIMESTAMP else f"CAST({given.sql} AS VARCHAR)"

    def to(self, kind: str, given: Expression) -> str:
        convert = {TEXT: self.text, NUMBER: self.number, BOOLEAN: self.boolean, TIMESTAMP: self.time}
        return convert[kind](given) if kind in convert else given.sql

    def alike(self, *given: Expression) -> tuple[str, list[str]]:
        """The type in which the expressions are compared, and their SQL in it. Text gives way to every other type."""
        kinds = {one.kind for one in given} - {OTHER}
        for kind in (TIMESTAMP, NUMBER, BOOLEAN, TEXT):
            if kind in kinds:
                return kind, [one.sql if one.kind == OTHER else self.to(kind, one) for one in given]
        return OTHER, [one.sql for one in given]

    def compared(self, left: Expression, operator: str, right: Expression) -> Expression:
        _, (one, other) = self.alike(left, right)
        return Expression(f"({one} {operator} {other})", BOOLEAN)
