"""Lease Blob and Lease Container. `core/lease.py` has the rules; this module applies them inside a transaction.

A lease operation never changes the ETag, because readers see no difference.
"""

import msgspec

from verditer.core.guard import Guard
from verditer.core.lease import LeaseOutcome, LeaseRequest, apply
from verditer.core.names import BlobName, ContainerName
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import LeaseAnswer
from verditer.services.blob.current import require_blob, require_container
from verditer.services.context import Context


async def lease_blob(ctx: Context, target: BlobName, request: LeaseRequest, guard: Guard) -> LeaseAnswer:
    new_id = ctx.new_guid()

    def commit(tx: Transaction) -> LeaseAnswer:
        blob = require_blob(tx, target)
        guard.check(blob, tx.now)
        outcome = apply(blob.lease, request, tx.now, new_id)
        tx.put(msgspec.structs.replace(blob, lease=outcome.lease))
        return _answer(blob.etag, request, outcome)

    return await ctx.engine.write([target.scope], commit)


async def lease_container(ctx: Context, target: ContainerName, request: LeaseRequest, guard: Guard) -> LeaseAnswer:
    new_id = ctx.new_guid()

    def commit(tx: Transaction) -> LeaseAnswer:
        container = require_container(tx, target)
        guard.check(container, tx.now)
        outcome = apply(container.lease, request, tx.now, new_id)
        tx.put(msgspec.structs.replace(container, lease=outcome.lease))
        return _answer(container.etag, request, outcome)

    return await ctx.engine.write([target.scope], commit)


def _answer(etag: int, request: LeaseRequest, outcome: LeaseOutcome) -> LeaseAnswer:
    return LeaseAnswer(
        etag=etag,
        action=request.action,
        lease_id=outcome.lease_id,
        lease_time=outcome.lease_time,
    )
