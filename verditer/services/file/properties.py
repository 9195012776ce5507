"""What requests may say about a file or directory besides its content: attributes, times, permission, POSIX properties, metadata.

The rules for times and attributes are in `core/files/times.py` and `core/files/attributes.py`. This module applies them to the
record of an entry, inside the transaction that changes it.
"""

from enum import Enum
from typing import Any

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.attributes import FileAttributes, attributes_of, attributes_of_new
from verditer.core.files.security_descriptor import decode_descriptor
from verditer.core.files.times import Effect, FileTimes, GivenTime, GivenTimes, TimeOperation, resolve_times
from verditer.core.records.file import NFS, FileEntry, Posix, Share
from verditer.partition.engine import Transaction
from verditer.services.file.permissions import find_permission, inherited_permission, parse_permission, store_permission

_READ_ONLY = int(FileAttributes.READ_ONLY)  # arithmetic of enumerations is slow
FILE_MODE, DIRECTORY_MODE = "0664", "0775"


class EntryProperties(msgspec.Struct, frozen=True, kw_only=True):
    """An effect asks for what the operation may do by itself. `permission` is the text of a security descriptor."""

    permission: str | Effect | None = None
    permission_key: str | Effect | None = None
    permission_format: str = "sddl"
    attributes: FileAttributes | Effect | None = None
    creation_time: GivenTime | None = None
    last_write_time: GivenTime | None = None
    change_time: GivenTime | None = None
    mode: str | None = None
    owner: str | None = None
    group: str | None = None
    restores: bool = False  # a new entry takes the given attributes without a default for those that are missing


class CopyMode(Enum):
    """Whose value a copy gets: that of its source, or that of the request."""

    SOURCE = "source"
    OVERRIDE = "override"


class CopyProperties(EntryProperties, frozen=True, kw_only=True):
    permission_copy_mode: CopyMode | None = None
    mode_copy_mode: CopyMode | None = None
    owner_copy_mode: CopyMode | None = None
    set_archive: bool = False


def new_properties(
    tx: Transaction, share: Share, parent: FileEntry, request: EntryProperties, *, is_directory: bool
) -> dict[str, Any]:
    """The fields of a new entry."""
    _check_protocol(share, request)
    fields = _times(TimeOperation.CREATE, request, tx.now)
    if share.protocols == NFS:
        mode = DIRECTORY_MODE if is_directory else FILE_MODE
        posix = Posix(mode=request.mode or mode, owner=request.owner or "0", group=request.group or "0")
        return fields | {"posix": posix}
    given = request.attributes if isinstance(request.attributes, FileAttributes) else FileAttributes.NONE
    permission = _given_permission(tx, share, request)
    completed = attributes_of if request.restores else attributes_of_new
    return fields | {
        "attributes": int(completed(given, is_directory=is_directory)),
        "permission_key": permission or inherited_permission(tx, parent, is_directory=is_directory),
    }


def copied_properties(
    tx: Transaction,
    share: Share,
    parent: FileEntry,
    request: CopyProperties,
    source: FileEntry | None,
    descriptor: bytes | None,
) -> dict[str, Any]:
    """The fields of a new copy. `source` is None when it is not a file; `descriptor` is its security descriptor."""
    _check_protocol(share, request)
    fields = _times(TimeOperation.COPY, request, tx.now, source=source)
    if share.protocols == NFS:
        return fields | {"posix": _copied_posix(request, source)}
    return fields | {
        "attributes": int(_copied_attributes(request, source)),
        "permission_key": _copied_permission(tx, share, parent, request, descriptor),
    }


def _copied_posix(request: CopyProperties, source: FileEntry | None) -> Posix:
    new = Posix(mode=request.mode or FILE_MODE, owner=request.owner or "0", group=request.group or "0")
    if source is None or source.posix is None:
        return new
    if request.mode_copy_mode is CopyMode.SOURCE:
        new = msgspec.structs.replace(new, mode=source.posix.mode)
    if request.owner_copy_mode is CopyMode.SOURCE:
        new = msgspec.structs.replace(new, owner=source.posix.owner, group=source.posix.group)
    return new


