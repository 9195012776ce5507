"""What this package knows of the records that own a content. Blobs, files and pending copies satisfy these types alike."""

from typing import Any, Protocol

import msgspec

from verditer.core.records.content import IntervalMap
from verditer.partition.engine import Scope, Transaction


class Content(Protocol):
    """The fields of a record that owns a content (invariant 5): a blob, a snapshot or version of it, a file, a pending copy."""

    @property
    def content_id(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def inline(self) -> bool:
        """The bytes are in one `Inline` row."""

    @property
    def shared(self) -> bool:
        """Another content names the same extents, so dropping this one frees none. Interval maps use `SharedContent` instead."""

    @property
    def intervals(self) -> IntervalMap | None:
        """The bytes are in `Interval` rows. None: the content is written once, as inline bytes or as a layout of slices."""


class ContentState(msgspec.Struct, frozen=True, kw_only=True):
    """The same fields apart from any record: what a record that gets this content has to store."""

    content_id: int
    size: int
    inline: bool = False
    shared: bool = False
    intervals: IntervalMap | None = None

    def fields(self) -> dict[str, Any]:
        return msgspec.structs.asdict(self)


def state_of(content: Content) -> ContentState:
    return ContentState(
        content_id=content.content_id,
        size=content.size,
        inline=content.inline,
        shared=content.shared,
        intervals=content.intervals,
    )


class ContentOwner(Protocol):
    """Where the record that owns a content is found. `scope` is the lock under which the record changes."""

    @property
    def scope(self) -> Scope: ...

    def load(self, tx: Transaction) -> Content | None:
        """None when the record is gone."""

    def save(self, tx: Transaction, intervals: IntervalMap) -> None:
        """Store a changed interval map in the record that `load` returned."""
