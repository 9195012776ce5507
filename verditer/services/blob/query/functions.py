"""The functions of queries: each row says what a function takes and which SQL of the engine it becomes.

Microsoft's page: Query acceleration SQL language reference. A point in time has no offset of its own: all are UTC.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from verditer.services.blob.query.tokens import SqlToken, invalid_query
from verditer.services.blob.query.values import NUMBER, OTHER, TEXT, TIMESTAMP, Conversions, Expression, literal

DATE_PARTS = ("year", "month", "day", "hour", "minute", "second")
AGGREGATES = {"COUNT": "count", "SUM": "sum", "AVG": "avg", "AVERAGE": "avg", "MIN": "min", "MAX": "max"}
KEPT = '"#kept"'  # the column that says whether a record fulfils the condition

_Build = Callable[[Conversions, list[Expression]], Expression]


class Function(NamedTuple):
    fewest: int
    most: int
    build: _Build


def _of_text(engine_name: str, kind: str = TEXT) -> _Build:
    return lambda conversions, given: Expression(f"{engine_name}({conversions.text(given[0])})", kind)


def _substring(conversions: Conversions, given: list[Expression]) -> Expression:
    """Counts from 0, as Microsoft's example does; the engine counts from 1."""
    length = [conversions.integer(given[2])] if len(given) > 2 else []
    return Expression(
        f"substring({', '.join([conversions.text(given[0]), f'{conversions.integer(given[1])} + 1', *length])})", TEXT
    )


def _coalesce(conversions: Conversions, given: list[Expression]) -> Expression:
    kinds = {one.kind for one in given} - {OTHER}
    kind = kinds.pop() if len(kinds) == 1 else TEXT if kinds else OTHER
    return Expression(f"coalesce({', '.join([conversions.to(kind, one) for one in given])})", kind)


def _nullif(conversions: Conversions, given: list[Expression]) -> Expression:
    same = conversions.compared(given[0], "=", given[1])
    return Expression(f"CASE WHEN {same.sql} THEN NULL ELSE {given[0].sql} END", given[0].kind)


def _abs(conversions: Conversions, given: list[Expression]) -> Expression:
    return Expression(f"abs({conversions.number(given[0])})", NUMBER)


def _to_timestamp(conversions: Conversions, given: list[Expression]) -> Expression:
    return Expression(conversions.time(given[0]), TIMESTAMP)


FUNCTIONS = {
    "LOWER": Function(1, 1, _of_text("lower")),
    "UPPER": Function(1, 1, _of_text("upper")),
    "LTRIM": Function(1, 1, _of_text("ltrim")),
    "RTRIM": Function(1, 1, _of_text("rtrim")),
    "CHAR_LENGTH": Function(1, 1, _of_text("length", NUMBER)),
    "CHARACTER_LENGTH": Function(1, 1, _of_text("length", NUMBER)),
    "SUBSTRING": Function(2, 3, _substring),
    "COALESCE": Function(1, 16, _coalesce),
    "NULLIF": Function(2, 2, _nullif),
    "ABS": Function(1, 1, _abs),
    "TO_TIMESTAMP": Function(1, 1, _to_timestamp),
}
TRIMS = {"BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def trimmed(conversions: Conversions, side: str, characters: Expression | None, text: Expression) -> Expression:
    removed = f", {conversions.text(characters)}" if characters is not None else ""
    return Expression(f"{TRIMS[side]}({conversions.text(text)}{removed})", TEXT)


# --- dates --------------------------------------------------------------------------------------------------------------------


def date_part(token: SqlToken, *more: str) -> str:
    """`year` or `'year'`."""
    part = (token.value if token.kind == "text" else token.text).lower()
    if token.kind not in ("word", "text") or part not in (*DATE_PARTS, *more):
        raise invalid_query(token.position, "a part of a date was expected: year, month, day, hour, minute or second.")
    return part


def date_add(conversions: Conversions, part: str, quantity: Expression, time: Expression) -> Expression:
    return Expression(f"({conversions.time(time)} + to_{part}s({conversions.small(quantity)}))", TIMESTAMP)


def date_diff(conversions: Conversions, part: str, start: Expression, end: Expression) -> Expression:
    """How many whole parts have passed."""
    return Expression(f"datesub('{part}', {conversions.time(start)}, {conversions.time(end)})", NUMBER)


def extracted(conversions: Conversions, part: str, time: Expression) -> Expression:
    if not part.startswith("timezone"):
        return Expression(f"extract({part} FROM {conversions.time(time)})", NUMBER)
    moment = conversions.time(time)
    offset = f"text_to_offset({time.sql})" if time.kind == TEXT else f"if({moment} IS NULL, NULL, 0)"
    minutes = f"CAST(trunc({offset} / 60) AS BIGINT)" if part == "timezone_hour" else f"({offset} % 60)"
    return Expression(minutes, NUMBER)


MAX_FORMAT_LENGTH = 100
_FORMATS = {  # letters of a format → the engine's; fractions are cut from `%f`, and all times are UTC
    "yy": "%y", "y": "%Y", "yyyy": "%Y", "M": "%-m", "MM": "%m", "MMM": "%b", "MMMM": "%B", "d": "%-d", "dd": "%d", "a": "%p",
    "h": "%-I", "hh": "%I", "H": "%-H", "HH": "%H", "m": "%-M", "mm": "%M", "s": "%-S", "ss": "%S", "S": "%f", "SS": "%f",
    "SSS": "%f", "X": "Z", "XX": "Z", "x": "+00", "xx": "+0000",
}  # fmt: skip
_FORMATS |= {"X" * count: "Z" for count in (3, 4, 5)}
_FORMATS |= {"x" * count: "+0000" if count == 4 else "+00:00" for count in (3, 4, 5)}


def to_string(conversions: Conversions, time: Expression, form: Expression, position: int) -> Expression:
    if form.literal is None or len(form.literal) > MAX_FORMAT_LENGTH:
        raise invalid_query(position, f"the format of TO_STRING is a text of at most {MAX_FORMAT_LENGTH} characters in quotes.")
    moment = conversions.time(time)
    parts, plain = list[str](), ""
    for first, more, other in [*re.findall(r"([A-Za-z])(\1*)|([^A-Za-z]+)", form.literal), ("", "", "")]:
        letters = first + more
        if letters and letters not in _FORMATS:
            raise invalid_query(position, f"a format has no {letters}.")
        special = letters == "MMM" or letters.startswith("S")
        if plain and (special or not letters + other):
            parts.append(f"strftime({moment}, {literal(plain)})")
            plain = ""
        if special:
            shown = f"strftime({moment}, '{_FORMATS[letters]}')"
            parts.append(f"upper({shown})" if letters == "MMM" else f"left({shown}, {len(letters)})")
        else:
            plain += _FORMATS[letters] if letters else other.replace("%", "%%")
    return Expression(f"({' || '.join(parts) or literal('')})", TEXT)
