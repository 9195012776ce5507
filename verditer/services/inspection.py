"""The state of an object that decides what concurrent clients may do: ETag, lease, history, handles, locks, messages in flight.

For people who watch the server (the explorer). Every answer is one committed state, and at most `MAX_ROWS` rows of each kind.
"""

from itertools import islice
from typing import TypeVar

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.names import split_path
from verditer.core.files.share_modes import FileAccess
from verditer.core.lease import Lease, LeaseState, state_of
from verditer.core.names import BlobName, ContainerName, FilePath, QueueName, ShareName, TableName
from verditer.core.records.blob import Blob, BlobVersion, DeletedBlob, DeletedSnapshot, DeletedVersion, Snapshot, StagedBlob
from verditer.core.records.file import ShareSnapshot
from verditer.core.records.file_open import FileLock, FileOpen
from verditer.core.records.queue import Message
from verditer.core.records.record import Span, key_of, span_of
from verditer.core.records.table import Entity
from verditer.partition.engine import Order, Transaction
from verditer.services.blob.current import require_container
from verditer.services.context import Context
from verditer.services.file.current import require_entry, require_share
from verditer.services.file.usage import usage_of
from verditer.services.queue.counting import message_count
from verditer.services.queue.current import require_queue
from verditer.services.table.tables import require_table

B = TypeVar("B", bound=Blob)
MAX_ROWS = 100


class LeaseView(msgspec.Struct, frozen=True, kw_only=True):
    """`ends` is when the state changes by itself; None: it does not."""

    state: str
    id: str | None = None
    duration_seconds: int | None = None  # -1: infinite
    ends: int | None = None


class PastState(msgspec.Struct, frozen=True, kw_only=True):
    """A state of a blob or share that is kept. `id` is the tick by which requests name it."""

    kind: str  # snapshot, version, deleted blob, deleted snapshot, deleted version
    id: int
    etag: int
    size: int | None = None
    expires: int | None = None


class LockView(msgspec.Struct, frozen=True, kw_only=True):
    start: int
    length: int
    exclusive: bool


class HandleView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    path: str
    client: str
    access: list[str]
    shares: list[str]  # what the handle lets others do
    opened: int
    delete_pending: bool
    locks: list[LockView]


class MessageView(msgspec.Struct, frozen=True, kw_only=True):
    """A message that consumers cannot get now. One with a dequeue count of 0 was put with a delay."""

    id: str
    dequeue_count: int
    inserted: int
    receipt_issued: int
    reappears: int
    expires: int


