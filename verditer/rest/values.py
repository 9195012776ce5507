"""Parsers of header and query values: one small function per kind of value. An error names the header or query parameter."""

import base64
import binascii
import re
import uuid
from collections.abc import Callable
from typing import NoReturn
from urllib.parse import unquote_plus

from verditer.core import tags
from verditer.core.dates import parse_iso, parse_rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_BLOCK_ID, MAX_PAGE, MAX_PAGE_RANGES
from verditer.core.tiers import BLOCK_TIERS, HIGH, STANDARD
from verditer.core.tiers import PAGE_TIERS as PREMIUM_TIERS
from verditer.rest.wire_errors import invalid_header, invalid_query, query_out_of_range, unsupported_header
from verditer.services.blob.expiry import OPTIONS as EXPIRY_OPTIONS
from verditer.services.blob.kinds.page import SequenceAction

_RANGE = re.compile(r"bytes=([0-9]{1,19})-([0-9]{0,19})")
TIERS = {tier.lower(): tier for tier in BLOCK_TIERS}
PAGE_TIERS = {tier.lower(): tier for tier in PREMIUM_TIERS}
LIST_INCLUDES = frozenset(
    {"snapshots", "metadata", "uncommittedblobs", "copy", "deleted", "tags", "versions", "deletedwithversions",
     "immutabilitypolicy", "legalhold", "permissions"}
)  # fmt: skip
CONTAINER_INCLUDES = frozenset({"metadata", "deleted", "system"})
QUEUE_INCLUDES = frozenset({"metadata"})
FIND_INCLUDES = frozenset({"none"})  # versions and deleted blobs are not found: docs/decisions/find-blobs-by-tags.md
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


def any_md5(name: str, value: str) -> bytes:
    """Set Blob Properties stores any Base64 text, whatever its length (seen on Azure)."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise StorageError(Code.InvalidMd5) from None


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


def page_write(name: str, value: str) -> str:
    """`clear` has a row of its own."""
    if value.lower() != "update":
        raise invalid_header(name, value)
    return value.lower()


def number(name: str, value: str) -> int:
    """A whole number of 63 bits in a header: sizes, positions, sequence numbers."""
    if re.fullmatch(r"[0-9]{1,19}", value) is None or int(value) >= 2**63:
        raise invalid_header(name, value)
    return int(value)


def sequence_action(name: str, value: str) -> SequenceAction:
    try:
        return SequenceAction(value.lower())
    except ValueError:
        raise invalid_header(name, value) from None


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


def encryption_key(name: str, value: str) -> bytes:
    """A key or its SHA-256, both of 256 bits. The error does not repeat it."""
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_header(name, "") from None
    if len(decoded) != 32:
        raise invalid_header(name, "")
    return decoded


def encryption_algorithm(name: str, value: str) -> str:
    if value.upper() != "AES256":
        raise invalid_header(name, value)
    return value.upper()


def immutability_mode(name: str, value: str) -> str:
    """`Mutable` is a state of containers, and no mode of a request (seen on Azure)."""
    if value.lower() not in ("locked", "unlocked"):
        raise invalid_header(name, value)
    return value.lower()


def expiry_option(name: str, value: str) -> str:
    if value.lower() not in EXPIRY_OPTIONS:
        raise invalid_header(name, value)
    return value.lower()


def milliseconds(name: str, value: str) -> int | None:
    """None for a date, which the absolute option takes."""
    return int(value) if re.fullmatch(r"[0-9]{1,15}", value) else None


def expiry_date(name: str, value: str) -> int | None:
    """None for a number, which the relative options take."""
    return None if value.isascii() and value.isdigit() and len(value) <= 15 else date(name, value)


def access_tier(name: str, value: str) -> str:
    return _tier(TIERS, name, value)


def page_tier(name: str, value: str) -> str:
    return _tier(PAGE_TIERS, name, value)


def any_tier(name: str, value: str) -> str:
    """Every tier; whether it is legal depends on the blob."""
    return _tier(TIERS | PAGE_TIERS, name, value)


def _tier(known: dict[str, str], name: str, value: str) -> str:
    tier = known.get(value.lower())
    if tier is None:
        raise invalid_header(name, value)
    return tier


def no_tier(name: str, value: str) -> NoReturn:
    raise StorageError(Code.AccessTierNotSupportedForBlobType)


def rehydrate_priority(name: str, value: str) -> str:
    priority = {STANDARD.lower(): STANDARD, HIGH.lower(): HIGH}.get(value.lower())
    if priority is None:
        raise invalid_header(name, value)
    return priority


def copies_tags(name: str, value: str) -> bool:
    if value.upper() not in ("REPLACE", "COPY"):
        raise invalid_header(name, value)
    return value.upper() == "COPY"


def copy_action(name: str, value: str) -> str:
    if value.lower() != "abort":
        raise invalid_header(name, value)
    return value.lower()


def guid(name: str, value: str) -> str:
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise invalid_query(name, value) from None


def container_version(name: str, value: str) -> int:
    """The version of a deleted container: sixteen hexadecimal digits, as in the listing."""
    if re.fullmatch(r"[0-9A-Fa-f]{16}", value) is None:
        raise StorageError(Code.ContainerNotFound)
    return int(value, 16)


def tag_set(name: str, value: str) -> dict[str, str] | None:
    """`k1=v1&k2=v2`, form-urlencoded."""
    pairs = [pair.partition("=") for pair in value.split("&") if pair]
    if not all(equals for _, equals, _ in pairs):
        raise StorageError(Code.InvalidTag)
    return tags.validate((unquote_plus(key), unquote_plus(text)) for key, _, text in pairs) or None


def public_access(name: str, value: str) -> str:
    if value.lower() not in ("blob", "container"):
        raise invalid_header(name, value)
    return value.lower()


def delete_snapshots(name: str, value: str) -> str:
    if value.lower() not in ("include", "only"):
        raise invalid_header(name, value)
    return value.lower()


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


def block_id(name: str, value: str) -> bytes:
    try:
        decoded = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid_query(name, value, "Not a valid base64 string.") from None
    if not decoded:
        raise invalid_query(name, value)
    if len(decoded) > MAX_BLOCK_ID:
        raise StorageError(Code.OutOfRangeInput)
    return decoded


def block_list_type(name: str, value: str) -> str:
    if value.lower() not in ("committed", "uncommitted", "all"):
        raise invalid_query(name, value)
    return value.lower()


def list_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, LIST_INCLUDES)


def container_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, CONTAINER_INCLUDES)


def queue_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, QUEUE_INCLUDES)


def find_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, FIND_INCLUDES)


def includes(name: str, value: str, known: frozenset[str]) -> frozenset[str]:
    wanted = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
    if not wanted <= known:
        raise invalid_query(name, value)
    return wanted


def ignored(name: str, value: str) -> None:
    """For values that are legal and have no effect; a comment at the row gives the reason."""
    return
