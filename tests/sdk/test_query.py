"""Query Blob Contents with Microsoft's client: the SQL subset over CSV, JSON and Parquet, the outputs, errors and progress."""

import io
import json
import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    ArrowDialect,
    ArrowType,
    BlobQueryError,
    BlobServiceClient,
    ContainerClient,
    DelimitedJsonDialect,
    DelimitedTextDialect,
)

from tests.rest.running import Running

CSV = b'id,name,price\n1,apple,1.50\n2,pear,0.75\n3,"fig, dried",12\n4,plum,\n'
HEADERS = DelimitedTextDialect(delimiter=",", quotechar='"', lineterminator="\n", has_header=True)
PLAIN = DelimitedTextDialect(delimiter=",", quotechar='"', lineterminator="\n", has_header=False)
LINES = DelimitedJsonDialect(delimiter="\n")


@pytest.fixture
def container(account: Running) -> Iterator[ContainerClient]:
    with BlobServiceClient.from_connection_string(account.connection_string) as service:
        yield service.create_container(f"query-{uuid.uuid4().hex[:12]}")


def ask(container: ContainerClient, data: bytes, expression: str, **options: Any) -> bytes:
    container.upload_blob("blob", data, overwrite=True)
    result = container.get_blob_client("blob").query_blob(expression, **options).readall()
    assert isinstance(result, bytes)
    return result


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("SELECT * FROM BlobStorage", b'1,apple,1.50\n2,pear,0.75\n3,"fig, dried",12\n4,plum,\n'),
        ("SELECT name FROM BlobStorage WHERE id = 2", b"pear\n"),
        ("select NAME, _1 from blobstorage where price > 1", b'apple,1\n"fig, dried",3\n'),
        ("SELECT name FROM BlobStorage WHERE price = ''", b"plum\n"),
        ("SELECT name FROM BlobStorage WHERE name LIKE 'p%' AND NOT id IN (4, 9)", b"pear\n"),
        ("SELECT id FROM BlobStorage WHERE CAST(id AS INT) BETWEEN 2 AND 3", b"2\n3\n"),
        ("SELECT id FROM BlobStorage WHERE CHAR_LENGTH(name) = 4 LIMIT 1", b"2\n"),
        ("SELECT UPPER(name) AS big, SUBSTRING(name, 0, 2) FROM BlobStorage LIMIT 1", b"APPLE,ap\n"),
        ("SELECT SUM(price) FROM BlobStorage", b"14.25\n"),
        ("SELECT CASE WHEN id > 2 THEN 'late' ELSE 'early' END FROM BlobStorage", b"early\nearly\nlate\nlate\n"),
        ("SELECT id + 1, -id * 2 FROM BlobStorage LIMIT 1", b"2,-2\n"),
        ("SELECT name FROM BlobStorage WHERE name = 'it''s'", b""),
    ],
)
def test_the_subset_of_sql_over_csv(container: ContainerClient, expression: str, result: bytes) -> None:
    assert ask(container, CSV, expression, blob_format=HEADERS, output_format=PLAIN) == result


def test_columns_without_a_header_have_numbers(container: ContainerClient) -> None:
    assert ask(container, CSV, "SELECT _2 FROM BlobStorage WHERE _1 = 'id'") == b"name\n"
    assert ask(container, b"", "SELECT * FROM BlobStorage") == b""


def test_formats_of_the_output(container: ContainerClient) -> None:
    as_json = ask(container, CSV, "SELECT id, price FROM BlobStorage LIMIT 2", blob_format=HEADERS, output_format=LINES)
    assert [json.loads(line) for line in as_json.splitlines()] == [{"id": "1", "price": "1.50"}, {"id": "2", "price": "0.75"}]
    other = DelimitedTextDialect(delimiter=";", quotechar="'", lineterminator="|", has_header=True)
    as_text = ask(container, CSV, "SELECT name, id FROM BlobStorage WHERE id = 3", blob_format=HEADERS, output_format=other)
    assert as_text == b"name;id|fig, dried;3|"
    schema = [ArrowDialect(ArrowType.INT64, name="number"), ArrowDialect(ArrowType.STRING, name="fruit")]
    as_arrow = ask(container, CSV, "SELECT CAST(id AS INT), name FROM BlobStorage", blob_format=HEADERS, output_format=schema)
    table = pa.ipc.open_stream(as_arrow).read_all()
    assert (table.column_names, table.column("number").to_pylist()) == (["number", "fruit"], [1, 2, 3, 4])


