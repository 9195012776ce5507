"""Blobs, their snapshots and versions, what of them is soft-deleted, and the blocks that wait to become a blob.

Table `blob` holds exactly what is visible now; every other state of a name is in a table of its own, so that reads, writes and
plain listings never meet it. A state moves between tables with its content and is never copied (`services/blob/history.py`).
"""

from enum import StrEnum
from typing import ClassVar

import msgspec

from verditer.core.lease import Lease
from verditer.core.records.content import Pieces
from verditer.core.records.copy import CopyState, CopyStatus
from verditer.core.records.record import Record
from verditer.core.tiers import Rehydration


class BlobType(StrEnum):
    BLOCK = "BlockBlob"
    PAGE = "PageBlob"
    APPEND = "AppendBlob"


class Blob(Record, tag=1, frozen=True, kw_only=True):
    """A blob as clients see it now. Its ETag is the tick of its last write, and so is its Last-Modified."""

    TABLE = "blob"
    KEY: ClassVar[tuple[str, ...]] = ("container_id", "name")

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
    shared: bool = False  # another content names the same extents, so dropping this one frees none
    pieces: Pieces | None = None  # append and page blobs: the bytes are in `Piece` rows
    sequence_number: int | None = None  # page blobs
    block_count: int | None = None  # append blobs
    sealed: bool = False
    version_id: int | None = None  # with versioning: the tick at which this state became current
    rehydration: Rehydration | None = None  # of an archived blob
    copy: CopyState | None = None  # how a copy into this blob went, or goes

    @property
    def copy_pending(self) -> bool:
        return self.copy is not None and self.copy.status is CopyStatus.PENDING


class Snapshot(Blob, tag=1, frozen=True, kw_only=True):
    """A blob as it was: same shape, one more part of the key, never written again."""

    TABLE = "snapshot"
    KEY = ("container_id", "name", "snapshot")

    snapshot: int


class BlobVersion(Blob, tag=1, frozen=True, kw_only=True):
    """A previous version: what was current from `version_id` on, until something replaced it."""

    TABLE = "blob_version"
    KEY = ("container_id", "name", "version_id")


class DeletedBlob(Blob, tag=1, frozen=True, kw_only=True):
    """A soft-deleted blob: the one that was current last. Beside a new blob of the same name it counts as a soft-deleted
    snapshot, taken when it was deleted."""

    TABLE = "deleted_blob"
    RANK = ("expires",)

    deleted: int  # a tick of its own
    expires: int  # decided when it was deleted
    scope: tuple[str, ...]  # the lock under which states of this name change


class DeletedSnapshot(DeletedBlob, tag=1, frozen=True, kw_only=True):
    """A soft-deleted snapshot, or a state that was overwritten."""

    TABLE = "deleted_snapshot"
    KEY = ("container_id", "name", "snapshot")

    snapshot: int


class DeletedVersion(DeletedBlob, tag=1, frozen=True, kw_only=True):
    TABLE = "deleted_blob_version"
    KEY = ("container_id", "name", "version_id")


class StagedBlob(Record, tag=1, frozen=True, kw_only=True):
    """The uncommitted side of a block blob. It exists while blocks wait for Put Block List."""

    TABLE = "staged_blob"
    KEY = ("container_id", "name")

    container_id: int
    name: str
    count: int
    id_length: int  # every block id of a blob has the same length
    touched: int  # blocks are discarded a week after the last one came


class Block(Record, tag=1, frozen=True, kw_only=True):
    """One uncommitted block. Small ones keep their bytes in `Inline` under `content_id`."""

    TABLE = "block"
    KEY = ("container_id", "name", "block_id")

    container_id: int
    name: str
    block_id: bytes
    size: int
    content_id: int
    extent: str | None  # None: inline
