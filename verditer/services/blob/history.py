"""Decides whether a state of a blob that is replaced, changed or deleted is kept. All operations that do so call this module.

A state is kept as a previous version, is kept soft-deleted, or is removed. It moves from one table to another with its content,
so exactly one record owns the content (invariant 5) and no bytes move. Only Set Blob Metadata and Snapshot Blob make a second
content, because the old and the new state have the same bytes. The account's settings decide; the container stores them
(`HistoryPolicy`).

A state that is a version remains one even after versioning is turned off: "all existing versions persist as previous versions"
(Blob versioning, "Enable or disable blob versioning").
"""

from collections.abc import Collection
from enum import Enum
from typing import TypeVar

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType, BlobVersion, DeletedBlob, DeletedSnapshot, DeletedVersion, Snapshot
from verditer.core.records.container import Container, HistoryPolicy
from verditer.core.records.record import span_of
from verditer.partition.engine import Order, Transaction
from verditer.services.content.layout import drop_content, extents_of, snapshot_content

B = TypeVar("B", bound=Blob)
replace = msgspec.structs.replace


class HistoryEvent(Enum):
    REPLACED = "replaced by Put Blob, Put Block List or a copy"
    DELETED = "deleted by Delete Blob"
    HISTORY_DELETED = "a snapshot or a previous version was deleted"


class Disposition(Enum):
    REMOVED = "removed"
    SOFT_DELETED = "kept soft-deleted until its retention period ends"
    VERSION = "kept as a previous version"


REMOVED, SOFT_DELETED, VERSION = Disposition

# fmt: off
DISPOSITIONS: dict[HistoryEvent, tuple[Disposition, Disposition, Disposition, Disposition]] = {
    #                              neither  soft delete   versioning  both
    HistoryEvent.REPLACED:        (REMOVED, SOFT_DELETED, VERSION,    VERSION),
    HistoryEvent.DELETED:         (REMOVED, SOFT_DELETED, VERSION,    VERSION),
    HistoryEvent.HISTORY_DELETED: (REMOVED, SOFT_DELETED, REMOVED,    SOFT_DELETED),
}
# fmt: on


def retire_replaced(
    tx: Transaction, target: BlobName, history_policy: HistoryPolicy, state: Blob, tick: int, reused: Collection[str] = ()
) -> bool:
    """The blob that is put at `tick` replaces `state`. Returns True when the two share extents of `reused`."""
    disposition = _disposition(history_policy, HistoryEvent.REPLACED, state)
    if disposition is REMOVED:
        drop_content(tx, state, reused)
        return state.shared
    shared = state.shared or (bool(reused) and not extents_of(tx, state).isdisjoint(reused))
    state = replace(state, shared=shared)
    if disposition is VERSION:
        _put_version(tx, state)
    else:
        tx.put(moved_to(DeletedSnapshot, state, snapshot=tick, **_retention(tx, target, history_policy, tick)))
    return shared


def retire_deleted(tx: Transaction, target: BlobName, history_policy: HistoryPolicy, state: Blob) -> bool:
    """The blob is deleted; the caller removes its record. Returns True when nothing of it is kept."""
    disposition = _disposition(history_policy, HistoryEvent.DELETED, state)
    if disposition is REMOVED:
        drop_content(tx, state)
    elif disposition is VERSION:
        _put_version(tx, state)
    else:
        former = tx.get(DeletedBlob, state.container_id, state.name)
        if former is not None:
            tx.put(as_snapshot(former))
        tx.put(moved_to(DeletedBlob, state, **_retention(tx, target, history_policy, tx.tick(state.etag))))
    return disposition is REMOVED


def delete_snapshot_state(tx: Transaction, target: BlobName, history_policy: HistoryPolicy, state: Snapshot) -> bool:
    """Returns True when nothing of it is kept."""
    disposition = _disposition(history_policy, HistoryEvent.HISTORY_DELETED, state)
    if disposition is REMOVED:
        drop_content(tx, state)
    else:
        tx.put(moved_to(DeletedSnapshot, state, snapshot=state.snapshot, **_retention(tx, target, history_policy, tx.tick())))
    tx.delete(Snapshot, state.container_id, state.name, state.snapshot)
    return disposition is REMOVED


