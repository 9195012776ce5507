"""The sieve of a scan, as SQL: what a record's bytes have to contain so that SQLite wakes Python for it.

GLOB is the fastest look at bytes that SQLite has, several times faster than `instr`, which goes byte by byte. It looks at text
where it is, while bytes would be copied first; so records that are sifted are stored as text, whatever their bytes are. It reads
up to the first NUL. A record's first field, where marks are looked for, has none. In front of it stands its length, which has
one from 64 KiB on; and below that only where it is a multiple of 256, which it is not. Records that are so large, or not quite
so large but large enough to hold it up, have an index (`SQLITE.unsifted`), and where a span has some, they pass.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite

from verditer.partition.engine import Mark

Values = tuple[bytes | float | str, ...]

# A bare `?` would be planned for anew whenever it is bound.
_SIFTED = "body GLOB +?"
# Of a mark its last characters are looked for, and never the quote that it begins with, for there are many. Where they come again
# and again in a text, each of them costs as much as the text is long, and SQLite does not look at the clock meanwhile.
_LAST = 16
_SPECIAL = re.compile(r"[*?\[]")
_NUMERIC = frozenset('"-,.}0123456789')  # none of these means anything within brackets, the dash if it stands at their end


@lru_cache(maxsize=64)
def sieve_of(marks: Sequence[Mark]) -> tuple[str, Values]:
    """A condition that holds for every record with these marks, and its values."""
    conditions = [_condition(mark) for mark in marks]
    return " AND ".join(sql for sql, _ in conditions), tuple(value for _, values in conditions for value in values)


def _condition(mark: Mark) -> tuple[str, Values]:
    if mark.bounds is not None:
        return _number_within(mark.text, *mark.bounds)
    text = mark.text.decode()[1:][-_LAST:]
    return _SIFTED, (f"*{_quoted(text)}{_any_of(mark.values)}*",)


def _any_of(values: tuple[bytes, ...]) -> str:
    """A pattern for all of them. Where they differ it holds for others too, which the reader of the records passes over."""
    if not values:
        return ""
    return "".join(map(_either, zip(*(value.decode() for value in values), strict=True)))


def _either(characters: Iterable[str]) -> str:
    some = set(characters)
    if len(some) == 1:
        return _quoted(*some)
    return f"[{''.join(sorted(some, key=_dash_last))}]" if some <= _NUMERIC else "?"


def _dash_last(character: str) -> tuple[bool, str]:
    return character == "-", character


def _quoted(text: str) -> str:
    return _SPECIAL.sub(r"[\g<0>]", text)


def _number_within(text: bytes, low: float, high: float) -> tuple[str, Values]:
    """A number may stand in quotes. `"Infinity"` reads as 0, so where the bounds are open on one side and without 0, everything
    in quotes that is infinite or negative passes."""
    behind = f"substr(CAST(body AS BLOB), instr(CAST(body AS BLOB), ?) + {len(text)}, "
    number = f"CAST(ltrim(CAST({behind}26) AS TEXT), '\"') AS REAL) BETWEEN ? AND ?"
    if low <= 0 <= high or (isfinite(low) and isfinite(high)):
        return number, (text, low, high)
    return f"({number} OR {behind}2) IN (x'2249', x'222D'))", (text, low, high, text)
