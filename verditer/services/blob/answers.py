"""The results of blob and container operations. `rest` turns them into headers and bodies."""

from collections.abc import AsyncIterator
from typing import NamedTuple

import msgspec

from verditer.core.lease import LeaseAction
from verditer.core.records.blob import Blob, StagedBlob
from verditer.core.records.container import BlobSettings, Container
from verditer.core.records.copy import CopyStatus

CRC64_SINCE = "2019-02-02"
BOTH_SINCE = "2026-10-06"


class Encryption(msgspec.Struct, frozen=True, kw_only=True):
    """How what was written is encrypted, where a client or a container says so."""

    key_sha256: bytes | None = None
    scope: str | None = None


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """After a write: the new ETag (and so Last-Modified), and the checksums of what was received."""

    etag: int
    content_md5: bytes | None = None
    content_crc64: bytes | None = None
    snapshot: int | None = None
    sequence_number: int | None = None  # of a page blob
    append_offset: int | None = None  # where the appended block begins
    block_count: int | None = None  # of an append blob
    version_id: int | None = None  # with versioning
    encryption: Encryption | None = None

    def for_version(self, version: str, md5: bytes) -> "Written":
        """Before 2019-02-02 every answer has the MD5 of what was received, and none has a CRC64."""
        return self if version >= CRC64_SINCE else msgspec.structs.replace(self, content_md5=md5, content_crc64=None)

    def as_part(self, version: str, *, md5_sent: bool) -> "Written":
        """The checksums that all operations except Put Blob return: the MD5 if the request has one, otherwise the CRC64, and both
        from 2026-10-06 on (seen on Azure)."""
        has_md5 = md5_sent or version < CRC64_SINCE
        has_crc64 = not has_md5 or (version >= BOTH_SINCE and md5_sent)
        return msgspec.structs.replace(
            self,
            content_md5=self.content_md5 if has_md5 else None,
            content_crc64=self.content_crc64 if has_crc64 else None,
        )


class Copied(Written, frozen=True, kw_only=True):
    """After a copy: its id, and whether it is complete."""

    copy_id: str
    copy_status: CopyStatus


class BlobRead(msgspec.Struct, frozen=True, kw_only=True):
    """A blob or a range of it, from one committed state."""

    blob: Blob
    settings: BlobSettings
    now: int  # lease and tier states are those of this moment
    version: str
    start: int
    length: int
    ranged: bool
    body: bytes | AsyncIterator[bytes]
    range_md5: bytes | None = None
    range_crc64: bytes | None = None


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """After a delete: `permanent` when nothing is kept, neither soft-deleted nor as a version."""

    permanent: bool


class TierSet(msgspec.Struct, frozen=True, kw_only=True):
    rehydrating: bool  # the blob is being moved out of the archive tier


class BlobState(msgspec.Struct, frozen=True, kw_only=True):
    """A blob's properties without its bytes."""

    blob: Blob
    settings: BlobSettings
    now: int


class ContainerState(msgspec.Struct, frozen=True, kw_only=True):
    container: Container
    now: int


class LeaseAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a lease action. `lease_time` is the number of seconds until a broken lease ends."""

    etag: int
    action: LeaseAction
    lease_id: str | None
    lease_time: int | None


class BlockLists(msgspec.Struct, frozen=True, kw_only=True):
    """A list that was not requested is None. `blob` is None while nothing has been committed."""

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
    next_marker: str | None  # None: the answer is not paged


class Prefix(msgspec.Struct, frozen=True):
    """A "folder" of a hierarchical listing."""

    name: str


class VersionsOnly(msgspec.Struct, frozen=True):
    """A name that has versions and no blob. The listing shows the properties of its latest version."""

    latest: Blob

    @property
    def name(self) -> str:
        return self.latest.name


class ContainerPage(msgspec.Struct, frozen=True, kw_only=True):
    containers: list[Container]
    next_marker: str
    now: int


ListedItem = Blob | StagedBlob | VersionsOnly | Prefix


class BlobPage(msgspec.Struct, frozen=True, kw_only=True):
    items: list[ListedItem]
    next_marker: str
    now: int
    settings: BlobSettings
