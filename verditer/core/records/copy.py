"""Copies: the copy state of a blob or file, and copies from other servers that are still pending."""

from enum import StrEnum
from typing import ClassVar

import msgspec

from verditer.core.records.container import Container
from verditer.core.records.content import IntervalMap
from verditer.core.records.lifecycle import Lifecycle, Owned, Reset
from verditer.core.records.record import Record


class CopyStatus(StrEnum):
    PENDING = "pending"
    SUCCESS = "success"
    ABORTED = "aborted"
    FAILED = "failed"


class CopyFailure(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What went wrong with the source: the name of an `ErrorClass`, or the number that another server answered."""

    status: str | int
    code: str


class CopyState(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The state of the copy into a blob or file. Its record has it from Copy Blob on until a write replaces the copied bytes."""

    id: str
    source: str  # the URL, without its signature
    status: CopyStatus
    copied: int
    total: int
    completed: int | None = None  # ticks; None while pending
    description: str | None = None  # why it failed; complete in records without `failure`, which earlier versions wrote
    failure: CopyFailure | None = None


class PendingCopy(Record, tag=1, frozen=True, kw_only=True):
    """A copy whose bytes are still being fetched into `content_id`. That becomes the content of the blob when all have arrived.
    `PendingFileCopy` (in `file.py`) is the same for a file.

    The process that fetches holds a claim and renews it. When the claim runs out, another process goes on from byte `copied`.
    """

    TABLE = "pending_copy"
    KEY: ClassVar[tuple[str, ...]] = ("parent_id", "name")
    LIFECYCLE = Lifecycle(parent=Container, extents=None, owns=(Owned.CONTENT,), expiry=None, reset=Reset.REMOVED)

    parent_id: int  # of the container or share
    name: str
    account: str
    container: str  # the name of the container or share
    copy_id: str
    url: str  # with its signature
    access: dict[str, str]  # version and credentials, in a form that only the source reader understands
    etag: str | None  # of the source when the copy began; a source with another ETag ends the copy
    started: int
    total: int
    content_id: int
    copied: int = 0
    intervals: IntervalMap | None = None  # when the content is made of intervals
    inline: bool = False
    claimed_by: str = ""
    claimed_until: int = 0
    shared: ClassVar[bool] = False  # no other content names its extents

    @property
    def size(self) -> int:
        return self.copied
