"""Puts the file that a copy makes in place of the one with its name: the steps that every Copy File shares."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, Limit, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_FILE_BYTES
from verditer.core.names import FilePath
from verditer.core.records.blob import Blob
from verditer.core.records.content import IntervalMap
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.core.records.file import FileEntry, Share
from verditer.partition.engine import Transaction
from verditer.services.content.views import close_view
from verditer.services.file.files import check_creation
from verditer.services.file.properties import CopyProperties, copied_properties
from verditer.services.file.usage import add_usage, check_quota


class CopyFile(CopyProperties, frozen=True, kw_only=True):
    """`ignore_readonly` lets a file that is read-only be replaced."""

    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    ignore_readonly: bool = False


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """What a copy takes from its source besides the bytes."""

    found: Blob | FileEntry
    descriptor: bytes | None = None  # the security descriptor of a file

    @property
    def entry(self) -> FileEntry | None:
        return self.found if isinstance(self.found, FileEntry) else None


def put_copied_file(
    tx: Transaction,
    target: FilePath,
    request: CopyFile,
    guard: Guard,
    source: Described,
    state: CopyState,
    content: Callable[[Transaction, Share, int], IntervalMap],
) -> FileEntry:
    """Create the file, or replace the one that exists. `content` puts its bytes under the tick."""
    located = check_creation(tx, target, guard, ignore_readonly=request.ignore_readonly)
    share, before, found = located.share, located.entry, source.found
    if found.size > MAX_FILE_BYTES:
        raise StorageError(Code.RequestBodyTooLarge, details=Limit(MAX_FILE_BYTES))
    growth = found.size - (before.size if before is not None else 0)
    check_quota(tx, share, growth)
    properties = copied_properties(tx, share, located.parent, request, source.entry, source.descriptor)
    tick = tx.tick(before.etag if before is not None else 0)
    if state.status is not CopyStatus.PENDING:
        state = msgspec.structs.replace(state, completed=tick)
    entry = FileEntry(
        tree_id=share.id,
        parent_id=located.parent.node_id,
        folded=located.name,
        name=before.name if before is not None else target.names[-1],
        node_id=before.node_id if before is not None else tick,
        is_directory=False,
        epoch=0,
        etag=tick,
        metadata=request.metadata or found.metadata,
        size=found.size,
        content_id=tick,
        intervals=content(tx, share, tick),
        content_type=found.content_type,
        content_encoding=found.content_encoding,
        content_language=found.content_language,
        content_disposition=found.content_disposition,
        cache_control=found.cache_control,
        content_md5=found.content_md5,
        lease=guard.lease_after(before, tx.now),
        copy=state,
        **properties,
    )
    if before is not None:
        close_view(tx, before, ended=share.epoch)
    entry = located.tree.put(tx, entry, before)
    add_usage(tx, share.id, growth)
    return entry
