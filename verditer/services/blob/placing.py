"""A new blob takes the place of whatever has its name: the steps that Put Blob and every copy share."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.lease import state_of
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.blobs import drop_staged
from verditer.services.blob.current import current_and_staged
from verditer.services.blob.history import check_replaceable, new_version, retire_replaced
from verditer.services.blob.tags import index_tags
from verditer.services.blob.tiers import check_tier

Make = Callable[[int, int], Blob]
"""Container id and tick → the record, its content put under that tick."""


def put_in_place(
    tx: Transaction,
    target: BlobName,
    guard: Guard,
    blob_type: BlobType,
    make: Make,
    *,
    same_type: bool = False,
    infinite_lease: bool = False,
) -> Blob:
    """`same_type`: a blob of another type is in the way. `infinite_lease`: so is a lease that might run out."""
    container, previous, staged = current_and_staged(tx, target)
    if same_type and previous is not None and previous.blob_type is not blob_type:
        raise StorageError(Code.InvalidBlobType)
    check_replaceable(tx, container, target, previous, blob_type)
    guard.check(previous, tx.now)
    if infinite_lease:
        _check_lease(previous, tx.now)
    check_online(previous, tx.now)
    tick = tx.tick(previous.etag if previous is not None else 0)
    blob = make(container.id, tick)
    check_tier(tx, target, blob)
    if previous is not None:
        retire_replaced(tx, target, container.keeping, previous, tick)
    if staged is not None:
        drop_staged(tx, staged)
    lease, version_id = guard.lease_after(previous, tx.now), new_version(container.keeping, tick)
    if lease is not None or version_id is not None:
        blob = msgspec.structs.replace(blob, lease=lease, version_id=version_id)
    index_tags(tx, previous, blob)
    tx.put(blob)
    return blob


def _check_lease(previous: Blob | None, now: int) -> None:
    """A copy may take longer than a lease that runs out (Copy Blob, "InfiniteLeaseDurationRequired")."""
    lease = previous.lease if previous is not None else None
    if lease is not None and lease.expires is not None and state_of(lease, now).status == "locked":
        raise StorageError(Code.InfiniteLeaseDurationRequired)
