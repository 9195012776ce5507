"""Containers. A container's children are keyed by its id, so deleting it is one record, and a new one starts empty."""

from typing import ClassVar

import msgspec

from verditer.core.lease import Lease
from verditer.core.records.record import Record


class AccessPolicy(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A stored access policy. What it leaves out, the SAS that names it has to bring."""

    id: str
    start: int | None = None
    expiry: int | None = None
    permission: str | None = None


class Keeping(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Which former states of blobs are kept. A setting of the account, repeated in each of its containers: whoever writes a blob
    reads the container anyway, and so pays nothing for it. `services/settings.py` keeps the two the same."""

    versioning: bool = False
    soft_delete_days: int = 0  # 0: off


class Container(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "container"
    KEY: ClassVar[tuple[str, ...]] = ("account", "name")
    PARENT = True

    account: str
    name: str
    id: int
    etag: int
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    public_access: str | None = None  # None, "blob" or "container"
    policies: tuple[AccessPolicy, ...] = ()
    lease: Lease | None = None
    keeping: Keeping = Keeping()

    @property
    def tags(self) -> None:
        """Containers have no tags; the guard asks."""
        return

    @property
    def copy_pending(self) -> bool:
        """Only blobs are copied."""
        return False


class DeletedContainer(Container, tag=1, frozen=True, kw_only=True):
    """A soft-deleted container. Its children are stored under its id as before, out of everybody's reach."""

    TABLE = "deleted_container"
    KEY = ("account", "name", "version")
    RANK = ("expires",)

    version: int  # the tick of its deletion
    expires: int


class Forgotten(Record, tag=1, frozen=True, kw_only=True):
    """The id of a container or queue that was deleted: its children are still stored, and the collector removes them."""

    TABLE = "forgotten"
    KEY = ("id",)

    id: int
