"""Text on the wire to values: one small function per kind of header or query value, each refusing by the name it has there."""

import base64
import binascii
import re
import uuid
from collections.abc import Callable
from typing import Any, NoReturn

from verditer.core import tags
from verditer.core.dates import parse_iso
from verditer.core.errors import Code, StorageError, invalid_header, invalid_query, query_out_of_range
from verditer.core.limits import MAX_BLOCK_ID, MAX_PAGE, MAX_PAGE_RANGES
from verditer.core.tiers import BLOCK_TIERS, HIGH, STANDARD
from verditer.core.tiers import PAGE_TIERS as PREMIUM_TIERS
from verditer.services.blob.page import SequenceAction

_RANGE = re.compile(r"bytes=([0-9]{1,19})-([0-9]{0,19})")
TIERS = {tier.lower(): tier for tier in BLOCK_TIERS}
PAGE_TIERS = {tier.lower(): tier for tier in PREMIUM_TIERS}
LIST_INCLUDES = frozenset(
    {"snapshots", "metadata", "uncommittedblobs", "copy", "deleted", "tags", "versions", "deletedwithversions",
     "immutabilitypolicy", "legalhold", "permissions"}
)  # fmt: skip
CONTAINER_INCLUDES = frozenset({"metadata", "deleted", "system"})
QUEUE_INCLUDES = frozenset({"metadata"})
FIND_INCLUDES = frozenset({"none"})  # versions and deleted blobs are not found: docs/decisions/find-include.md
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
    """`bytes=a-b` or `bytes=a-`. The plain Range header is ignored when it is anything else, x-ms-range is refused."""
    match = _RANGE.fullmatch(value.strip())
    if match is not None:
        first, last = int(match[1]), int(match[2]) if match[2] else None
        if last is None or first <= last:
            return first, last
    if name == "range":
        return None
    raise invalid_header(name, value)


def page_range(name: str, value: str) -> tuple[int, int]:
    """`bytes=a-b` with both ends: which pages to write is never a guess."""
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
    raise StorageError(Code.UnsupportedHeader, details={"HeaderName": name, "HeaderValue": value})


def no_such(name: str, value: str) -> NoReturn:
    """The one value there is has a row of its own."""
    raise invalid_query(name, value)


def not_built(name: str, value: str) -> NoReturn:
    """What would be lost on a client that relies on it. The value may be a secret, and is not repeated."""
    raise StorageError(Code.NotImplemented, message=f"{name} is not implemented by this server yet.")


def access_tier(name: str, value: str) -> str:
    return _tier(TIERS, name, value)


def page_tier(name: str, value: str) -> str:
    return _tier(PAGE_TIERS, name, value)


def any_tier(name: str, value: str) -> str:
    """Whether the blob may have it depends on the blob."""
    return _tier(TIERS | PAGE_TIERS, name, value)


def _tier(known: dict[str, str], name: str, value: str) -> str:
    """Smart is a tier of accounts that are replicated across zones, and those we are not: docs/decisions/smart-tier.md."""
    if value.lower() == "smart":
        raise StorageError(Code.BlobAccessTierNotSupportedForAccountType)
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
    """Of a deleted container: sixteen hexadecimal digits, as the listing shows them."""
    if re.fullmatch(r"[0-9A-Fa-f]{16}", value) is None:
        raise StorageError(Code.ContainerNotFound)
    return int(value, 16)


def tag_set(name: str, value: str) -> dict[str, str] | None:
    return tags.parse_header(value) or None


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
    """Above the ceiling is clipped; zero, negative or not a number is refused."""
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
    """Of 32 bits, as Azure reads it."""
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
    return _include(name, value, LIST_INCLUDES)


def container_include(name: str, value: str) -> frozenset[str]:
    return _include(name, value, CONTAINER_INCLUDES)


def queue_include(name: str, value: str) -> frozenset[str]:
    return _include(name, value, QUEUE_INCLUDES)


def find_include(name: str, value: str) -> frozenset[str]:
    return _include(name, value, FIND_INCLUDES)


def _include(name: str, value: str, known: frozenset[str]) -> frozenset[str]:
    wanted = frozenset(part.strip().lower() for part in value.split(",") if part.strip())
    if not wanted <= known:
        raise invalid_query(name, value)
    return wanted


def ignored(name: str, value: str) -> Any:
    """For values that are legal and mean nothing here, with the reason beside the row."""
    return None
