"""The settings of an account. They are read inside the transaction that depends on them, so a change takes effect at once.

Every write of a blob depends on the history policy, so each container has a copy of it (`HistoryPolicy`). A change of the policy
rewrites all containers in one transaction: the transaction waits for running writes in the account, and later writes see it.

The store holds the settings. At every start, the settings of the configuration file and the environment are written to it; all
others stay as Set Blob Service Properties or the control API set them last (`docs/settings.md`).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from verditer.core.records.container import Container
from verditer.core.records.record import span_of
from verditer.core.records.settings import AccountSettings, SettingsChange
from verditer.partition.engine import Transaction
from verditer.services.context import Context


def settings_of(tx: Transaction, account: str) -> AccountSettings:
    return tx.get(AccountSettings, account) or _unset(account)


@cache
def _unset(account: str) -> AccountSettings:
    return AccountSettings(account=account)


def read_change(given: Mapping[str, Any], *, text: bool = False) -> SettingsChange:
    """`text`: the values are strings from the environment. Raises ValueError with a message for the author of the settings."""
    try:
        return msgspec.convert(given, SettingsChange, strict=not text)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


async def get_settings(ctx: Context, account: str) -> AccountSettings:
    return await ctx.engine.read((account,), lambda tx: settings_of(tx, account))


async def change_settings(ctx: Context, account: str, change: SettingsChange) -> AccountSettings:
    def commit(tx: Transaction) -> AccountSettings:
        changed = msgspec.structs.replace(settings_of(tx, account), **change.given())
        put_settings(tx, changed)
        return changed

    return await ctx.engine.write([(account,)], commit)


def put_settings(tx: Transaction, settings: AccountSettings) -> None:
    """The transaction has to be in a scope above all containers of the account."""
    before = settings_of(tx, settings.account)
    repeated = {"history_policy": settings.history_policy, "blob_settings": settings.blob_settings}
    if repeated != {"history_policy": before.history_policy, "blob_settings": before.blob_settings}:
        for container in list(tx.scan(Container, span_of(settings.account))):
            tx.put(msgspec.structs.replace(container, **repeated))
    tx.put(settings)


async def apply_configured(ctx: Context) -> None:
    """At the start, configured settings replace stored ones."""
    for account in ctx.accounts.values():
        if account.settings.given():
            await change_settings(ctx, account.name, account.settings)


def reset_settings(tx: Transaction, account: str, configured: SettingsChange) -> None:
    """Store the configured settings of an account whose records were all removed."""
    if configured.given():
        tx.put(msgspec.structs.replace(AccountSettings(account=account), **configured.given()))
