"""What a container, queue or table says about callers without the account key. It is read at every such request, so that a change
counts at once (G2).
"""

from verditer.core.errors import Code, StorageError
from verditer.core.grant import NOT_PERMITTED, ContainerAccess
from verditer.core.limits import MAX_POLICIES, MAX_POLICY_ID
from verditer.core.names import ContainerName, QueueName, TableName
from verditer.core.records.container import AccessPolicy, Container
from verditer.core.records.queue import Queue
from verditer.core.records.table import Table
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.settings import settings_of


async def access_of(ctx: Context, service: str, account: str, name: str) -> ContainerAccess | None:
    if service == "queue":
        return await queue_access(ctx, QueueName(account, name))
    if service == "table":
        return await table_access(ctx, TableName(account, name))
    return await container_access(ctx, ContainerName(account, name))


async def container_access(ctx: Context, target: ContainerName) -> ContainerAccess | None:
    def look(tx: Transaction) -> ContainerAccess | None:
        container = tx.get(Container, target.account, target.container)
        if container is None:
            return None
        public_access = container.public_access
        if public_access is not None and not settings_of(tx, target.account).public_access:
            public_access = NOT_PERMITTED
        return ContainerAccess(public_access=public_access, policies=container.policies)

    return await ctx.engine.read(target.scope, look)


async def queue_access(ctx: Context, target: QueueName) -> ContainerAccess | None:
    def look(tx: Transaction) -> ContainerAccess | None:
        queue = tx.get(Queue, target.account, target.queue)
        return ContainerAccess(policies=queue.policies) if queue is not None else None

    return await ctx.engine.read(target.scope, look)


async def table_access(ctx: Context, target: TableName) -> ContainerAccess | None:
    def look(tx: Transaction) -> ContainerAccess | None:
        table = tx.get(Table, target.account, target.table.lower())
        return ContainerAccess(policies=table.policies) if table is not None else None

    return await ctx.engine.read(target.scope, look)


def check_policies(policies: tuple[AccessPolicy, ...]) -> None:
    ids = [policy.id for policy in policies]
    if len(ids) > MAX_POLICIES or len(set(ids)) != len(ids) or any(not 1 <= len(id) <= MAX_POLICY_ID for id in ids):
        raise StorageError(Code.InvalidXmlDocument)
