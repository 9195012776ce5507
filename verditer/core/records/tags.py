"""The tag index: one row for each tag of each blob, so that a search reads what it finds and little else."""

from verditer.core.records.record import Record


class TagEntry(Record, tag=1, frozen=True, kw_only=True):
    """Kept in step with `Blob.tags` by the transaction that writes the blob (`services/blob/tags.py`)."""

    TABLE = "tag_entry"
    KEY = ("container_id", "tag", "value", "blob")

    container_id: int
    tag: str
    value: str
    blob: str
