"""Get Page Ranges, and the difference from an earlier snapshot. Every answer is one committed state (contract G3)."""

import heapq
from collections.abc import Iterator
from itertools import islice

import msgspec

from verditer.core.errors import Code, ResourceSize, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_PAGE_RANGES, PAGE_BYTES
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, Snapshot
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import PageRange, PageRanges
from verditer.services.blob.kinds.page import require_page_blob
from verditer.services.content.intervals import interval_map_of, intervals_and_marks, spans, visible_intervals
from verditer.services.content.ranges import joined, without
from verditer.services.context import Context

PAGED_SINCE = "2020-10-02"  # earlier versions get all ranges and no marker


class GetPageRanges(msgspec.Struct, frozen=True, kw_only=True):
    version: str
    snapshot: int | None = None
    version_id: int | None = None
    range: tuple[int, int | None] | None = None
    marker: str = ""
    max_results: int | None = None


class GetPageRangesDiff(GetPageRanges, frozen=True, kw_only=True):
    prev_snapshot: int


async def get_page_ranges(ctx: Context, target: BlobName, request: GetPageRanges, guard: Guard) -> PageRanges:
    def look(tx: Transaction) -> PageRanges:
        _, blob = require_page_blob(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        start, end = _asked(blob, request)
        return _page(blob, request, _written(tx, blob, start, end))

    return await ctx.engine.read(target.scope, look, long=True)


async def get_page_ranges_diff(ctx: Context, target: BlobName, request: GetPageRangesDiff, guard: Guard) -> PageRanges:
    """Pages written since the previous snapshot, and pages that were cleared since, whether the snapshot has them or not (seen
    on Azure)."""

    def look(tx: Transaction) -> PageRanges:
        _, blob = require_page_blob(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        previous = _previous(tx, blob, request)
        start, end = _asked(blob, request)
        cut_off = without(_spans(tx, previous, start, end), _everything(tx, blob, start, end))  # by a resize
        marks = (row for row in intervals_and_marks(tx, blob, start, end) if row.is_mark and row.epoch >= previous.snapshot)
        cleared = heapq.merge(cut_off, spans(marks, start, end))
        gone = (PageRange(low, high, True) for low, high in joined(cleared))
        return _page(blob, request, heapq.merge(_written(tx, blob, start, end, since=previous.snapshot), gone))

    return await ctx.engine.read(target.scope, look, long=True)


def _previous(tx: Transaction, blob: Blob, request: GetPageRangesDiff) -> Snapshot:
    previous = tx.get(Snapshot, blob.container_id, blob.name, request.prev_snapshot)
    if previous is None:
        raise StorageError(Code.PreviousSnapshotNotFound)
    if interval_map_of(previous).view > interval_map_of(blob).view:
        raise StorageError(Code.PreviousSnapshotCannotBeNewer)
    if previous.content_id != blob.content_id:
        raise StorageError(Code.BlobOverwritten)
    return previous


def _asked(blob: Blob, request: GetPageRanges) -> tuple[int, int]:
    """Start and end of the requested range in whole pages, from the marker on."""
    first, last = request.range or (0, None)
    if request.range is not None and first >= blob.size:
        raise StorageError(Code.InvalidRange, details=ResourceSize(blob.size))
    start = first - first % PAGE_BYTES
    end = blob.size if last is None else min(blob.size, last + PAGE_BYTES - last % PAGE_BYTES)
    if request.marker:
        if not request.marker.isascii() or not request.marker.isdigit() or len(request.marker) > 19:
            raise StorageError(Code.InvalidQueryParameterValue, field="marker", value=request.marker)
        start = max(start, int(request.marker))
    return start, max(start, end)


def _written(tx: Transaction, blob: Blob, start: int, end: int, since: int = 0) -> Iterator[PageRange]:
    rows = (row for row in visible_intervals(tx, blob, start, end) if row.epoch >= since)
    return (PageRange(low, high, False) for low, high in joined(spans(rows, start, end)))


def _spans(tx: Transaction, blob: Blob, start: int, end: int) -> Iterator[tuple[int, int]]:
    return spans(visible_intervals(tx, blob, start, end), start, end)


def _everything(tx: Transaction, blob: Blob, start: int, end: int) -> Iterator[tuple[int, int]]:
    return spans(intervals_and_marks(tx, blob, start, end), start, end)


def _page(blob: Blob, request: GetPageRanges, ranges: Iterator[PageRange]) -> PageRanges:
    limit = request.max_results
    if limit is None and request.version >= PAGED_SINCE:
        limit = MAX_PAGE_RANGES
    if limit is None:
        return PageRanges(blob=blob, ranges=list(ranges), next_marker=None)
    found = list(islice(ranges, limit + 1))
    marker = str(found[limit].start) if len(found) > limit else ""
    return PageRanges(blob=blob, ranges=found[:limit], next_marker=marker)
