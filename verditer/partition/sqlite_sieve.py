"""The sieve of a scan, as SQL: what a record's bytes have to contain so that SQLite wakes Python for it.

GLOB is the fastest look at bytes that SQLite has, several times faster than `instr`, which goes byte by byte. It reads text up to
the first NUL; so marks are looked for in a record's first field, which is text without NULs, and from its second or third
byte on: what stands before, the head of the record and the length of the field, may have some.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import isfinite

from verditer.partition.engine import Mark

Values = tuple[bytes | float | str, ...]

_TEXT = "CAST(substr(body, 8) AS TEXT)"  # the heads take 4, 5 or 7 bytes: of a document, `{"` and a letter may be lost
_LOST = 2  # characters at the beginning of a mark that are not looked for, since those of the first member may be gone
_SHORTEST = 3  # characters that are left of a mark; of a name of one letter there is none
_LONGEST = 100  # characters of a pattern; SQLite refuses patterns of more than 50,000 bytes
_SPECIAL = re.compile(r"[*?\[]")
_NUMERIC = frozenset('"-0123456789')  # none of these means anything within brackets, the dash because it stands at their end


@lru_cache(maxsize=64)
def sieve_of(marks: Sequence[Mark]) -> tuple[str, Values]:
    """A condition that holds for every record with these marks, and its values."""
    conditions = [_condition(mark) for mark in marks]
    return " AND ".join(sql for sql, _ in conditions), tuple(value for _, values in conditions for value in values)


def _condition(mark: Mark) -> tuple[str, Values]:
    if mark.bounds is not None:
        return _number_within(mark.text, *mark.bounds)
    text = mark.text.decode()[_LOST:]
    if len(text) < _SHORTEST and mark.values:
        return _one_of(mark.text, mark.values)
    patterns = [_pattern(text + value.decode()) for value in mark.values or (b"",)]
    sql = " OR ".join([f"{_TEXT} GLOB ?"] * len(patterns))
    firsts = {chr(value[0]) for value in mark.values}
    if len(firsts) < 2 or not firsts <= _NUMERIC:
        return f"({sql})", tuple(patterns)
    # Most records fail at once, by one pattern for all values, and few are looked at value by value.
    either = "".join(sorted(firsts - {"-"})) + "-" * ("-" in firsts)
    return f"({_TEXT} GLOB ? AND ({sql}))", (f"*{_quoted(text)}[{either}]*", *patterns)


def _pattern(text: str) -> str:
    return f"*{_quoted(text[:_LONGEST])}*"


def _quoted(text: str) -> str:
    return _SPECIAL.sub(r"[\g<0>]", text)


def _one_of(text: bytes, values: tuple[bytes, ...]) -> tuple[str, Values]:
    follows = f"substr(body, instr(body, ?) + {len(text)}, {len(values[0])})"
    return f"{follows} IN ({','.join('?' * len(values))})", (text, *values)


def _number_within(text: bytes, low: float, high: float) -> tuple[str, Values]:
    """A number may stand in quotes. `"Infinity"` reads as 0, so where the bounds are open on one side and without 0, everything
    in quotes that is infinite or negative passes."""
    behind = f"substr(body, instr(body, ?) + {len(text)}, "
    number = f"CAST(ltrim(CAST({behind}26) AS TEXT), '\"') AS REAL) BETWEEN ? AND ?"
    if low <= 0 <= high or (isfinite(low) and isfinite(high)):
        return number, (text, low, high)
    return f"({number} OR {behind}2) IN (x'2249', x'222D'))", (text, low, high, text)
