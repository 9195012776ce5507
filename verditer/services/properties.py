"""Service properties of an account: logging, metrics, CORS, retention. The same for every service that has them."""

import msgspec

from verditer.core.names import AccountName
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
    sku_name: str = "Standard_RAGRS"
    account_kind: str = "StorageV2"
    is_hns_enabled: bool = False


class ServiceStats(msgspec.Struct, frozen=True, kw_only=True):
    last_sync: int


async def get_service_properties(ctx: Context, target: AccountName) -> ServiceProperties:
    return await ctx.engine.read(target.scope, lambda tx: current_properties(tx, target))


async def set_service_properties(ctx: Context, target: AccountName, request: SetServiceProperties) -> None:
    """Last writer wins, section by section."""
    given = {name: value for name, value in msgspec.structs.asdict(request).items() if value is not None}

    def commit(tx: Transaction) -> None:
        tx.put(msgspec.structs.replace(current_properties(tx, target), **given))

    await ctx.engine.write(target.scope, commit)


def current_properties(tx: Transaction, target: AccountName) -> ServiceProperties:
    stored = tx.get(ServiceProperties, target.account, target.service)
    return stored or ServiceProperties(account=target.account, service=target.service)


async def get_account_information(ctx: Context, target: AccountName) -> AccountInformation:
    return AccountInformation()


async def get_service_stats(ctx: Context, target: AccountName) -> ServiceStats:
    """The secondary endpoint reads the same store, so it is never behind."""
    return ServiceStats(last_sync=ctx.now())
