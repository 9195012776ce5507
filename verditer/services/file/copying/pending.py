"""Copies into files that are pending: Copy File from another server starts one, Abort Copy File ends it. While it is pending, the
file has the size of the source and reads as zeros, so that its bytes count for the quota of the share from the start."""

import msgspec

from verditer.core.guard import Guard
from verditer.core.names import FilePath, ShareName
from verditer.core.records.content import IntervalMap
from verditer.core.records.copy import CopyStatus
from verditer.core.records.file import FileEntry, PendingFileCopy, Share
from verditer.partition.engine import Scope, Transaction
from verditer.services.content.content import ContentState
from verditer.services.content.intervals import new_interval_map
from verditer.services.content.views import join_group
from verditer.services.context import Context
from verditer.services.copying.pending import AbortCopy, TargetKind, end_aborted, inspect_source, pending_state
from verditer.services.copying.sources import RemoteSource
from verditer.services.file import opens
from verditer.services.file.answers import FileCopied
from verditer.services.file.copying.put_copy import CopyFile, Described, put_copied_file
from verditer.services.file.current import require_file, require_share, tree_of
from verditer.services.file.file_tree import stored_at
from verditer.services.file.files import content_scope, new_content
from verditer.services.file.usage import add_usage

replace = msgspec.structs.replace


async def start_copy(
    ctx: Context, target: FilePath, request: CopyFile, guard: Guard, source: RemoteSource, copy_id: str
) -> FileCopied:
    inspected = await inspect_source(ctx, source)
    described = Described(found=replace(inspected.found, size=inspected.total))

    def commit(tx: Transaction) -> FileCopied:
        state = pending_state(copy_id, source, inspected.total)
        entry = put_copied_file(tx, target, request, guard, described, state, new_content)
        content_id = tx.tick(entry.etag)
        directory_id, name = stored_at(entry)
        tx.put(
            PendingFileCopy(
                parent_id=entry.tree_id,
                directory_id=directory_id,
                name=name,
                account=target.account,
                container=target.share,
                copy_id=copy_id,
                url=source.url,
                access=source.access,
                etag=inspected.etag,
                started=tx.now,
                total=inspected.total,
                content_id=content_id,
                intervals=_hidden_content(tx, require_share(tx, target), content_id),
            )
        )
        return FileCopied(etag=entry.etag, copy_id=copy_id, copy_status=CopyStatus.PENDING)

    copied = await opens.write(ctx, [target.scope], commit)
    ctx.copy_started.set()
    return copied


def _hidden_content(tx: Transaction, share: Share, content_id: int) -> IntervalMap:
    """A content that no snapshot of the share sees. It joins those of the share when it becomes the content of the file."""
    return new_interval_map(tx, content_id, content_scope(share), epoch=share.epoch)


async def abort_copy(ctx: Context, target: FilePath, request: AbortCopy, guard: Guard) -> None:
    """The file remains, empty, with its metadata."""

    def commit(tx: Transaction) -> None:
        _, entry = require_file(tx, target)
        guard.check(entry, tx.now)
        pending = tx.get(PendingFileCopy, entry.tree_id, *stored_at(entry))
        end_aborted(tx, FILE_TARGETS, entry, pending, request.copy_id)

    await opens.write(ctx, [target.scope], commit)


def _scope(pending: PendingFileCopy) -> Scope:
    """The directories above the file may be renamed, so the lock is that of the share."""
    return ShareName(pending.account, pending.container).scope


def _share_of(tx: Transaction, pending: PendingFileCopy) -> Share | None:
    share = tx.get(Share, pending.account, pending.container)
    return share if share is not None and share.id == pending.parent_id else None


def _put(tx: Transaction, pending: PendingFileCopy, before: FileEntry, after: FileEntry) -> None:
    share = _share_of(tx, pending)
    assert share is not None, "targets in deleted shares do not change"
    tree_of(share).put(tx, after, before)
    add_usage(tx, share.id, after.size - before.size)


def _with_content(tx: Transaction, pending: PendingFileCopy, entry: FileEntry, content: ContentState) -> FileEntry:
    share = _share_of(tx, pending)
    assert share is not None, "targets in deleted shares do not change"
    intervals = join_group(tx, content, group=share.id, epoch=share.epoch)
    return replace(entry, content_id=content.content_id, size=content.size, intervals=intervals)


FILE_TARGETS: TargetKind[PendingFileCopy, FileEntry] = TargetKind(
    record=PendingFileCopy,
    scope=_scope,
    find=lambda tx, pending: tx.get(FileEntry, pending.parent_id, pending.directory_id, pending.name),
    is_reachable=lambda tx, pending: _share_of(tx, pending) is not None,
    put=_put,
    with_content=_with_content,
)
