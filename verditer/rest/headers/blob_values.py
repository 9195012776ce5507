"""Parsers of the header and query values that only the Blob service has."""

import base64
import binascii
import re
from typing import NoReturn
from urllib.parse import unquote_plus

from verditer.core import tags
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_BLOCK_ID
from verditer.core.tiers import BLOCK_TIERS, HIGH, STANDARD
from verditer.core.tiers import PAGE_TIERS as PREMIUM_TIERS
from verditer.rest.values import date, includes
from verditer.rest.wire_errors import invalid_header, invalid_query
from verditer.services.blob.expiry import OPTIONS as EXPIRY_OPTIONS
from verditer.services.blob.kinds.page import SequenceAction

TIERS = {tier.lower(): tier for tier in BLOCK_TIERS}
PAGE_TIERS = {tier.lower(): tier for tier in PREMIUM_TIERS}
LIST_INCLUDES = frozenset(
    {"snapshots", "metadata", "uncommittedblobs", "copy", "deleted", "tags", "versions", "deletedwithversions",
     "immutabilitypolicy", "legalhold", "permissions"}
)  # fmt: skip
CONTAINER_INCLUDES = frozenset({"metadata", "deleted", "system"})
FIND_INCLUDES = frozenset({"none"})  # versions and deleted blobs are not found: docs/decisions/find-blobs-by-tags.md


def any_md5(name: str, value: str) -> bytes:
    """Set Blob Properties stores any Base64 text, whatever its length (seen on Azure)."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise StorageError(Code.InvalidMd5) from None


def page_write(name: str, value: str) -> str:
    """`clear` has a row of its own."""
    if value.lower() != "update":
        raise invalid_header(name, value)
    return value.lower()


def sequence_action(name: str, value: str) -> SequenceAction:
    try:
        return SequenceAction(value.lower())
    except ValueError:
        raise invalid_header(name, value) from None


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


def find_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, FIND_INCLUDES)
