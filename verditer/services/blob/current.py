"""Looks up the container and the blob, snapshot or version that a request names, and raises the errors when one is missing."""

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
    """For operations that may create the blob. One that puts a blob calls `drop_expired` (`expiry.py`) before."""
    container = require_container(tx, target)
    blob = tx.get(Blob, container.id, target.blob)
    if blob is not None and blob.rare is not None and blob.is_expired(tx.now):
        blob = None
    return container, blob


def current_and_staged(tx: Transaction, target: BlobName) -> tuple[Container, Blob | None, StagedBlob | None]:
    """For operations that stage blocks or discard them."""
    container, blob = current_blob(tx, target)
    return container, blob, tx.get(StagedBlob, container.id, target.blob)


def require_current(tx: Transaction, target: BlobName) -> tuple[Container, Blob]:
    """For operations that change the blob itself."""
    container, blob = current_blob(tx, target)
    if blob is None:
        raise StorageError(Code.BlobNotFound)
    return container, blob


def require_blob(tx: Transaction, target: BlobName, snapshot: int | None = None, version_id: int | None = None) -> Blob:
    """The blob, one of its snapshots, or one of its versions. The current version is the blob itself."""
    return require_state(tx, target, snapshot, version_id)[1]


def require_state(
    tx: Transaction, target: BlobName, snapshot: int | None = None, version_id: int | None = None
) -> tuple[Container, Blob]:
    """The same with its container."""
    container = require_container(tx, target)
    blob: Blob | None
    if snapshot is not None:
        blob = tx.get(Snapshot, container.id, target.blob, snapshot)
    else:
        blob = tx.get(Blob, container.id, target.blob)
        if version_id is not None and (blob is None or blob.version_id != version_id):
            blob = tx.get(BlobVersion, container.id, target.blob, version_id)
    if blob is None or (blob.rare is not None and blob.is_expired(tx.now)):
        raise StorageError(Code.BlobNotFound)
    return container, blob


def require_block_blob(blob: Blob | None) -> None:
    if blob is not None and blob.blob_type is not BlobType.BLOCK:
        raise StorageError(Code.InvalidBlobType)
