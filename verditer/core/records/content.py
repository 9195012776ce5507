"""Where the bytes of a blob are: beside its record when small, otherwise slices of extents, or pieces that change in place.

Content has an id of its own, so that metadata, leases and listings never move bytes. One blob record owns one content
(invariant 5); a snapshot receives a content of its own that names the same extents. The content of append and page blobs is
made of `Piece` rows instead, which a blob and its snapshots share: each sees it through a `View` of its own.
`services/blob/pieces.py` keeps these rows and explains them.
"""

from typing import ClassVar

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


class SharedGarbage(Garbage, tag=1, frozen=True, kw_only=True):
    """The same of an extent that another content may name as well: only the sweep, which reads all names, can tell."""

    TABLE = "shared_garbage"


class Pieces(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What the record of an append or page blob knows of its pieces. `small_bytes` counts those that live in rows."""

    epoch: int  # when the last snapshot was taken: pieces written from then on carry this number
    view: int  # the record sees the pieces that were there at this moment
    small_bytes: int = 0


class Piece(Record, tag=1, frozen=True, kw_only=True):
    """A run of bytes in the current state of a content: in `data` when small, else `length` bytes of an extent."""

    TABLE = "piece"
    KEY: ClassVar[tuple[str, ...]] = ("content_id", "start")

    content_id: int
    start: int
    length: int
    epoch: int
    data: bytes = b""
    extent: str | None = None
    offset: int = 0

    @property
    def end(self) -> int:
        return self.start + self.length


class FormerPiece(Piece, tag=1, frozen=True, kw_only=True):
    """A piece that was written over or cleared in epoch `died`, and that a snapshot still sees."""

    TABLE = "former_piece"
    KEY = ("content_id", "start", "died")

    died: int


class SmallPiece(Record, tag=1, frozen=True, kw_only=True):
    """Says that the piece at `start` has its bytes in its row, so that these are found without walking the others."""

    TABLE = "small_piece"
    KEY = ("content_id", "start")

    content_id: int
    start: int
    length: int


class View(Record, tag=1, frozen=True, kw_only=True):
    """Somebody sees this content as it was at `view`. `scope` is the lock under which its pieces change."""

    TABLE = "content_view"
    KEY = ("content_id", "view")

    content_id: int
    view: int
    scope: tuple[str, ...]


class ClosedView(View, tag=1, frozen=True, kw_only=True):
    """A view that is gone. The collector removes the pieces that nobody else sees."""

    TABLE = "closed_content_view"


class ExtentUse(Record, tag=1, frozen=True, kw_only=True):
    """How many pieces of a content are in one extent. With the last one the extent becomes garbage."""

    TABLE = "extent_use"
    KEY = ("content_id", "extent")

    content_id: int
    extent: str
    count: int


class SharedContent(Record, tag=1, frozen=True, kw_only=True):
    """A copy names extents that pieces of this content are in, so that the last piece to go frees none."""

    TABLE = "shared_content"
    KEY = ("content_id",)

    content_id: int
