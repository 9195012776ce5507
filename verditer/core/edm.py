"""The entity data model: eight types, their ranges, and the one form in which their values are sent and stored.

A property is one or two members of a JSON object. Strings, booleans, Int32 and Double are told apart by their JSON value; the
others are text with an annotation in front: `"Size@odata.type":"Edm.Int64","Size":"5"`. That is JSON with minimal metadata, as
clients read it, and `Members` is that object in memory. Every value has exactly one spelling in it, so equal values are
equal text.
"""

import base64
import binascii
import math
import re
from collections.abc import Callable
from enum import Enum
from functools import lru_cache

import msgspec

from verditer.core.dates import TICKS_PER_SECOND, iso, parse_iso
from verditer.core.errors import Code, StorageError

Wire = str | int | float | bool
Members = dict[str, Wire]

ANNOTATION = "@odata.type"
FIRST_DATETIME = parse_iso("1601-01-01T00:00:00Z") or 0
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# The one spelling of a moment, of days that every month has.
_MOMENT = re.compile(
    r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1[0-9]|2[0-8])T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{0,6}[1-9])?Z"
)
_SPECIAL_DOUBLES = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

encode_members = msgspec.json.Encoder().encode
decode_members = msgspec.json.Decoder(Members).decode


class Edm(Enum):
    STRING = "Edm.String"
    INT32 = "Edm.Int32"
    INT64 = "Edm.Int64"
    DOUBLE = "Edm.Double"
    BOOLEAN = "Edm.Boolean"
    DATETIME = "Edm.DateTime"
    GUID = "Edm.Guid"
    BINARY = "Edm.Binary"


def kind_of(value: Wire, annotation: str | None) -> Edm:
    """The type of a stored member."""
    if annotation is not None:
        return Edm(annotation)
    return _KINDS[type(value)]


_KINDS = {str: Edm.STRING, bool: Edm.BOOLEAN, int: Edm.INT32, float: Edm.DOUBLE}


def inferred(value: object) -> Wire:
    """A value sent without annotation. Whole numbers beyond Int32 are doubles, as Azure reads them."""
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if -(2**31) <= value < 2**31 else _finite(value)
    if isinstance(value, float):
        return _finite(value)
    raise StorageError(Code.InvalidInput)


def canonical(kind: Edm, value: object) -> Wire:
    """A value of a type in its one spelling; refused when it is not of the type or out of its range."""
    return _CANONICAL[kind](value)


def annotated(annotation: object, value: object) -> Wire:
    """The same for a value sent with an annotation, by the type that names."""
    read = _READERS.get(annotation) if isinstance(annotation, str) else None
    if read is None:
        raise invalid_value()
    return read(value)


def invalid_value() -> StorageError:
    return StorageError(Code.InvalidInput, message="An error occurred while processing this request.")


def _finite(value: int | float) -> float:
    try:
        number = float(value)
    except OverflowError:
        raise invalid_value() from None
    if not math.isfinite(number):
        raise invalid_value()
    return number


def _string(value: object) -> Wire:
    if not isinstance(value, str):
        raise invalid_value()
    return value


def _int32(value: object) -> Wire:
    return _integer(value, 2**31)


def _int64(value: object) -> Wire:
    if isinstance(value, str) and len(value) < 19 and value.isdecimal() and value.isascii() and value[0] != "0":
        return value
    return str(_integer(value, 2**63))


def _integer(value: object, bound: int) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -bound <= value < bound:
        raise invalid_value()
    return value


def _double(value: object) -> Wire:
    if isinstance(value, str):
        if value in _SPECIAL_DOUBLES:
            return value
        if _DOUBLE.fullmatch(value) is None:
            raise invalid_value()
        return _finite(float(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid_value()
    return _finite(value)


def _boolean(value: object) -> Wire:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise invalid_value()
    return value


def _datetime(value: object) -> Wire:
    if not isinstance(value, str):
        raise invalid_value()
    if value >= "1601" and _MOMENT.fullmatch(value):
        return value
    ticks = parse_iso(value)
    if ticks is None or ticks < FIRST_DATETIME:
        raise invalid_value()
    return datetime_text(ticks)


def _guid(value: object) -> Wire:
    if not isinstance(value, str) or _GUID.fullmatch(value) is None:
        raise invalid_value()
    return value.lower()


def _binary(value: object) -> Wire:
    if not isinstance(value, str):
        raise invalid_value()
    try:
        return base64.b64encode(base64.b64decode(value, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise invalid_value() from None


_CANONICAL: dict[Edm, Callable[[object], Wire]] = {
    Edm.STRING: _string,
    Edm.INT32: _int32,
    Edm.INT64: _int64,
    Edm.DOUBLE: _double,
    Edm.BOOLEAN: _boolean,
    Edm.DATETIME: _datetime,
    Edm.GUID: _guid,
    Edm.BINARY: _binary,
}
_READERS = {kind.value: read for kind, read in _CANONICAL.items()}  # an enum is slow to look up by


def double_of(value: Wire) -> float:
    """The number behind a stored double: a JSON number, or one of the names JSON has no number for."""
    return _SPECIAL_DOUBLES[value] if isinstance(value, str) else float(value)


def utf16_units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def size_of(kind: Edm, value: Wire) -> int:
    """What a value counts towards the size of its entity, by the formula Azure's team published."""
    if kind is Edm.STRING:
        return 2 * utf16_units(str(value)) + 4
    if kind is Edm.BINARY:
        return binary_bytes(str(value)) + 4
    return _SIZES[kind]


_SIZES = {Edm.INT32: 4, Edm.INT64: 8, Edm.DOUBLE: 8, Edm.BOOLEAN: 1, Edm.DATETIME: 8, Edm.GUID: 16}


def binary_bytes(text: str) -> int:
    """How many bytes a base64 text stands for."""
    return len(text) // 4 * 3 - text.count("=", -2)


def datetime_text(ticks: int) -> str:
    """`2021-06-08T02:05:09.12Z`: zeros at the end of the fraction are cut, and a whole second has none.

    Without its `Z` the text sorts as the ticks do.
    """
    whole, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second(whole)[0]}{f'.{fraction:07}'.rstrip('0') if fraction else ''}Z"


def etag_text(ticks: int) -> str:
    """The ETag of an entity: its Timestamp, with the colons as a URI has them."""
    whole, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second(whole)[1]}{f'.{fraction:07}'.rstrip('0') if fraction else ''}Z'\""


@lru_cache(maxsize=4096)
def _second(whole: int) -> tuple[str, str]:
    """How the Timestamp and the ETag of a moment in this second begin."""
    text = iso(whole * TICKS_PER_SECOND).partition(".")[0]
    return text, f"W/\"datetime'{text.replace(':', '%3A')}"
