"""Entries that an open creates or overwrites. Called inside the transaction of the open."""

from typing import Any

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.attributes import FileAttributes, from_win32
from verditer.core.files.security_descriptor import (
    SecurityDescriptor,
    SecurityParts,
    decode_descriptor,
    with_parts,
    with_settled_inheritance,
)
from verditer.core.files.sid import SecurityDescriptorError
from verditer.core.records.file import FileEntry
from verditer.partition.engine import Transaction
from verditer.services.file.current import Located
from verditer.services.file.files import new_content, resized
from verditer.services.file.handles.requests import CreateDisposition, OpenEntry
from verditer.services.file.permissions import find_permission, inherited_permission, store_permission
from verditer.services.file.usage import add_usage

replace = msgspec.structs.replace
_ARCHIVE = int(FileAttributes.ARCHIVE)
_ALL_PARTS = SecurityParts.OWNER | SecurityParts.GROUP | SecurityParts.DACL | SecurityParts.SACL


def new_file(tx: Transaction, located: Located, name: str, request: OpenEntry) -> FileEntry:
    entry = _new(tx, located, name, request, is_directory=False)
    entry = replace(entry, content_id=entry.node_id, intervals=new_content(tx, located.share, entry.node_id))
    return located.tree.put(tx, entry, None)


def new_directory(tx: Transaction, located: Located, name: str, request: OpenEntry) -> FileEntry:
    return located.tree.put(tx, _new(tx, located, name, request, is_directory=True), None)


def _new(tx: Transaction, located: Located, name: str, request: OpenEntry, *, is_directory: bool) -> FileEntry:
    tick = tx.tick()
    return FileEntry(
        tree_id=located.share.id,
        parent_id=located.parent.node_id,
        folded=located.name,
        name=name,
        node_id=tick,
        is_directory=is_directory,
        epoch=located.tree.epoch,
        etag=tick,
        created=tx.now,
        written=tx.now,
        changed=tx.now,
        attributes=_attributes(request, is_directory=is_directory),
        permission_key=_permission(tx, located, request, is_directory=is_directory),
    )


def overwritten(tx: Transaction, located: Located, before: FileEntry, request: OpenEntry) -> FileEntry:
    """The file is empty and has the attributes of the open. Superseding also makes it a new file under the same id."""
    fields: dict[str, Any] = {
        "etag": tx.tick(before.etag),
        "written": tx.now,
        "changed": tx.now,
        "attributes": _attributes(request, is_directory=False),
        "content_md5": None,
        "copy": None,
    }
    if request.disposition is CreateDisposition.SUPERSEDE:
        fields |= {"created": tx.now, "metadata": {}, "permission_key": _permission(tx, located, request, is_directory=False)}
    changed = replace(resized(tx, located, before, 0), **fields)
    changed = located.tree.put(tx, changed, before)
    add_usage(tx, located.share.id, -before.size)
    return changed


def _attributes(request: OpenEntry, *, is_directory: bool) -> int:
    attributes = int(from_win32(request.attributes, is_directory=is_directory))
    return attributes if is_directory else attributes | _ARCHIVE


def _permission(tx: Transaction, located: Located, request: OpenEntry, *, is_directory: bool) -> str:
    key = inherited_permission(tx, located.parent, is_directory=is_directory)
    if request.descriptor is None:
        return key
    return changed_permission(tx, located.share.id, key, parsed_descriptor(request.descriptor), _ALL_PARTS)


def changed_permission(tx: Transaction, share_id: int, key: str, given: SecurityDescriptor, parts: int) -> str:
    """The key of a stored permission with some parts replaced."""
    stored = decode_descriptor(find_permission(tx, share_id, key).descriptor)
    return store_permission(tx, share_id, with_parts(stored, given, parts))


def parsed_descriptor(descriptor: bytes) -> SecurityDescriptor:
    try:
        return with_settled_inheritance(decode_descriptor(descriptor))
    except SecurityDescriptorError as error:
        message = f"The permission is not a valid security descriptor: {error}."
        raise StorageError(Code.FileInvalidPermission, message=message) from None
