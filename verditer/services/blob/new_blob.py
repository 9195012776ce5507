"""Puts a new blob in place of the one with its name: the steps that Put Blob and every copy share."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration
from verditer.core.lease import state_of
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.container import Container
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.blobs import drop_staged
from verditer.services.blob.current import current_and_staged
from verditer.services.blob.encryption import encrypted
from verditer.services.blob.expiry import LastingRequest, drop_expired
from verditer.services.blob.history import check_replaceable, new_version, retire_replaced
from verditer.services.blob.protection import check_alterable
from verditer.services.blob.tags import index_tags
from verditer.services.blob.tiers import check_tier
from verditer.services.settings import settings_of

BuildBlob = Callable[[int, int], Blob]
"""Makes the record from the container id and the tick, and puts its content under the tick."""

NOTHING_ASKED = LastingRequest()


def put_new_blob(
    tx: Transaction,
    target: BlobName,
    guard: Guard,
    blob_type: BlobType,
    build: BuildBlob,
    *,
    same_type: bool = False,
    infinite_lease: bool = False,
    request: LastingRequest = NOTHING_ASKED,
) -> Blob:
    """`same_type`: refuse to replace a blob of another type. `infinite_lease`: refuse if its lease can expire. `request` says how
    the blob is encrypted and how long it stays."""
    container, previous, staged = current_and_staged(tx, target)
    if same_type and previous is not None and previous.blob_type is not blob_type:
        raise StorageError(Code.InvalidBlobType)
    check_replaceable(tx, container, target, previous, blob_type)
    now = tx.now
    guard.check(previous, now)
    if infinite_lease:
        _check_lease(previous, now)
    check_online(previous, now)
    check_alterable(container, previous, Alteration.REPLACE, now)
    drop_expired(tx, container, target)
    tick = tx.tick(previous.etag if previous is not None else 0)
    blob = build(container.id, tick)
    blob = with_rare_properties(tx, container, target, blob, request)
    check_tier(tx, target, blob)
    if previous is not None:
        retire_replaced(tx, target, container.history_policy, previous, tick)
    if staged is not None:
        drop_staged(tx, staged)
    lease, version_id = guard.lease_after(previous, now), new_version(container.history_policy, tick)
    if lease is not None or version_id is not None:
        blob = msgspec.structs.replace(blob, lease=lease, version_id=version_id)
    index_tags(tx, previous, blob)
    tx.put(blob)
    return blob


def with_rare_properties(tx: Transaction, container: Container, target: BlobName, blob: Blob, request: LastingRequest) -> Blob:
    """A blob that is about to be put, with its encryption, its policy, hold and expiry. Most requests ask for none."""
    if container.encryption is not None or not request.is_plain:
        blob = encrypted(container, blob, request, settings_of(tx, target.account).encryption_scopes)
    lasting = request.lasting
    return blob if lasting is None else lasting.applied(tx, container, target, blob)


def _check_lease(previous: Blob | None, now: int) -> None:
    """A copy may take longer than a finite lease lasts (Copy Blob, "InfiniteLeaseDurationRequired")."""
    lease = previous.lease if previous is not None else None
    if lease is not None and lease.expires is not None and state_of(lease, now).is_locked:
        raise StorageError(Code.InfiniteLeaseDurationRequired)
