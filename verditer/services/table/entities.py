"""Entities one at a time: insert, get, update, merge, delete. The two upserts are an update and a merge without an ETag."""

from collections.abc import Awaitable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.core.names import EntityName, TableName
from verditer.core.records.record import key_of
from verditer.core.records.table import Entity
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.table import changes
from verditer.services.table.changes import Change, DeleteEntity, InsertEntity, WriteEntity, apply, check_reach
from verditer.services.table.tables import require_table


class StoredEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity as it is stored now. `table` is the name as the request spelled it."""

    table: str
    entity: Entity


async def get_entity(ctx: Context, target: EntityName, grant: Grant) -> StoredEntity:
    if grant.entities is not None:
        grant.entities.check_table(target.table)

    def look(tx: Transaction) -> StoredEntity:
        table = require_table(tx, target)
        entity = tx.get(Entity, table.id, target.partition_key, target.row_key)
        if entity is None or not _is_within(grant, target, table.id):
            raise StorageError(Code.ResourceNotFound)
        return StoredEntity(table=target.table, entity=entity)

    return await ctx.engine.read(target.scope, look)


def _is_within(grant: Grant, target: EntityName, table_id: int) -> bool:
    """With a SAS for some keys of a table, entities outside those keys are not found."""
    if grant.entities is None:
        return True
    low, high = grant.entities.span(table_id)
    return low <= key_of(table_id, target.partition_key, target.row_key) < high


async def insert_entity(ctx: Context, target: TableName, request: InsertEntity, grant: Grant) -> StoredEntity:
    return await _write(ctx, changes.insertion(target, request), grant)


async def replace_entity(ctx: Context, target: EntityName, request: WriteEntity, grant: Grant) -> StoredEntity:
    return await _write(ctx, changes.replacement(target, request), grant)


async def merge_entity(ctx: Context, target: EntityName, request: WriteEntity, grant: Grant) -> StoredEntity:
    return await _write(ctx, changes.merging(target, request), grant)


async def delete_entity(ctx: Context, target: EntityName, request: DeleteEntity, grant: Grant) -> None:
    change = changes.deletion(target, request)
    check_reach(change, grant)
    await ctx.engine.write([target.scope], lambda tx: apply(tx, require_table(tx, target), change))


def _write(ctx: Context, change: Change, grant: Grant) -> Awaitable[StoredEntity]:
    check_reach(change, grant)

    def commit(tx: Transaction) -> StoredEntity:
        entity = apply(tx, require_table(tx, change.name), change)
        assert entity is not None
        return StoredEntity(table=change.name.table, entity=entity)

    return ctx.engine.write([change.name.scope], commit)
