"""Text on the wire to values, for the headers and query parameters of the File service."""

import re
from collections.abc import Callable
from typing import NoReturn
from urllib.parse import unquote

from verditer.core.dates import parse_iso
from verditer.core.errors import Code, StorageError
from verditer.core.files.attributes import FileAttributes
from verditer.core.files.times import FILETIME_EPOCH, Effect
from verditer.core.limits import MAX_PERMISSION_TEXT
from verditer.rest.codecs.file.attributes import parse_attributes
from verditer.rest.codecs.leases import parse_lease_id
from verditer.rest.values import includes, text
from verditer.rest.wire_errors import invalid_header
from verditer.services.file.properties import CopyMode

_TIERS = {tier.lower(): tier for tier in ("TransactionOptimized", "Hot", "Cool", "Premium")}
_SQUASHES = {squash.lower(): squash for squash in ("NoRootSquash", "RootSquash", "AllSquash")}
_SHARE_INCLUDES = frozenset({"metadata", "snapshots", "deleted"})
_ENTRY_INCLUDES = frozenset({"timestamps", "etag", "attributes", "permissionkey"})
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,7})?(?:Z|[+-][0-9]{2}:[0-9]{2})?")


def share_tier(name: str, value: str) -> str:
    return _known(_TIERS, name, value)


def root_squash(name: str, value: str) -> str:
    return _known(_SQUASHES, name, value)


def protocols(name: str, value: str) -> str:
    return _known({"smb": "SMB", "nfs": "NFS"}, name, value)


def permission_format(name: str, value: str) -> str:
    return _known({"sddl": "sddl", "binary": "binary"}, name, value)


def permission(name: str, value: str) -> str:
    """A longer security descriptor is stored by Create Permission and named by its key."""
    if len(value) > MAX_PERMISSION_TEXT:
        raise invalid_header(name, value)
    return value


def file_attributes(name: str, value: str) -> FileAttributes:
    return parse_attributes(name, value, is_directory=False)


def directory_attributes(name: str, value: str) -> FileAttributes:
    return parse_attributes(name, value, is_directory=True)


def file_time(name: str, value: str) -> int:
    """ISO 8601 with a fraction of up to seven digits, not before 1601."""
    ticks = parse_iso(value) if _TIME.fullmatch(value) else None
    if ticks is None or ticks < FILETIME_EPOCH:
        raise invalid_header(name, value)
    return ticks


def or_word(parse: Callable[[str, str], object], *effects: Effect) -> Callable[[str, str], object]:
    """The value is one of the words for the effects, in any case, or a text for `parse`."""
    words = {effect.value: effect for effect in effects}
    return lambda name, value: words.get(value.lower()) or parse(name, value)


# The same words mean different things to different operations, and each operation takes only some of them.
new_permission = or_word(permission, Effect.INHERIT)
set_permission = or_word(permission, Effect.KEEP)
permission_key = or_word(text, Effect.KEEP)
new_time = or_word(file_time, Effect.NOW)
set_time = or_word(file_time, Effect.NOW, Effect.KEEP)
copied_time = or_word(file_time, Effect.SOURCE)
set_file_attributes = or_word(file_attributes, Effect.KEEP)
set_directory_attributes = or_word(directory_attributes, Effect.KEEP)
copied_attributes = or_word(file_attributes, Effect.SOURCE)


def file_type(name: str, value: str) -> str:
    """Create File makes regular files; directories and links have operations of their own."""
    return _known({"regular": "Regular"}, name, value)


def delete_share_snapshots(name: str, value: str) -> str:
    return _known({"include": "include", "include-leased": "include-leased"}, name, value)


def range_write(name: str, value: str) -> str:
    """`clear` has a row of its own."""
    return _known({"update": "update"}, name, value)


def restores(name: str, value: str) -> bool:
    return _known({"new": "new", "restore": "restore"}, name, value) == "restore"


def keeps_last_write(name: str, value: str) -> bool:
    return _known({"now": "now", "preserve": "preserve"}, name, value) == "preserve"


def copy_mode(name: str, value: str) -> CopyMode:
    return CopyMode(_known({"source": "source", "override": "override"}, name, value))


def _known(known: dict[str, str], name: str, value: str) -> str:
    found = known.get(value.strip().lower())
    if found is None:
        raise invalid_header(name, value)
    return found


def share_version(name: str, value: str) -> int:
    """Sixteen hexadecimal digits, as the listing of deleted shares shows them."""
    if re.fullmatch(r"[0-9A-Fa-f]{16}", value) is None:
        raise StorageError(Code.ShareNotFound)
    return int(value, 16)


def share_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, _SHARE_INCLUDES)


def entry_include(name: str, value: str) -> frozenset[str]:
    return includes(name, value, _ENTRY_INCLUDES)


def file_mode(name: str, value: str) -> str:
    if re.fullmatch(r"[0-7]{4}", value) is None:
        raise invalid_header(name, value)
    return value


def posix_id(name: str, value: str) -> str:
    if re.fullmatch(r"[0-9]{1,10}", value) is None:
        raise invalid_header(name, value)
    return value


def path_text(name: str, value: str) -> str:
    """A path, percent-encoded where a header cannot carry its characters."""
    try:
        return unquote(value, errors="strict")
    except UnicodeDecodeError:
        raise invalid_header(name, value) from None


def lease_id(name: str, value: str) -> str | None:
    return parse_lease_id({name: value}, name)


def refused(name: str, value: str) -> NoReturn:
    """The operation does not take this header."""
    raise invalid_header(name, value)
