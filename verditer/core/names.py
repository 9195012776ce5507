"""Names of resources, and which names are valid. Each kind of name is a type, so the type checker finds swapped arguments."""

import re

import msgspec

from verditer.core.caches import bounded_cache
from verditer.core.edm import utf16_units
from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_BLOB_NAME, MAX_BLOB_SEGMENTS, MAX_KEY_UNITS

ROOT_CONTAINER = "$root"
LOGS_CONTAINER = "$logs"
SYSTEM_CONTAINERS = frozenset({LOGS_CONTAINER, "$blobchangefeed"})  # made by the service and listed on request
_RESERVED_NAMES = SYSTEM_CONTAINERS | {ROOT_CONTAINER, "$web"}
_CONTAINER = re.compile(r"[a-z0-9](?:-?[a-z0-9])*")
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_USUAL_KEYS = re.compile(r"[A-Za-z0-9 _.,:;|@~+-]{0,512}")
_KEY_REFUSED = re.compile(r"[/\\#?\x00-\x1f\x7f-\x9f\ud800-\udfff]")
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


class QueueName(msgspec.Struct, frozen=True):
    account: str
    queue: str

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "queue", self.queue)


class MessageName(msgspec.Struct, frozen=True):
    account: str
    queue: str
    message: str  # the message id as the path spells it

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "queue", self.queue, self.message)


class TableName(msgspec.Struct, frozen=True):
    account: str
    table: str  # as the request spells it; the case of a table name does not matter

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "table", self.table.lower())


class EntityName(msgspec.Struct, frozen=True):
    """An entity group transaction writes the scope of the partition, one level above. So it excludes writes to the entities of
    that partition, which do not exclude each other."""

    account: str
    table: str
    partition_key: str
    row_key: str

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "table", self.table.lower(), self.partition_key, self.row_key)


class ShareName(msgspec.Struct, frozen=True):
    account: str
    share: str

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "file", self.share)


class FilePath(msgspec.Struct, frozen=True):
    """A file or directory of a share; without names, the root directory. `folded` are the names as look-ups compare them.

    The scope is the path, so a write to a file excludes renaming or deleting any directory above it, and two writes to different
    files run side by side.
    """

    account: str
    share: str
    names: tuple[str, ...]
    folded: tuple[str, ...]

    @property
    def scope(self) -> tuple[str, ...]:
        return (self.account, "file", self.share, *self.folded)

    @property
    def share_name(self) -> ShareName:
        return ShareName(self.account, self.share)


def check_container_name(name: str) -> None:
    if name not in _RESERVED_NAMES:
        check_queue_name(name)


@bounded_cache(1024, 63)  # a name that is refused is not cached
def check_queue_name(name: str) -> None:
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


def check_table_name(name: str) -> None:
    if not 3 <= len(name) <= 63:
        raise StorageError(
            Code.OutOfRangeInput, message="The specified resource name length is not within the permissible limits."
        )
    if _TABLE.fullmatch(name) is None or name.lower() == "tables":
        raise StorageError(Code.InvalidResourceName)


def check_keys(partition_key: str, row_key: str) -> None:
    """Up to 1 KiB of UTF-16 each, without the characters that Azure refuses: slashes, `#`, `?` and control characters."""
    if _USUAL_KEYS.fullmatch(partition_key + row_key) is None:
        _check_key("PartitionKey", partition_key)
        _check_key("RowKey", row_key)


def _check_key(property_name: str, key: str) -> None:
    if _KEY_REFUSED.search(key) is not None:
        message = f"The '{property_name}' parameter of value '{key}' is out of range."
        raise StorageError(Code.OutOfRangeInput, message=message)
    if utf16_units(key) > MAX_KEY_UNITS:
        raise StorageError(Code.KeyValueTooLarge)


def check_metadata(metadata: dict[str, str], max_bytes: int) -> None:
    """Names are C# identifiers, compared without case; values are ASCII; the total size is limited."""
    for name, value in metadata.items():
        if not name:
            raise StorageError(Code.EmptyMetadataKey)
        if _METADATA_NAME.fullmatch(name) is None or not value.isascii():
            raise StorageError(Code.InvalidMetadata)
    if sum(len(name) + len(value) for name, value in metadata.items()) > max_bytes:
        raise StorageError(Code.MetadataTooLarge)
