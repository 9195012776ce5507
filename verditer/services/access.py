"""What a container says about callers without the account key. Read at every such request, so a change counts at once (G2)."""

from verditer.core.grant import ContainerAccess
from verditer.core.names import ContainerName
from verditer.core.records.container import Container
from verditer.partition.engine import Transaction
from verditer.services.context import Context


async def container_access(ctx: Context, target: ContainerName) -> ContainerAccess | None:
    def look(tx: Transaction) -> ContainerAccess | None:
        container = tx.get(Container, target.account, target.container)
        if container is None:
            return None
        return ContainerAccess(public_access=container.public_access, policies=container.policies)

    return await ctx.engine.read(target.scope, look)
