"""Page blobs: pages are written and cleared in place, the blob is resized, a sequence number orders its writers.

`services/content/intervals.py` stores the bytes; `page_ranges.py` lists the pages that have some.
"""

from enum import Enum

import msgspec

from verditer.core.errors import Code, Limit, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration
from verditer.core.limits import MAX_PAGE_BLOB, MAX_PAGE_WRITE, MAX_SEQUENCE_NUMBER, PAGE_BYTES
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.container import Container
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.blobs import CONTENT_PROPERTIES, SetBlobProperties, with_content_properties
from verditer.services.blob.current import require_state
from verditer.services.blob.encryption import check_key, shown_encryption
from verditer.services.blob.kinds.block import NewBlobProperties
from verditer.services.blob.kinds.empty import create_empty_blob
from verditer.services.blob.kinds.write_range import RangeRequest, write_range
from verditer.services.blob.protection import check_alterable
from verditer.services.content.intervals import clear_range, write_interval
from verditer.services.context import Context
from verditer.stream.intake import Received, Source

replace = msgspec.structs.replace


class SequenceAction(Enum):
    MAX = "max"
    UPDATE = "update"
    INCREMENT = "increment"


class CreatePageBlob(NewBlobProperties, frozen=True, kw_only=True):
    size: int
    sequence_number: int = 0


class ClearPages(RangeRequest, frozen=True, kw_only=True):
    """A range of whole pages (first byte, last byte), and the sequence number conditions."""

    range: tuple[int, int] | None = None
    sequence_at_most: int | None = None
    sequence_below: int | None = None
    sequence_equal: int | None = None


class PutPages(ClearPages, frozen=True, kw_only=True):
    page_write: str


class SetPageBlobProperties(SetBlobProperties, frozen=True, kw_only=True):
    size: int | None = None
    sequence_action: SequenceAction | None = None
    sequence_number: int | None = None


async def create_page_blob(ctx: Context, target: BlobName, request: CreatePageBlob, guard: Guard) -> Written:
    _check_size(request.size)
    return await create_empty_blob(
        ctx, target, request, guard, BlobType.PAGE, size=request.size, sequence_number=request.sequence_number
    )


async def put_pages(ctx: Context, target: BlobName, request: PutPages, guard: Guard, body: Source) -> Written:
    start, end = _whole_pages(request)
    if end - start > MAX_PAGE_WRITE:
        raise StorageError(Code.RequestBodyTooLarge, details=Limit(MAX_PAGE_WRITE))
    if body.length is not None:
        _check_length(body.length, end - start)
    if not body.ended:
        await ctx.engine.read(target.scope, lambda tx: _check(tx, target, request, guard, end))

    def apply(tx: Transaction, received: Received) -> tuple[Blob, Blob]:
        _check_length(received.size, end - start)  # sent in chunks: known only now
        blob = _check(tx, target, request, guard, end)
        intervals = write_interval(tx, blob, start, received)
        return blob, replace(blob, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now), intervals=intervals)

    return await write_range(ctx, target, request, body, MAX_PAGE_WRITE, apply)


async def clear_pages(ctx: Context, target: BlobName, request: ClearPages, guard: Guard) -> Written:
    start, end = _whole_pages(request)
    if request.content_md5 is not None or request.content_crc64 is not None:
        field = "content_md5" if request.content_md5 is not None else "content_crc64"
        raise StorageError(Code.InvalidHeaderValue, field=field, value="")

    def commit(tx: Transaction) -> Written:
        blob = _check(tx, target, request, guard, end)
        intervals = clear_range(tx, blob, start, end, marked=True)
        changed = replace(blob, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now), intervals=intervals)
        tx.put(changed)
        return Written(etag=changed.etag, sequence_number=changed.sequence_number, encryption=shown_encryption(changed))

    return await ctx.engine.write([target.scope], commit)


