"""Where the bytes of a blob are: beside its record when small, otherwise slices of extents.

Content has an id of its own, so that metadata, leases and listings never move bytes. One blob record owns one content
(invariant 5); a snapshot receives a content of its own that names the same extents.
"""

import msgspec

from verditer.core.records.record import Record


class Slice(msgspec.Struct, frozen=True, array_like=True):
    """A run of bytes inside an extent."""

    extent: str
    offset: int
    length: int


class Inline(Record, tag=1, frozen=True, kw_only=True):
    """The bytes of a small blob or block, in the same store as its record: one transaction writes both."""

    TABLE = "inline"
    KEY = ("content_id",)

    content_id: int
    data: bytes


class Layout(Record, tag=1, frozen=True, kw_only=True):
    """A run of slices of one content, from byte `start` on. Long layouts are several rows, so a range read fetches one."""

    TABLE = "layout"
    KEY = ("content_id", "start")

    content_id: int
    start: int
    slices: tuple[Slice, ...]


class BlockRun(Record, tag=1, frozen=True, kw_only=True):
    """A run of the committed blocks of one content, from block number `first` on: (block id, size) in blob order."""

    TABLE = "block_run"
    KEY = ("content_id", "first")

    content_id: int
    first: int
    blocks: tuple[tuple[bytes, int], ...]


class Garbage(Record, tag=1, frozen=True, kw_only=True):
    """An extent that no record names since `since`. The collector removes it once no read that began earlier is running."""

    TABLE = "garbage"
    KEY = ("since", "extent")

    since: int
    extent: str
