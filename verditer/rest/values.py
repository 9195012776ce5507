"""Parsers of header and query values: one small function per kind of value. An error names the header or query parameter.

The values of a single service are in `headers/blob_values.py` and `headers/file_values.py`."""

import base64
import binascii
import re
import uuid
from collections.abc import Callable
from typing import NoReturn

from verditer.core.dates import parse_iso, parse_rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_PAGE, MAX_PAGE_RANGES
from verditer.rest.wire_errors import invalid_header, invalid_query, query_out_of_range, unsupported_header

_RANGE = re.compile(r"bytes=([0-9]{1,19})-([0-9]{0,19})")
_NUMBER = re.compile("[0-9]{1,19}")
QUEUE_INCLUDES = frozenset({"metadata"})
_INT32 = range(-(2**31), 2**31)


def text(name: str, value: str) -> str:
    return value


def flag(name: str, value: str) -> bool:
    if value.lower() not in ("true", "false"):
        raise invalid_header(name, value)
    return value.lower() == "true"


def md5(name: str, value: str) -> bytes:
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise StorageError(Code.InvalidMd5) from None
    if len(decoded) != 16:
        raise StorageError(Code.InvalidMd5)
    return decoded


def crc64(name: str, value: str) -> bytes:
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_header(name, value) from None
    if len(decoded) < 8:
        raise invalid_header(name, value)
    return decoded


def byte_range(name: str, value: str) -> tuple[int, int | None] | None:
    """`bytes=a-b` or `bytes=a-`. Any other form is ignored in the Range header and refused in x-ms-range."""
    match = _RANGE.fullmatch(value.strip())
    if match is not None:
        first, last = int(match[1]), int(match[2]) if match[2] else None
        if last is None or first <= last:
            return first, last
    if name == "range":
        return None
    raise invalid_header(name, value)


def page_range(name: str, value: str) -> tuple[int, int]:
    """`bytes=a-b`; a range of pages requires both ends."""
    match = _RANGE.fullmatch(value.strip())
    if match is None or not match[2] or int(match[1]) > int(match[2]):
        raise invalid_header(name, value)
    return int(match[1]), int(match[2])


def number(name: str, value: str) -> int:
    """A whole number of 63 bits in a header: sizes, positions, sequence numbers."""
    if _NUMBER.fullmatch(value) is None or (found := int(value)) >= 2**63:
        raise invalid_header(name, value)
    return found


def unsupported(name: str, value: str) -> NoReturn:
    raise unsupported_header(name, value)


def no_such(name: str, value: str) -> NoReturn:
    """The only legal value has a row of its own."""
    raise invalid_query(name, value)


def not_built(name: str, value: str) -> NoReturn:
    """For options that change what a client may rely on. The value may be a secret, so the error does not repeat it."""
    raise StorageError(Code.NotImplemented, message=f"{name} is not implemented by this server yet.")


def date(name: str, value: str) -> int:
    ticks = parse_rfc1123(value)
    if ticks is None:
        raise invalid_header(name, value)
    return ticks


def copy_action(name: str, value: str) -> str:
    if value.lower() != "abort":
        raise invalid_header(name, value)
    return value.lower()


def guid(name: str, value: str) -> str:
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise invalid_query(name, value) from None


def snapshot(name: str, value: str) -> int:
    ticks = parse_iso(value)
    if ticks is None or "T" not in value:
        raise invalid_query(name, value)
    return ticks


def max_results(name: str, value: str) -> int:
    """A value above the limit is reduced to it; zero, a negative number or another text is refused."""
    return _at_most(MAX_PAGE, name, value)


def max_page_ranges(name: str, value: str) -> int:
    return _at_most(MAX_PAGE_RANGES, name, value)


def _at_most(ceiling: int, name: str, value: str) -> int:
    if re.fullmatch(r"-?[0-9]{1,18}", value) is None:
        raise invalid_query(name, value)
    if int(value) < 1:
        raise query_out_of_range(name, value, 1, ceiling)
    return min(int(value), ceiling)


def whole_number(name: str, value: str) -> int:
    """A signed number of 32 bits, as in Azure."""
    if re.fullmatch(r"[+-]?[0-9]{1,10}", value) is None or int(value) not in _INT32:
        raise invalid_query(name, value)
    return int(value)


def number_from(minimum: int, maximum: int) -> Callable[[str, str], int]:
    def parse(name: str, value: str) -> int:
        number = whole_number(name, value)
        if not minimum <= number <= maximum:
            raise query_out_of_range(name, value, minimum, maximum)
        return number

    return parse


def peek_only(name: str, value: str) -> bool:
    """`true` has a row of its own."""
    if value.lower() != "false":
        raise invalid_query(name, value)
    return False


def queue_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, QUEUE_INCLUDES)


def includes(name: str, value: str, known: frozenset[str]) -> frozenset[str]:
    wanted = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
    if not wanted <= known:
        raise invalid_query(name, value)
    return wanted


def ignored(name: str, value: str) -> None:
    """For values that are legal and have no effect; a comment at the row gives the reason."""
    return
