"""A change to one entity, and what it does to the entity it meets. The same for a single request and for each part of a batch.

Update, Merge and Delete say which version they mean, by ETag or `*`; without one, Update and Merge create what is missing and
never compare (contract T1, T2).
"""

from enum import Enum

import msgspec

from verditer.core.edm import Members, decode_members, etag_text
from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.core.names import EntityName, TableName, check_keys
from verditer.core.records.table import Entity, Table
from verditer.partition.engine import Transaction
from verditer.services.table.properties import document_of, merged

ANY = "*"


class Action(Enum):
    INSERT = "insert"
    REPLACE = "replace"
    MERGE = "merge"
    DELETE = "delete"


class InsertEntity(msgspec.Struct, frozen=True, kw_only=True):
    partition_key: str
    row_key: str
    properties: Members


class WriteEntity(msgspec.Struct, frozen=True, kw_only=True):
    """`if_match` is an ETag as `etag_text` shows it, or `*`."""

    properties: Members
    if_match: str | None = None


class DeleteEntity(msgspec.Struct, frozen=True, kw_only=True):
    if_match: str | None = None


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A merge has `properties`, which its document is made of when the stored one is known; others have a `document`, empty for a
    deletion."""

    action: Action
    name: EntityName
    properties: Members = {}
    document: bytes = b""
    if_match: str | None = None


def insertion(target: TableName, request: InsertEntity) -> Change:
    name = EntityName(target.account, target.table, request.partition_key, request.row_key)
    return _writing(Action.INSERT, name, request.properties, None)


def replacement(target: EntityName, request: WriteEntity) -> Change:
    return _writing(Action.REPLACE, target, request.properties, request.if_match)


def merging(target: EntityName, request: WriteEntity) -> Change:
    return _writing(Action.MERGE, target, request.properties, request.if_match)


def deletion(target: EntityName, request: DeleteEntity) -> Change:
    if request.if_match is None:
        raise StorageError(Code.InvalidInput)
    return Change(action=Action.DELETE, name=target, if_match=request.if_match)


def _writing(action: Action, name: EntityName, properties: Members, if_match: str | None) -> Change:
    check_keys(name.partition_key, name.row_key)
    document = document_of(properties, name.partition_key, name.row_key)
    return Change(action=action, name=name, properties=properties, document=document, if_match=if_match)


def check_reach(change: Change, grant: Grant) -> None:
    if grant.entities is not None:
        grant.entities.check(change.name.table, change.name.partition_key, change.name.row_key)


def apply(tx: Transaction, table: Table, change: Change) -> Entity | None:
    """Check the change against the entity as it is, and make it. What was written, or None when it was deleted."""
    name = change.name
    if change.action is Action.INSERT:
        return _insert(tx, table, change)
    entity = outcome(tx, table, change, tx.get(Entity, table.id, name.partition_key, name.row_key))
    if entity is None:
        tx.delete(Entity, table.id, name.partition_key, name.row_key)
    else:
        tx.put(entity)
    return entity


def _insert(tx: Transaction, table: Table, change: Change) -> Entity:
    entity = _entity(table, change, change.document, tx.tick())
    if not tx.insert(entity):
        raise StorageError(Code.EntityAlreadyExists)
    return entity


def outcome(tx: Transaction, table: Table, change: Change, current: Entity | None) -> Entity | None:
    """What a change makes of the entity as it is; None when it deletes it."""
    _check(change, current)
    if change.action is Action.DELETE:
        return None
    return _entity(table, change, _document(change, current), tx.tick(current.etag if current is not None else 0))


def _entity(table: Table, change: Change, document: bytes, etag: int) -> Entity:
    name = change.name
    return Entity(properties=document, table_id=table.id, partition_key=name.partition_key, row_key=name.row_key, etag=etag)


def _check(change: Change, current: Entity | None) -> None:
    if change.action is Action.INSERT:
        if current is not None:
            raise StorageError(Code.EntityAlreadyExists)
    elif change.if_match is not None:
        if current is None:
            raise StorageError(Code.ResourceNotFound)
        if change.if_match not in (ANY, etag_text(current.etag)):
            raise StorageError(Code.UpdateConditionNotSatisfied)


def _document(change: Change, current: Entity | None) -> bytes:
    """A merge keeps what it does not mention; its result has to keep the limits too."""
    if change.action is not Action.MERGE or current is None:
        return change.document
    members = merged(decode_members(current.properties), change.properties)
    return document_of(members, current.partition_key, current.row_key)
