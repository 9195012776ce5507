"""The entity data model: eight types, their ranges, and the one form in which their values are sent and stored.

A property is one or two members of a JSON object. The JSON value alone identifies strings, booleans, Int32 and Double; the other
types are text after an annotation: `"Size@odata.type":"Edm.Int64","Size":"5"`. This is OData's JSON with minimal metadata, and
`Members` is that object in memory. Every value has exactly one spelling in it, so equal values are equal text.
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

JsonValue = str | int | float | bool
Members = dict[str, JsonValue]

ANNOTATION = "@odata.type"
FIRST_DATETIME = parse_iso("1601-01-01T00:00:00Z") or 0
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_GUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
# The canonical spelling of a moment, for days that exist in every month.
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


def kind_of(value: JsonValue, annotation: str | None) -> Edm:
    """The type of a stored member."""
    if annotation is not None:
        return Edm(annotation)
    return _KINDS[type(value)]


_KINDS = {str: Edm.STRING, bool: Edm.BOOLEAN, int: Edm.INT32, float: Edm.DOUBLE}


def infer_value(value: object) -> JsonValue:
    """The value of a property that was sent without annotation. Azure reads whole numbers beyond Int32 as doubles."""
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, int):
        return value if -(2**31) <= value < 2**31 else _finite(value)
    if isinstance(value, float):
        return _finite(value)
    raise StorageError(Code.InvalidInput)


def canonical(kind: Edm, value: object) -> JsonValue:
    """The value in the one spelling of its type; StorageError when it is not of the type or out of range."""
    return _CANONICAL[kind](value)


def read_annotated(annotation: object, value: object) -> JsonValue:
    """The same for a value that was sent with an annotation, which names the type."""
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


def _string(value: object) -> JsonValue:
    if not isinstance(value, str):
        raise invalid_value()
    return value


def _int32(value: object) -> JsonValue:
    return _integer(value, 2**31)


def _int64(value: object) -> JsonValue:
    if isinstance(value, str) and len(value) < 19 and value.isdecimal() and value.isascii() and value[0] != "0":
        return value
    return str(_integer(value, 2**63))


def _integer(value: object, bound: int) -> int:
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not -bound <= value < bound:
        raise invalid_value()
    return value


def _double(value: object) -> JsonValue:
    if isinstance(value, str):
        if value in _SPECIAL_DOUBLES:
            return value
        if _DOUBLE.fullmatch(value) is None:
            raise invalid_value()
        return _finite(float(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid_value()
    return _finite(value)


def _boolean(value: object) -> JsonValue:
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if not isinstance(value, bool):
        raise invalid_value()
    return value


def _datetime(value: object) -> JsonValue:
    if not isinstance(value, str):
        raise invalid_value()
    if value >= "1601" and _MOMENT.fullmatch(value):
        return value
    ticks = parse_iso(value)
    if ticks is None or ticks < FIRST_DATETIME:
        raise invalid_value()
    return datetime_text(ticks)


def _guid(value: object) -> JsonValue:
    if not isinstance(value, str) or _GUID.fullmatch(value) is None:
        raise invalid_value()
    return value.lower()


def _binary(value: object) -> JsonValue:
    if not isinstance(value, str):
        raise invalid_value()
    try:
        return base64.b64encode(base64.b64decode(value, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise invalid_value() from None


_CANONICAL: dict[Edm, Callable[[object], JsonValue]] = {
    Edm.STRING: _string,
    Edm.INT32: _int32,
    Edm.INT64: _int64,
    Edm.DOUBLE: _double,
    Edm.BOOLEAN: _boolean,
    Edm.DATETIME: _datetime,
    Edm.GUID: _guid,
    Edm.BINARY: _binary,
}
_READERS = {kind.value: read for kind, read in _CANONICAL.items()}  # keyed by text: an enum is slow to look up


def double_of(value: JsonValue) -> float:
    """The number that a stored double stands for: a JSON number, or a name such as NaN, for which JSON has no number."""
    return _SPECIAL_DOUBLES[value] if isinstance(value, str) else float(value)


def utf16_units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def size_of(kind: Edm, value: JsonValue) -> int:
    """The bytes that a value adds to the size of its entity, by the formula that the Azure Storage team published."""
    if kind is Edm.STRING:
        return 2 * utf16_units(str(value)) + 4
    if kind is Edm.BINARY:
        return binary_bytes(str(value)) + 4
    return _SIZES[kind]


_SIZES = {Edm.INT32: 4, Edm.INT64: 8, Edm.DOUBLE: 8, Edm.BOOLEAN: 1, Edm.DATETIME: 8, Edm.GUID: 16}


def binary_bytes(text: str) -> int:
    """The number of bytes that a base64 text encodes."""
    return len(text) // 4 * 3 - text.count("=", -2)


def datetime_text(ticks: int) -> str:
    """`2021-06-08T02:05:09.12Z`: without trailing zeros of the fraction, and without a fraction for a whole second.

    Without its `Z` the text sorts in the order of the ticks.
    """
    whole, fraction = divmod(ticks, TICKS_PER_SECOND)
    return f"{_second(whole)}{f'.{fraction:07}'.rstrip('0') if fraction else ''}Z"


@lru_cache(maxsize=4096)
def _second(whole: int) -> str:
    return iso(whole * TICKS_PER_SECOND).partition(".")[0]
