"""Tables and their entities, which are keyed by their table's id: deleting a table is one record, and a new one starts empty."""

from verditer.core.records.container import AccessPolicy
from verditer.core.records.record import Record, key_of


class Table(Record, tag=1, frozen=True, kw_only=True):
    """`name` is in lower case, as tables are found whatever their case; `title` is the name as it was created."""

    TABLE = "data_table"
    KEY = ("account", "name")
    PARENT = True

    account: str
    name: str
    id: int
    title: str
    policies: tuple[AccessPolicy, ...] = ()


class Entity(Record, tag=1, frozen=True, kw_only=True):
    """`properties` is the JSON object of the entity's own properties, `padded`, as answers carry it (see `core/edm.py`).

    Reading a thousand entities then costs little more than copying them, and a filter decodes only what it asks for.
    """

    TABLE = "entity"
    KEY = ("table_id", "partition_key", "row_key")
    SIFTED = True

    properties: bytes  # the first field: a sieve that looks for a member finds it here before it could find it in a key
    table_id: int
    partition_key: str
    row_key: str
    etag: int  # also Timestamp

    def key(self) -> bytes:
        return key_of(self.table_id, self.partition_key, self.row_key)


def padded(document: bytes) -> bytes:
    """The embedded engine looks for marks in a record up to the first NUL, and a length that is a multiple of 256 would be
    written with one, in front of the document. A space behind a JSON object means nothing."""
    return document if len(document) & 0xFF else document + b" "
