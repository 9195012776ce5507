"""Queries without a server: the subset of SQL, the formats, and what is reported of records that cannot be read or converted."""

import asyncio
import io
import json
import threading
from collections.abc import Iterator
from datetime import time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from verditer.core.dates import parse_iso
from verditer.core.errors import Code, StorageError
from verditer.services.blob.query import service
from verditer.services.blob.query.evaluation import evaluate
from verditer.services.blob.query.request import Delimited, Input, JsonLines, Output, QueryBlob
from verditer.services.blob.query.service import QueryEnd, QueryError, QueryEvent, QueryProgress, ResultData

CSV = Input(delimited=Delimited())
HEADERS = Input(delimited=Delimited(has_headers=True))
JSON = Input(json=JsonLines())
TEXT, LINES = Output(delimited=Delimited()), Output(json=JsonLines())
NOW = parse_iso("2024-05-06T07:08:09Z") or 0
# The record of Microsoft's page.
MOUSE = b"""{"id": 1, "name": "mouse", "price": 12.5, "tags": ["wireless", "accessory"],
 "dimensions": {"length": 3, "width": 2, "height": 2}, "weight": 0.2,
 "warehouses": [{"latitude": 41.8, "longitude": -87.6}, {"latitude": 1, "longitude": null}]}
"""


class File(io.BytesIO):
    @property
    def position(self) -> int:
        return self.tell()

    async def end(self) -> None:
        pass


def events(expression: str, data: bytes = b"x\n", given: Input = CSV, output: Output = TEXT) -> Iterator[QueryEvent | None]:
    request = QueryBlob(version="", expression=expression, input=given, output=output)
    file: Any = File(data)
    return evaluate(request, file, len(data), NOW)


def ask(expression: str, data: bytes = b"x\n", given: Input = CSV, output: Output = TEXT) -> tuple[str, list[QueryError]]:
    """(result, errors)"""
    found = list(events(expression, data, given, output))
    assert found[0] is None
    errors = [event for event in found if isinstance(event, QueryError)]
    return b"".join([event.data for event in found if isinstance(event, ResultData)]).decode(), errors


