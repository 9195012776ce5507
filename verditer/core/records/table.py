"""Tables and their entities. Entities are keyed by the id of their table, so deleting a table removes one record."""

from verditer.core.records.container import AccessPolicy
from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record, key_of


class Table(Record, tag=1, frozen=True, kw_only=True):
    """A table. `name` is in lower case, since names of tables ignore case; `title` is the name as it was created."""

    TABLE = "data_table"
    KEY = ("account", "name")
    LIFECYCLE = Lifecycle(parent=Root.ACCOUNT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    account: str
    name: str
    id: int
    title: str
    policies: tuple[AccessPolicy, ...] = ()


class Entity(Record, tag=1, frozen=True, kw_only=True):
    """An entity. `properties` is the JSON object of its own properties, in the form that answers carry (`core/edm.py`).

    Reading a thousand entities then costs little more than copying them, and a filter decodes only the properties it compares.
    """

    TABLE = "entity"
    KEY = ("table_id", "partition_key", "row_key")
    LIFECYCLE = Lifecycle(parent=Table, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)
    DOCUMENT = "properties"

    properties: bytes
    table_id: int
    partition_key: str
    row_key: str
    etag: int  # also Timestamp

    def key(self) -> bytes:
        return key_of(self.table_id, self.partition_key, self.row_key)