async def set_page_properties(ctx: Context, target: BlobName, request: SetPageBlobProperties, guard: Guard) -> Written:
    """Set Blob Properties with a length or a sequence number. The content properties stay unless the request has one of them."""
    _check_sequence_action(request)
    if request.size is not None:
        _check_size(request.size)

    def commit(tx: Transaction) -> Written:
        container, blob = require_state(tx, target)
        if blob.blob_type is not BlobType.PAGE:
            raise StorageError(Code.UnsupportedHeader)  # Set Blob Properties: the length of other blobs cannot be set
        guard.check(blob, tx.now)
        check_alterable(container, blob, Alteration.CHANGE, tx.now)
        if request.size is not None:
            check_key(blob, request)
        changed = _resized(tx, blob, request.size) if request.size is not None else blob
        if request.sequence_action is not None:
            changed = replace(changed, sequence_number=_next_number(blob.sequence_number or 0, request))
        if any(getattr(request, name) is not None for name in CONTENT_PROPERTIES):
            changed = with_content_properties(changed, request)
        changed = replace(changed, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
        tx.put(changed)
        return Written(etag=changed.etag, sequence_number=changed.sequence_number)

    return await ctx.engine.write([target.scope], commit)


def require_page_blob(
    tx: Transaction, target: BlobName, snapshot: int | None = None, version_id: int | None = None
) -> tuple[Container, Blob]:
    container, blob = require_state(tx, target, snapshot, version_id)
    if blob.blob_type is not BlobType.PAGE:
        raise StorageError(Code.InvalidBlobType)
    return container, blob


def _check(tx: Transaction, target: BlobName, request: ClearPages, guard: Guard, end: int) -> Blob:
    container, blob = require_page_blob(tx, target)
    guard.check(blob, tx.now)
    check_alterable(container, blob, Alteration.CHANGE, tx.now)
    check_key(blob, request)
    number = blob.sequence_number or 0
    if (
        (request.sequence_at_most is not None and number > request.sequence_at_most)
        or (request.sequence_below is not None and number >= request.sequence_below)
        or (request.sequence_equal is not None and number != request.sequence_equal)
    ):
        raise StorageError(Code.SequenceNumberConditionNotMet)
    if end > blob.size:
        raise StorageError(Code.InvalidPageRange)
    return blob


def _whole_pages(request: ClearPages) -> tuple[int, int]:
    """The start and the excluded end of the range."""
    if request.range is None:
        raise StorageError(Code.MissingRequiredHeader, field="page_range")
    start, end = request.range[0], request.range[1] + 1
    if start % PAGE_BYTES or end % PAGE_BYTES:
        raise StorageError(Code.InvalidPageRange)
    return start, end


def _check_length(sent: int, wanted: int) -> None:
    if sent != wanted:
        raise StorageError(Code.InvalidHeaderValue, field="content_length", value=sent)


def _check_size(size: int) -> None:
    if size % PAGE_BYTES:
        raise StorageError(Code.InvalidHeaderValue, field="size", value=size)
    if size > MAX_PAGE_BLOB:
        raise StorageError(Code.RequestBodyTooLarge, details=Limit(MAX_PAGE_BLOB))


def _check_sequence_action(request: SetPageBlobProperties) -> None:
    if request.sequence_action is None:
        if request.sequence_number is not None:
            raise StorageError(Code.MissingRequiredHeader, field="sequence_action")
    elif request.sequence_action is SequenceAction.INCREMENT:
        if request.sequence_number is not None:
            raise StorageError(Code.InvalidHeaderValue, field="sequence_number", value=request.sequence_number)
    elif request.sequence_number is None:
        raise StorageError(Code.MissingRequiredHeader, field="sequence_number")


def _next_number(number: int, request: SetPageBlobProperties) -> int:
    if request.sequence_action is SequenceAction.INCREMENT:
        if number >= MAX_SEQUENCE_NUMBER:
            raise StorageError(Code.SequenceNumberIncrementTooLarge)
        return number + 1
    assert request.sequence_number is not None
    return max(number, request.sequence_number) if request.sequence_action is SequenceAction.MAX else request.sequence_number


def _resized(tx: Transaction, blob: Blob, size: int) -> Blob:
    """Growing adds zeros, which cost nothing. Shrinking clears what is cut off, so that growing again does not bring it back."""
    intervals = clear_range(tx, blob, size, blob.size) if size < blob.size else blob.intervals
    return replace(blob, size=size, intervals=intervals)
