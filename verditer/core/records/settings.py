"""What Azure sets through its control plane, per account. What blobs need of it is also in their container."""

from typing import Annotated, Literal

import msgspec

from verditer.core.dates import seconds
from verditer.core.records.account import Retention
from verditer.core.records.container import Keeping
from verditer.core.records.record import Record

Days = Annotated[int, msgspec.Meta(ge=0, le=365)]
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
Kind = Literal["Storage", "BlobStorage", "StorageV2", "FileStorage", "BlockBlobStorage"]


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Some settings, as a file, the environment or the control API gives them. None leaves a setting as it is."""

    versioning: bool | None = None
    blob_soft_delete_days: Days | None = None
    permanent_delete: bool | None = None
    container_soft_delete_days: Days | None = None
    public_access: bool | None = None
    hierarchical_namespace: bool | None = None
    sku: Sku | None = None
    kind: Kind | None = None

    def over(self, other: "SettingsChange") -> "SettingsChange":
        """Both, and this one where they disagree."""
        return msgspec.structs.replace(other, **self.given())

    def given(self) -> dict[str, object]:
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}


class AccountSettings(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "account_settings"
    KEY = ("account",)

    account: str
    versioning: bool = False
    blob_soft_delete_days: int = 0  # 0: off
    permanent_delete: bool = False  # of what is soft-deleted
    container_soft_delete_days: int = 0
    public_access: bool = True  # whether containers may be opened to everybody
    hierarchical_namespace: bool = False  # reported, and nothing more
    sku: str = "Standard_RAGRS"
    kind: str = "StorageV2"

    @property
    def keeping(self) -> Keeping:
        return Keeping(versioning=self.versioning, soft_delete_days=self.blob_soft_delete_days)

    @property
    def container_retention(self) -> int:
        """In ticks; 0 when what is deleted goes at once."""
        return seconds(self.container_soft_delete_days * 86400)

    @property
    def delete_retention(self) -> Retention:
        """The form it has in the properties of the Blob service."""
        days = self.blob_soft_delete_days
        return Retention(enabled=days > 0, days=days or None, allow_permanent_delete=self.permanent_delete)

    def with_delete_retention(self, retention: Retention) -> "AccountSettings":
        days = retention.days or 0 if retention.enabled else 0
        return msgspec.structs.replace(self, blob_soft_delete_days=days, permanent_delete=retention.allow_permanent_delete)