def _copied_attributes(request: CopyProperties, source: FileEntry | None) -> FileAttributes:
    given = request.attributes
    if given is Effect.SOURCE and source is not None:
        given = FileAttributes(source.attributes)
    if not isinstance(given, FileAttributes):
        return FileAttributes.ARCHIVE
    return given | FileAttributes.ARCHIVE if request.set_archive else given


def _copied_permission(
    tx: Transaction, share: Share, parent: FileEntry, request: CopyProperties, descriptor: bytes | None
) -> str:
    if request.permission_copy_mode is CopyMode.SOURCE and descriptor is not None:
        return store_permission(tx, share.id, decode_descriptor(descriptor))
    if request.permission_copy_mode is CopyMode.OVERRIDE and request.permission is None and request.permission_key is None:
        raise StorageError(Code.MissingRequiredHeader, field="permission")
    return _given_permission(tx, share, request) or inherited_permission(tx, parent, is_directory=False)


def changed_properties(
    tx: Transaction,
    share: Share,
    entry: FileEntry,
    request: EntryProperties,
    operation: TimeOperation,
    *,
    is_resized: bool = False,
) -> dict[str, Any]:
    """The fields of an existing entry that a request changes. What it leaves out stays."""
    _check_protocol(share, request)
    fields = _times(operation, request, tx.now, entry, is_resized=is_resized)
    if entry.posix is not None:
        posix = msgspec.structs.replace(
            entry.posix,
            mode=request.mode or entry.posix.mode,
            owner=request.owner or entry.posix.owner,
            group=request.group or entry.posix.group,
        )
        return fields | {"posix": posix}
    if isinstance(request.attributes, FileAttributes):
        fields["attributes"] = int(attributes_of(request.attributes, is_directory=entry.is_directory))
    permission = _given_permission(tx, share, request)
    return fields | ({"permission_key": permission} if permission else {})


def _check_protocol(share: Share, request: EntryProperties) -> None:
    """Shares for SMB have attributes and permissions, those for NFS have modes, owners and groups. The others are refused.

    An effect, or no attributes, asks for nothing: clients send them to either kind of share.
    """
    if share.protocols == NFS:
        has_attributes = isinstance(request.attributes, FileAttributes) and request.attributes != FileAttributes.NONE
        is_foreign = has_attributes or isinstance(request.permission, str) or request.permission_key is not None
    else:
        is_foreign = request.mode is not None or request.owner is not None or request.group is not None
    if is_foreign:
        raise StorageError(Code.UnsupportedHeader)


def check_writable(entry: FileEntry) -> None:
    """The attribute ReadOnly refuses every change of content, metadata or HTTP properties."""
    if entry.attributes & _READ_ONLY:
        raise StorageError(Code.ReadOnlyAttribute)


def _given_permission(tx: Transaction, share: Share, request: EntryProperties) -> str | None:
    """The key of the permission a request names; None where it leaves the choice to the operation."""
    permission, key = request.permission, request.permission_key
    if permission is not None and key is not None:
        raise StorageError(Code.InvalidHeaderValue, field="permission_key", value=key if isinstance(key, str) else key.value)
    if isinstance(key, str):
        return find_permission(tx, share.id, key).key_text
    if isinstance(permission, str):
        return store_permission(tx, share.id, parse_permission(permission, request.permission_format))
    return None


def _times(
    operation: TimeOperation,
    request: EntryProperties,
    now: int,
    entry: FileEntry | None = None,
    *,
    source: FileEntry | None = None,
    is_resized: bool = False,
) -> dict[str, Any]:
    given = GivenTimes(creation=request.creation_time, last_write=request.last_write_time, change=request.change_time)
    previous = None if entry is None else _times_of(entry)
    copied = None if source is None else _times_of(source)
    times = resolve_times(operation, given, now, previous=previous, source=copied, is_resized=is_resized)
    return {"created": times.creation, "written": times.last_write, "changed": times.change}


def _times_of(entry: FileEntry) -> FileTimes:
    return FileTimes(creation=entry.created, last_write=entry.written, change=entry.changed)