def value(expression: str) -> str:
    """Of an expression without columns."""
    result, errors = ask(f"SELECT {expression} FROM BlobStorage")
    assert errors == []
    return result.removesuffix("\n")


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        # the examples of Microsoft's page
        ("CHARACTER_LENGTH('abcdefg')", "7"),
        ("CHAR_LENGTH(_1)", "1"),
        ("LOWER('AbCdEfG')", "abcdefg"),
        ("UPPER('AbCdEfG')", "ABCDEFG"),
        ("SUBSTRING('123456789', 1, 5)", "23456"),
        ("TRIM(BOTH '123' FROM '1112211Microsoft22211122')", "Microsoft"),
        ("DATE_ADD('minute', 1, CAST('2017-01-02T03:04:05.006Z' AS TIMESTAMP))", "2017-01-02T03:05:05.006Z"),
        ("DATE_DIFF('hour','2018-11-09T00:00+05:30','2018-11-09T01:00:23-08:00')", "14"),
        ("EXTRACT(YEAR FROM '2010-01-01T')", "2010"),
        ("TO_STRING(CAST('1969-07-20T20:18Z' AS TIMESTAMP),  'MMMM d, y')", '"July 20, 1969"'),
        ("TO_TIMESTAMP('2007T')", "2007-01-01T00:00:00Z"),
        # and what follows from it
        ("SUBSTRING('123', 1)", "23"),
        ("TRIM('  a ')", "a"),
        ("TRIM(LEADING FROM '  a ')", "a "),
        ("TRIM(TRAILING 'xy' FROM 'axyx')", "a"),
        ("DATE_ADD(year, -1, '2017-01-02')", "2016-01-02T00:00:00Z"),
        ("DATE_ADD('month', 1, '2017-01-31')", "2017-02-28T00:00:00Z"),
        ("DATE_ADD('day', 2, '2017-02-28T23:00Z')", "2017-03-02T23:00:00Z"),
        ("DATE_ADD('hour', 25, '2017-02-28')", "2017-03-01T01:00:00Z"),
        ("DATE_ADD('second', 90, '2017-02-28')", "2017-02-28T00:01:30Z"),
        ("DATE_DIFF(day, '2010-01-01T23:00Z', '2010-01-02T01:00Z')", "0"),
        ("DATE_DIFF('month', '2010-03', '2010-01')", "-2"),
        ("DATE_DIFF('minute', '2010-01-01T00:00Z', '2010-01-01T01:00:59Z')", "60"),
        ("EXTRACT(MONTH FROM '2010-11')", "11"),
        ("EXTRACT(SECOND FROM CAST('2010-11-01T00:00:59.9Z' AS TIMESTAMP))", "59"),
        ("EXTRACT(TIMEZONE_HOUR FROM '2018-11-09T00:00-05:30')", "-5"),
        ("EXTRACT(TIMEZONE_MINUTE FROM '2018-11-09T00:00+05:30')", "30"),
        ("EXTRACT(TIMEZONE_HOUR FROM TO_TIMESTAMP('2018-11-09T00:00+05:30'))", "0"),
        ("TO_STRING(TO_TIMESTAMP('2018-03-04T15:06:07.089Z'), 'yy yyyy M MM MMM dd a h hh H HH m mm s ss S SS SSS XX xxxx')",
         "18 2018 3 03 MAR 04 PM 3 03 15 15 6 06 7 07 0 08 089 Z +0000"),
        ("UTCNOW()", "2024-05-06T07:08:09Z"),
        ("CAST('2017-01-02' AS TIMESTAMP) + 3", "2017-01-05T00:00:00Z"),
        ("CAST('2017-01-02T00:00Z' AS TIMESTAMP) = '2017-01-02T01:00+01:00'", "true"),
        ("CAST(CAST('2017-01-02' AS TIMESTAMP) AS STRING)", "2017-01-02T00:00:00Z"),
        ("CAST('42' AS INT) + 1", "43"),
        ("CAST(2.9 AS INT)", "2"),
        ("CAST('1.5e1' AS FLOAT)", "15"),
        ("CAST('true' AS BOOLEAN)", "true"),
        ("CAST(12 AS STRING)", "12"),
        ("COALESCE(NULL, NULLIF('a', 'a'), 'b')", "b"),
        ("COALESCE(NULLIF(1, 2), 7)", "1"),
        ("NULLIF('1', 1) IS NULL", "true"),
        ("7 % 3 + 2 * 3 - 4 / 2", "5"),
        ("CASE WHEN 1 > 2 THEN 'a' WHEN 2 > 1 THEN 'b' END", "b"),
        ("'a_c' LIKE 'a!_c' ESCAPE '!'", "true"),
        ("NOT 3 BETWEEN 1 AND 2", "true"),
        ("3 NOT BETWEEN 1 AND 2 AND 3 NOT IN (4, 5) AND 'a' NOT LIKE 'b%'", "true"),
        ("TRUE AND (FALSE OR 'true')", "true"),
        ("'1' IN (2, 1.0) AND 'a' IN ('b', 'a') AND 1 NOT IN ('2', 3)", "true"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808 / 2", "4.611686018427388e+18"),
        ("9" * 400 + " > 1", "true"),
        ("DATE_ADD('year', 9000, '2020')", "11020-01-01T00:00:00Z"),
        ("NULL IS NULL AND 1 IS NOT NULL", "true"),
    ],
)  # fmt: skip
def test_expressions_have_the_values_of_the_reference(expression: str, result: str) -> None:
    assert value(expression) == result


