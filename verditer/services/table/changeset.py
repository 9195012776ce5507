"""Entity group transactions: up to a hundred changes to one partition, all of them or none (contract T4)."""

from collections.abc import Sequence

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Grant
from verditer.core.limits import MAX_CHANGES
from verditer.core.records.table import Entity
from verditer.partition.engine import EngineUnavailable, Transaction
from verditer.services.context import Context
from verditer.services.table.changes import Change, apply, check_reach
from verditer.services.table.tables import require_table


class ChangeRefused(StorageError):
    """The change at `index` cannot be made, and so none is."""

    def __init__(self, index: int, error: StorageError) -> None:
        super().__init__(error.code, message=f"{index}:{error.message}", details=error.details)
        self.index = index


async def submit_changes(ctx: Context, changes: Sequence[Change], grant: Grant) -> list[Entity | None]:
    """What each change wrote, in their order; None for a deletion."""
    check_changes(changes, grant)
    partition = changes[0].name.scope[:-1]

    def commit(tx: Transaction) -> list[Entity | None]:
        written: list[Entity | None] = []
        try:
            table = require_table(tx, changes[0].name)
            for change in changes:
                written.append(apply(tx, table, change))
        except EngineUnavailable:
            raise
        except StorageError as error:
            raise ChangeRefused(len(written), error) from None
        return written

    return await ctx.engine.write(partition, commit)


def check_changes(changes: Sequence[Change], grant: Grant) -> None:
    """One table, one partition, each entity once, each within reach of the caller."""
    check_count(len(changes))
    rows = set[str]()
    for index, change in enumerate(changes):
        try:
            _check_company(change, changes[0], rows)
            check_reach(change, grant)
        except StorageError as error:
            raise ChangeRefused(index, error) from None
        rows.add(change.name.row_key)


def check_count(count: int) -> None:
    """Refused at the last change that would have been allowed, as Azure does."""
    if count > MAX_CHANGES:
        message = f"The batch request operation exceeds the maximum {MAX_CHANGES} changes per change set."
        raise ChangeRefused(MAX_CHANGES - 1, StorageError(Code.InvalidInput, message=message))


def _check_company(change: Change, first: Change, rows: set[str]) -> None:
    if change.name.table.lower() != first.name.table.lower():
        raise StorageError(Code.InvalidInput)
    if change.name.partition_key != first.name.partition_key:
        raise StorageError(Code.CommandsInBatchActOnDifferentPartitions)
    if change.name.row_key in rows:
        raise StorageError(Code.InvalidDuplicateRow)
