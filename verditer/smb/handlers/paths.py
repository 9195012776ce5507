"""Names of requests: a share-relative path with backslashes, perhaps with the token of a previous version, becomes a FilePath."""

import re
from typing import NamedTuple

from verditer.core.dates import iso, parse_iso
from verditer.core.edm import utf16_units
from verditer.core.files.names import MAX_PATH_UNITS, MAX_SUBDIRECTORIES, entry_name
from verditer.core.names import FilePath, ShareName
from verditer.smb.status import SmbError, Status

_TOKEN = re.compile(r"@GMT-([0-9]{4})\.([0-9]{2})\.([0-9]{2})-([0-9]{2})\.([0-9]{2})\.([0-9]{2})")


class RequestedPath(NamedTuple):
    """`version` is the time of a previous version, in ticks."""

    path: FilePath
    version: int | None


def requested_path(share: ShareName, name: str) -> RequestedPath:
    """A name that begins with a backslash is refused, as MS-SMB2 demands. A token may stand for any part of the path.

    A slash separates, too: no name contains one.
    """
    name = name.replace("/", "\\")
    if name.startswith("\\"):
        raise SmbError(Status.INVALID_PARAMETER)
    parts = name.split("\\") if name else []
    versions = [version for part in parts if (version := parse_version_token(part)) is not None]
    if len(versions) > 1:
        raise SmbError(Status.OBJECT_NAME_INVALID)
    kept = [part for part in parts if not (versions and parse_version_token(part) is not None)]
    return RequestedPath(file_path(share, kept), versions[0] if versions else None)


def file_path(share: ShareName, parts: list[str]) -> FilePath:
    if len(parts) > MAX_SUBDIRECTORIES + 1 or sum(utf16_units(part) + 1 for part in parts) - 1 > MAX_PATH_UNITS:
        raise SmbError(Status.OBJECT_NAME_INVALID)
    if ".." in parts:
        raise SmbError(Status.OBJECT_PATH_SYNTAX_BAD)
    names = [entry_name(part, allow_trailing_dot=True) for part in parts]
    return FilePath(share.account, share.share, tuple(each.name for each in names), tuple(each.folded for each in names))


def shown_path(path: FilePath) -> str:
    return "\\" + "\\".join(path.names)


def parse_version_token(text: str) -> int | None:
    """`@GMT-2026.11.18-14.00.00` as ticks; None for any other name."""
    found = _TOKEN.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = found.groups()
    return parse_iso(f"{year}-{month}-{day}T{hour}:{minute}:{second}Z")


def version_token(ticks: int) -> str:
    date, time = iso(ticks)[:19].split("T")
    return f"@GMT-{date.replace('-', '.')}-{time.replace(':', '.')}"