@pytest.mark.parametrize(
    ("aggregate", "result"),
    [
        ("COUNT(*)", "3"),
        ("COUNT(_2)", "3"),
        ("SUM(_1)", "6"),
        ("AVG(_1)", "2"),
        ("AVERAGE(_1)", "2"),
        ("MIN(_2)", "a"),
        ("MAX(_2)", "c"),
    ],
)
def test_aggregates_see_the_records_of_the_condition(aggregate: str, result: str) -> None:
    data = b"1,a\n2,b\n3,c\n9,z\n"
    assert ask(f"SELECT {aggregate} FROM BlobStorage WHERE _1 < 5", data) == (f"{result}\n", [])


def test_a_limit_counts_the_records_of_the_result() -> None:
    data = b"1\n2\n3\n"
    results = [ask(f"SELECT _1 FROM BlobStorage WHERE _1 > 1 LIMIT {limit}", data)[0] for limit in (0, 1, 9)]
    assert results == ["", "2\n", "2\n3\n"]
    assert [ask(f"SELECT COUNT(*) FROM BlobStorage LIMIT {limit}", data)[0] for limit in (0, 1)] == ["", "3\n"]


@pytest.mark.parametrize("given", [CSV, JSON], ids=["csv", "json"])
@pytest.mark.parametrize("query", ["SELECT * FROM BlobStorage", "SELECT _2 FROM BlobStorage", "SELECT _1, _2 FROM BlobStorage"])
def test_large_records_do_not_collect_in_memory(query: str, given: Input) -> None:
    """The result of some records arrives before many more are read."""
    record = b"1," + b"x" * 400_000 + b"\n" if given is CSV else json.dumps({"_1": 1, "_2": "x" * 400_000}).encode()
    data = record * 40
    request = QueryBlob(version="", expression=query, input=given, output=TEXT)
    file, seen = File(data), 0
    for event in evaluate(request, file, len(data), NOW):  # type: ignore[arg-type]
        if isinstance(event, ResultData):
            seen += len(event.data)
            assert file.position - seen < 6 << 20
    assert seen > len(data) * 0.9


def test_a_long_literal_is_not_repeated_for_thousands_of_records_at_once() -> None:
    data, query = b"1\n" * 300, f"SELECT '{'x' * 100_000}' FROM BlobStorage"
    written = 0
    for event in events(query, data):
        if isinstance(event, QueryProgress):
            assert written < 20 << 20
            written = 0
        written += len(event.data) if isinstance(event, ResultData) else 0


def test_the_client_sees_that_a_long_query_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PROGRESS_SECONDS", 0.01)
    proceed = threading.Event()
    file = File(b"x" * 100)
    file.seek(40)

    def steps() -> Iterator[QueryEvent]:
        assert proceed.wait(20)
        yield QueryEnd(100)

    async def run() -> list[QueryEvent]:
        found: list[QueryEvent] = []
        async for event in service._events(asyncio.get_running_loop(), steps(), file, 100):  # type: ignore[arg-type]
            found.append(event)
            if len(found) > 2:
                proceed.set()
        return found

    found = asyncio.run(run())
    assert (found[:3], found[-1]) == ([QueryProgress(0, 100), QueryProgress(40, 100), QueryProgress(40, 100)], QueryEnd(100))


def test_paths_lead_into_json() -> None:
    query = "SELECT weight,warehouses[0].longitude,id,tags[1] FROM BlobStorage[*]"
    assert ask(query, MOUSE, JSON) == ("0.2,-87.6,1,accessory\n", [])
    assert ask("SELECT latitude FROM BlobStorage[*].warehouses[*]", MOUSE, JSON)[0] == "41.8\n1\n"
    assert ask("SELECT length FROM BlobStorage[*].dimensions", MOUSE, JSON)[0] == "3\n"
    assert ask("SELECT s.longitude FROM BlobStorage[*].warehouses[1] s", MOUSE, JSON, LINES)[0] == '{"longitude":null}\n'
    assert ask("SELECT * FROM BlobStorage[*].tags[*]", MOUSE, JSON, LINES)[0] == '{"_1":"wireless"}\n{"_1":"accessory"}\n'
    assert ask("SELECT * FROM BlobStorage WHERE weight < 1", MOUSE, JSON, LINES)[0] == MOUSE.decode()
    assert ask("SELECT * FROM BlobStorage[*].nowhere", MOUSE, JSON, LINES)[0] == ""
    assert ask("SELECT COUNT(*) FROM BlobStorage WHERE tags[0] = 'wireless' AND tags[5] IS MISSING", MOUSE, JSON)[0] == "1\n"


