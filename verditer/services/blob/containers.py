"""Containers: create, properties, metadata, access policies, delete."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_METADATA, MAX_POLICIES, MAX_POLICY_ID
from verditer.core.names import ContainerName, check_container_name, check_metadata
from verditer.core.records.container import AccessPolicy, Container, DeletedContainer, Forgotten
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import ContainerState, Written
from verditer.services.blob.current import require_container
from verditer.services.context import Context
from verditer.services.settings import settings_of

replace = msgspec.structs.replace
Change = Callable[[Transaction, Container], Container]


class CreateContainer(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}
    public_access: str | None = None


class SetContainerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}


class SetContainerAcl(msgspec.Struct, frozen=True, kw_only=True):
    policies: tuple[AccessPolicy, ...] = ()
    public_access: str | None = None


async def create_container(ctx: Context, target: ContainerName, request: CreateContainer) -> Written:
    check_container_name(target.container)
    check_metadata(request.metadata, MAX_METADATA)

    def commit(tx: Transaction) -> Written:
        if tx.get(Container, target.account, target.container) is not None:
            raise StorageError(Code.ContainerAlreadyExists)
        _check_public_access(tx, target, request.public_access)
        tick = tx.tick()
        tx.put(
            Container(
                account=target.account,
                name=target.container,
                id=tick,
                etag=tick,
                metadata=request.metadata,
                public_access=request.public_access,
                keeping=settings_of(tx, target.account).keeping,
            )
        )
        return Written(etag=tick)

    return await ctx.engine.write(target.scope, commit)


async def get_container(ctx: Context, target: ContainerName, guard: Guard) -> ContainerState:
    """Properties, metadata and ACL are all in the one record."""

    def look(tx: Transaction) -> ContainerState:
        container = require_container(tx, target)
        guard.check(container, tx.now)
        return ContainerState(container=container, now=tx.now)

    return await ctx.engine.read(target.scope, look)


async def set_container_metadata(ctx: Context, target: ContainerName, request: SetContainerMetadata, guard: Guard) -> Written:
    check_metadata(request.metadata, MAX_METADATA)
    return await _update(ctx, target, guard, lambda _, container: replace(container, metadata=request.metadata))


async def set_container_acl(ctx: Context, target: ContainerName, request: SetContainerAcl, guard: Guard) -> Written:
    """Replaces public access and every stored policy at once."""

    def change(tx: Transaction, container: Container) -> Container:
        _check_public_access(tx, target, request.public_access)
        return replace(container, policies=request.policies, public_access=request.public_access)

    ids = [policy.id for policy in request.policies]
    if len(ids) > MAX_POLICIES or len(set(ids)) != len(ids) or any(not 1 <= len(id) <= MAX_POLICY_ID for id in ids):
        raise StorageError(Code.InvalidXmlDocument)
    return await _update(ctx, target, guard, change)


def _check_public_access(tx: Transaction, target: ContainerName, public_access: str | None) -> None:
    if public_access is not None and not settings_of(tx, target.account).public_access:
        raise StorageError(Code.PublicAccessNotPermitted)


async def delete_container(ctx: Context, target: ContainerName, guard: Guard) -> None:
    """One record goes, and with its id everything below it; the collector removes what that leaves unreachable. With soft delete
    the record stays where only Restore Container finds it, until its retention has passed.
    """

    def commit(tx: Transaction) -> None:
        container = require_container(tx, target)
        guard.check(container, tx.now)
        tx.delete(Container, target.account, target.container)
        retention = settings_of(tx, target.account).container_retention
        if not retention:
            tx.put(Forgotten(id=container.id))
        else:
            fields = msgspec.structs.asdict(container) | {"lease": None}
            tx.put(DeletedContainer(**fields, version=tx.tick(container.etag), expires=tx.now + retention))

    await ctx.engine.write(target.scope, commit)


async def _update(ctx: Context, target: ContainerName, guard: Guard, change: Change) -> Written:
    def commit(tx: Transaction) -> Written:
        container = require_container(tx, target)
        guard.check(container, tx.now)
        updated = replace(change(tx, container), etag=tx.tick(container.etag))
        tx.put(updated)
        return Written(etag=updated.etag)

    return await ctx.engine.write(target.scope, commit)
