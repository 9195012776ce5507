"""The state an operation meets: its container, and the blob or snapshot it names. The 404s of the Blob service live here."""

from verditer.core.errors import Code, StorageError
from verditer.core.names import BlobName, ContainerName
from verditer.core.records.blob import Blob, BlobType, Snapshot
from verditer.core.records.container import Container
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction


def require_container(tx: Transaction, target: ContainerName | BlobName) -> Container:
    container = tx.get(Container, target.account, target.container)
    if container is None:
        raise StorageError(Code.ContainerNotFound)
    return container


def current_blob(tx: Transaction, target: BlobName) -> tuple[Container, Blob | None]:
    """For operations that may create the blob."""
    container = require_container(tx, target)
    return container, tx.get(Blob, container.id, target.blob)


def require_blob(tx: Transaction, target: BlobName, snapshot: int | None = None) -> Blob:
    """The blob itself, or one of its snapshots."""
    container = require_container(tx, target)
    blob: Blob | None
    if snapshot is None:
        blob = tx.get(Blob, container.id, target.blob)
    else:
        blob = tx.get(Snapshot, container.id, target.blob, snapshot)
    if blob is None:
        raise StorageError(Code.BlobNotFound)
    return blob


def require_block_blob(blob: Blob | None) -> None:
    if blob is not None and blob.blob_type is not BlobType.BLOCK:
        raise StorageError(Code.InvalidBlobType)


def check_replaceable(tx: Transaction, previous: Blob | None, blob_type: BlobType) -> None:
    """Put Blob may change the type of a blob, unless it has snapshots: all states of a name are of one type."""
    if previous is None or previous.blob_type is blob_type:
        return
    if next(tx.scan(Snapshot, span_of(previous.container_id, previous.name), limit=1), None) is not None:
        raise StorageError(Code.InvalidBlobType)