def test_values_of_json_keep_their_types_and_what_is_missing_is_left_out() -> None:
    data = b'{"name": "owner", "id": 1}\n{"name2": "owner2"}\n{"name": null, "id": {"a": [true]}}'
    result, errors = ask("SELECT name, id FROM BlobStorage", data, JSON, LINES)
    assert (result, errors) == ('{"name":"owner","id":1}\n{}\n{"name":null,"id":{"a":[true]}}\n', [])
    missing = "SELECT COUNT(*) FROM BlobStorage WHERE name IS MISSING"
    null = "SELECT COUNT(*) FROM BlobStorage WHERE name IS NULL"
    assert [ask(each, data, JSON)[0] for each in (missing, null)] == ["1\n", "2\n"]


def test_names_are_case_sensitive_in_quotes_only() -> None:
    data = b'{"Name": "a", "name": "b"}\n'
    query = 'SELECT NAME, "name", "Name", "NAME" FROM BlobStorage'
    assert ask(query, data, JSON, LINES)[0] == '{"NAME":"a","name":"b","Name":"a"}\n'
    assert ask('SELECT ID, "Id", _1 FROM BlobStorage', b"Id\n7\n", HEADERS)[0] == "7,7,7\n"
    with pytest.raises(StorageError):
        ask('SELECT "ID" FROM BlobStorage', b"Id\n7\n", HEADERS)


def test_records_of_json_need_no_separator() -> None:
    one = '{"name": "owner", "id": 1}'
    assert ask("SELECT name FROM BlobStorage", (one + '{"n": "é"}' + one).encode(), JSON, LINES)[0] == (
        '{"name":"owner"}\n{}\n{"name":"owner"}\n'
    )
    assert ask("SELECT id FROM BlobStorage", b'[{"id": 1},{"id": 2}] {"id": 3}', JSON)[0] == "1\n2\n3\n"


@pytest.mark.parametrize(
    ("data", "description", "position"),
    [
        (b"{name: owner}\n{name2: owner2}\n", "Unexpected token 'n' at [byte: 1]. Expecting tokens '\"'.", 0),  # recorded
        (b"100,200\n", "Unexpected token '1' at [byte: 0]. Expecting tokens '{', or '['.", 0),
        ('{"é": 1}\n{"a" 1}'.encode(), "Unexpected token '1' at [byte: 15]. Expecting tokens ':'.", 10),
        (b'{"a": [1, 2', "Unexpected end of the blob.", 0),
    ],
)
def test_what_is_not_json_ends_the_query(data: bytes, description: str, position: int) -> None:
    _, errors = ask("SELECT * FROM BlobStorage", data, JSON, LINES)
    assert errors == [QueryError(fatal=True, name="ParseError", description=description, position=position)]


def test_a_record_that_is_too_large_ends_the_query() -> None:
    for data, given in ((b'{"a": "' + b"x" * (2 << 20) + b'"}', JSON), (b"a,b\n" + b"x" * (3 << 20), CSV)):
        _, errors = ask("SELECT * FROM BlobStorage", data, given)
        assert [(one.name, one.fatal) for one in errors] == [("RecordTooLarge", True)]


