"""The results of file operations. `rest` turns them into headers and bodies, `smb` into its own structures."""

from collections.abc import AsyncIterator

import msgspec

from verditer.core.records.copy import CopyStatus
from verditer.core.records.file import FileEntry, Share
from verditer.core.records.file_open import FileOpen


class ShareState(msgspec.Struct, frozen=True, kw_only=True):
    share: Share
    now: int


class ShareStatistics(msgspec.Struct, frozen=True, kw_only=True):
    share: Share
    usage_bytes: int


class ShareDeleted(msgspec.Struct, frozen=True, kw_only=True):
    usage_bytes: int | None  # that the share had; None for a snapshot


class SharePage(msgspec.Struct, frozen=True, kw_only=True):
    shares: list[Share]
    next_marker: str
    now: int


class SnapshotTaken(msgspec.Struct, frozen=True, kw_only=True):
    etag: int
    snapshot: int


class EntryState(msgspec.Struct, frozen=True, kw_only=True):
    """A file or directory after an operation, or as it was read. `parent_id` is the node of its directory."""

    entry: FileEntry
    now: int

    @property
    def parent_id(self) -> int:
        return self.entry.parent_id


class FileRead(msgspec.Struct, frozen=True, kw_only=True):
    """A file, whole or a range of it, all of one committed state."""

    entry: FileEntry
    now: int
    start: int
    length: int
    ranged: bool
    body: bytes | AsyncIterator[bytes]
    range_md5: bytes | None = None


class RangeWritten(msgspec.Struct, frozen=True, kw_only=True):
    entry: FileEntry
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class FileRange(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Bytes from `start` to `end`, which is excluded. `cleared`: they were there in the earlier snapshot and are gone."""

    start: int
    end: int
    cleared: bool = False


class FileRanges(msgspec.Struct, frozen=True, kw_only=True):
    entry: FileEntry
    ranges: list[FileRange]
    next_marker: str


class EntryPage(msgspec.Struct, frozen=True, kw_only=True):
    directory: FileEntry
    entries: list[FileEntry]
    next_marker: str


class HandlePage(msgspec.Struct, frozen=True, kw_only=True):
    handles: list[FileOpen]
    next_marker: str


class HandlesClosed(msgspec.Struct, frozen=True, kw_only=True):
    closed: int
    failed: int
    next_marker: str


class FileCopied(msgspec.Struct, frozen=True, kw_only=True):
    etag: int
    copy_id: str
    copy_status: CopyStatus


class Permission(msgspec.Struct, frozen=True, kw_only=True):
    key_text: str
    descriptor: bytes
