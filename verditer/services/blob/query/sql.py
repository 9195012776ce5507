"""The SQL of Query Blob Contents → SQL of the engine. Everything that is not in the subset is refused here.

Microsoft's page: Query acceleration SQL language reference. A record with a value that cannot be
converted, where that decides, is not part of the result: the SQL marks it, with its position in the blob, to be reported.
"""

from typing import NamedTuple

from verditer.services.blob.query.expressions import ExpressionParser
from verditer.services.blob.query.functions import KEPT
from verditer.services.blob.query.tokens import Name, Path, TokenReader, invalid_query, tokens_of
from verditer.services.blob.query.values import Conversions, Expression, Resolve, quoted

TABLE = "blob_rows"  # what the engine calls the input
AT = '"#at"'  # the column of the position of a record in the blob
FAULT = '"#fault"'
MAX_COLUMNS = 49  # in a query that names them
MIN_SPLIT_BYTES = 10 << 20


class Column(NamedTuple):
    name: str
    sql: str
    failed: tuple[str, ...] = ()  # conditions: a conversion failed
    is_raw: bool = False  # its values are JSON


class Query(NamedTuple):
    """`columns` is None for `*`. `split_bytes` is set for `sys.split`, which has nothing else. `limit` is not part of the SQL."""

    columns: tuple[Column, ...] | None
    where: str | None = None
    where_failed: tuple[str, ...] = ()
    limit: int | None = None
    is_aggregate: bool = False
    split_bytes: int | None = None

    @property
    def marks_faults(self) -> bool:
        """The last two columns of the result are whether a conversion failed, and the position of the record."""
        return bool(self.where_failed or any(column.failed for column in self.columns or ()))

    def sql(self, star: str) -> str:
        """`star` is the SQL of `*`."""
        shown = star if self.columns is None else ", ".join(f"{each.sql} AS {quoted(each.name)}" for each in self.columns)
        kept = f"coalesce({self.where}, FALSE)" if self.where is not None else "TRUE"
        fault = self._fault(kept) if self.marks_faults else "FALSE"
        if self.is_aggregate:
            fault_columns = (
                f", min({AT}) FILTER (WHERE {FAULT}) IS NOT NULL, min({AT}) FILTER (WHERE {FAULT})" if self.marks_faults else ""
            )
            return f"SELECT {shown}{fault_columns} FROM (SELECT *, {kept} AS {KEPT}, {fault} AS {FAULT} FROM {TABLE})"
        if self.marks_faults:
            return f"SELECT {shown}, {fault} AS {FAULT}, {AT} AS {AT} FROM {TABLE} WHERE {kept} OR {fault}"
        return f"SELECT {shown} FROM {TABLE} WHERE {kept}"

    def _fault(self, kept: str) -> str:
        """A failed conversion gives null, so it has decided only where the result is null."""
        faults = [f"(({self.where}) IS NULL AND ({' OR '.join(self.where_failed)}))"] if self.where_failed else []
        for column in self.columns or ():
            if column.failed:
                is_null = "" if self.is_aggregate else f"({column.sql}) IS NULL AND "
                faults.append(f"({kept} AND {is_null}({' OR '.join(column.failed)}))")
        return f"coalesce({' OR '.join(faults)}, FALSE)"


def parse_query(text: str, resolve: Resolve, now: int = 0, *, raw: bool = False) -> tuple[Query, Path]:
    """The query, and the path of its table. `raw`: columns of JSON stay JSON."""
    reader = TokenReader(tokens_of(text))
    path, alias, after = _table(reader)
    conversions = Conversions()

    def inner(names: Path, position: int) -> Expression:
        return resolve(_without_table(names, alias), position)

    parser = ExpressionParser(reader, inner, conversions, now)
    reader.at = 0
    reader.expect("SELECT")
    split = _split(reader)
    columns = None if split is not None else _columns(reader, parser, conversions, raw=raw)
    if reader.token.text != "FROM":
        raise invalid_query(reader.token.position, "FROM was expected.")
    is_aggregate = _is_aggregate(columns, parser.aggregates)
    reader.at = after
    where = parser.condition() if split is None and reader.accept("WHERE") else None
    where_failed = conversions.taken()
    if is_aggregate != bool(parser.aggregates) or (is_aggregate and parser.aggregates > 1):
        raise invalid_query(reader.token.position, "a query has one aggregate, which is its only column.")
    limit = reader.whole_number("LIMIT") if split is None and reader.accept("LIMIT") else None
    reader.accept(";")
    if reader.token.kind != "end":
        raise invalid_query(reader.token.position, "the end was expected.")
    return Query(columns, where, where_failed, limit, is_aggregate, split), path


def _table(reader: TokenReader) -> tuple[Path, Name | None, int]:
    """`BlobStorage`, or for JSON `BlobStorage[*].path`, and an alias. The columns are read later, when the alias is known."""
    depth = 0
    while reader.token.kind != "end" and not (depth == 0 and reader.token.text == "FROM" and reader.token.kind == "keyword"):
        depth += reader.is_symbol("(") - reader.is_symbol(")")
        reader.next()
    reader.expect("FROM")
    token = reader.next()
    if token.kind != "word" or token.text.lower() != "blobstorage":
        raise invalid_query(token.position, "the table is BlobStorage.")
    path = reader.path_rest(all_elements=True)
    if path[:1] == [None]:  # `BlobStorage[*]` is all records, as `BlobStorage` is
        path = path[1:]
    alias = reader.name() if reader.accept("AS") or reader.token.kind in ("word", "quoted") else None
    return tuple(path), alias, reader.at


def _without_table(names: Path, alias: Name | None) -> Path:
    first = names[0]
    assert isinstance(first, Name)
    if len(names) > 1 and (
        first.text.lower() == "blobstorage" or (alias is not None and first.text.lower() == alias.text.lower())
    ):
        return names[1:]
    return names


def _split(reader: TokenReader) -> int | None:
    """`sys.split(10485760)`: where a CSV blob can be divided."""
    words = [token.text.lower() for token in reader.tokens[reader.at : reader.at + 4]]
    if words != ["sys", ".", "split", "("]:
        return None
    position = reader.token.position
    reader.at += 4
    size = reader.whole_number("sys.split")
    reader.expect(")")
    if size < MIN_SPLIT_BYTES:
        raise invalid_query(position, f"a part has at least {MIN_SPLIT_BYTES} bytes.")
    return size


def _columns(reader: TokenReader, parser: ExpressionParser, conversions: Conversions, *, raw: bool) -> tuple[Column, ...] | None:
    if reader.accept("*"):
        return None
    columns: list[Column] = []
    while not columns or reader.accept(","):
        if len(columns) == MAX_COLUMNS:
            raise invalid_query(reader.token.position, f"a query names at most {MAX_COLUMNS} columns.")
        expression = parser.expression()
        name = reader.name().text if reader.accept("AS") else expression.name or f"_{len(columns) + 1}"
        is_raw = raw and expression.raw is not None
        columns.append(Column(name, str(expression.raw) if is_raw else expression.sql, conversions.taken(), is_raw))
    return tuple(columns)


def _is_aggregate(columns: tuple[Column, ...] | None, aggregates: int) -> bool:
    if aggregates and (columns is None or len(columns) != 1):
        raise invalid_query(0, "a query has one aggregate, which is its only column.")
    return aggregates > 0
