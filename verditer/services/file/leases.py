"""Lease File and Lease Share. The rules are in `core/lease.py`; this applies them inside a transaction.

A lease operation changes no ETag: readers see nothing of it.
"""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.share_modes import ACQUIRE_LEASE, CHANGE_LEASE
from verditer.core.lease import INFINITE, Lease, LeaseAction, LeaseOutcome, LeaseRequest, apply
from verditer.core.names import FilePath, ShareName
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import LeaseAnswer
from verditer.services.context import Context
from verditer.services.file import opens
from verditer.services.file.current import require_file, require_share
from verditer.services.file.opens import check_access


async def lease_file(ctx: Context, target: FilePath, request: LeaseRequest) -> LeaseAnswer:
    """The lease of a file has no end: it is acquired for ever, never renewed, and broken at once."""
    new_id = ctx.new_guid()
    if request.action is LeaseAction.RENEW:
        raise StorageError(Code.InvalidHeaderValue, field="lease_action", value="renew")
    if request.action is LeaseAction.ACQUIRE and request.duration != INFINITE:
        raise StorageError(Code.InvalidHeaderValue, field="lease_duration", value=str(request.duration))
    if request.break_period is not None:
        raise StorageError(Code.InvalidHeaderValue, field="lease_break_period", value=str(request.break_period))

    def commit(tx: Transaction) -> LeaseAnswer:
        located, entry = require_file(tx, target)
        if entry.copy_pending:
            raise StorageError(Code.PendingCopyOperation)
        check_access(tx, entry, ACQUIRE_LEASE if request.action is LeaseAction.ACQUIRE else CHANGE_LEASE)
        held = entry.lease.id if entry.lease is not None else request.lease_id
        if request.action is LeaseAction.BREAK and request.lease_id not in (None, held):
            message = "The lease ID specified did not match the lease ID for the file."
            raise StorageError(Code.LeaseIdMismatchWithLeaseOperation, message=message)
        outcome = _apply(entry.lease, request, tx.now, new_id, "file")
        located.tree.overwrite(tx, msgspec.structs.replace(entry, lease=outcome.lease))
        return LeaseAnswer(etag=entry.etag, action=request.action, lease_id=outcome.lease_id, lease_time=outcome.lease_time)

    return await opens.write(ctx, [target.scope], commit)


class ShareLeaseRequest(LeaseRequest, frozen=True, kw_only=True):
    """A share and each of its snapshots have leases of their own."""

    snapshot: int | None = None


async def lease_share(ctx: Context, target: ShareName, request: ShareLeaseRequest) -> LeaseAnswer:
    new_id = ctx.new_guid()

    def commit(tx: Transaction) -> LeaseAnswer:
        share = require_share(tx, target, request.snapshot)
        outcome = _apply(share.lease, request, tx.now, new_id, "file share")
        tx.put(msgspec.structs.replace(share, lease=outcome.lease))
        return LeaseAnswer(etag=share.etag, action=request.action, lease_id=outcome.lease_id, lease_time=outcome.lease_time)

    return await opens.write(ctx, [target.scope], commit)


def _apply(lease: Lease | None, request: LeaseRequest, now: int, new_id: str, noun: str) -> LeaseOutcome:
    """Messages name the resource. The File service also answers a release with the time that is left, zero."""
    try:
        outcome = apply(lease, request, now, new_id)
    except StorageError as error:
        raise StorageError(error.code, message=error.message.replace("the blob", f"the {noun}")) from None
    return msgspec.structs.replace(outcome, lease_time=0) if request.action is LeaseAction.RELEASE else outcome