def delete_version_state(tx: Transaction, target: BlobName, history_policy: HistoryPolicy, state: BlobVersion) -> bool:
    """Returns True when nothing of it is kept."""
    disposition = _disposition(history_policy, HistoryEvent.HISTORY_DELETED, state)
    if disposition is REMOVED:
        drop_content(tx, state)
    else:
        tx.put(moved_to(DeletedVersion, state, **_retention(tx, target, history_policy, tx.tick())))
    assert state.version_id is not None
    tx.delete(BlobVersion, state.container_id, state.name, state.version_id)
    return disposition is REMOVED


def keep_version(tx: Transaction, history_policy: HistoryPolicy, blob: Blob, tick: int) -> Blob:
    """Called before a change in place that begins a new version at `tick`. Returns the record to change, which is `blob` itself
    without versioning."""
    if not _is_versioned(history_policy, blob):
        return blob
    live, frozen = snapshot_content(tx, blob, tick)
    tx.put(moved_to(BlobVersion, blob, version_id=blob.version_id or blob.etag, lease=None, **frozen.fields()))
    return replace(blob, **live.fields(), version_id=new_version(history_policy, tick))


def new_version(history_policy: HistoryPolicy, tick: int) -> int | None:
    """The version id of a state that becomes current at `tick`."""
    return tick if history_policy.versioning else None


def check_replaceable(
    tx: Transaction, container: Container, target: BlobName, previous: Blob | None, blob_type: BlobType
) -> None:
    """Put Blob may change the type of a blob that has no snapshots and no versions: all states of a name have one type."""
    if previous is None:
        if not container.history_policy.versioning:
            return
        latest = next(tx.scan(BlobVersion, span_of(container.id, target.blob), limit=1, order=Order.KEY_DESCENDING), None)
        if latest is not None and latest.blob_type is not blob_type:
            raise StorageError(Code.InvalidBlobType)
    elif previous.blob_type is not blob_type:
        span = span_of(container.id, target.blob)
        has_history = any(next(tx.scan(kind, span, limit=1), None) is not None for kind in (Snapshot, BlobVersion))
        if has_history or _is_versioned(container.history_policy, previous):
            raise StorageError(Code.InvalidBlobType)


def moved_to(kind: type[B], state: Blob, **fields: object) -> B:
    """The same state as a record of another table."""
    same = {name: getattr(state, name) for name in kind.__struct_fields__ if name in state.__struct_fields__}
    return kind(**same | fields)


def as_snapshot(state: DeletedBlob) -> DeletedSnapshot:
    """A soft-deleted blob becomes a soft-deleted snapshot when a new blob with its name exists."""
    return moved_to(DeletedSnapshot, state, snapshot=state.deleted)


def _put_version(tx: Transaction, state: Blob) -> None:
    """A state from before versioning was turned on gets its ETag as the version id."""
    tx.put(moved_to(BlobVersion, state, version_id=state.version_id or state.etag, lease=None))


def _disposition(history_policy: HistoryPolicy, event: HistoryEvent, state: Blob) -> Disposition:
    soft_delete = history_policy.soft_delete_days > 0
    return DISPOSITIONS[event][2 * _is_versioned(history_policy, state) + soft_delete]


def _is_versioned(history_policy: HistoryPolicy, state: Blob) -> bool:
    return history_policy.versioning or state.version_id is not None


def _retention(tx: Transaction, target: BlobName, history_policy: HistoryPolicy, tick: int) -> dict[str, object]:
    return {
        "deleted": tick,
        "expires": tx.now + seconds(history_policy.soft_delete_days * 86400),
        "scope": target.scope,
        "lease": None,
    }
