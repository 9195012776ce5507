"""Entity group transactions: up to a hundred changes to one partition, all of them or none (contract T4)."""

from collections.abc import Sequence

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.core.limits import MAX_CHANGES
from verditer.core.records.record import key_of
from verditer.core.records.table import Entity, Table
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.services.context import Context
from verditer.services.table.changes import Change, check_reach, outcome
from verditer.services.table.tables import require_table


class ChangeRefused(StorageError):
    """The change at `index` cannot be made, so none of the changes is made."""

    def __init__(self, index: int, error: StorageError) -> None:
        super().__init__(error.code, message=f"{index}:{error.message}")
        self.index = index


async def submit_changes(ctx: Context, changes: Sequence[Change], grant: Grant) -> list[Entity | None]:
    """The entity after each change, in the order of the changes; None for a deletion."""
    check_changes(changes, grant)
    partition = changes[0].name.scope[:-1]

    def commit(tx: Transaction) -> list[Entity | None]:
        """First all reads, then all writes: no entity occurs twice, so no change depends on another."""
        written: list[Entity | None] = []
        try:
            table = require_table(tx, changes[0].name)
            prefix = key_of(table.id, changes[0].name.partition_key)
            keys = [prefix + key_of(change.name.row_key) for change in changes]
            current = tx.get_many(Entity, keys)
            for change, key in zip(changes, keys, strict=True):
                written.append(outcome(tx, table, change, current.get(key)))
        except EngineUnavailable:
            raise
        except StorageError as error:
            raise ChangeRefused(len(written), error) from None
        _store(tx, table, changes, written)
        return written

    return await ctx.engine.write([partition], commit)


def _store(tx: Transaction, table: Table, changes: Sequence[Change], written: Sequence[Entity | None]) -> None:
    entities = [entity for entity in written if entity is not None]
    if entities:
        tx.put(*entities)
    if len(entities) < len(changes):
        for change, entity in zip(changes, written, strict=True):
            if entity is None:
                tx.delete(Entity, table.id, change.name.partition_key, change.name.row_key)


def check_changes(changes: Sequence[Change], grant: Grant) -> None:
    """One table, one partition, each entity once, and the caller may write each of them."""
    check_count(len(changes))
    rows = set[str]()
    for index, change in enumerate(changes):
        try:
            _check_same_partition(change, changes[0], rows)
            check_reach(change, grant)
        except StorageError as error:
            raise ChangeRefused(index, error) from None
        rows.add(change.name.row_key)


def check_count(count: int) -> None:
    """The error names the last change that would have been allowed, as in Azure."""
    if count > MAX_CHANGES:
        message = f"The batch request operation exceeds the maximum {MAX_CHANGES} changes per change set."
        raise ChangeRefused(MAX_CHANGES - 1, StorageError(Code.InvalidInput, message=message))


def _check_same_partition(change: Change, first: Change, rows: set[str]) -> None:
    if change.name.table.lower() != first.name.table.lower():
        raise StorageError(Code.InvalidInput)
    if change.name.partition_key != first.name.partition_key:
        raise StorageError(Code.CommandsInBatchActOnDifferentPartitions)
    if change.name.row_key in rows:
        raise StorageError(Code.InvalidDuplicateRow)
