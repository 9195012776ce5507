"""Get Blob: a blob's bytes, whole or a range, with the properties of the same state (contract G3)."""

import msgspec

from verditer.core.errors import Code, ResourceSize, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_RANGE_DIGEST
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob
from verditer.core.records.container import BlobSettings
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlobRead
from verditer.services.blob.current import require_state
from verditer.services.blob.encryption import EncryptionRequest, check_key, keyed, opened
from verditer.services.blob.last_access import is_due, record_access
from verditer.services.content.reading import ContentPart, body_of, content_parts, reads_many_rows, whole_body
from verditer.services.context import Context
from verditer.stream.digest import digest


class GetBlob(EncryptionRequest, frozen=True, kw_only=True):
    version: str = ""
    snapshot: int | None = None
    version_id: int | None = None
    range: tuple[int, int | None] | None = None  # first byte, last byte or None for "to the end"
    range_md5: bool = False
    range_crc64: bool = False


async def get_blob(ctx: Context, target: BlobName, request: GetBlob, guard: Guard) -> BlobRead:
    if request.range_md5 and request.range_crc64:
        raise StorageError(Code.InvalidHeaderValue, field="range_crc64", value="true")  # one checksum of a range at a time
    is_plain = request.is_plain

    def look(tx: Transaction, *, long: bool = False) -> tuple[Blob, BlobSettings, int, int, int, list[ContentPart]] | None:
        """None: the range may consist of many rows, so the read is repeated outside of the event loop."""
        container, blob = require_state(tx, target, request.snapshot, request.version_id)
        now = tx.now
        guard.check(blob, now)
        check_online(blob, now)
        if blob.rare is not None or not is_plain:
            check_readable(blob, request)
            blob = opened(blob, request)
        start, length = _extent_of(blob, request)
        if not long and reads_many_rows(blob, length):
            return None
        return blob, container.blob_settings, now, start, length, content_parts(tx, blob, start, length)

    if not is_plain:
        ctx = keyed(ctx, request)
    with ctx.activity.begin(ctx.now()) as operation:  # until the body is registered as an operation itself
        found = await ctx.engine.read(target.scope, look)
        if found is None:
            found = await ctx.engine.read(target.scope, lambda tx: look(tx, long=True), long=True)
        assert found is not None
        blob, settings, now, start, length, parts = found
        body = await body_of(ctx, operation.start, parts, length)
    ranged = request.range is not None
    read = BlobRead(
        blob=blob, settings=settings, now=now, version=request.version, start=start, length=length, ranged=ranged, body=body
    )
    if is_due(blob, settings, now):
        await record_access(ctx, target, blob)
    if request.range_md5 or request.range_crc64:
        read = await _with_digest(read, request)
    return read


def check_readable(blob: Blob, request: EncryptionRequest) -> None:
    """Only the snapshots of an incremental copy are read, and the content of an encrypted blob with its key."""
    check_key(blob, request)
    if blob.rare is not None and blob.rare.incremental is not None and type(blob) is Blob:
        raise StorageError(Code.OperationNotAllowedOnIncrementalCopyBlob)


def _extent_of(blob: Blob, request: GetBlob) -> tuple[int, int]:
    """First byte and number of bytes. A range is cut at the end of the blob; one that begins after it is refused."""
    if request.range is None:
        if request.range_md5 or request.range_crc64:
            raise StorageError(Code.MissingRequiredHeader, field="range")
        return 0, blob.size
    first, last = request.range
    if first >= blob.size:
        raise StorageError(Code.InvalidRange, details=ResourceSize(blob.size))
    length = min(last if last is not None else blob.size - 1, blob.size - 1) - first + 1
    if (request.range_md5 or request.range_crc64) and length > MAX_RANGE_DIGEST:
        field = "range_md5" if request.range_md5 else "range_crc64"
        raise StorageError(Code.InvalidHeaderValue, field=field, value="true")
    return first, length


async def _with_digest(read: BlobRead, request: GetBlob) -> BlobRead:
    body = await whole_body(read.body)
    md5, crc64 = digest(body)
    return msgspec.structs.replace(
        read,
        body=body,
        range_md5=md5 if request.range_md5 else None,
        range_crc64=crc64 if request.range_crc64 else None,
    )
