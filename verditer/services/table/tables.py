"""Tables: create, query, delete, access policies. The "not found" errors of the Table service are raised here."""

from collections.abc import Callable

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_QUERY_SECONDS, MAX_TABLE_PAGE
from verditer.core.names import AccountName, EntityName, TableName, check_table_name
from verditer.core.records.container import AccessPolicy
from verditer.core.records.record import key_of, span_of
from verditer.core.records.table import Table
from verditer.partition.engine import Transaction
from verditer.services.access import check_policies
from verditer.services.context import Context
from verditer.services.removal import remove
from verditer.services.table.compare import compile_filter
from verditer.services.table.filter import Node

ROWS_PER_CLOCK_CHECK = 128


class CreateTable(msgspec.Struct, frozen=True, kw_only=True):
    table: str


class SetTableAcl(msgspec.Struct, frozen=True, kw_only=True):
    policies: tuple[AccessPolicy, ...] = ()


class QueryTables(msgspec.Struct, frozen=True, kw_only=True):
    filter: Node | None = None
    top: int = MAX_TABLE_PAGE
    next_table: str = ""


class TablePage(msgspec.Struct, frozen=True, kw_only=True):
    titles: list[str]
    next_table: str | None  # the first table of the next page


async def create_table(ctx: Context, target: AccountName, request: CreateTable) -> str:
    check_table_name(request.table)
    name = TableName(target.account, request.table)

    def commit(tx: Transaction) -> str:
        if tx.get(Table, name.account, request.table.lower()) is not None:
            raise StorageError(Code.TableAlreadyExists)
        tx.put(Table(account=name.account, name=request.table.lower(), id=tx.tick(), title=request.table))
        return request.table

    return await ctx.engine.write([name.scope], commit)


async def get_table(ctx: Context, target: TableName) -> str:
    def look(tx: Transaction) -> str:
        return require_table(tx, target, _ELEMENT).title

    return await ctx.engine.read(target.scope, look)


async def delete_table(ctx: Context, target: TableName) -> None:
    """Delete one record. Its entities are keyed by its id and become unreachable; the collector removes them."""

    def commit(tx: Transaction) -> None:
        remove(tx, require_table(tx, target, _ELEMENT))

    await ctx.engine.write([target.scope], commit)


async def query_tables(ctx: Context, target: AccountName, request: QueryTables) -> TablePage:
    """In the order of their names in lower case."""
    matches = _predicate(request.filter)
    deadline = ctx.monotonic() + MAX_QUERY_SECONDS

    def look(tx: Transaction) -> TablePage:
        titles: list[str] = []
        span = span_of(target.account).starting(key_of(target.account, request.next_table))
        for number, table in enumerate(tx.scan(Table, span)):
            late = number % ROWS_PER_CLOCK_CHECK == ROWS_PER_CLOCK_CHECK - 1 and ctx.monotonic() > deadline
            if len(titles) == request.top or late:
                return TablePage(titles=titles, next_table=table.name)
            if matches(table):
                titles.append(table.title)
        return TablePage(titles=titles, next_table=None)

    return await ctx.engine.read(target.scope, look, long=True) if request.top else TablePage(titles=[], next_table=None)


def _predicate(node: Node | None) -> Callable[[Table], bool]:
    if node is None:
        return lambda table: True
    return compile_filter(node, {"TableName": lambda table: (table.title, None)}, lambda table: b"{}")


async def get_table_acl(ctx: Context, target: TableName) -> tuple[AccessPolicy, ...]:
    return await ctx.engine.read(target.scope, lambda tx: require_table(tx, target).policies)


async def set_table_acl(ctx: Context, target: TableName, request: SetTableAcl) -> None:
    """Replace all stored policies."""
    check_policies(request.policies)
    for policy in request.policies:
        if not set(policy.permission or "") <= set("raud"):
            raise StorageError(Code.InvalidXmlNodeValue, field="permission", value=policy.permission or "")

    def commit(tx: Transaction) -> None:
        tx.put(msgspec.structs.replace(require_table(tx, target), policies=request.policies))

    await ctx.engine.write([target.scope], commit)


def require_table(tx: Transaction, target: TableName | EntityName, missing: Code = Code.TableNotFound) -> Table:
    """A name that no table can have is refused as such (seen on Azure for every operation that names a table)."""
    table = tx.get(Table, target.account, target.table.lower())
    if table is None:
        if not target.table.startswith("$"):  # such tables may exist in Azure
            check_table_name(target.table)
        raise StorageError(missing)
    return table


async def check_table(ctx: Context, target: TableName) -> None:
    await ctx.engine.read(target.scope, lambda tx: require_table(tx, target))


async def query_below_table(ctx: Context, target: TableName) -> None:
    """A path below a table, such as `/table/Tables`, can be parsed and leads nowhere (seen on Azure)."""
    await check_table(ctx, target)
    raise StorageError(Code.NotImplemented)


async def delete_below_table(ctx: Context, target: TableName) -> None:
    await check_table(ctx, target)
    raise wrong_keys(target.account, target.table)


def wrong_keys(account: str, table: str) -> StorageError:
    message = "The number of keys specified in the URI does not match number of key properties for the resource"
    return StorageError(Code.InvalidInput, message=f"{message} '{account}.{table}'.")


_ELEMENT = Code.ResourceNotFound  # the error for a missing table that is requested as an element of `Tables`
