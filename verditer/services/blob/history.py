"""What becomes of a state of a blob that is replaced, changed or deleted. Everybody who does that comes through here.

A state is kept as a previous version, is kept as soft-deleted, or goes. It moves from one table to another with its content, so
exactly one record owns that (invariant 5) and no bytes move; only Set Blob Metadata and Snapshot Blob, after which the old state
and the new one have the same bytes, make a second content. The account's settings decide; the container has them (`Keeping`).

A state that is a version stays one, even when versioning has been turned off since: "all existing versions persist as previous
versions" (Blob versioning, "Enable or disable blob versioning").
"""

from collections.abc import Collection
from enum import Enum
from typing import TypeVar

import msgspec

from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType, BlobVersion, DeletedBlob, DeletedSnapshot, DeletedVersion, Snapshot
from verditer.core.records.container import Container, Keeping
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.blob.content import drop_content, extents_of, keep_content

B = TypeVar("B", bound=Blob)
replace = msgspec.structs.replace


class Event(Enum):
    REPLACED = "Put Blob, Put Block List or a copy over it"
    DELETED = "Delete Blob"
    HISTORY_DELETED = "a snapshot or a previous version was deleted"


class Fate(Enum):
    GONE = "gone"
    DELETED = "kept, soft-deleted, until its retention has passed"
    VERSION = "kept as a previous version"


# fmt: off
FATES: dict[Event, tuple[Fate, Fate, Fate, Fate]] = {
    #                      plain       soft delete   versioning    both
    Event.REPLACED:        (Fate.GONE, Fate.DELETED, Fate.VERSION, Fate.VERSION),
    Event.DELETED:         (Fate.GONE, Fate.DELETED, Fate.VERSION, Fate.VERSION),
    Event.HISTORY_DELETED: (Fate.GONE, Fate.DELETED, Fate.GONE,    Fate.DELETED),
}
# fmt: on


def retire_replaced(
    tx: Transaction, target: BlobName, keeping: Keeping, state: Blob, tick: int, reused: Collection[str] = ()
) -> bool:
    """The blob about to be put, at `tick`, takes the place of `state`. True: they share some of the extents in `reused`."""
    fate = _fate(keeping, Event.REPLACED, state)
    if fate is Fate.GONE:
        drop_content(tx, state, reused)
        return state.shared
    shared = state.shared or (bool(reused) and not extents_of(tx, state).isdisjoint(reused))
    state = replace(state, shared=shared)
    if fate is Fate.VERSION:
        _put_version(tx, state)
    else:
        tx.put(moved_to(DeletedSnapshot, state, snapshot=tick, **_retention(tx, target, keeping, tick)))
    return shared


def retire_deleted(tx: Transaction, target: BlobName, keeping: Keeping, state: Blob) -> bool:
    """The blob is deleted; the caller removes its record. True: nothing of it is kept."""
    fate = _fate(keeping, Event.DELETED, state)
    if fate is Fate.GONE:
        drop_content(tx, state)
    elif fate is Fate.VERSION:
        _put_version(tx, state)
    else:
        former = tx.get(DeletedBlob, state.container_id, state.name)
        if former is not None:
            tx.put(as_snapshot(former))
        tx.put(moved_to(DeletedBlob, state, **_retention(tx, target, keeping, tx.tick(state.etag))))
    return fate is Fate.GONE


def delete_snapshot_state(tx: Transaction, target: BlobName, keeping: Keeping, state: Snapshot) -> bool:
    """True: nothing of it is kept."""
    fate = _fate(keeping, Event.HISTORY_DELETED, state)
    if fate is Fate.GONE:
        drop_content(tx, state)
    else:
        tx.put(moved_to(DeletedSnapshot, state, snapshot=state.snapshot, **_retention(tx, target, keeping, tx.tick())))
    tx.delete(Snapshot, state.container_id, state.name, state.snapshot)
    return fate is Fate.GONE


def delete_version_state(tx: Transaction, target: BlobName, keeping: Keeping, state: BlobVersion) -> bool:
    """True: nothing of it is kept."""
    fate = _fate(keeping, Event.HISTORY_DELETED, state)
    if fate is Fate.GONE:
        drop_content(tx, state)
    else:
        tx.put(moved_to(DeletedVersion, state, **_retention(tx, target, keeping, tx.tick())))
    assert state.version_id is not None
    tx.delete(BlobVersion, state.container_id, state.name, state.version_id)
    return fate is Fate.GONE


def keep_version(tx: Transaction, keeping: Keeping, blob: Blob, tick: int) -> Blob:
    """Before a change in place that makes a new version, current since `tick`: the blob as it goes on. Without versioning it
    is the blob as it was."""
    if not _is_versioned(keeping, blob):
        return blob
    kept, content = keep_content(tx, blob, tick)
    tx.put(moved_to(BlobVersion, blob, version_id=blob.version_id or blob.etag, lease=None, **content))
    return replace(kept, version_id=new_version(keeping, tick))


def new_version(keeping: Keeping, tick: int) -> int | None:
    """The version id of a state that becomes current at `tick`."""
    return tick if keeping.versioning else None


def check_replaceable(
    tx: Transaction, container: Container, target: BlobName, previous: Blob | None, blob_type: BlobType
) -> None:
    """Put Blob may change the type of a blob, unless there are snapshots or versions: all states of a name are of one type."""
    if previous is None:
        if not container.keeping.versioning:
            return
        latest = next(tx.scan(BlobVersion, span_of(container.id, target.blob), limit=1, reverse=True), None)
        if latest is not None and latest.blob_type is not blob_type:
            raise StorageError(Code.InvalidBlobType)
    elif previous.blob_type is not blob_type:
        span = span_of(container.id, target.blob)
        kept = any(next(tx.scan(kind, span, limit=1), None) is not None for kind in (Snapshot, BlobVersion))
        if kept or _is_versioned(container.keeping, previous):
            raise StorageError(Code.InvalidBlobType)


def moved_to(kind: type[B], state: Blob, **fields: object) -> B:
    """The same state as a record of another table."""
    same = {name: getattr(state, name) for name in kind.__struct_fields__ if name in state.__struct_fields__}
    return kind(**same | fields)


def as_snapshot(state: DeletedBlob) -> DeletedSnapshot:
    """What a soft-deleted blob counts as once there is a new one of its name."""
    return moved_to(DeletedSnapshot, state, snapshot=state.deleted)


def _put_version(tx: Transaction, state: Blob) -> None:
    """A state from before versioning was turned on gets the id it would have had."""
    tx.put(moved_to(BlobVersion, state, version_id=state.version_id or state.etag, lease=None))


def _fate(keeping: Keeping, event: Event, state: Blob) -> Fate:
    soft_delete = keeping.soft_delete_days > 0
    return FATES[event][2 * _is_versioned(keeping, state) + soft_delete]


def _is_versioned(keeping: Keeping, state: Blob) -> bool:
    return keeping.versioning or state.version_id is not None


def _retention(tx: Transaction, target: BlobName, keeping: Keeping, tick: int) -> dict[str, object]:
    return {"deleted": tick, "expires": tx.now + seconds(keeping.soft_delete_days * 86400), "scope": target.scope, "lease": None}
