"""Files: create, properties, metadata, delete. Reading is in `reading.py`, ranges in `ranges.py`, renaming in `renaming.py`."""

from typing import Any

import msgspec

from verditer.core.errors import Code, ResourceSize, StorageError
from verditer.core.files.share_modes import LOOK, OVERWRITE, REMOVE, RESIZE, SET_METADATA, SET_PROPERTIES
from verditer.core.files.times import TimeOperation
from verditer.core.guard import Guard
from verditer.core.limits import MAX_FILE_BYTES, MAX_FILE_RANGE, MAX_METADATA
from verditer.core.names import FilePath, ShareName, check_metadata
from verditer.core.records.content import IntervalMap
from verditer.core.records.file import FileEntry, Share
from verditer.partition.engine import Scope, Transaction
from verditer.services.content.intervals import clear_range, new_interval_map, write_interval
from verditer.services.content.receiving import receive_body
from verditer.services.content.views import close_view
from verditer.services.context import Context
from verditer.services.file import opens
from verditer.services.file.answers import EntryState, RangeWritten
from verditer.services.file.current import InShare, Located, locate, require_file
from verditer.services.file.directories import SetMetadata, check_parent
from verditer.services.file.opens import check_access
from verditer.services.file.properties import EntryProperties, changed_properties, check_writable, new_properties
from verditer.services.file.usage import add_usage, check_quota
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, Source

replace = msgspec.structs.replace
_HTTP_PROPERTIES = ("content_type", "content_encoding", "content_language", "content_disposition", "cache_control", "file_md5")


class HttpProperties(EntryProperties, frozen=True, kw_only=True):
    """What a file says about itself when it is downloaded. `file_md5` is stored as it is sent and never computed."""

    content_type: str | None = None
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    file_md5: bytes | None = None


class CreateFile(HttpProperties, frozen=True, kw_only=True):
    size: int
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    file_type: str = "Regular"
    content_md5: bytes | None = None  # of the initial body
    content_crc64: bytes | None = None


class SetFileProperties(HttpProperties, frozen=True, kw_only=True):
    size: int | None = None


