"""Copies into blobs that are pending: Copy Blob from another server starts one, Abort Copy Blob ends it. While it is pending, the
blob is empty (a page blob: zeros)."""

from collections.abc import Callable

import msgspec

from verditer.core.guard import Guard
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.container import Container
from verditer.core.records.copy import CopyStatus, PendingCopy
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import Copied
from verditer.services.blob.current import require_blob
from verditer.services.blob.expiry import LastingRequest
from verditer.services.blob.new_blob import put_new_blob
from verditer.services.content.intervals import new_interval_map
from verditer.services.context import Context
from verditer.services.copying.pending import AbortCopy, TargetKind, end_aborted, inspect_source, pending_state
from verditer.services.copying.sources import RemoteSource

replace = msgspec.structs.replace


async def start_copy(
    ctx: Context,
    target: BlobName,
    source: RemoteSource,
    guard: Guard,
    copy_id: str,
    describe: Callable[[Blob, int], Blob],
    request: LastingRequest,
) -> Copied:
    """`describe` makes the record of the target from the properties of the source."""
    inspected = await inspect_source(ctx, source)
    total, blob_type = inspected.total, inspected.found.blob_type
    is_mutable = blob_type is not BlobType.BLOCK

    def commit(tx: Transaction) -> Copied:
        def build(container_id: int, tick: int) -> Blob:
            return replace(
                describe(inspected.found, tick),
                container_id=container_id,
                content_id=tick,
                size=total if blob_type is BlobType.PAGE else 0,
                inline=not is_mutable,
                intervals=new_interval_map(tx, tick, target.scope) if is_mutable else None,
                copy=pending_state(copy_id, source, total),
            )

        blob = put_new_blob(tx, target, guard, blob_type, build, same_type=True, infinite_lease=True, request=request)
        content_id = tx.tick(blob.etag)
        tx.put(
            PendingCopy(
                parent_id=blob.container_id,
                name=target.blob,
                account=target.account,
                container=target.container,
                copy_id=copy_id,
                url=source.url,
                access=source.access,
                etag=inspected.etag,
                started=tx.now,
                total=total,
                content_id=content_id,
                intervals=new_interval_map(tx, content_id, target.scope) if is_mutable else None,
            )
        )
        return Copied(etag=blob.etag, version_id=blob.version_id, copy_id=copy_id, copy_status=CopyStatus.PENDING)

    copied = await ctx.engine.write([target.scope], commit)
    ctx.copy_started.set()
    return copied


async def abort_copy(ctx: Context, target: BlobName, request: AbortCopy, guard: Guard) -> None:
    """The blob remains, empty, with its metadata."""

    def commit(tx: Transaction) -> None:
        blob = require_blob(tx, target)
        guard.check(blob, tx.now)
        end_aborted(tx, BLOB_TARGETS, blob, tx.get(PendingCopy, blob.container_id, blob.name), request.copy_id)

    await ctx.engine.write([target.scope], commit)


def name_of(pending: PendingCopy) -> BlobName:
    return BlobName(pending.account, pending.container, pending.name)


def _is_reachable(tx: Transaction, pending: PendingCopy) -> bool:
    container = tx.get(Container, pending.account, pending.container)
    return container is not None and container.id == pending.parent_id


BLOB_TARGETS: TargetKind[PendingCopy, Blob] = TargetKind(
    record=PendingCopy,
    scope=lambda pending: name_of(pending).scope,
    find=lambda tx, pending: tx.get(Blob, pending.parent_id, pending.name),
    is_reachable=_is_reachable,
    put=lambda tx, _pending, _before, after: tx.put(after),
    with_content=lambda _tx, _pending, blob, content: replace(blob, **content.fields()),
)
