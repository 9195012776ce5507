"""What an account has set for a service: the document behind Get and Set Service Properties."""

import msgspec

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


class Metrics(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
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


class ServiceProperties(Record, tag=1, frozen=True, kw_only=True):
    TABLE = "service_properties"
    KEY = ("account", "service")

    account: str
    service: str
    logging: Logging = Logging()
    hour_metrics: Metrics = Metrics()
    minute_metrics: Metrics = Metrics()
    cors: tuple[CorsRule, ...] = ()
    default_service_version: str | None = None
    delete_retention: Retention = Retention()
    static_website: StaticWebsite = StaticWebsite()
