"""Copies: what a blob says about the copy that made it, and a copy that is still under way."""

from enum import StrEnum

import msgspec

from verditer.core.records.content import Pieces
from verditer.core.records.record import Record


class CopyStatus(StrEnum):
    PENDING = "pending"
    SUCCESS = "success"
    ABORTED = "aborted"
    FAILED = "failed"


class CopyState(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Part of the blob's record from Copy Blob on, until a write replaces what was copied."""

    id: str
    source: str  # the URL, without the signature that opened it
    status: CopyStatus
    copied: int
    total: int
    completed: int | None = None  # ticks; None while pending
    description: str | None = None  # why it failed


class PendingCopy(Record, tag=1, frozen=True, kw_only=True):
    """Bytes are still being fetched into `content_id`, which becomes the blob's content when all have come.

    A process that fetches holds the claim and renews it; when it falls silent, another takes over from `copied` on.
    """

    TABLE = "pending_copy"
    KEY = ("container_id", "name")

    container_id: int
    name: str
    account: str
    container: str
    copy_id: str
    url: str  # with its signature
    headers: dict[str, str]  # version and authorization
    etag: str | None  # of the source when the copy began: another one ends it
    started: int
    total: int
    content_id: int
    copied: int = 0
    pieces: Pieces | None = None  # when the content is made of pieces
    inline: bool = False
    claimed_by: str = ""
    claimed_until: int = 0
