"""The properties of a service of an account: the document of Get and Set Service Properties."""

import msgspec

from verditer.core.records.lifecycle import Lifecycle, Reset, Root
from verditer.core.records.record import Record


class Retention(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    enabled: bool = False
    days: int | None = None
    allow_permanent_delete: bool = False


class Logging(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    version: str = "1.0"
    delete: bool = False
    read: bool = False
    write: bool = False
    retention: Retention = Retention()


class MetricsSettings(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    version: str = "1.0"
    enabled: bool = False
    include_apis: bool | None = None
    retention: Retention = Retention()


class CorsRule(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    allowed_origins: tuple[str, ...]
    allowed_methods: tuple[str, ...]
    allowed_headers: tuple[str, ...] = ()
    exposed_headers: tuple[str, ...] = ()
    max_age_seconds: int = 0


class StaticWebsite(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    enabled: bool = False
    index_document: str | None = None
    default_index_document_path: str | None = None
    error_document_404_path: str | None = None


class ProtocolSettings(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """How clients of the File service connect. None where no request has set a value."""

    smb_multichannel: bool | None = None
    smb_encryption_required: bool | None = None
    nfs_encryption_required: bool | None = None


class ServiceProperties(Record, tag=1, frozen=True, kw_only=True):
    """What Set Service Properties stored for one service of an account: logging, metrics, CORS rules, default version."""

    TABLE = "service_properties"
    KEY = ("account", "service")
    LIFECYCLE = Lifecycle(parent=Root.ACCOUNT, extents=None, owns=(), expiry=None, reset=Reset.REMOVED)

    account: str
    service: str
    logging: Logging = Logging()
    hour_metrics: MetricsSettings = MetricsSettings()
    minute_metrics: MetricsSettings = MetricsSettings()
    cors: tuple[CorsRule, ...] = ()
    default_service_version: str | None = None
    delete_retention: Retention = Retention()
    static_website: StaticWebsite = StaticWebsite()
    protocol_settings: ProtocolSettings = ProtocolSettings()  # of the File service
