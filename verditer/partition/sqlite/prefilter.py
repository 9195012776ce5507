"""The prefilter of a scan: conditions on a record's JSON document, as SQL that SQLite evaluates without calling Python.

It relies on the stored form of a record whose class names a `DOCUMENT`. The body is msgpack: an array header, the record's tag,
then the document, which is the first field. The body is stored as TEXT: GLOB looks at TEXT in place, while it would copy a BLOB.
GLOB is several times faster than `instr`, but it reads only up to the first NUL. The document has none, but its length in front
of it may: always from 64 KiB on, and below that where it is a multiple of 256. `without_nul` makes such a document one byte
longer. Records that are too large for GLOB are in a partial index (`is_too_large`); where a span has some, they pass.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite

import msgspec

from verditer.partition.engine import Condition, MemberEquals
from verditer.partition.migrations import SQLITE

Values = tuple[bytes | float | str, ...]

MAX_CONDITIONS = 2  # each costs a look at every record; the caller checks all of them anyway
MAX_VALUE = 128  # characters of a value to look for: few values begin alike for longer
# Only the last characters of a member's name are looked for, without its opening quote, since there are many quotes. A pattern
# whose beginning occurs again and again in a text costs as much as the text is long each time, and SQLite does not check the
# time limit meanwhile.
MAX_NAME = 16
NUMBER_TOLERANCE = 1e-9  # SQLite may read a number a little differently
EXPONENT_FROM = 10**15  # larger doubles may be spelled with an exponent

is_too_large = SQLITE.is_too_large
_GLOB = "body GLOB +?"  # with a bare `?`, SQLite would plan the statement anew for each value
_SPECIAL = re.compile(r"[*?\[]")
_NUMERIC = frozenset('"-,.}0123456789')  # none of these is special within brackets; the dash is not if it comes last
_BIN16 = 0xC5  # msgpack: bytes with a length of two bytes
_encode = msgspec.json.Encoder().encode


def without_nul(body: bytes) -> bytes:
    """The body of a record with a document, where the length of the document is written without a NUL. A space behind a JSON
    object means nothing."""
    if body[2] != _BIN16 or body[4]:
        return body
    end = 5 + (body[3] << 8)
    return b"%b\x01%b %b" % (body[:4], body[5:end], body[end:])


@lru_cache(maxsize=64)
def prefilter_sql(conditions: Sequence[Condition]) -> tuple[str, Values]:
    """An SQL expression that is true for every record that meets the conditions, and its values."""
    cheapest_first = sorted([_expression(condition) for condition in conditions], key=lambda expression: expression[0] != _GLOB)
    chosen = cheapest_first[:MAX_CONDITIONS]
    return " AND ".join(sql for sql, _ in chosen), tuple(value for _, values in chosen for value in values)


def _expression(condition: Condition) -> tuple[str, Values]:
    name = _encode(condition.name) + b":"
    if isinstance(condition, MemberEquals):
        return _GLOB, (_pattern(name, [_encode(condition.value).decode()[:MAX_VALUE]]),)
    low, high = condition.low, condition.high
    if low == high and low == int(low) and 0 < abs(low) < EXPONENT_FROM:
        digits = f"{int(low)}"
        return _GLOB, (_pattern(name, [f"{digits},", f"{digits}}}", f"{digits}.", f'"{digits}']),)
    return _number_within(name, low - abs(low) * NUMBER_TOLERANCE, high + abs(high) * NUMBER_TOLERANCE)


def _pattern(name: bytes, values: Sequence[str]) -> str:
    """A pattern for all of some values of one length. Where they differ it matches other values too."""
    text = name.decode()[1:][-MAX_NAME:]
    return f"*{_quoted(text)}{''.join(map(_either, zip(*values, strict=True)))}*"


def _either(characters: Iterable[str]) -> str:
    some = set(characters)
    if len(some) == 1:
        return _quoted(*some)
    return f"[{''.join(sorted(some, key=_dash_last))}]" if some <= _NUMERIC else "?"


def _dash_last(character: str) -> tuple[bool, str]:
    return character == "-", character


def _quoted(text: str) -> str:
    return _SPECIAL.sub(r"[\g<0>]", text)


def _number_within(name: bytes, low: float, high: float) -> tuple[str, Values]:
    """A number may stand in quotes. SQLite reads `"Infinity"` as 0, so where the bounds are open on one side and exclude 0,
    everything in quotes that is infinite or negative passes."""
    behind = f"substr(CAST(body AS BLOB), instr(CAST(body AS BLOB), ?) + {len(name)}, "
    number = f"CAST(ltrim(CAST({behind}26) AS TEXT), '\"') AS REAL) BETWEEN ? AND ?"
    if low <= 0 <= high or (isfinite(low) and isfinite(high)):
        return number, (name, low, high)
    return f"({number} OR {behind}2) IN (x'2249', x'222D'))", (name, low, high, name)