def test_values_that_cannot_be_converted_are_reported_with_the_position_of_their_record() -> None:
    data = b"100,pizza,300,400\n300,400,500,600\n"  # recorded
    expected = [QueryError(fatal=False, name="InvalidTypeConversion", description="Invalid type conversion.", position=0)]
    assert ask("SELECT _1 from BlobStorage WHERE _2 > 250;", data) == ("300\n", expected)
    assert ask("SELECT COUNT(*) from BlobStorage WHERE _2 > 250", data) == ("1\n", expected)
    assert ask("SELECT SUM(_2) from BlobStorage", data) == ("400\n", expected)
    assert ask("SELECT CAST(_2 AS INT) FROM BlobStorage LIMIT 1", data) == ("400\n", expected)
    assert ask("SELECT * FROM BlobStorage WHERE _2 > 250", data) == ("300,400,500,600\n", expected)
    assert ask("SELECT _3 FROM BlobStorage WHERE _3 = 300 OR _2 > 1000", data) == ("300\n", [])  # it does not decide
    late = data + b"1,no date,3,4\n"
    _, errors = ask(
        "SELECT _1 FROM BlobStorage WHERE _3 > 0 AND CAST(_2 AS TIMESTAMP) IS NULL AND TO_TIMESTAMP(_2) > '2000'", late
    )
    assert [one.position for one in errors] == [0, 18, 34]


def test_records_of_csv_may_differ_in_length() -> None:
    data = b"a,b\r\n1\r\n2,3\r\n\r\n4,5,6\r\n"
    assert ask("SELECT * FROM BlobStorage", data) == ("a,b\n1\n2,3\n4,5,6\n", [])
    result, errors = ask("SELECT b FROM BlobStorage", data, HEADERS)
    assert result == "3\n5\n"
    assert [(one.name, one.position, one.fatal) for one in errors] == [("InvalidColumnOrdinal", 5, False)]
    assert ask("SELECT * FROM BlobStorage", data, HEADERS, LINES)[0].splitlines()[-1] == '{"a":"4","b":"5","_3":"6"}'


def test_half_of_a_surrogate_pair_becomes_the_replacement_character() -> None:
    data = b'{"a": ["\\ud83d", {"\\uDE00": "\\ud83d\\ude00"}]}\n{"a": [1]}\n'
    assert ask("SELECT a[0] AS x FROM BlobStorage", data, JSON, TEXT)[0] == "\ufffd\n1\n"
    assert ask("SELECT a FROM BlobStorage", data, JSON, LINES)[0].splitlines()[0] == '{"a":["\ufffd",{"\ufffd":"\U0001f600"}]}'
    assert ask("SELECT * FROM BlobStorage[*].a[*]", data, JSON, LINES)[0] == (
        '{"_1":"\ufffd"}\n{"\ufffd":"\U0001f600"}\n{"_1":1}\n'
    )


def test_a_column_without_a_name_has_a_number() -> None:
    assert ask("SELECT _1, b FROM BlobStorage", b",b\n0,x\n", HEADERS, LINES)[0] == '{"_1":"0","b":"x"}\n'
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table([pa.array([1]), pa.array([2])], names=["a", ""]), file)
    assert ask("SELECT * FROM BlobStorage", file.getvalue(), Input(parquet=True), LINES)[0] == '{"a":1,"_2":2}\n'


def test_separators_quotes_and_escapes_of_csv() -> None:
    dotted = Delimited(column_separator=".", record_separator="!", has_headers=True)
    data = b"100.200.300.400!150.250.350.450!180.280.380.480!"
    given, output = Input(delimited=dotted), Output(delimited=Delimited(column_separator=".", record_separator="!"))
    assert ask("select _1 from BlobStorage", data, given, output)[0] == "150!180!"
    quoted = b'1,"two\nlines, and ""quotes"""\n3,plain\n'
    assert ask("SELECT CHAR_LENGTH(_2), _1 FROM BlobStorage", quoted)[0] == "23,1\n5,3\n"
    escaped = Input(delimited=Delimited(escape_char="\\"))
    assert ask("SELECT _2, _1 FROM BlobStorage", b'"a\\"\n",b\\,c\n1,2\n', escaped)[0] == '"b,c","a""\n"\n2,1\n'
    no_quotes = Input(delimited=Delimited(field_quote=""))
    assert ask("SELECT _1 FROM BlobStorage", b'a"b,1\n', no_quotes, LINES)[0] == '{"_1":"a\\"b"}\n'


