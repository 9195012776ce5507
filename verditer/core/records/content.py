"""The content of blobs: inline bytes when small, otherwise slices of extents, or intervals that change in place.

A content has an id of its own, so that metadata, leases and listings never move bytes. One blob record owns one content
(invariant 5); a snapshot receives a content of its own that names the same extents. The content of append and page blobs is
made of `Interval` rows instead, which a blob and its snapshots share. Each of them sees the rows through its own `ContentView`.
`services/content/intervals.py` keeps these rows and explains them.
"""

from typing import ClassVar

import msgspec

from verditer.core.records.lifecycle import ExtentId, ExtentNames, Lifecycle, Reset, Root
from verditer.core.records.record import Record


class Slice(msgspec.Struct, frozen=True, array_like=True):
    """A run of bytes inside an extent."""

    extent: ExtentId
    offset: int
    length: int


class Inline(Record, tag=1, frozen=True, kw_only=True):
    """The bytes of a small blob or block, in the same store as its record: one transaction writes both."""

    TABLE = "inline"
    KEY = ("content_id",)
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
    data: bytes


class Layout(Record, tag=1, frozen=True, kw_only=True):
    """A run of slices of one content, from byte `start` on. Long layouts are several rows, so a range read fetches one."""

    TABLE = "layout"
    KEY = ("content_id", "start")
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=ExtentNames("slices.extent"), owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
    start: int
    slices: tuple[Slice, ...]


class BlockRun(Record, tag=1, frozen=True, kw_only=True):
    """A run of the committed blocks of one content, from block number `first` on: (block id, size) in blob order."""

    TABLE = "block_run"
    KEY = ("content_id", "first")
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
    first: int
    blocks: tuple[tuple[bytes, int], ...]


class Garbage(Record, tag=1, frozen=True, kw_only=True):
    """An extent that no record names since the tick `since`. The collector removes it when no earlier read is running."""

    TABLE = "garbage"
    KEY = ("since", "extent")
    LIFECYCLE = Lifecycle(
        parent=Root.STORE, extents=ExtentNames("extent", released="since"), owns=(), expiry=None, reset=Reset.KEPT
    )

    since: int
    extent: ExtentId


class SharedGarbage(Garbage, tag=1, frozen=True, kw_only=True):
    """An extent that a content no longer names, and that another content may name. The sweep, which reads all names, decides."""

    TABLE = "shared_garbage"
    LIFECYCLE = Lifecycle(
        parent=Root.STORE, extents=ExtentNames("extent", released="since"), owns=(), expiry=None, reset=Reset.KEPT
    )


class IntervalMap(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What the record that owns a content of intervals stores about them. `inline_bytes` counts the bytes kept in rows. No
    current interval ends behind `end`; in a row of an earlier release it is None, and unknown."""

    epoch: int  # when the last snapshot was taken: intervals written from then on carry this number
    view: int  # the record sees the intervals that existed at this moment
    inline_bytes: int = 0
    group: int | None = None  # views that this content shares with others: the id of a share, whose snapshots see all its files
    end: int | None = None


class ExtentReferences(Record, tag=1, frozen=True, kw_only=True):
    """How many intervals of a content are in one extent. When the last is removed, the extent becomes garbage."""

    TABLE = "extent_use"
    KEY = ("content_id", "extent")
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=ExtentNames("extent"), owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
    extent: ExtentId
    count: int


class Interval(Record, tag=1, frozen=True, kw_only=True):
    """A run of bytes in the current state of a content: in `data` when small, else `length` bytes of an extent.

    A row with neither is a mark: its range was cleared in its epoch and reads as zeros. Differences to a snapshot show it."""

    TABLE = "piece"
    KEY: ClassVar[tuple[str, ...]] = ("content_id", "start")
    LIFECYCLE = Lifecycle(
        parent=Root.CONTENT, extents=ExtentNames("extent", counted_in=ExtentReferences), owns=(), expiry=None, reset=Reset.REMOVED
    )

    content_id: int
    start: int
    length: int
    epoch: int
    data: bytes = b""
    extent: ExtentId | None = None
    offset: int = 0

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def is_mark(self) -> bool:
        return self.extent is None and not self.data


class FormerInterval(Interval, tag=1, frozen=True, kw_only=True):
    """An interval that was overwritten or cleared in epoch `replaced_in`, and that a snapshot still sees."""

    TABLE = "former_piece"
    KEY = ("content_id", "start", "replaced_in")
    LIFECYCLE = Lifecycle(
        parent=Root.CONTENT, extents=ExtentNames("extent", counted_in=ExtentReferences), owns=(), expiry=None, reset=Reset.REMOVED
    )

    replaced_in: int


class InlineInterval(Record, tag=1, frozen=True, kw_only=True):
    """Index entry: the interval at `start` keeps its bytes in its row. Compaction finds these without reading the others.
    Intervals that start in the first `UNINDEXED_BYTES` of a content have none."""

    TABLE = "small_piece"
    KEY = ("content_id", "start")
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
    start: int
    length: int


class ContentView(Record, tag=1, frozen=True, kw_only=True):
    """A record sees this content as it was at `view`. `scope` is the lock under which the intervals change. The live record of a
    content in a group has no view of its own: it is live until there is a `ContentEnd`."""

    TABLE = "content_view"
    KEY = ("content_id", "view")
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
    view: int
    scope: tuple[str, ...]
    group: int | None = None  # as in `IntervalMap`


class ClosedContentView(ContentView, tag=1, frozen=True, kw_only=True):
    """A view whose record was deleted. The collector removes the intervals that no other view sees."""

    TABLE = "closed_content_view"
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)


class ContentEnd(Record, tag=1, frozen=True, kw_only=True):
    """The content of a group has no live owner since this epoch: later views of the group do not see its intervals."""

    TABLE = "content_end"
    KEY = ("content_id",)
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
    epoch: int


class SharedContent(Record, tag=1, frozen=True, kw_only=True):
    """A copy names extents of this content as well, so removing the last interval must not free an extent."""

    TABLE = "shared_content"
    KEY = ("content_id",)
    LIFECYCLE = Lifecycle(parent=Root.CONTENT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    content_id: int
