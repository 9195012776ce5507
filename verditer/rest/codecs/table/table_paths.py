"""How a path of the Table service names a resource, and which verb a request means."""

import re
from collections.abc import Mapping

from verditer.core.errors import Code, StorageError
from verditer.core.names import AccountName, EntityName, TableName
from verditer.rest.address import Address
from verditer.rest.codecs.table.odata import parse_keys, parse_resource, parse_table
from verditer.rest.http.message import Request
from verditer.rest.operation import Level

TableResource = AccountName | TableName | EntityName

_USUAL_ENTITY = re.compile(r"(?![Tt][Aa][Bb][Ll][Ee][Ss]\()([^()]*)\(PartitionKey='([^']*)',RowKey='([^']*)'\)")
_TUNNELLED = frozenset({"MERGE", "PATCH", "PUT", "DELETE"})


def locate_table(address: Address, headers: Mapping[str, str]) -> tuple[Level, TableResource]:
    return locate_path(address.account, "/".join(address.segments))


def locate_path(account: str, path: str) -> tuple[Level, TableResource]:
    """`/`, `/$batch`, `/Tables`, `/Tables('name')`, `/name` or `/name()`, `/name(PartitionKey='…',RowKey='…')`, and paths below
    a table: the table is what is before the first slash (seen on Azure)."""
    if not path:
        return Level.SERVICE, AccountName(account, "table")
    if path == "$batch":
        return Level.BATCH, AccountName(account, "table")
    usual = _USUAL_ENTITY.fullmatch(path) if "(" in path else None
    if usual is not None:
        return Level.ENTITY, EntityName(account, *usual.groups())
    if "/" in path.partition("(")[0]:
        table, _, rest = path.partition("/")
        return Level.BELOW_TABLE if rest.strip("/") else Level.ENTITIES, TableName(account, table)
    name, arguments = parse_resource(path)
    if name.lower() == "tables":
        if not arguments:
            return Level.TABLES, AccountName(account, "table")
        return Level.TABLE, TableName(account, parse_table(arguments))
    if not arguments:
        return Level.ENTITIES, TableName(account, name)
    return Level.ENTITY, EntityName(account, name, *parse_keys(arguments, account, name))


def tunnelled_verb(request: Request) -> str:
    """A client or proxy that cannot send a verb sends POST, with the verb in a header."""
    sent = request.headers.get("x-http-method")
    if sent is None:
        return request.method
    if request.method != "POST":
        raise StorageError(Code.XMethodNotUsingPost)
    if "," in sent:
        raise StorageError(Code.XMethodIncorrectCount)
    if sent.upper() not in _TUNNELLED:
        raise StorageError(Code.XMethodIncorrectValue)
    return sent.upper()
