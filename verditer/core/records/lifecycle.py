"""What a record class declares about the life of its records: what they belong to, what they name, and when they are removed.

The collector, the removal of children, account reset and expiry are derived from these declarations (see `catalog.py`).
A record class without one cannot be defined. `tests/unit/test_records.py` checks each declaration against the class's fields.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, NewType

if TYPE_CHECKING:
    from verditer.core.records.record import Record

ExtentId = NewType("ExtentId", str)
"""Names an extent, an immutable run of bytes in the extent store. Every stored field that names one has this type."""


class Root(Enum):
    """A parent that is not a record: what the first part of a key identifies, if not a parent record."""

    STORE = "none: the record belongs to the whole store"
    ACCOUNT = "the name of an account"
    CONTENT = "the id of a content: the record that owns the content removes these rows with it"


class Owned(Enum):
    """What a record owns in other tables. `services/removal.py` has the function that removes each."""

    CONTENT = "the rows and extents of its content; the record has the fields of `services/content/content.py`"
    BLOCK_BYTES = "the bytes of an uncommitted block: an extent, or inline"
    EXPIRED_BLOB = "the blob whose expiry the record is"
    TAG_INDEX = "the entries of its tags in the tag index"
    FORMER_CONTENT = "what only share snapshots see of a content: a later state of the file may own the content"
    SHARE_VIEW = "the view through which a share snapshot sees the files of its share"


class Reset(Enum):
    """What a reset of the account does. Records below a parent record share its fate."""

    REMOVED = "removed with everything the account holds"
    KEPT = "kept: it belongs to no account"


class ExtentNames(NamedTuple):
    """The extents that a record names. The sweep keeps an extent that any record names."""

    path: str
    """The attributes that lead from the record to the ids, such as `slices.extent`. Each element of a tuple is visited."""

    released: str | None = None
    """The field, first in the key, with the tick since which the extent is garbage. The record keeps the extent until the removal
    horizon has passed that tick: until then, a running operation may read the extent or be about to name it."""

    counted_in: "type[Record] | None" = None
    """A record class that names the same extents in fewer rows. The sweep reads those rows instead."""

    def of(self, record: "Record") -> Iterator[ExtentId]:
        values: list[Any] = [record]
        for name in self.path.split("."):
            found = [getattr(value, name) for value in values]
            values = [item for value in found for item in (value if isinstance(value, tuple) else (value,))]
        return (value for value in values if value is not None)


class Expiry(NamedTuple):
    """The collector removes the record when a tick has passed, under the lock of a scope: it may be restored at that moment."""

    tick: str  # field, and the whole rank
    scope: str  # attribute


@dataclass(frozen=True, kw_only=True, slots=True)
class Lifecycle:
    parent: "type[Record] | Root"  # a record class: keys begin with the `id` of such a record, and the record is removed after it
    extents: ExtentNames | None  # None: the record names no extent
    owns: tuple[Owned, ...]  # removed together with the record
    expiry: Expiry | None  # None: the record does not expire, or expires by a rule of its own
    reset: Reset
    volatile: bool = False  # the records may be lost in a crash of the machine: changes of such records alone are not synced