def test_json_lines(container: ContainerClient) -> None:
    data = b'{"id": 1, "who": {"name": "Ann"}, "x": 5}\n\n{"id": 2, "who": {"name": "Bob"}}\n'
    options: dict[str, Any] = {"blob_format": LINES, "output_format": LINES}
    assert ask(container, data, "SELECT * FROM BlobStorage[*] WHERE x = 5", **options) == data.splitlines()[0] + b"\n"
    named = ask(container, data, "SELECT who.name AS n, id FROM BlobStorage WHERE who.name >= 'B'", **options)
    assert json.loads(named) == {"n": "Bob", "id": 2}
    assert (
        ask(container, data, "SELECT COUNT(*) FROM BlobStorage WHERE x IS MISSING", blob_format=LINES, output_format=PLAIN)
        == b"1\n"
    )


def test_parquet(container: ContainerClient) -> None:
    file = io.BytesIO()
    pyarrow.parquet.write_table(
        pa.table({"id": range(20_000), "text": [f"t{n}" for n in range(20_000)]}), file, row_group_size=1000
    )
    options: dict[str, Any] = {"blob_format": "ParquetDialect", "output_format": PLAIN}
    assert ask(container, file.getvalue(), "SELECT text FROM BlobStorage WHERE id >= 19998", **options) == b"t19998\nt19999\n"
    assert ask(container, file.getvalue(), "SELECT COUNT(*) FROM BlobStorage", **options) == b"20000\n"
    with pytest.raises(HttpResponseError, match="not a Parquet file"):
        ask(container, CSV, "SELECT * FROM BlobStorage", **options)


def test_errors_and_progress_are_records_of_the_answer(container: ContainerClient) -> None:
    errors: list[BlobQueryError] = []
    data = b'{"a": 1}\nno json\n'
    container.upload_blob("blob", data)
    reader = container.get_blob_client("blob").query_blob("SELECT * FROM BlobStorage", on_error=errors.append, blob_format=LINES)
    reader.readall()
    assert [(one.error, one.is_fatal) for one in errors] == [("ParseError", True)]
    assert len(reader) == len(data)
    errors.clear()
    container.upload_blob("blob", b"a,b\n1\n2,3\n", overwrite=True)
    reader = container.get_blob_client("blob").query_blob("SELECT _2 FROM BlobStorage", on_error=errors.append)
    assert (reader.readall(), [(one.error, one.is_fatal) for one in errors]) == (b"b\n3\n", [("InvalidColumnOrdinal", False)])


@pytest.mark.parametrize(
    "expression",
    ["SELECT", "SELECT * FROM other", "SELECT absent FROM BlobStorage", "SELECT getenv('HOME') FROM BlobStorage"],
)
def test_whatever_is_not_in_the_subset_is_refused(container: ContainerClient, expression: str) -> None:
    with pytest.raises(HttpResponseError, match="Syntax error!") as refused:
        ask(container, CSV, expression, blob_format=HEADERS)
    assert (refused.value.status_code, "ErrorProcessingQueryExpression" in str(refused.value)) == (400, True)


def test_a_blob_of_several_megabytes_is_queried_piece_by_piece(container: ContainerClient) -> None:
    row = b"%d,some text that makes the row longer,%d\n"
    data = b"".join([row % (number, number % 100) for number in range(150_000)])
    result = ask(container, data, "SELECT _1 FROM BlobStorage WHERE _3 = 99")
    assert result.splitlines() == [b"%d" % number for number in range(99, 150_000, 100)]