def test_a_csv_blob_is_split_into_whole_records() -> None:
    data = (b"x" * 997 + b",1\n") * 25_000
    sizes = [int(line) for line in ask("SELECT sys.split(10485760)FROM BlobStorage", data)[0].split()]
    assert (sum(sizes), len(sizes)) == (len(data), 3)
    assert all(size % 1000 == 0 and 10485760 <= size < 10486760 for size in sizes[:-1])
    for wrong in ("sys.split(10485759)", "sys.split(1e9)"):
        with pytest.raises(StorageError):
            ask(f"SELECT {wrong} FROM BlobStorage", data)
    with pytest.raises(StorageError):
        ask("SELECT sys.split(10485760) FROM BlobStorage", MOUSE, JSON)


def test_parquet_has_types_and_nested_values() -> None:
    file = io.BytesIO()
    moments = pa.array([0, 86_400_000], pa.timestamp("ms", "Europe/Paris"))
    inner = pa.array([{"Name": "a", "list": [1, 2]}, {"Name": "b", "list": []}])
    pyarrow.parquet.write_table(pa.table({"Id": [1, 2], "day": moments, "s": inner, "ok": [True, False]}), file)
    parquet = Input(parquet=True)
    query = "SELECT id, day, s.name, s.list[1], ok FROM BlobStorage WHERE ok AND day < '1970-01-01T00:00:01Z'"
    assert ask(query, file.getvalue(), parquet)[0] == "1,1970-01-01T00:00:00Z,a,2,true\n"
    rows = [json.loads(line) for line in ask("SELECT * FROM BlobStorage", file.getvalue(), parquet, LINES)[0].splitlines()]
    assert rows[1] == {"Id": 2, "day": "1970-01-02T00:00:00Z", "s": {"Name": "b", "list": []}, "ok": False}
    for wrong in ("absent", "s.absent", "id.x", "s[0]"):
        with pytest.raises(StorageError):
            ask(f"SELECT {wrong} FROM BlobStorage", file.getvalue(), parquet)


def test_columns_of_parquet_may_have_any_name_and_type() -> None:
    columns = {
        "#at": pa.array([7]), "exact": pa.array([Decimal("1.50")]), "bytes": pa.array([b"\xff"]), "time": pa.array([time(1, 2)]),
        "long": pa.array([timedelta(hours=30)]), "half": pa.array([1.5], pa.float16()), "none": pa.nulls(1),
        "nano": pa.array([10**18 + 1], pa.timestamp("ns")), "late": pa.array([3 * 10**11], pa.timestamp("s")),
    }  # fmt: skip
    table = pa.table([*columns.values(), pa.array([8])], names=[*columns, "exact"])
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file)
    parquet = Input(parquet=True)
    shown = "7,1.50,/w==,01:02:00,30:00:00,1.5,,2001-09-09T01:46:40Z,11476-08-15T05:20:00Z,8\n"
    assert ask("SELECT * FROM BlobStorage", file.getvalue(), parquet) == (shown, [])
    assert ask("SELECT exact FROM BlobStorage WHERE exact > 1", file.getvalue(), parquet, LINES)[0] == '{"exact":1.50}\n'
    assert ask('SELECT SUM("#at") FROM BlobStorage WHERE half = 1.5', file.getvalue(), parquet, LINES)[0] == '{"_1":7}\n'
    [error] = ask("SELECT * FROM BlobStorage", file.getvalue()[:40] + bytes(200) + file.getvalue()[240:], parquet)[1]
    assert error.name == "QueryFailed"


