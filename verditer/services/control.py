"""What the admin port can do: move the clock, empty an account."""

from verditer.core.records.catalog import REMOVED_BY_RESET
from verditer.core.records.record import span_of
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.removal import remove
from verditer.services.settings import reset_settings


async def move_clock(ctx: Context, ticks: int) -> None:
    await ctx.engine.move_clock(ticks)


async def reset_account(ctx: Context, account: str) -> None:
    """Remove everything the account holds, whatever its leases. Its settings are again what is configured."""
    configured = ctx.accounts[account].settings

    def commit(tx: Transaction) -> None:
        for kind in REMOVED_BY_RESET:
            for record in list(tx.scan(kind, span_of(account))):
                remove(tx, record)
        reset_settings(tx, account, configured)

    await ctx.engine.write([(account,)], commit)
