"""The state an operation meets: its container, and the blob, snapshot or version it names. The 404s live here."""

from verditer.core.errors import Code, StorageError
from verditer.core.names import BlobName, ContainerName
from verditer.core.records.blob import Blob, BlobType, BlobVersion, Snapshot, StagedBlob
from verditer.core.records.container import Container
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


def current_and_staged(tx: Transaction, target: BlobName) -> tuple[Container, Blob | None, StagedBlob | None]:
    """For operations that stage blocks or do away with them."""
    container = require_container(tx, target)
    return container, *tx.get_both(Blob, StagedBlob, container.id, target.blob)


def require_current(tx: Transaction, target: BlobName) -> tuple[Container, Blob]:
    """For operations that change the blob itself."""
    container, blob = current_blob(tx, target)
    if blob is None:
        raise StorageError(Code.BlobNotFound)
    return container, blob


def require_blob(tx: Transaction, target: BlobName, snapshot: int | None = None, version_id: int | None = None) -> Blob:
    """The blob itself, one of its snapshots, or one of its versions, of which the current one is the blob itself."""
    container = require_container(tx, target)
    blob: Blob | None
    if snapshot is not None:
        blob = tx.get(Snapshot, container.id, target.blob, snapshot)
    else:
        blob = tx.get(Blob, container.id, target.blob)
        if version_id is not None and (blob is None or blob.version_id != version_id):
            blob = tx.get(BlobVersion, container.id, target.blob, version_id)
    if blob is None:
        raise StorageError(Code.BlobNotFound)
    return blob


def require_block_blob(blob: Blob | None) -> None:
    if blob is not None and blob.blob_type is not BlobType.BLOCK:
        raise StorageError(Code.InvalidBlobType)
