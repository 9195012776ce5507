"""Security descriptors of a share: each is stored once, under a digest of its content, and new entries inherit them."""

import base64
import binascii

import msgspec

from verditer.core.caches import BoundedCache
from verditer.core.errors import Code, StorageError
from verditer.core.files.sddl import parse_sddl
from verditer.core.files.security_descriptor import (
    SecurityDescriptor,
    as_permission,
    decode_descriptor,
    encode_descriptor,
    permission_key,
)
from verditer.core.files.security_inheritance import ROOT_DESCRIPTOR, inherited_descriptor
from verditer.core.files.sid import SecurityDescriptorError
from verditer.core.names import ShareName
from verditer.core.records.file import FileEntry, FilePermission
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file.answers import Permission
from verditer.services.file.current import require_share

# (key of a directory's permission, whether the new entry is a directory) → key and binary form of what it inherits. A key is a
# digest of its permission, so it means the same in every share and at every time. Few directories differ in their permissions.
_inherited = BoundedCache[tuple[str, bool], tuple[str, bytes]](256)


class CreatePermission(msgspec.Struct, frozen=True, kw_only=True):
    permission: str
    permission_format: str = "sddl"  # or "binary": base64 of the self-relative form


class GetPermission(msgspec.Struct, frozen=True, kw_only=True):
    permission_key: str
    permission_format: str = "sddl"


async def create_permission(ctx: Context, target: ShareName, request: CreatePermission) -> Permission:
    """Equal descriptors have equal keys, so creating one again changes nothing."""
    descriptor = parse_permission(request.permission, request.permission_format)

    def commit(tx: Transaction) -> Permission:
        share = require_share(tx, target)
        return Permission(key_text=store_permission(tx, share.id, descriptor), descriptor=encode_descriptor(descriptor))

    return await ctx.engine.write([target.scope], commit)


async def get_permission(ctx: Context, target: ShareName, request: GetPermission) -> Permission:
    def read(tx: Transaction) -> Permission:
        stored = find_permission(tx, require_share(tx, target).id, request.permission_key)
        return Permission(key_text=stored.key_text, descriptor=stored.descriptor)

    return await ctx.engine.read(target.scope, read)


def parse_permission(text: str, form: str) -> SecurityDescriptor:
    try:
        if form == "binary":
            descriptor = decode_descriptor(base64.b64decode(text, validate=True))
        else:
            descriptor = parse_sddl(text)
        return as_permission(descriptor)
    except (SecurityDescriptorError, binascii.Error) as error:
        raise StorageError(
            Code.FileInvalidPermission, message=f"The permission is not a valid security descriptor: {error}."
        ) from None


def store_permission(tx: Transaction, share_id: int, descriptor: SecurityDescriptor) -> str:
    """Make sure that the share has the descriptor, and give its key."""
    key, encoded = permission_key(descriptor), encode_descriptor(descriptor)
    return _store(tx, share_id, key, encoded)


def _store(tx: Transaction, share_id: int, key: str, encoded: bytes) -> str:
    if tx.get(FilePermission, share_id, key) is None:
        tx.put(FilePermission(share_id=share_id, key_text=key, descriptor=encoded))
    return key


def find_permission(tx: Transaction, share_id: int, key: str) -> FilePermission:
    stored = tx.get(FilePermission, share_id, key)
    if stored is None:
        raise StorageError(Code.FilePermissionNotFound)
    return stored


def root_permission(tx: Transaction, share_id: int) -> str:
    return store_permission(tx, share_id, ROOT_DESCRIPTOR)


def inherited_permission(tx: Transaction, parent: FileEntry, *, is_directory: bool) -> str:
    """The key of what a new entry inherits from its directory."""
    assert parent.permission_key is not None, "directories of SMB shares have a permission"
    inherited = _inherited.get((parent.permission_key, is_directory))
    if inherited is None:
        stored = find_permission(tx, parent.tree_id, parent.permission_key)
        descriptor = inherited_descriptor(decode_descriptor(stored.descriptor), is_directory=is_directory)
        inherited = permission_key(descriptor), encode_descriptor(descriptor)
        _inherited.keep((parent.permission_key, is_directory), inherited)
    return _store(tx, parent.tree_id, *inherited)
