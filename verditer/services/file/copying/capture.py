"""Captures a file of this server as the source of a copy: its entry, its permission and its content, in one state."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.share_modes import READ_DATA
from verditer.core.records.file import FileEntry
from verditer.partition.engine import Transaction
from verditer.services.content.sharing import CapturedContent, capture, is_shareable, mark_shared
from verditer.services.context import Context
from verditer.services.copying.sources import FileSource, unverified_by
from verditer.services.file import opens
from verditer.services.file.current import require_file
from verditer.services.file.opens import check_access
from verditer.services.file.permissions import find_permission


class CapturedFile(msgspec.Struct, frozen=True, kw_only=True):
    entry: FileEntry
    descriptor: bytes | None  # the security descriptor; None in NFS shares
    content: CapturedContent


async def capture_file(ctx: Context, source: FileSource) -> CapturedFile:
    """The caller is an active operation (`services/activity.py`) and attaches the content before it ends. The errors of a source
    in the same account are raised unchanged, others as errors of a copy source."""

    def look(tx: Transaction) -> CapturedFile | None:
        entry = _readable(tx, source)
        return _captured(tx, entry) if is_shareable(tx, entry) else None

    def mark(tx: Transaction) -> CapturedFile:
        entry = _readable(tx, source)
        mark_shared(tx, entry)
        return _captured(tx, entry)

    # The file of a snapshot may have moved since, so its content may change under any path of the share.
    scope = source.path.scope if source.snapshot is None else source.path.share_name.scope
    try:
        captured = await opens.read(ctx, source.path.scope, look, long=True)
        return captured if captured is not None else await opens.write(ctx, [scope], mark)
    except StorageError as error:
        raise (error if source.same_account else unverified_by(error)) from None


def _readable(tx: Transaction, source: FileSource) -> FileEntry:
    _, entry = require_file(tx, source.path, source.snapshot)
    source.guard.check(entry, tx.now)
    if entry.link_text is not None:
        raise StorageError(Code.ResourceTypeMismatch)  # a symbolic link has no content
    if entry.copy_pending and source.snapshot is None:
        raise StorageError(Code.PendingCopyOperation)
    if source.snapshot is None:
        check_access(tx, entry, READ_DATA, start=0, end=entry.size)
    return entry


def _captured(tx: Transaction, entry: FileEntry) -> CapturedFile:
    key = entry.permission_key
    descriptor = find_permission(tx, entry.tree_id, key).descriptor if key is not None else None
    return CapturedFile(entry=entry, descriptor=descriptor, content=capture(tx, entry))
