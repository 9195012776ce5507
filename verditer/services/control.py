"""What the admin port can do: ask whether the store answers, move the clock, empty an account."""

from verditer.core.errors import StorageError
from verditer.core.records.account import ServiceProperties
from verditer.core.records.container import Container, DeletedContainer, Forgotten
from verditer.core.records.queue import Queue
from verditer.core.records.record import span_of
from verditer.core.records.table import Table
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.settings import reset_settings


async def is_ready(ctx: Context) -> bool:
    try:
        await ctx.engine.read((), lambda tx: tx.get(ServiceProperties, "", ""))
    except StorageError:
        return False
    return True


async def move_clock(ctx: Context, ticks: int) -> None:
    await ctx.engine.move_clock(ticks)


async def reset_account(ctx: Context, account: str) -> None:
    """Everything the account holds is gone at once; leases do not protect it. Its settings are again what is configured."""
    configured = ctx.accounts[account].settings

    def commit(tx: Transaction) -> None:
        for container in list(tx.scan(Container, span_of(account))):
            tx.delete(Container, container.account, container.name)
            tx.put(Forgotten(id=container.id))
        for deleted in list(tx.scan(DeletedContainer, span_of(account))):
            tx.delete(DeletedContainer, deleted.account, deleted.name, deleted.version)
            tx.put(Forgotten(id=deleted.id))
        for queue in list(tx.scan(Queue, span_of(account))):
            tx.delete(Queue, queue.account, queue.name)
            tx.put(Forgotten(id=queue.id))
        for table in list(tx.scan(Table, span_of(account))):
            tx.delete(Table, table.account, table.name)
            tx.put(Forgotten(id=table.id))
        for properties in list(tx.scan(ServiceProperties, span_of(account))):
            tx.delete(ServiceProperties, properties.account, properties.service)
        reset_settings(tx, account, configured)

    await ctx.engine.write((account,), commit)
