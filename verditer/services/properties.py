"""Service properties of an account: logging, metrics, CORS, retention. All services share this code."""

from typing import Any

import msgspec

from verditer.core.names import AccountName, BlobName, ContainerName
from verditer.core.records.account import (
    CorsRule,
    Logging,
    MetricsSettings,
    ProtocolSettings,
    Retention,
    ServiceProperties,
    StaticWebsite,
)
from verditer.partition.engine import Transaction
from verditer.services.blob.containers import make_logs_container
from verditer.services.context import Context
from verditer.services.settings import get_settings, put_settings, settings_of

replace = msgspec.structs.replace


class SetServiceProperties(msgspec.Struct, frozen=True, kw_only=True):
    """A section is None when the document does not have it; the stored section then stays."""

    logging: Logging | None = None
    hour_metrics: MetricsSettings | None = None
    minute_metrics: MetricsSettings | None = None
    cors: tuple[CorsRule, ...] | None = None
    default_service_version: str | None = None
    delete_retention: Retention | None = None
    static_website: StaticWebsite | None = None
    protocol_settings: ProtocolSettings | None = None


class AccountInformation(msgspec.Struct, frozen=True, kw_only=True):
    sku_name: str
    account_kind: str
    is_hns_enabled: bool


class ServiceStats(msgspec.Struct, frozen=True, kw_only=True):
    last_sync: int


async def get_service_properties(ctx: Context, target: AccountName) -> ServiceProperties:
    return await ctx.engine.read(target.scope, lambda tx: _current(tx, target))


async def set_service_properties(ctx: Context, target: AccountName, request: SetServiceProperties) -> None:
    """The last writer wins, section by section."""
    await ctx.engine.write([target.scope], lambda tx: _change(tx, target, request))


async def get_blob_service_properties(ctx: Context, target: AccountName) -> ServiceProperties:
    """With the retention of deleted blobs, which is one of the account's settings."""

    def look(tx: Transaction) -> ServiceProperties:
        retention = settings_of(tx, target.account).delete_retention
        return replace(_current(tx, target), delete_retention=retention)

    return await ctx.engine.read(target.scope, look)


async def set_blob_service_properties(ctx: Context, target: AccountName, request: SetServiceProperties) -> None:
    def commit(tx: Transaction) -> None:
        _change(tx, target, request)
        if request.delete_retention is not None:
            put_settings(tx, settings_of(tx, target.account).with_delete_retention(request.delete_retention))
        if request.logging is not None and (request.logging.read or request.logging.write or request.logging.delete):
            make_logs_container(tx, target.account)

    await ctx.engine.write([target.scope], commit)


def _current(tx: Transaction, target: AccountName) -> ServiceProperties:
    stored = tx.get(ServiceProperties, target.account, target.service)
    return stored or ServiceProperties(account=target.account, service=target.service)


def _change(tx: Transaction, target: AccountName, request: SetServiceProperties) -> None:
    current = _current(tx, target)
    given = _given(request)
    if request.protocol_settings is not None:  # a section of sections: what it leaves out stays, too
        given["protocol_settings"] = replace(current.protocol_settings, **_given(request.protocol_settings))
    tx.put(replace(current, **given))


def _given(values: msgspec.Struct) -> dict[str, Any]:
    return {name: value for name, value in msgspec.structs.asdict(values).items() if value is not None}


async def get_account_information(ctx: Context, target: AccountName | ContainerName | BlobName) -> AccountInformation:
    settings = await get_settings(ctx, target.account)
    return AccountInformation(sku_name=settings.sku, account_kind=settings.kind, is_hns_enabled=settings.hierarchical_namespace)


async def get_service_stats(ctx: Context, target: AccountName) -> ServiceStats:
    """The secondary endpoint reads the same store, so it is always in sync."""
    return ServiceStats(last_sync=ctx.now())
