"""Ranges of files: Put Range, Clear Range, List Ranges and what of them differs from a share snapshot.

Written bytes are intervals of the file's content (`services/content/intervals.py`). What was never written costs nothing and
reads as zeros. Azure allocates and frees blocks of 512 bytes: List Ranges shows every block that was written to, up to the end of
the file, and the ends of a cleared range that are not whole blocks are zero-filled.
"""

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice

import msgspec

from verditer.core.dates import iso
from verditer.core.errors import Code, Limit, ResourceSize, StorageError
from verditer.core.files.share_modes import LIST_RANGES, WRITE_RANGE
from verditer.core.guard import Guard
from verditer.core.limits import MAX_FILE_RANGE, MAX_RANGES_LISTED
from verditer.core.names import FilePath
from verditer.core.records.content import IntervalMap
from verditer.core.records.file import FileEntry, ShareSnapshot
from verditer.partition.engine import Scope, Transaction
from verditer.services.content.compaction import compact, needs_compaction
from verditer.services.content.intervals import clear_range, interval_map_of, spans, visible_intervals, write_interval
from verditer.services.content.ranges import in_blocks, joined, without
from verditer.services.content.receiving import receive_body
from verditer.services.context import Context
from verditer.services.file import opens
from verditer.services.file.answers import FileRange, FileRanges, RangeWritten
from verditer.services.file.current import InShare, locate, require_file, require_share
from verditer.services.file.files import in_epoch
from verditer.services.file.opens import check_access
from verditer.services.file.properties import check_writable
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, Source

replace = msgspec.structs.replace
BLOCK_BYTES = 512


class ClearRange(msgspec.Struct, frozen=True, kw_only=True):
    """A range (first byte, last byte). `keeps_last_write`: the last write time stays as it is."""

    range: tuple[int, int] | None = None
    keeps_last_write: bool = False