class GetFileProperties(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None


async def create_file(ctx: Context, target: FilePath, request: CreateFile, guard: Guard, body: Source) -> RangeWritten:
    """Create a file of zeros, or replace an existing file by one. The request may bring the first bytes of the content."""
    check_metadata(request.metadata, MAX_METADATA)
    check_size(request.size)
    if not body.ended:
        await opens.read(ctx, target.scope, lambda tx: check_creation(tx, target, guard))
    expected = Checksums(md5=request.content_md5, crc64=request.content_crc64)
    with ctx.activity.begin(ctx.now()) as operation:
        received = await receive_body(ctx, body, MAX_FILE_RANGE, expected)
        if received.size > request.size:
            raise StorageError(Code.InvalidRange, details=ResourceSize(request.size))

        def commit(tx: Transaction) -> RangeWritten:
            entry = _create(tx, target, request, guard, received)
            has_body = received.size > 0
            return RangeWritten(entry=entry, content_md5=received.md5 if has_body else None)

        return await opens.write_received(ctx, target.scope, operation, received, commit)


def check_creation(tx: Transaction, target: FilePath, guard: Guard, *, ignore_readonly: bool = False) -> Located:
    """Whether Create File or Copy File may create the file, or replace the one that exists."""
    located = locate(tx, target)
    if located.entry is None:
        guard.check(None, tx.now)
        check_parent(tx, located)
    else:
        _check_replaceable(tx, located.entry, guard, ignore_readonly=ignore_readonly)
    return located


def _check_replaceable(tx: Transaction, entry: FileEntry, guard: Guard, *, ignore_readonly: bool) -> None:
    if entry.is_directory:
        raise StorageError(Code.ResourceTypeMismatch)
    guard.check(entry, tx.now)
    check_access(tx, entry, OVERWRITE)
    if not ignore_readonly:
        check_writable(entry)


def _create(tx: Transaction, target: FilePath, request: CreateFile, guard: Guard, received: Received) -> FileEntry:
    located = check_creation(tx, target, guard)
    before = located.entry
    growth = request.size - (before.size if before is not None else 0)
    check_quota(tx, located.share, growth)
    properties = new_properties(tx, located.share, located.parent, request, is_directory=False)
    tick = tx.tick(before.etag if before is not None else 0)
    entry = FileEntry(
        tree_id=located.share.id,
        parent_id=located.parent.node_id,
        folded=located.name,
        name=before.name if before is not None else target.names[-1],
        node_id=before.node_id if before is not None else tick,
        is_directory=False,
        epoch=located.tree.epoch,
        etag=tick,
        **properties,
        metadata=request.metadata,
        size=request.size,
        content_id=tick,
        intervals=new_content(tx, located.share, tick),
        **_http_fields(request),
        lease=guard.lease_after(before, tx.now),
    )
    if received.size:
        entry = replace(entry, intervals=write_interval(tx, entry, 0, received))
    if before is not None:
        close_view(tx, before, ended=located.share.epoch)
    entry = located.tree.put(tx, entry, before)
    add_usage(tx, located.share.id, growth)
    return entry


def new_content(tx: Transaction, share: Share, content_id: int) -> IntervalMap:
    """An empty content. The snapshots of the share see it together with the contents of all other files."""
    return new_interval_map(tx, content_id, content_scope(share), group=share.id, epoch=share.epoch)


def content_scope(share: Share) -> Scope:
    """The lock under which the collector changes the content of a file. A file may be renamed; its share may not."""
    return ShareName(share.account, share.name).scope


def in_epoch(entry: FileEntry, share: Share) -> FileEntry:
    """The entry with its content in the present epoch of the share: what a snapshot sees is kept when it is overwritten."""
    assert entry.intervals is not None, "files are made of intervals"
    if entry.intervals.epoch == share.epoch:
        return entry
    return replace(entry, intervals=replace(entry.intervals, epoch=share.epoch))


def check_size(size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise StorageError(Code.InvalidHeaderValue, field="file_size", value=str(size))


def _http_fields(request: HttpProperties) -> dict[str, Any]:
    return {
        "content_type": request.content_type or "application/octet-stream",
        "content_encoding": request.content_encoding,
        "content_language": request.content_language,
        "content_disposition": request.content_disposition,
        "cache_control": request.cache_control,
        "content_md5": request.file_md5,
    }


async def get_file_properties(ctx: Context, target: FilePath, request: GetFileProperties, guard: Guard) -> EntryState:
    def read(tx: Transaction) -> EntryState:
        _, entry = require_file(tx, target, request.snapshot)
        if request.snapshot is None:
            check_access(tx, entry, LOOK)
        guard.check(entry, tx.now)
        return EntryState(entry=entry, now=tx.now)

    return await opens.read(ctx, target.scope, read)


async def set_file_properties(ctx: Context, target: FilePath, request: SetFileProperties, guard: Guard) -> EntryState:
    """HTTP properties are set as one: as soon as the request names one of them, those it leaves out are cleared."""
    if request.size is not None:
        check_size(request.size)
    sets_http = any(getattr(request, name) is not None for name in _HTTP_PROPERTIES)

    def commit(tx: Transaction) -> EntryState:
        located, entry = require_file(tx, target)
        guard.check(entry, tx.now)
        check_access(tx, entry, SET_PROPERTIES if request.size is None else RESIZE)
        if (sets_http or request.size is not None) and request.attributes is None:
            check_writable(entry)
        fields = changed_properties(
            tx, located.share, entry, request, TimeOperation.SET_PROPERTIES, is_resized=request.size is not None
        )
        if sets_http:
            fields |= _http_fields(request)
        changed = entry if request.size is None else resized(tx, located, entry, request.size)
        changed = replace(changed, etag=tx.tick(entry.etag), copy=None, **fields)  # the file is no longer what was copied
        changed = located.tree.put(tx, changed, entry)
        add_usage(tx, located.share.id, changed.size - entry.size)
        return EntryState(entry=changed, now=tx.now)

    return await opens.write(ctx, [target.scope], commit)


def resized(tx: Transaction, located: InShare, entry: FileEntry, size: int) -> FileEntry:
    """Growing adds zeros, which cost nothing. Shrinking clears what is cut off, so that growing again does not bring it back."""
    if entry.link_text is not None:
        raise StorageError(Code.ResourceTypeMismatch)
    check_quota(tx, located.share, size - entry.size)
    entry = in_epoch(entry, located.share)
    intervals = clear_range(tx, entry, size, entry.size) if size < entry.size else entry.intervals
    return replace(entry, size=size, intervals=intervals)


async def set_file_metadata(ctx: Context, target: FilePath, request: SetMetadata, guard: Guard) -> EntryState:
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> EntryState:
        located, entry = require_file(tx, target)
        guard.check(entry, tx.now)
        check_access(tx, entry, SET_METADATA)
        check_writable(entry)
        changed = located.tree.put(tx, replace(entry, metadata=request.metadata, etag=tx.tick(entry.etag), changed=tx.now), entry)
        return EntryState(entry=changed, now=tx.now)

    return await opens.write(ctx, [target.scope], commit)


async def delete_file(ctx: Context, target: FilePath, guard: Guard) -> EntryState:
    """Atomic: the file is gone when this returns, and never pending (contract F4)."""

    def commit(tx: Transaction) -> EntryState:
        located, entry = require_file(tx, target)
        guard.check(entry, tx.now)
        check_access(tx, entry, REMOVE)
        freed_bytes = remove_file(tx, located, entry)
        add_usage(tx, located.share.id, -freed_bytes)
        return EntryState(entry=replace(entry, link_count=entry.link_count - 1), now=tx.now)

    return await opens.write(ctx, [target.scope], commit)


def remove_file(tx: Transaction, located: InShare, entry: FileEntry) -> int:
    """Take a file out of its directory. Returns how many bytes the share has less: none while the file has another name.

    What a snapshot sees of its content stays until that snapshot is deleted.
    """
    if not located.tree.remove_name(tx, entry):
        return 0
    close_view(tx, entry, ended=located.share.epoch)
    return entry.size
