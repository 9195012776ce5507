"""Blobs, their snapshots and versions, the soft-deleted ones of each, and uncommitted blocks.

Table `blob` holds exactly the current blobs. Every other state of a name is in a table of its own, so that reads, writes and
plain listings do not read it. A state moves between tables with its content and is never copied (`services/blob/history.py`).
"""

from enum import StrEnum
from typing import ClassVar

import msgspec

from verditer.core.immutability import ImmutabilityPolicy
from verditer.core.lease import Lease
from verditer.core.records.container import Container
from verditer.core.records.content import IntervalMap
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.core.records.lifecycle import Expiry, ExtentId, ExtentNames, Lifecycle, Owned, Reset
from verditer.core.records.record import Record
from verditer.core.tiers import Rehydration


class BlobType(StrEnum):
    BLOCK = "BlockBlob"
    PAGE = "PageBlob"
    APPEND = "AppendBlob"


class IncrementalCopy(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Of a blob that Incremental Copy Blob made: what was copied last."""

    source: str  # the URL of the source blob, without its snapshot
    source_snapshot: int
    snapshot: int  # of this blob


class RareProperties(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What few blobs have. Together in one field, so that records of other blobs are as short as before."""

    last_read: int | None = None  # the last read that counts for the last access time
    policy: ImmutabilityPolicy | None = None
    legal_hold: bool = False
    expires: int | None = None  # from then on no request finds the blob
    key_sha256: bytes | None = None  # the content is encrypted under a key of the client
    encryption_scope: str | None = None
    incremental: IncrementalCopy | None = None
    sealed_metadata: bytes | None = None  # the metadata, encrypted under the key of the client


NO_RARE_PROPERTIES = RareProperties()


class Blob(Record, tag=1, frozen=True, kw_only=True):
    """A current blob. Its ETag and its Last-Modified are the tick of its last write."""

    TABLE = "blob"
    KEY: ClassVar[tuple[str, ...]] = ("container_id", "name")
    LIFECYCLE = Lifecycle(parent=Container, extents=None, owns=(Owned.CONTENT, Owned.TAG_INDEX), expiry=None, reset=Reset.REMOVED)

    container_id: int
    name: str
    etag: int
    created: int
    blob_type: BlobType
    size: int
    content_id: int
    inline: bool  # the bytes are in `Inline`, not in `Layout`
    content_type: str = "application/octet-stream"
    content_encoding: str | None = None
    content_language: str | None = None
    content_disposition: str | None = None
    cache_control: str | None = None
    content_md5: bytes | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    tags: dict[str, str] | None = None
    tier: str | None = None
    tier_changed: int | None = None
    lease: Lease | None = None
    shared: bool = False  # another content names the same extents, so removing this one frees none
    intervals: IntervalMap | None = None  # append and page blobs: the bytes are in `Interval` rows
    sequence_number: int | None = None  # page blobs
    block_count: int | None = None  # append blobs
    sealed: bool = False
    version_id: int | None = None  # with versioning: the tick at which this state became current
    rehydration: Rehydration | None = None  # of an archived blob
    copy: CopyState | None = None  # the state of the last copy into this blob
    rare: RareProperties | None = None

    @property
    def policy(self) -> ImmutabilityPolicy | None:
        return self.rare.policy if self.rare is not None else None

    @property
    def legal_hold(self) -> bool:
        return self.rare is not None and self.rare.legal_hold

    def is_expired(self, now: int) -> bool:
        return self.rare is not None and self.rare.expires is not None and self.rare.expires <= now

    @property
    def copy_pending(self) -> bool:
        return self.copy is not None and self.copy.status is CopyStatus.PENDING


class Snapshot(Blob, tag=2, frozen=True, kw_only=True):
    """A snapshot of a blob. It has the fields of a blob and one more part of the key, and is never changed."""

    TABLE = "snapshot"
    ADDED = ("rare",)
    KEY = ("container_id", "name", "snapshot")
    LIFECYCLE = Lifecycle(parent=Container, extents=None, owns=(Owned.CONTENT,), expiry=None, reset=Reset.REMOVED)

    snapshot: int


class BlobVersion(Blob, tag=1, frozen=True, kw_only=True):
    """A previous version: the state that was current from the tick `version_id` on until another replaced it."""

    TABLE = "blob_version"
    KEY = ("container_id", "name", "version_id")
    LIFECYCLE = Lifecycle(parent=Container, extents=None, owns=(Owned.CONTENT,), expiry=None, reset=Reset.REMOVED)


class DeletedBlob(Blob, tag=2, frozen=True, kw_only=True):
    """The soft-deleted blob of a name. When a new blob of the same name exists, it counts as a soft-deleted snapshot, taken when
    it was deleted."""

    TABLE = "deleted_blob"
    ADDED = ("rare",)
    RANK = ("expires",)
    LIFECYCLE = Lifecycle(
        parent=Container, extents=None, owns=(Owned.CONTENT,), expiry=Expiry("expires", scope="scope"), reset=Reset.REMOVED
    )

    deleted: int  # a tick of its own
    expires: int  # set when it was deleted
    scope: tuple[str, ...]  # the lock under which states of this name change


class DeletedSnapshot(DeletedBlob, tag=2, frozen=True, kw_only=True):
    """A soft-deleted snapshot, or a state that an overwrite has soft-deleted."""

    TABLE = "deleted_snapshot"
    KEY = ("container_id", "name", "snapshot")
    LIFECYCLE = Lifecycle(
        parent=Container, extents=None, owns=(Owned.CONTENT,), expiry=Expiry("expires", scope="scope"), reset=Reset.REMOVED
    )

    snapshot: int


class DeletedVersion(DeletedBlob, tag=2, frozen=True, kw_only=True):
    """A soft-deleted previous version."""

    TABLE = "deleted_blob_version"
    KEY = ("container_id", "name", "version_id")
    LIFECYCLE = Lifecycle(
        parent=Container, extents=None, owns=(Owned.CONTENT,), expiry=Expiry("expires", scope="scope"), reset=Reset.REMOVED
    )


class BlobExpiry(Record, tag=1, frozen=True, kw_only=True):
    """A blob that expires. The collector removes the blob with this record, unless it was replaced or expires at another time."""

    TABLE = "blob_expiry"
    KEY = ("container_id", "name")
    RANK = ("expires",)
    LIFECYCLE = Lifecycle(
        parent=Container, extents=None, owns=(Owned.EXPIRED_BLOB,), expiry=Expiry("expires", scope="scope"), reset=Reset.REMOVED
    )

    container_id: int
    name: str
    expires: int
    scope: tuple[str, ...]  # the lock under which the blob changes


class StagedBlob(Record, tag=1, frozen=True, kw_only=True):
    """The uncommitted blocks of one blob, taken together. It exists from the first Put Block until Put Block List."""

    TABLE = "staged_blob"
    KEY = ("container_id", "name")
    LIFECYCLE = Lifecycle(parent=Container, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    container_id: int
    name: str
    count: int
    id_length: int  # every block id of a blob has the same length
    touched: int  # tick of the last Put Block; a week later the blocks are discarded


class Block(Record, tag=1, frozen=True, kw_only=True):
    """One uncommitted block. The bytes of a small one are in `Inline` under `content_id`."""

    TABLE = "block"
    KEY = ("container_id", "name", "block_id")
    LIFECYCLE = Lifecycle(
        parent=Container, extents=ExtentNames("extent"), owns=(Owned.BLOCK_BYTES,), expiry=None, reset=Reset.REMOVED
    )

    container_id: int
    name: str
    block_id: bytes
    size: int
    content_id: int
    extent: ExtentId | None  # None: inline
    key_sha256: bytes | None = None  # the bytes are encrypted under a key of the client