class PutRange(ClearRange, frozen=True, kw_only=True):
    write: str = "update"
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class ListRanges(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    range: tuple[int, int | None] | None = None
    marker: str = ""
    max_results: int | None = None


class ListRangesDiff(ListRanges, frozen=True, kw_only=True):
    previous_snapshot: int
    follows_renames: bool = False


async def put_range(ctx: Context, target: FilePath, request: PutRange, guard: Guard, body: Source) -> RangeWritten:
    start, end = bounds_of(request)
    if end - start > MAX_FILE_RANGE:
        raise StorageError(Code.RequestBodyTooLarge, details=Limit(MAX_FILE_RANGE))
    if body.length is not None:
        _check_length(body.length, end - start)
    if not body.ended:
        await opens.read(ctx, target.scope, lambda tx: _check(tx, target, guard, end))
    with ctx.activity.begin(ctx.now()) as operation:
        expected = Checksums(md5=request.content_md5, crc64=request.content_crc64)
        received = await receive_body(ctx, body, MAX_FILE_RANGE, expected)
        _check_length(received.size, end - start)

        def commit(tx: Transaction) -> tuple[RangeWritten, bool]:
            located, entry = _check(tx, target, guard, end)
            changed = _write(tx, located, entry, start, received, keeps_last_write=request.keeps_last_write)
            written = RangeWritten(entry=changed, content_md5=received.md5, content_crc64=received.crc64)
            return written, needs_compaction(interval_map_of(entry), interval_map_of(changed))

        written, is_crowded = await opens.write_received(ctx, target.scope, operation, received, commit)
    if is_crowded:
        await compact(ctx, FileContentOwner(target), written.entry.content_id)
    return written


def _write(
    tx: Transaction, located: InShare, entry: FileEntry, start: int, received: Received, *, keeps_last_write: bool
) -> FileEntry:
    intervals = write_interval(tx, in_epoch(entry, located.share), start, received)
    return _put_changed(tx, located, entry, intervals, keeps_last_write)


async def clear_file_range(ctx: Context, target: FilePath, request: ClearRange, guard: Guard) -> RangeWritten:
    start, end = bounds_of(request)

    def commit(tx: Transaction) -> RangeWritten:
        located, entry = _check(tx, target, guard, end)
        current = in_epoch(entry, located.share)
        current = replace(current, intervals=clear_range(tx, current, start, end))
        for first, last in _ragged_ends(tx, entry, start, end):
            zeros = Received(size=last - first, md5=b"", crc64=b"", inline=bytes(last - first))
            current = replace(current, intervals=write_interval(tx, current, first, zeros))
        return RangeWritten(entry=_put_changed(tx, located, entry, interval_map_of(current), request.keeps_last_write))

    return await opens.write(ctx, [target.scope], commit)


def bounds_of(request: ClearRange) -> tuple[int, int]:
    """The start and the excluded end of the range."""
    if request.range is None:
        raise StorageError(Code.MissingRequiredHeader, field="range")
    return request.range[0], request.range[1] + 1


def _ragged_ends(tx: Transaction, entry: FileEntry, start: int, end: int) -> list[tuple[int, int]]:
    """The bytes at the ends of a cleared range that share a written block with bytes outside of it. They stay allocated."""
    first_block = min(-(-start // BLOCK_BYTES) * BLOCK_BYTES, end)
    last_block = max(end // BLOCK_BYTES * BLOCK_BYTES, first_block)
    if end >= entry.size:
        last_block = end
    ends = [(low, high) for low, high in ((start, first_block), (last_block, end)) if low < high]
    return [(low, high) for low, high in ends if next(_blocks(tx, entry, low, high), None) is not None]


def _put_changed(
    tx: Transaction, located: InShare, before: FileEntry, intervals: IntervalMap, keeps_last_write: bool
) -> FileEntry:
    now = tx.now
    written = before.written if keeps_last_write else now
    changed = replace(before, intervals=intervals, etag=tx.tick(before.etag), written=written, changed=now)
    return located.tree.put(tx, changed, before)


def _check(tx: Transaction, target: FilePath, guard: Guard, end: int) -> tuple[InShare, FileEntry]:
    located, entry = require_file(tx, target)
    guard.check(entry, tx.now)
    check_access(tx, entry, WRITE_RANGE)
    check_writable(entry)
    if end > entry.size:
        raise StorageError(Code.InvalidRange, details=ResourceSize(entry.size))
    return located, entry


def _check_length(sent: int, wanted: int) -> None:
    if sent != wanted:
        raise StorageError(Code.InvalidHeaderValue, field="content_length", value=sent)


class FileContentOwner:
    """The record that owns a file's content, as compaction finds it again."""

    def __init__(self, target: FilePath) -> None:
        self._target = target

    @property
    def scope(self) -> Scope:
        return self._target.scope

    def load(self, tx: Transaction) -> FileEntry | None:
        try:
            located = locate(tx, self._target)
        except StorageError:
            return None
        return located.entry if located.entry is not None and not located.entry.is_directory else None

    def save(self, tx: Transaction, intervals: object) -> None:
        located = locate(tx, self._target)
        assert located.entry is not None
        located.tree.overwrite(tx, replace(located.entry, intervals=intervals))


async def list_ranges(ctx: Context, target: FilePath, request: ListRanges, guard: Guard) -> FileRanges:
    def read(tx: Transaction) -> FileRanges:
        entry = _readable(tx, target, request, guard)
        start, end = _asked(entry, request)
        return _page(entry, request, _written(_blocks(tx, entry, start, end)))

    return await opens.read(ctx, target.scope, read, long=True)


async def list_ranges_diff(ctx: Context, target: FilePath, request: ListRangesDiff, guard: Guard) -> FileRanges:
    """What was written since the previous snapshot, and what it had that is gone."""

    def read(tx: Transaction) -> FileRanges:
        entry = _readable(tx, target, request, guard)
        previous = _previous(tx, target, request, entry)
        start, end = _asked(entry, request)
        changed = _blocks(tx, entry, start, end, since=interval_map_of(previous).view)
        gone = without(_blocks(tx, previous, start, end), _blocks(tx, entry, start, end))
        cleared = (FileRange(low, high, True) for low, high in joined(gone))
        return _page(entry, request, heapq.merge(_written(changed), cleared))

    return await opens.read(ctx, target.scope, read, long=True)


def _readable(tx: Transaction, target: FilePath, request: ListRanges, guard: Guard) -> FileEntry:
    _, entry = require_file(tx, target, request.snapshot)
    guard.check(entry, tx.now)
    if request.snapshot is None:
        check_access(tx, entry, LIST_RANGES)
    return entry


def _previous(tx: Transaction, target: FilePath, request: ListRangesDiff, entry: FileEntry) -> FileEntry:
    """The file as the previous snapshot saw it: the same content, under the same path unless the request follows renames."""
    if request.snapshot is not None and request.previous_snapshot > request.snapshot:
        raise StorageError(Code.InvalidQueryParameterValue, field="previous_snapshot", value=iso(request.previous_snapshot))
    snapshot = require_share(tx, target, request.previous_snapshot)
    assert isinstance(snapshot, ShareSnapshot)
    existed = entry.content_id < snapshot.view  # content ids are ticks
    if not request.follows_renames:
        found = _found_in(tx, target, request.previous_snapshot)
        if found is None and not existed:
            raise StorageError(Code.ResourceNotFound)
        if found is None or found.content_id != entry.content_id:
            raise StorageError(Code.PreviousSnapshotNotFound)
    elif not existed:
        raise StorageError(Code.PreviousSnapshotNotFound)
    return replace(entry, intervals=replace(interval_map_of(entry), view=snapshot.view))


def _found_in(tx: Transaction, target: FilePath, snapshot: int) -> FileEntry | None:
    """What the path led to in a snapshot."""
    try:
        return locate(tx, target, snapshot).entry
    except StorageError:
        return None


def _asked(entry: FileEntry, request: ListRanges) -> tuple[int, int]:
    """From where to where: the range asked for, cut at the end of the file, behind the marker."""
    first, last = request.range or (0, None)
    end = entry.size if last is None else min(entry.size, last + 1)
    if request.marker:
        if not request.marker.isascii() or not request.marker.isdigit() or len(request.marker) > 19:
            raise StorageError(Code.InvalidQueryParameterValue, field="marker", value=request.marker)
        first = max(first, int(request.marker))
    return first, max(first, end)


def _blocks(tx: Transaction, entry: FileEntry, start: int, end: int, *, since: int = 0) -> Iterator[tuple[int, int]]:
    """The written blocks of a range, or those of them that were written in the epoch `since` or later, cut at its borders."""
    low, high = start // BLOCK_BYTES * BLOCK_BYTES, -(-end // BLOCK_BYTES) * BLOCK_BYTES
    rows = (row for row in visible_intervals(tx, entry, low, high) if row.epoch >= since)
    return in_blocks(spans(rows, low, high), BLOCK_BYTES, start, end)


def _written(found: Iterable[tuple[int, int]]) -> Iterator[FileRange]:
    return (FileRange(low, high) for low, high in found)


def _page(entry: FileEntry, request: ListRanges, ranges: Iterator[FileRange]) -> FileRanges:
    limit = request.max_results
    if limit is None:
        return FileRanges(entry=entry, ranges=list(ranges), next_marker="")
    found = list(islice(ranges, min(limit, MAX_RANGES_LISTED) + 1))
    marker = str(found[limit].start) if len(found) > limit else ""
    return FileRanges(entry=entry, ranges=found[:limit], next_marker=marker)
