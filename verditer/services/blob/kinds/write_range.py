"""Append Block and Put Page: a body is received and becomes an interval of the blob."""

from collections.abc import Callable

import msgspec

from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.content import IntervalMap
from verditer.partition.engine import Scope, Transaction
from verditer.services.blob.answers import Written
from verditer.services.blob.current import current_blob
from verditer.services.blob.encryption import EncryptionRequest, keyed, shown_encryption
from verditer.services.content.compaction import compact, needs_compaction
from verditer.services.content.intervals import interval_map_of
from verditer.services.content.receiving import receive_body, write_received
from verditer.services.context import Context
from verditer.stream.digest import Checksums
from verditer.stream.intake import Received, Source

ApplyReceived = Callable[[Transaction, Received], tuple[Blob, Blob]]
"""Checks the request again and writes the interval. Returns the blob before, and the blob to be put."""


class RangeRequest(EncryptionRequest, frozen=True, kw_only=True):
    """A request with a body and optional checksums of it."""

    version: str
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


async def write_range(
    ctx: Context, target: BlobName, request: RangeRequest, body: Source, limit: int, apply: ApplyReceived
) -> Written:
    ctx = keyed(ctx, request)
    with ctx.activity.begin(ctx.now()) as work:
        expected = Checksums(md5=request.content_md5, crc64=request.content_crc64)
        received = await receive_body(ctx, body, limit, expected)

        def commit(tx: Transaction) -> tuple[Written, int | None]:
            """The answer, and the id of the content if it needs compaction now."""
            before, after = apply(tx, received)
            tx.put(after)
            written = Written(
                etag=after.etag,
                content_md5=received.md5,
                content_crc64=received.crc64,
                append_offset=before.size if before.blob_type is BlobType.APPEND else None,
                block_count=after.block_count,
                sequence_number=after.sequence_number,
                encryption=shown_encryption(after),
            )
            return written, before.content_id if needs_compaction(interval_map_of(before), interval_map_of(after)) else None

        written, content_id = await write_received(ctx, target.scope, work, received, commit)
    if content_id is not None:
        await compact(ctx, _CurrentBlob(target), content_id)
    return written.as_part(request.version, md5_sent=request.content_md5 is not None)


class _CurrentBlob:
    """The blob as the owner of its content."""

    def __init__(self, target: BlobName) -> None:
        self._target = target

    @property
    def scope(self) -> Scope:
        return self._target.scope

    def load(self, tx: Transaction) -> Blob | None:
        return current_blob(tx, self._target)[1]

    def save(self, tx: Transaction, intervals: IntervalMap) -> None:
        blob = self.load(tx)
        assert blob is not None
        tx.put(msgspec.structs.replace(blob, intervals=intervals))
