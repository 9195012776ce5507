"""The tag index: one row for each tag of each blob, so that a search reads few rows besides those it returns."""

from verditer.core.records.container import Container
from verditer.core.records.lifecycle import Lifecycle, Reset
from verditer.core.records.record import Record


class TagEntry(Record, tag=1, frozen=True, kw_only=True):
    """One tag of one blob. The transaction that writes the blob updates it (`services/blob/tags.py`)."""

    TABLE = "tag_entry"
    KEY = ("container_id", "tag", "value", "blob")
    LIFECYCLE = Lifecycle(parent=Container, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    container_id: int
    tag: str
    value: str
    blob: str
