"""What blob and container operations give back. `rest` turns these into headers and bodies."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from verditer.core.records.blob import Blob, StagedBlob
from verditer.core.records.container import Container
from verditer.core.records.copy import CopyStatus


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """After a write: the new ETag (and so Last-Modified), and the checksums of what was received."""

    etag: int
    content_md5: bytes | None = None
    content_crc64: bytes | None = None
    snapshot: int | None = None
    sequence_number: int | None = None  # of a page blob
    append_offset: int | None = None  # where an appended block went
    block_count: int | None = None  # of an append blob
    version_id: int | None = None  # with versioning


class Copied(Written, frozen=True, kw_only=True):
    """After a copy: under which id it goes, and whether it is done."""

    copy_id: str
    copy_status: CopyStatus


class BlobRead(msgspec.Struct, frozen=True, kw_only=True):
    """A blob, whole or a range of it, all of one committed state."""

    blob: Blob
    now: int  # lease and tier states are told for this moment
    version: str
    start: int
    length: int
    ranged: bool
    body: bytes | AsyncIterator[bytes]
    range_md5: bytes | None = None
    range_crc64: bytes | None = None


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """After a delete: whether nothing is kept, neither as soft-deleted nor as a version."""

    permanent: bool


class TierSet(msgspec.Struct, frozen=True, kw_only=True):
    status: int  # 202 while the blob is being rehydrated


class BlobState(msgspec.Struct, frozen=True, kw_only=True):
    """A blob's properties without its bytes."""

    blob: Blob
    now: int


class ContainerState(msgspec.Struct, frozen=True, kw_only=True):
    container: Container
    now: int


class LeaseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """`status` differs by action: acquire creates, break is accepted, the rest is plain success."""

    etag: int
    status: int
    lease_id: str | None
    lease_time: int | None


class BlockLists(msgspec.Struct, frozen=True, kw_only=True):
    """Either list is None when it was not asked for. `blob` is None while nothing has been committed."""

    blob: Blob | None
    committed: list[tuple[bytes, int]] | None
    uncommitted: list[tuple[bytes, int]] | None


class PageRange(NamedTuple):
    """Pages with bytes, or cleared ones; `end` is excluded."""

    start: int
    end: int
    cleared: bool


class PageRanges(msgspec.Struct, frozen=True, kw_only=True):
    blob: Blob
    ranges: list[PageRange]
    next_marker: str


class Prefix(msgspec.Struct, frozen=True):
    """A "folder" of a hierarchical listing."""

    name: str


class VersionsOnly(msgspec.Struct, frozen=True):
    """A name that has versions and no blob. It is listed with what its latest version says."""

    latest: Blob

    @property
    def name(self) -> str:
        return self.latest.name


class ContainerPage(msgspec.Struct, frozen=True, kw_only=True):
    containers: list[Container]
    next_marker: str
    now: int


class BlobPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[Blob | StagedBlob | VersionsOnly | Prefix]
    next_marker: str
    now: int
