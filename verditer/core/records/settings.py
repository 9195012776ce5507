"""The settings of an account that Azure keeps in its control plane. Containers repeat those that every write of a blob needs."""

from typing import Annotated, Literal

import msgspec

from verditer.core.dates import seconds
from verditer.core.records.account import Retention
from verditer.core.records.container import BlobSettings, HistoryPolicy
from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record

Days = Annotated[int, msgspec.Meta(ge=0, le=365)]
ShareText = Annotated[str, msgspec.Meta(pattern="^[a-z0-9-]{3,63}$")]
ScopeName = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9]{3,63}$")]
Sku = Literal[
    "Standard_LRS",
    "Standard_ZRS",
    "Standard_GRS",
    "Standard_RAGRS",
    "Standard_GZRS",
    "Standard_RAGZRS",
    "Premium_LRS",
    "Premium_ZRS",
]
AccountKind = Literal["Storage", "BlobStorage", "StorageV2", "FileStorage", "BlockBlobStorage"]


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some settings, as a file, the environment or the control API gives them. None leaves a setting unchanged."""

    versioning: bool | None = None
    blob_soft_delete_days: Days | None = None
    permanent_delete: bool | None = None
    container_soft_delete_days: Days | None = None
    share_soft_delete_days: Days | None = None
    public_access: bool | None = None
    hierarchical_namespace: bool | None = None
    sku: Sku | None = None
    kind: AccountKind | None = None
    last_access_tracking: bool | None = None
    version_level_immutability: bool | None = None
    encryption_scopes: tuple[ScopeName, ...] | None = None
    smb_encrypted_shares: tuple[ShareText, ...] | None = None

    def over(self, other: "SettingsChange") -> "SettingsChange":
        """The settings of both changes. Where they disagree, this one wins."""
        return msgspec.structs.replace(other, **self.given())

    def given(self) -> dict[str, object]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class AccountSettings(Record, tag=1, frozen=True, kw_only=True):
    """The settings of one account. A reset puts them back to what is configured."""

    TABLE = "account_settings"
    KEY = ("account",)
    LIFECYCLE = Lifecycle(parent=Root.ACCOUNT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    account: str
    versioning: bool = False
    blob_soft_delete_days: int = 0  # 0: off
    permanent_delete: bool = False  # allowed for soft-deleted snapshots and versions
    container_soft_delete_days: int = 0
    public_access: bool = True  # whether containers may allow anonymous reads
    hierarchical_namespace: bool = False  # reported; blobs may expire
    sku: str = "Standard_RAGRS"
    kind: str = "StorageV2"
    share_soft_delete_days: int = 0
    last_access_tracking: bool = False
    version_level_immutability: bool = False  # of new containers
    encryption_scopes: tuple[str, ...] = ()
    smb_encrypted_shares: tuple[str, ...] = ()  # that SMB clients can use only with encryption

    @property
    def is_premium(self) -> bool:
        return self.sku.startswith("Premium")

    @property
    def is_zone_redundant(self) -> bool:
        return self.sku.endswith("ZRS")

    @property
    def blob_settings(self) -> BlobSettings:
        return BlobSettings(
            premium=self.is_premium, tracks_access=self.last_access_tracking, hierarchical=self.hierarchical_namespace
        )

    @property
    def history_policy(self) -> HistoryPolicy:
        return HistoryPolicy(versioning=self.versioning, soft_delete_days=self.blob_soft_delete_days)

    @property
    def container_retention(self) -> int:
        """In ticks; 0 when a deleted container is not kept."""
        return seconds(self.container_soft_delete_days * 86400)

    @property
    def delete_retention(self) -> Retention:
        """Soft delete of blobs as the properties of the Blob service show it."""
        days = self.blob_soft_delete_days
        return Retention(enabled=days > 0, days=days or None, allow_permanent_delete=self.permanent_delete)

    def with_delete_retention(self, retention: Retention) -> "AccountSettings":
        days = retention.days or 0 if retention.enabled else 0
        return msgspec.structs.replace(self, blob_soft_delete_days=days, permanent_delete=retention.allow_permanent_delete)
