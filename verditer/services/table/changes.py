"""A change to one entity, and its effect on the current entity. Single requests and entity group transactions share this code.

Update, Merge and Delete name the version to change, by its ETag or `*`. Without a condition, Update and Merge insert a missing
entity and compare nothing (contract T1, T2).
"""

from enum import Enum

import msgspec

from verditer.core.conditions import EtagCondition
from verditer.core.edm import Members, decode_members
from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.core.names import EntityName, TableName, check_keys
from verditer.core.records.table import Entity, Table
from verditer.partition.engine import Transaction
from verditer.services.table.properties import document_of, merged


class ChangeAction(Enum):
    INSERT = "insert"
    REPLACE = "replace"
    MERGE = "merge"
    DELETE = "delete"


class InsertEntity(msgspec.Struct, frozen=True, kw_only=True):
    partition_key: str
    row_key: str
    properties: Members


class WriteEntity(msgspec.Struct, frozen=True, kw_only=True):
    properties: Members
    if_match: EtagCondition | None = None


class DeleteEntity(msgspec.Struct, frozen=True, kw_only=True):
    if_match: EtagCondition | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A merge is made from `properties` and the stored entity; every other change has its `document`, which is empty for a
    deletion."""

    action: ChangeAction
    name: EntityName
    properties: Members = {}
    document: bytes = b""
    if_match: EtagCondition | None = None


def insertion(target: TableName, request: InsertEntity) -> Change:
    name = EntityName(target.account, target.table, request.partition_key, request.row_key)
    return _writing(ChangeAction.INSERT, name, request.properties, None)


def replacement(target: EntityName, request: WriteEntity) -> Change:
    return _writing(ChangeAction.REPLACE, target, request.properties, request.if_match)


def merging(target: EntityName, request: WriteEntity) -> Change:
    return _writing(ChangeAction.MERGE, target, request.properties, request.if_match)


def deletion(target: EntityName, request: DeleteEntity) -> Change:
    if request.if_match is None:
        raise StorageError(Code.InvalidInput)
    return Change(action=ChangeAction.DELETE, name=target, if_match=request.if_match)


def _writing(action: ChangeAction, name: EntityName, properties: Members, if_match: EtagCondition | None) -> Change:
    check_keys(name.partition_key, name.row_key)
    document = document_of(properties, name.partition_key, name.row_key)
    return Change(action=action, name=name, properties=properties, document=document, if_match=if_match)


def check_reach(change: Change, grant: Grant) -> None:
    if grant.entities is not None:
        grant.entities.check(change.name.table, change.name.partition_key, change.name.row_key)


def apply(tx: Transaction, table: Table, change: Change) -> Entity | None:
    """Check the change against the current entity and apply it. Returns the new entity; None after a deletion."""
    name = change.name
    entity = outcome(tx, table, change, tx.get(Entity, table.id, name.partition_key, name.row_key))
    if entity is None:
        tx.delete(Entity, table.id, name.partition_key, name.row_key)
    else:
        tx.put(entity)
    return entity


def outcome(tx: Transaction, table: Table, change: Change, current: Entity | None) -> Entity | None:
    """The entity after the change; None when the change deletes it."""
    _check(change, current)
    if change.action is ChangeAction.DELETE:
        return None
    return _entity(table, change, _document(change, current), tx.tick(current.etag if current is not None else 0))


def _entity(table: Table, change: Change, document: bytes, etag: int) -> Entity:
    name = change.name
    return Entity(properties=document, table_id=table.id, partition_key=name.partition_key, row_key=name.row_key, etag=etag)


def _check(change: Change, current: Entity | None) -> None:
    if change.action is ChangeAction.INSERT:
        if current is not None:
            raise StorageError(Code.EntityAlreadyExists)
    elif change.if_match is not None:
        if current is None:
            raise StorageError(Code.ResourceNotFound)
        if not change.if_match.matches(current.etag):
            raise StorageError(Code.UpdateConditionNotSatisfied)


def _document(change: Change, current: Entity | None) -> bytes:
    """A merge keeps the properties that it does not name. The limits of an entity apply to its result."""
    if change.action is not ChangeAction.MERGE or current is None:
        return change.document
    members = merged(decode_members(current.properties), change.properties)
    return document_of(members, current.partition_key, current.row_key)
