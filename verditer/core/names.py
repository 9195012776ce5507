"""What a valid name is: accounts, containers, blobs, metadata. Names are values of their own, so the checker catches a swap."""

import re

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_BLOB_NAME, MAX_BLOB_SEGMENTS

ROOT_CONTAINER = "$root"
_SYSTEM_CONTAINERS = frozenset({ROOT_CONTAINER, "$web", "$logs", "$blobchangefeed"})
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")
_METADATA_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class AccountName(msgspec.Struct, frozen=True):
    """A service of an account: the target of service-level operations."""

    account: str
    service: str

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, self.service)


class ContainerName(msgspec.Struct, frozen=True):
    account: str
    container: str

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "blob", self.container)


class BlobName(msgspec.Struct, frozen=True):
    account: str
    container: str
    blob: str

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "blob", self.container, self.blob)


def check_container_name(name: str) -> None:
    if name in _SYSTEM_CONTAINERS:
        return
    if not 3 <= len(name) <= 63:
        raise StorageError(
            Code.OutOfRangeInput, message="The specified resource name length is not within the permissible limits."
        )
    if _CONTAINER.fullmatch(name) is None:
        raise StorageError(Code.InvalidResourceName)


def check_blob_name(name: str) -> None:
    if not 1 <= len(name) <= MAX_BLOB_NAME:
        raise StorageError(
            Code.OutOfRangeInput, message="The specified resource name length is not within the permissible limits."
        )
    if name.count("/") >= MAX_BLOB_SEGMENTS:
        raise StorageError(Code.InvalidResourceName)


def check_metadata(metadata: dict[str, str], max_bytes: int) -> None:
    """Names are C# identifiers, unique whatever their case; values are ASCII; the total is limited."""
    for name, value in metadata.items():
        if not name:
            raise StorageError(Code.EmptyMetadataKey)
        if _METADATA_NAME.fullmatch(name) is None or not value.isascii():
            raise StorageError(Code.InvalidMetadata)
    if sum(len(name) + len(value) for name, value in metadata.items()) > max_bytes:
        raise StorageError(Code.MetadataTooLarge)
