"""Containers: create, properties, metadata, access policies, delete."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import ContainerProtection
from verditer.core.limits import MAX_METADATA, MAX_POLICIES, MAX_POLICY_ID
from verditer.core.names import LOGS_CONTAINER, SYSTEM_CONTAINERS, ContainerName, check_container_name, check_metadata
from verditer.core.records.container import AccessPolicy, Container, ContainerEncryption, DeletedContainer
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import ContainerState, Written
from verditer.services.blob.current import require_container
from verditer.services.blob.protection import ProtectContainer, check_deletable, protection_after
from verditer.services.context import Context
from verditer.services.removal import remove
from verditer.services.settings import settings_of

replace = msgspec.structs.replace
ACCOUNT_SCOPE = "$account-encryption-key"  # the scope where nothing names one
ContainerChange = Callable[[Transaction, Container], Container]


class CreateContainer(msgspec.Struct, frozen=True, kw_only=True):
    metadata: dict[str, str] = {}
    public_access: str | None = None
    default_scope: str | None = None
    no_scope_override: bool = False


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
        if target.container in SYSTEM_CONTAINERS:
            raise StorageError(Code.InvalidResourceName)  # only the service makes them
        _check_public_access(tx, target, request.public_access)
        container = new_container(tx, target)
        encryption = _encryption(tx, target, request)
        tx.put(replace(container, metadata=request.metadata, public_access=request.public_access, encryption=encryption))
        return Written(etag=container.etag)

    return await ctx.engine.write([target.scope], commit)


def _encryption(tx: Transaction, target: ContainerName, request: CreateContainer) -> ContainerEncryption | None:
    if request.default_scope is None:
        if request.no_scope_override:
            raise StorageError(Code.MissingRequiredHeader, field="default_scope")
        return None
    if request.default_scope not in (ACCOUNT_SCOPE, *settings_of(tx, target.account).encryption_scopes):
        raise StorageError(Code.EncryptionScopeNotFound)
    if request.default_scope == ACCOUNT_SCOPE and not request.no_scope_override:
        return None
    return ContainerEncryption(scope=request.default_scope, no_override=request.no_scope_override)


def new_container(tx: Transaction, target: ContainerName) -> Container:
    """A container with what it repeats of the settings of the account."""
    settings, tick = settings_of(tx, target.account), tx.tick()
    return Container(
        account=target.account,
        name=target.container,
        id=tick,
        etag=tick,
        history_policy=settings.history_policy,
        blob_settings=settings.blob_settings,
        protection=ContainerProtection(version_level=True) if settings.version_level_immutability else None,
    )


def make_logs_container(tx: Transaction, account: str) -> None:
    """Logging was switched on: the container of the logs exists from now on. This server writes no logs into it."""
    if tx.get(Container, account, LOGS_CONTAINER) is None:
        tx.put(new_container(tx, ContainerName(account, LOGS_CONTAINER)))


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
    """Replace the public access level and all stored policies."""

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
    """Delete the container's record. Its blobs are stored under its id and become unreachable; the collector removes them.

    With soft delete the record moves to where only Restore Container finds it, until its retention period ends.
    """

    def commit(tx: Transaction) -> None:
        container = require_container(tx, target)
        if target.container in SYSTEM_CONTAINERS:
            raise StorageError(Code.AuthorizationFailure)  # About Storage Analytics Logging: it cannot be deleted
        guard.check(container, tx.now)
        check_deletable(tx, container)
        retention = settings_of(tx, target.account).container_retention
        if not retention:
            remove(tx, container)
        else:
            tx.delete(Container, target.account, target.container)
            fields = msgspec.structs.asdict(container) | {"lease": None}
            tx.put(DeletedContainer(**fields, version=tx.tick(container.etag), expires=tx.now + retention))

    await ctx.engine.write([target.scope], commit)


async def _update(ctx: Context, target: ContainerName, guard: Guard, change: ContainerChange) -> Written:
    def commit(tx: Transaction) -> Written:
        container = require_container(tx, target)
        guard.check(container, tx.now)
        updated = replace(change(tx, container), etag=tx.tick(container.etag))
        tx.put(updated)
        return Written(etag=updated.etag)

    return await ctx.engine.write([target.scope], commit)


async def protect_container(ctx: Context, target: ContainerName, request: ProtectContainer) -> ContainerProtection:
    """What the control plane of Azure does: policies and legal holds of a container. A locked policy can only be extended."""

    def commit(tx: Transaction) -> ContainerProtection:
        container = require_container(tx, target)
        protection = protection_after(container.protection or ContainerProtection(), request)
        tx.put(replace(container, protection=protection if protection != ContainerProtection() else None))
        return protection

    return await ctx.engine.write([target.scope], commit)