def test_a_query_has_a_bounded_number_of_paths() -> None:
    paths = ", ".join(f"a[{number}]" for number in range(60))
    assert ask(f"SELECT COUNT(*) FROM BlobStorage WHERE 1 IN ({paths})", b'{"a":[0,1]}', JSON)[0] == "1\n"
    with pytest.raises(StorageError):
        ask(f"SELECT * FROM BlobStorage WHERE 1 IN ({paths}) OR 2 IN ({paths.replace('a[', 'b[')})", b"{}", JSON)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELECT",
        "DELETE FROM BlobStorage",
        "SELECT * FROM other",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT read_text('/etc/passwd') FROM BlobStorage",
        "SELECT * FROM BlobStorage; DROP TABLE x",
        "SELECT * FROM BlobStorage WHERE _1 = 1 UNION SELECT 1",
        "SELECT _1 BlobStorage",
        "SELECT _1, COUNT(*) FROM BlobStorage",
        "SELECT COUNT(*), MAX(_1) FROM BlobStorage",
        "SELECT SUM(MAX(_1)) FROM BlobStorage",
        "SELECT * FROM BlobStorage WHERE COUNT(*) > 1",
        "SELECT * FROM BlobStorage LIMIT x",
        "SELECT * FROM BlobStorage[*].path",
        "SELECT _1.x FROM BlobStorage",
        "SELECT _1[0] FROM BlobStorage",
        "SELECT _0 FROM BlobStorage",
        "SELECT CAST(_1 AS BLOB) FROM BlobStorage",
        "SELECT DATE_ADD('week', 1, '2020') FROM BlobStorage",
        "SELECT DATE_DIFF(_1, '2020', '2021') FROM BlobStorage",
        "SELECT EXTRACT(YEAR, '2020') FROM BlobStorage",
        "SELECT TO_STRING(UTCNOW(), _1) FROM BlobStorage",
        "SELECT TO_STRING(UTCNOW(), 'QQ') FROM BlobStorage",
        f"SELECT TO_STRING(UTCNOW(), '{'S ' * 100}') FROM BlobStorage",
        f"SELECT {'NULLIF(' * 60}_1{', 1)' * 60} FROM BlobStorage",
        f"SELECT {'(' * 60}1{' BETWEEN 0 AND 1)' * 60} FROM BlobStorage",
        "SELECT _1 || _1 FROM BlobStorage",
        "SELECT UTCNOW(1) FROM BlobStorage",
        "SELECT TRIM(BOTH 'x' 'y') FROM BlobStorage",
        "SELECT " + ", ".join(["_1"] * 50) + " FROM BlobStorage",
        "SELECT * FROM BlobStorage WHERE " + "(" * 100 + "1=1" + ")" * 100,
        "SELECT * FROM BlobStorage WHERE " + "NOT " * 5000 + "TRUE",
        "SELECT getenv('HOME') FROM BlobStorage",
        "SELECT $1 FROM BlobStorage",
        'SELECT "a"" FROM duckdb_settings() --" FROM BlobStorage',
    ],
)
def test_whatever_is_not_in_the_subset_is_refused(query: str) -> None:
    with pytest.raises(StorageError) as refused:
        ask(query)
    assert refused.value.code is Code.ErrorProcessingQueryExpression
    assert "Syntax error!" in str(refused.value.message)


@pytest.mark.parametrize("name", ['"; DROP TABLE x', "'", '""', "\\", "a\nb", "%s", "é", "#at", "#fault", "#kept"])
def test_hostile_names_are_names(name: str) -> None:
    shown = name.replace('"', '""')
    data = json.dumps({name: "5"}).encode()
    result = ask(f'SELECT "{shown}" FROM BlobStorage WHERE "{shown}" > 1', data, JSON, LINES)[0]
    assert json.loads(result) == {name: "5"}
