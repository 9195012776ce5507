"""The public access level and the access policies of a container, queue or table.

They are read for every request that depends on them, so a change takes effect at once (G2).
"""

from verditer.core.errors import Code, StorageError
from verditer.core.grant import NOT_PERMITTED, ContainerAccess
from verditer.core.limits import MAX_POLICIES, MAX_POLICY_ID
from verditer.core.names import ContainerName, QueueName, ShareName, TableName
from verditer.core.records.container import AccessPolicy, Container
from verditer.core.records.file import Share
from verditer.core.records.queue import Queue
from verditer.core.records.table import Table
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.settings import settings_of


async def container_access(ctx: Context, account: str, container: str) -> ContainerAccess | None:
    target = ContainerName(account, container)

    def look(tx: Transaction) -> ContainerAccess | None:
        stored = tx.get(Container, account, container)
        if stored is None:
            return None
        public_access = stored.public_access
        if public_access is not None and not settings_of(tx, account).public_access:
            public_access = NOT_PERMITTED
        return ContainerAccess(public_access=public_access, policies=stored.policies)

    return await ctx.engine.read(target.scope, look)


async def queue_access(ctx: Context, account: str, queue: str) -> ContainerAccess | None:
    target = QueueName(account, queue)

    def look(tx: Transaction) -> ContainerAccess | None:
        stored = tx.get(Queue, account, queue)
        return ContainerAccess(policies=stored.policies) if stored is not None else None

    return await ctx.engine.read(target.scope, look)


async def table_access(ctx: Context, account: str, table: str) -> ContainerAccess | None:
    target = TableName(account, table)

    def look(tx: Transaction) -> ContainerAccess | None:
        stored = tx.get(Table, account, table.lower())
        return ContainerAccess(policies=stored.policies) if stored is not None else None

    return await ctx.engine.read(target.scope, look)


async def share_access(ctx: Context, account: str, share: str) -> ContainerAccess | None:
    target = ShareName(account, share)

    def look(tx: Transaction) -> ContainerAccess | None:
        stored = tx.get(Share, account, share)
        return ContainerAccess(policies=stored.policies) if stored is not None else None

    return await ctx.engine.read(target.scope, look)


def check_policies(policies: tuple[AccessPolicy, ...]) -> None:
    ids = [policy.id for policy in policies]
    if len(ids) > MAX_POLICIES or len(set(ids)) != len(ids) or any(not 1 <= len(id) <= MAX_POLICY_ID for id in ids):
        raise StorageError(Code.InvalidXmlDocument)
