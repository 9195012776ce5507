"""What a handle's entry is, and changes of its times, attributes and security descriptor."""

from typing import Any

import msgspec

from verditer.core.files.access_mask import AccessMask
from verditer.core.files.attributes import from_win32
from verditer.core.files.security_descriptor import SecurityParts, decode_descriptor, encode_descriptor, only_parts
from verditer.core.records.file import FileEntry
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.handles.changes import (
    ATTRIBUTES,
    CREATION,
    LAST_ACCESS,
    LAST_WRITE,
    MODIFIED,
    SECURITY,
    tell_watchers,
)
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.new_entries import changed_permission, parsed_descriptor
from verditer.services.file.handles.processes.signals import Outbox
from verditer.services.file.handles.requests import BasicChange, FreezableTime, HandleState
from verditer.services.file.handles.using import change, look, require_access, used
from verditer.services.file.permissions import find_permission

replace = msgspec.structs.replace
OWNER, GROUP, DACL = SecurityParts.OWNER, SecurityParts.GROUP, SecurityParts.DACL
_TIMES = {"created": CREATION, "accessed": LAST_ACCESS, "written": LAST_WRITE}


async def entry_of(ctx: Context, handle: Handle) -> HandleState:
    """The present state. Errors: HandleClosed."""

    def body(tx: Transaction) -> HandleState:
        found = used(tx, handle)
        pending = found.record is not None and found.record.delete_pending
        return HandleState(entry=found.entry, delete_pending=pending, now=tx.now)

    return await look(ctx, handle, body)


async def set_times_and_attributes(ctx: Context, handle: Handle, given: BasicChange) -> FileEntry:
    """Errors: AccessNotGranted, HandleClosed."""
    require_access(handle, AccessMask.WRITE_ATTRIBUTES)

    def commit(tx: Transaction, outbox: Outbox) -> FileEntry:
        found = used(tx, handle)
        fields, what = _fields(tx, handle, found.entry, given)
        if not fields:
            return found.entry
        fields["etag"] = tx.tick(found.entry.etag)
        entry = found.tree.put(tx, replace(found.entry, **fields), found.entry)
        tell_watchers(tx, outbox, handle.share_id, handle.path, MODIFIED, what)
        return entry

    entry = await change(ctx, handle, commit)
    _freeze(handle, given)
    return entry


def _fields(tx: Transaction, handle: Handle, entry: FileEntry, given: BasicChange) -> tuple[dict[str, Any], int]:
    """The fields that change, and what watchers are told of them."""
    fields: dict[str, Any] = {name: getattr(given, name) for name in _TIMES if getattr(given, name) is not None}
    what = sum(_TIMES[name] for name in fields)
    if given.attributes is not None:
        fields["attributes"] = int(from_win32(given.attributes, is_directory=entry.is_directory))
        what |= ATTRIBUTES
    if given.changed is not None:
        fields["changed"] = given.changed
    elif fields and "changed" not in handle.frozen:
        fields["changed"] = tx.now
    return fields, what


def _freeze(handle: Handle, given: BasicChange) -> None:
    """A time that was set explicitly is left alone by later operations through the handle, too."""
    handle.frozen |= {time.value for time in given.freezes}
    handle.frozen |= {time.value for time in FreezableTime if getattr(given, time.value) is not None}
    handle.frozen -= {time.value for time in given.thaws}


async def get_security(ctx: Context, handle: Handle, parts: int = OWNER | GROUP | DACL) -> bytes:
    """The asked parts (bits of SECURITY_INFORMATION) in self-relative form; every handle may ask for none of them.

    Errors: AccessNotGranted, HandleClosed."""
    if parts & (OWNER | GROUP | DACL):
        require_access(handle, AccessMask.READ_CONTROL)

    def body(tx: Transaction) -> bytes:
        entry = used(tx, handle).entry
        return find_permission(tx, handle.share_id, _permission_of(entry)).descriptor

    stored = await look(ctx, handle, body)
    return encode_descriptor(only_parts(decode_descriptor(stored), parts))


async def set_security(ctx: Context, handle: Handle, descriptor: bytes, parts: int) -> None:
    """`parts` are the bits of SECURITY_INFORMATION (1 owner, 2 group, 4 DACL) that are taken from `descriptor`.

    Errors: AccessNotGranted, FileInvalidPermission, HandleClosed."""
    if parts & (OWNER | GROUP):
        require_access(handle, AccessMask.WRITE_OWNER)
    if parts & DACL:
        require_access(handle, AccessMask.WRITE_DAC)
    given = parsed_descriptor(descriptor)

    def commit(tx: Transaction, outbox: Outbox) -> None:
        found = used(tx, handle)
        entry = found.entry
        key = changed_permission(tx, handle.share_id, _permission_of(entry), given, parts)
        found.tree.put(tx, replace(entry, permission_key=key, etag=tx.tick(entry.etag), changed=tx.now), entry)
        tell_watchers(tx, outbox, handle.share_id, handle.path, MODIFIED, SECURITY)

    await change(ctx, handle, commit)


def _permission_of(entry: FileEntry) -> str:
    assert entry.permission_key is not None, "entries of SMB shares have a permission"
    return entry.permission_key
