"""Containers. Blobs are keyed by the id of their container, so deleting a container removes one record."""

from typing import ClassVar

import msgspec

from verditer.core.immutability import ContainerProtection
from verditer.core.lease import Lease
from verditer.core.names import ContainerName
from verditer.core.records.lifecycle import Expiry, Lifecycle, Reset, Root
from verditer.core.records.record import Record


class AccessPolicy(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A stored access policy. A SAS that names it must contain the fields that the policy leaves out."""

    id: str
    start: int | None = None
    expiry: int | None = None
    permission: str | None = None


class HistoryPolicy(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Which former states of blobs are kept. This is a setting of the account. Each container repeats it, because every write of
    a blob reads the container anyway. `services/settings.py` updates all of them together."""

    versioning: bool = False
    soft_delete_days: int = 0  # 0: off


class BlobSettings(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Further settings of the account that requests for blobs depend on. Each container repeats them too."""

    premium: bool = False  # page blobs have tiers
    tracks_access: bool = False  # reading a blob moves its last access time
    hierarchical: bool = False  # blobs may expire


class ContainerEncryption(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The encryption scope of blobs for which no request names one."""

    scope: str
    no_override: bool = False  # requests may name no other scope


class Container(Record, tag=1, frozen=True, kw_only=True):
    """A container. Its blobs are keyed by `id`."""

    TABLE = "container"
    KEY: ClassVar[tuple[str, ...]] = ("account", "name")
    LIFECYCLE = Lifecycle(parent=Root.ACCOUNT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    account: str
    name: str
    id: int
    etag: int
    metadata: dict[str, str] = msgspec.field(default_factory=dict)
    public_access: str | None = None  # None, "blob" or "container"
    policies: tuple[AccessPolicy, ...] = ()
    lease: Lease | None = None
    history_policy: HistoryPolicy = HistoryPolicy()
    blob_settings: BlobSettings = BlobSettings()
    protection: ContainerProtection | None = None
    encryption: ContainerEncryption | None = None

    @property
    def tags(self) -> None:
        """Containers have no tags. The guard reads this of everything it checks."""
        return

    @property
    def copy_pending(self) -> bool:
        """Only blobs are copied."""
        return False


class DeletedContainer(Container, tag=2, frozen=True, kw_only=True):
    """A soft-deleted container. Its blobs stay stored under its id, and no request can reach them."""

    TABLE = "deleted_container"
    ADDED = ("blob_settings", "protection", "encryption")
    KEY = ("account", "name", "version")
    RANK = ("expires",)
    LIFECYCLE = Lifecycle(
        parent=Root.ACCOUNT, extents=None, owns=(), expiry=Expiry("expires", scope="scope"), reset=Reset.REMOVED
    )

    version: int  # the tick of its deletion
    expires: int

    @property
    def scope(self) -> tuple[str, ...]:
        return ContainerName(self.account, self.name).scope


class Tombstone(Record, tag=1, frozen=True, kw_only=True):
    """The id of a parent record that was removed. Its children are still stored, and the collector removes them."""

    TABLE = "tombstone"
    KEY = ("id",)
    LIFECYCLE = Lifecycle(parent=Root.STORE, extents=None, owns=(), expiry=None, reset=Reset.KEPT)

    id: int
