"""The settings of an account: read inside the transaction that depends on them, so that a change counts at once.

What every write of a blob depends on is repeated in the containers (`Keeping`). A change rewrites them all, in the one
transaction that makes it: it waits for the writes that are running in the account, and those that follow see it.

The store keeps them. What the configuration file or the environment says is written there at every start; everything else
stays as it was set last, by Set Blob Service Properties or by the control API (`docs/settings.md`).
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
    """`text`: the values are words of the environment. Raises ValueError with a message for whoever wrote it."""
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

    return await ctx.engine.write((account,), commit)


def put_settings(tx: Transaction, settings: AccountSettings) -> None:
    """In a scope that has all containers of the account below it."""
    if settings.keeping != settings_of(tx, settings.account).keeping:
        for container in list(tx.scan(Container, span_of(settings.account))):
            tx.put(msgspec.structs.replace(container, keeping=settings.keeping))
    tx.put(settings)


async def apply_configured(ctx: Context) -> None:
    """At the start: what is configured holds, whatever it was changed to before."""
    for account in ctx.accounts.values():
        if account.settings.given():
            await change_settings(ctx, account.name, account.settings)


def reset_settings(tx: Transaction, account: str, configured: SettingsChange) -> None:
    """Of an account that has no container any more."""
    tx.delete(AccountSettings, account)
    if configured.given():
        tx.put(msgspec.structs.replace(AccountSettings(account=account), **configured.given()))