class Inspection(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What does not apply to an object is left out. All times are ticks."""

    kind: str
    now: int
    etag: int | None = None
    lease: LeaseView | None = None
    history: list[PastState] | None = None
    handles: list[HandleView] | None = None
    messages: list[MessageView] | None = None
    message_count: int | None = None
    uncommitted_blocks: int | None = None
    size_bytes: int | None = None


async def inspect(ctx: Context, service: str, account: str, path: str) -> Inspection:
    """`path` is a container, a container and a blob, a queue, a table, a table and both keys of an entity, a share, or a
    share and a file."""
    name, _, below = path.partition("/")

    def read(tx: Transaction) -> Inspection:
        return _READERS[service](tx, account, name, below)

    return await ctx.engine.read((account, service, name), read)


def file_path(account: str, share: str, path: str) -> FilePath:
    names = split_path(path, is_directory=True, allow_trailing_dot=True)
    return FilePath(account, share, tuple(each.name for each in names), tuple(each.folded for each in names))


def _container(tx: Transaction, target: ContainerName) -> Inspection:
    container = require_container(tx, target)
    return Inspection(kind="container", now=tx.now, etag=container.etag, lease=_lease(container.lease, tx.now))


def _blob(tx: Transaction, target: BlobName) -> Inspection:
    """Also of a name whose blob was deleted: its history may still be there."""
    container = require_container(tx, target)
    blob = tx.get(Blob, container.id, target.blob)
    staged = tx.get(StagedBlob, container.id, target.blob)
    return Inspection(
        kind="blob",
        now=tx.now,
        etag=blob.etag if blob is not None else None,
        lease=_lease(blob.lease, tx.now) if blob is not None else None,
        size_bytes=blob.size if blob is not None else None,
        history=_history(tx, span_of(container.id, target.blob)),
        uncommitted_blocks=staged.count if staged is not None else 0,
    )


def _history(tx: Transaction, span: Span) -> list[PastState]:
    found = [_past(state, "snapshot", state.snapshot) for state in _newest(tx, Snapshot, span)]
    found += [_past(state, "version", state.version_id or 0) for state in _newest(tx, BlobVersion, span)]
    found += [_past(state, "deleted blob", state.deleted) for state in _newest(tx, DeletedBlob, span)]
    found += [_past(state, "deleted snapshot", state.snapshot) for state in _newest(tx, DeletedSnapshot, span)]
    found += [_past(state, "deleted version", state.version_id or 0) for state in _newest(tx, DeletedVersion, span)]
    return sorted(found, key=lambda state: -state.id)[:MAX_ROWS]


def _newest(tx: Transaction, kind: type[B], span: Span) -> list[B]:
    return list(tx.scan(kind, span, limit=MAX_ROWS, order=Order.KEY_DESCENDING))


def _past(state: Blob, kind: str, id: int) -> PastState:
    expires = state.expires if isinstance(state, DeletedBlob) else None
    return PastState(kind=kind, id=id, etag=state.etag, size=state.size, expires=expires)


def _queue(tx: Transaction, target: QueueName) -> Inspection:
    queue = require_queue(tx, target)
    hidden = Span(key_of(queue.id, tx.now + 1), span_of(queue.id).high)
    messages = [
        MessageView(
            id=message.id,
            dequeue_count=message.dequeue_count,
            inserted=message.inserted,
            receipt_issued=message.receipt,
            reappears=message.visible,
            expires=message.expires,
        )
        for message in tx.scan(Message, hidden, limit=MAX_ROWS, order=Order.RANK)
        if message.expires > tx.now
    ]
    return Inspection(kind="queue", now=tx.now, messages=messages, message_count=message_count(tx, queue.id))


def _table(tx: Transaction, target: TableName, partition_key: str, row_key: str = "") -> Inspection:
    """Keys contain no slash."""
    table = require_table(tx, target)
    if not partition_key and not row_key:
        return Inspection(kind="table", now=tx.now)
    entity = tx.get(Entity, table.id, partition_key, row_key)
    if entity is None:
        raise StorageError(Code.ResourceNotFound)
    return Inspection(kind="entity", now=tx.now, etag=entity.etag)


def _share(tx: Transaction, target: ShareName) -> Inspection:
    share = require_share(tx, target)
    snapshots = tx.scan(ShareSnapshot, span_of(share.id), limit=MAX_ROWS, order=Order.KEY_DESCENDING)
    return Inspection(
        kind="share",
        now=tx.now,
        etag=share.etag,
        lease=_lease(share.lease, tx.now),
        history=[PastState(kind="snapshot", id=each.snapshot, etag=each.etag) for each in snapshots],
        handles=_handles(tx, span_of(share.id)),
        size_bytes=usage_of(tx, share.id),
    )


def _file(tx: Transaction, target: FilePath) -> Inspection:
    located, entry = require_entry(tx, target)
    span = span_of(located.share.id, entry.node_id)
    kind = "directory" if entry.is_directory else "file"
    lease = None if entry.is_directory else _lease(entry.lease, tx.now)
    size = None if entry.is_directory else entry.size
    return Inspection(kind=kind, now=tx.now, etag=entry.etag, lease=lease, handles=_handles(tx, span), size_bytes=size)


def _handles(tx: Transaction, span: Span) -> list[HandleView]:
    held: dict[int, list[LockView]] = {}
    for lock in tx.scan(FileLock, span, limit=10 * MAX_ROWS):
        held.setdefault(lock.handle_id, []).append(LockView(start=lock.start, length=lock.length, exclusive=lock.exclusive))
    return [
        HandleView(
            id=str(each.handle_id),
            path="/".join(each.path),
            client=each.client_name or each.client,
            access=_letters(each.access),
            shares=_letters(each.share_mode),
            opened=each.opened,
            delete_pending=each.delete_pending,
            locks=held.get(each.handle_id, []),
        )
        for each in islice(tx.scan(FileOpen, span), MAX_ROWS)
    ]


def _letters(access: int) -> list[str]:
    return [each.name.lower() for each in FileAccess if each.name and access & each]


def _lease(lease: Lease | None, now: int) -> LeaseView:
    state = state_of(lease, now)
    if lease is None:
        return LeaseView(state=state.value)
    ends = lease.breaks if state is LeaseState.BREAKING else lease.expires if state is LeaseState.LEASED else None
    return LeaseView(state=state.value, id=lease.id, duration_seconds=lease.seconds, ends=ends)


def _read_blob(tx: Transaction, account: str, name: str, below: str) -> Inspection:
    return _blob(tx, BlobName(account, name, below)) if below else _container(tx, ContainerName(account, name))


def _read_queue(tx: Transaction, account: str, name: str, below: str) -> Inspection:
    return _queue(tx, QueueName(account, name))


def _read_table(tx: Transaction, account: str, name: str, below: str) -> Inspection:
    return _table(tx, TableName(account, name), *below.split("/", 1))


def _read_file(tx: Transaction, account: str, name: str, below: str) -> Inspection:
    return _file(tx, file_path(account, name, below)) if below else _share(tx, ShareName(account, name))


_READERS = {"blob": _read_blob, "queue": _read_queue, "table": _read_table, "file": _read_file}
