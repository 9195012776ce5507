"""Page blobs: pages are written and cleared in place, the blob is resized, a sequence number orders its writers.

`pieces.py` keeps the bytes; `page_ranges.py` tells which pages there are.
"""

from enum import Enum

import msgspec

from verditer.core.errors import Code, StorageError, invalid_header, missing_header
from verditer.core.guard import Guard
from verditer.core.limits import MAX_PAGE_BLOB, MAX_PAGE_WRITE, MAX_SEQUENCE_NUMBER, PAGE_BYTES
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.blobs import SetBlobProperties, with_headers
from verditer.services.blob.block import BlobHeaders
from verditer.services.blob.create import create_blob
from verditer.services.blob.current import require_blob
from verditer.services.blob.pieces import clear_pieces, write_piece
from verditer.services.blob.receiving import write_part
from verditer.services.context import Context
from verditer.stream.intake import Received, Source

replace = msgspec.structs.replace


class SequenceAction(Enum):
    MAX = "max"
    UPDATE = "update"
    INCREMENT = "increment"


class CreatePageBlob(BlobHeaders, frozen=True, kw_only=True):
    size: int
    sequence_number: int = 0


class ClearPages(msgspec.Struct, frozen=True, kw_only=True):
    """A range of whole pages (first byte, last byte), and the sequence number conditions."""

    version: str
    range: tuple[int, int] | None = None
    sequence_at_most: int | None = None
    sequence_below: int | None = None
    sequence_equal: int | None = None
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class PutPages(ClearPages, frozen=True, kw_only=True):
    page_write: str


class SetPageBlobProperties(SetBlobProperties, frozen=True, kw_only=True):
    size: int | None = None
    sequence_action: SequenceAction | None = None
    sequence_number: int | None = None


async def create_page_blob(ctx: Context, target: BlobName, request: CreatePageBlob, guard: Guard) -> Written:
    _check_size(request.size)
    return await create_blob(
        ctx, target, request, guard, BlobType.PAGE, size=request.size, sequence_number=request.sequence_number
    )


async def put_pages(ctx: Context, target: BlobName, request: PutPages, guard: Guard, body: Source) -> Written:
    start, end = _whole_pages(request)
    if end - start > MAX_PAGE_WRITE:
        raise StorageError(Code.RequestBodyTooLarge, details={"MaxLimit": str(MAX_PAGE_WRITE)})
    if body.length is not None:
        _check_length(body.length, end - start)
    if not body.ended:
        await ctx.engine.read(target.scope, lambda tx: _check(tx, target, request, guard, end))

    def place(tx: Transaction, received: Received) -> tuple[Blob, Blob]:
        _check_length(received.size, end - start)  # of chunks, so that only now it is known
        blob = _check(tx, target, request, guard, end)
        pieces = write_piece(tx, blob, start, received)
        return blob, replace(blob, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now), pieces=pieces)

    return await write_part(ctx, target, request, body, MAX_PAGE_WRITE, place)


async def clear_pages(ctx: Context, target: BlobName, request: ClearPages, guard: Guard) -> Written:
    start, end = _whole_pages(request)
    if request.content_md5 is not None or request.content_crc64 is not None:
        raise invalid_header("Content-MD5" if request.content_md5 is not None else "x-ms-content-crc64", "")

    def commit(tx: Transaction) -> Written:
        blob = _check(tx, target, request, guard, end)
        pieces = clear_pieces(tx, blob, start, end)
        changed = replace(blob, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now), pieces=pieces)
        tx.put(changed)
        return Written(etag=changed.etag, sequence_number=changed.sequence_number)

    return await ctx.engine.write(target.scope, commit)


async def set_page_properties(ctx: Context, target: BlobName, request: SetPageBlobProperties, guard: Guard) -> Written:
    """Set Blob Properties with a length or a sequence number. The HTTP headers stay unless one of them is sent as well."""
    _check_sequence_action(request)
    if request.size is not None:
        _check_size(request.size)

    def commit(tx: Transaction) -> Written:
        blob = require_blob(tx, target)
        if blob.blob_type is not BlobType.PAGE:
            raise StorageError(Code.UnsupportedHeader)  # 400: Set Blob Properties, "x-ms-blob-content-length"
        guard.check(blob, tx.now)
        changed = _resized(tx, blob, request.size) if request.size is not None else blob
        if request.sequence_action is not None:
            changed = replace(changed, sequence_number=_next_number(blob.sequence_number or 0, request))
        if any(getattr(request, name) is not None for name in SetBlobProperties.__struct_fields__):
            changed = with_headers(changed, request)
        changed = replace(changed, etag=tx.tick(blob.etag), lease=guard.lease_after(blob, tx.now))
        tx.put(changed)
        return Written(etag=changed.etag, sequence_number=changed.sequence_number)

    return await ctx.engine.write(target.scope, commit)


def require_page_blob(tx: Transaction, target: BlobName, snapshot: int | None = None, version_id: int | None = None) -> Blob:
    blob = require_blob(tx, target, snapshot, version_id)
    if blob.blob_type is not BlobType.PAGE:
        raise StorageError(Code.InvalidBlobType)
    return blob


def _check(tx: Transaction, target: BlobName, request: ClearPages, guard: Guard, end: int) -> Blob:
    blob = require_page_blob(tx, target)
    guard.check(blob, tx.now)
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
    """Start, and end excluded."""
    if request.range is None:
        raise missing_header("x-ms-range")
    start, end = request.range[0], request.range[1] + 1
    if start % PAGE_BYTES or end % PAGE_BYTES:
        raise StorageError(Code.InvalidPageRange)
    return start, end


def _check_length(sent: int, wanted: int) -> None:
    if sent != wanted:
        raise invalid_header("Content-Length", str(sent))


def _check_size(size: int) -> None:
    if size % PAGE_BYTES:
        raise invalid_header("x-ms-blob-content-length", str(size))
    if size > MAX_PAGE_BLOB:
        raise StorageError(Code.RequestBodyTooLarge, details={"MaxLimit": str(MAX_PAGE_BLOB)})


def _check_sequence_action(request: SetPageBlobProperties) -> None:
    if request.sequence_action is None:
        if request.sequence_number is not None:
            raise missing_header("x-ms-sequence-number-action")
    elif request.sequence_action is SequenceAction.INCREMENT:
        if request.sequence_number is not None:
            raise invalid_header("x-ms-blob-sequence-number", str(request.sequence_number))
    elif request.sequence_number is None:
        raise missing_header("x-ms-blob-sequence-number")


def _next_number(number: int, request: SetPageBlobProperties) -> int:
    if request.sequence_action is SequenceAction.INCREMENT:
        if number >= MAX_SEQUENCE_NUMBER:
            raise StorageError(Code.SequenceNumberIncrementTooLarge)
        return number + 1
    assert request.sequence_number is not None
    return max(number, request.sequence_number) if request.sequence_action is SequenceAction.MAX else request.sequence_number


def _resized(tx: Transaction, blob: Blob, size: int) -> Blob:
    """Growing adds zeros, which cost nothing; shrinking clears what is cut off, so that growing again brings none of it back."""
    pieces = clear_pieces(tx, blob, size, blob.size) if size < blob.size else blob.pieces
    return replace(blob, size=size, pieces=pieces)
