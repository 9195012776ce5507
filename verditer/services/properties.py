"""Service properties of an account: logging, metrics, CORS, retention. The same for every service that has them."""

import msgspec

from verditer.core.names import AccountName, BlobName, ContainerName
from verditer.core.records.account import (
    CorsRule,
    Logging,
    Metrics,
    Retention,
    ServiceProperties,
    StaticWebsite,
)
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.settings import get_settings, put_settings, settings_of


class SetServiceProperties(msgspec.Struct, frozen=True, kw_only=True):
    """A section that is None was not in the document, and keeps its setting."""

    logging: Logging | None = None
    hour_metrics: Metrics | None = None
    minute_metrics: Metrics | None = None
    cors: tuple[CorsRule, ...] | None = None
    default_service_version: str | None = None
    delete_retention: Retention | None = None
    static_website: StaticWebsite | None = None


class AccountInformation(msgspec.Struct, frozen=True, kw_only=True):
    sku_name: str
    account_kind: str
    is_hns_enabled: bool


class ServiceStats(msgspec.Struct, frozen=True, kw_only=True):
    last_sync: int


async def get_service_properties(ctx: Context, target: AccountName) -> ServiceProperties:
    return await ctx.engine.read(target.scope, lambda tx: current_properties(tx, target))


async def set_service_properties(ctx: Context, target: AccountName, request: SetServiceProperties) -> None:
    """Last writer wins, section by section. How long deleted blobs are kept is one of the account's settings."""
    given = {name: value for name, value in msgspec.structs.asdict(request).items() if value is not None}

    def commit(tx: Transaction) -> None:
        tx.put(msgspec.structs.replace(current_properties(tx, target), **given))
        if request.delete_retention is not None:
            put_settings(tx, settings_of(tx, target.account).with_delete_retention(request.delete_retention))

    await ctx.engine.write(target.scope, commit)


def current_properties(tx: Transaction, target: AccountName) -> ServiceProperties:
    stored = tx.get(ServiceProperties, target.account, target.service)
    properties = stored or ServiceProperties(account=target.account, service=target.service)
    if target.service != "blob":
        return properties
    return msgspec.structs.replace(properties, delete_retention=settings_of(tx, target.account).delete_retention)


async def get_account_information(ctx: Context, target: AccountName | ContainerName | BlobName) -> AccountInformation:
    settings = await get_settings(ctx, target.account)
    return AccountInformation(sku_name=settings.sku, account_kind=settings.kind, is_hns_enabled=settings.hierarchical_namespace)


async def get_service_stats(ctx: Context, target: AccountName) -> ServiceStats:
    """The secondary endpoint reads the same store, so it is never behind."""
    return ServiceStats(last_sync=ctx.now())
