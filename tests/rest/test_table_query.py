"""Query Entities over HTTP: order, pages, continuation, limits of size and time, and filters."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from itertools import count

import pytest

from tests.rest.history_fixtures import server
from tests.rest.table_fixtures import box, client
from tests.rest.tables import TableBox, TableClient, json_of, message, refusal
from verditer.core.dates import system_ticks
from verditer.core.grant import Grant, Scheme
from verditer.core.limits import MIB
from verditer.core.names import AccountName, TableName
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.services.account import development_accounts
from verditer.services.context import Context
from verditer.services.table.changes import InsertEntity
from verditer.services.table.entities import insert_entity
from verditer.services.table.filter import parse_filter
from verditer.services.table.query import EntityPage, QueryEntities, query_entities
from verditer.services.table.tables import CreateTable, create_table
from verditer.stream.memory import MemoryExtents

__all__ = ["box", "client", "server"]  # fixtures


def fill(box: TableBox, partition_key: str, rows: range) -> None:
    for start in range(rows.start, rows.stop, 100):
        parts = [
            box.part("POST", f"{number:05}", {"N": number, "Even": number % 2 == 0}, partition_key=partition_key)
            for number in range(start, min(start + 100, rows.stop))
        ]
        assert b"HTTP/1.1 201" in box.batch(*parts).body


@pytest.fixture(scope="module", params=("sqlite", "postgres"))
def filled(request: pytest.FixtureRequest) -> Iterator[TableBox]:
    client = TableClient(request.getfixturevalue(request.param))
    box = TableBox(client).create()
    fill(box, "a", range(1100))
    fill(box, "b", range(300))
    yield box
    client.close()


def test_entities_come_in_the_order_of_their_keys(box: TableBox) -> None:  # T567, T526
    keys = ["", "A", "B", "a", "aa", "b", "é", "\ud7ff", "𝄞", "\uffee"]
    for key in reversed(keys):
        box.insert(key, "r")
        box.insert("same", key)
    found = [item["PartitionKey"] for item in json_of(box.query("RowKey eq 'r'"))["value"]]
    assert found == keys
    assert box.rows("PartitionKey eq 'same'") == keys


def test_a_page_has_a_thousand_entities_and_says_where_the_next_begins(filled: TableBox) -> None:  # T107, T173, T560-T564
    first = filled.query()
    assert len(json_of(first)["value"]) == 1000
    assert json_of(first)["odata.metadata"] == f"{filled.client.base}/$metadata#{filled.name}"
    assert first["x-ms-continuation-NextPartitionKey"] == "1!4!YQ--"
    assert first["x-ms-continuation-NextRowKey"] == "1!8!MDEwMDA-"
    second = filled.query(NextPartitionKey="1!4!YQ--", NextRowKey="1!8!MDEwMDA-")
    assert [item["RowKey"] for item in json_of(second)["value"]][:2] == ["01000", "01001"]
    assert "x-ms-continuation-NextPartitionKey" not in second
    assert len(json_of(second)["value"]) == 400


def test_all_pages_together_are_everything_once(filled: TableBox) -> None:
    # race T7
    everything = [f"{number:05}" for number in (*range(1100), *range(300))]
    assert filled.rows() == everything
    assert filled.rows(top=333) == everything
    assert filled.rows("Even eq true", top=100) == [row for row in everything if int(row) % 2 == 0]
    assert filled.rows("N ge 250 and N lt 290", top=7) == [f"{number:05}" for number in range(250, 290)] * 2


def test_a_continuation_without_row_key_begins_at_its_partition(filled: TableBox) -> None:  # T563
    # race T7
    reply = filled.query(NextPartitionKey="1!4!Yg--", top=1)
    assert json_of(reply)["value"][0]["PartitionKey"] == "b"


def test_a_continuation_outlives_its_row(box: TableBox) -> None:  # T566
    fill(box, "p", range(5))
    reply = box.query(top=2)
    token = {name: reply[f"x-ms-continuation-{name}"] for name in ("NextPartitionKey", "NextRowKey")}
    box.delete("p", "00002")
    assert [item["RowKey"] for item in json_of(box.query(**token))["value"]] == ["00003", "00004"]


@pytest.mark.parametrize("options", [{"NextRowKey": ""}, {"NextPartitionKey": "x"}, {"NextPartitionKey": "1!3!YQ--"},
                                     {"NextPartitionKey": "1!4!////"}, {"NextRowKey": "MDEwMDA="}])  # fmt: skip
def test_a_broken_continuation_is_refused(box: TableBox, options: dict[str, str]) -> None:  # T565
    assert refusal(box.query(**options)) == (400, "InvalidInput")


def test_top_is_the_size_of_a_page(filled: TableBox) -> None:  # T554, T561
    for top in (1, 128, 129, 1000):
        reply = filled.query(top=top)
        assert len(json_of(reply)["value"]) == top
        assert "x-ms-continuation-NextPartitionKey" in reply
    assert "x-ms-continuation-NextPartitionKey" not in filled.query("PartitionKey eq 'b'", top=300)
    assert "x-ms-continuation-NextPartitionKey" not in filled.query("PartitionKey eq 'b' and N ge 0", top=300)
    empty = filled.query(top=0)
    assert (empty.status, json_of(empty)["value"]) == (200, [])
    for text in ("1001", "-1", "x", "1.5", "²"):
        assert refusal(filled.query(top=text)) == (400, "InvalidInput")


@pytest.mark.parametrize("option", ["orderby", "skip", "expand", "inlinecount", "count"])
def test_options_that_table_does_not_have(box: TableBox, option: str) -> None:  # T555
    assert refusal(box.query(**{option: "x"})) == (501, "NotImplemented")


@pytest.mark.parametrize(
    ("filter", "rows"),
    [
        ("PartitionKey eq 'a' and RowKey eq '00007'", ["00007"]),
        ("PartitionKey eq 'a' and RowKey ge '0001' and RowKey lt '00012'", ["00010", "00011"]),  # T534
        ("(PartitionKey eq 'a' and RowKey eq '00001') or (PartitionKey eq 'b' and RowKey eq '00001')", ["00001", "00001"]),
        ("N eq 5", ["00005", "00005"]),
        ("PartitionKey eq 'b' and N gt 297", ["00298", "00299"]),
        ("Missing ne 'x'", []),  # T520
        ("RowKey gt '01098'", ["01099"]),
        ("PartitionKey gt 'a' and Even eq true and N lt 4", ["00000", "00002"]),
        ("false", []),
        ("PartitionKey eq 'a' and RowKey eq 'nothing'", []),  # T557
    ],
)
def test_a_filter_finds(filled: TableBox, filter: str, rows: list[str]) -> None:
    assert filled.rows(filter) == rows


def test_a_filter_finds_entities_of_every_length(box: TableBox) -> None:
    """By each of three types, and the text of each entity as sent: a document of 256 bytes is stored as 257."""
    for start in (170, 430):
        known = {"Word": "it's", "Number": 7, "Last": True}
        box.batch(*[box.part("PUT", f"{length}", {"Text": "t" * length, **known}) for length in range(start, start + 100)])
    everything = [f"{length}" for length in (*range(170, 270), *range(430, 530))]
    for filter in ("Word eq 'it''s'", "Number eq 7", "Last eq true", "Number ge 7 and Last"):
        items = json_of(box.query(filter))["value"]
        assert [item["RowKey"] for item in items] == [f"{len(item['Text'])}" for item in items] == everything


def test_a_broken_filter_says_where(box: TableBox) -> None:  # T540
    reply = box.query("aaa bbb ccc")
    assert (refusal(reply), message(reply)) == ((400, "InvalidInput"), "Syntax error at position 7 in 'aaa bbb ccc'.")


def test_a_plus_in_a_query_is_a_blank(box: TableBox) -> None:  # T556
    box.insert(known={"A": "x y"})
    sent = box.client.account_sas("r")
    reply = box.client.exchange(
        "GET",
        f"/{box.server.account}/{box.name}()?$filter=A+eq+'x+y'&{sent}",
        [("Accept", "application/json;odata=nometadata")],
    )
    assert len(json_of(reply)["value"]) == 1


def test_a_scan_beside_writers_shows_every_entity_that_was_there(box: TableBox) -> None:
    # race T7; contract G3
    fill(box, "p", range(2000))
    stop = threading.Event()
    written: set[int] = set()

    def write() -> None:
        other = TableClient(box.server)
        mine = TableBox(other, box.name)
        for number in count():
            if stop.is_set():
                break
            written.add(mine.insert("p", f"{number % 2000:05}x{number}", headers={"Prefer": "return-no-content"}).status)
        other.close()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            found = box.rows(top=300)
            assert len(found) == len(set(found))
            assert found == sorted(found)
            assert {f"{number:05}" for number in range(2000)} <= set(found)
    finally:
        stop.set()
        writer.join()
    assert written == {204}


# --- time ---------------------------------------------------------------------------------------------------------------------


class SlowStore:
    """A store of 1000 entities whose monotonic time advances by a second per reading, while its clock stands still."""

    def __init__(self) -> None:
        now = system_ticks()
        self.engine = SqliteEngine(None, source=lambda: now)
        self.ctx = Context(
            engine=self.engine,
            extents=MemoryExtents(str),
            accounts=development_accounts(),
            inline_limit=0,
            monotonic=partial(next, count(0.0)),
        )
        self.grant, self.target = Grant(scheme=Scheme.KEY), TableName("acct", "tbl")

    async def __aenter__(self) -> "SlowStore":
        await self.engine.open()
        await create_table(self.ctx, AccountName("acct", "table"), CreateTable(table="tbl"))
        for number in range(1000):
            insert = InsertEntity(partition_key="p", row_key=f"{number:05}", properties={"Name": f"{number:05}"})
            await insert_entity(self.ctx, self.target, insert, self.grant)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.close()

    async def pages(self, filter: str) -> list[EntityPage]:
        found, request = list[EntityPage](), QueryEntities(filter=parse_filter(filter))
        while True:
            page = await query_entities(self.ctx, self.target, request, self.grant)
            found.append(page)
            if page.next is None:
                return found
            request = QueryEntities(filter=request.filter, next_partition=page.next[0], next_row=page.next[1])


def test_a_page_ends_when_its_time_is_up_and_goes_on_with_a_token() -> None:  # T136, T561, T562
    async def run() -> list[EntityPage]:
        async with SlowStore() as store:
            return await store.pages("Name ge '00990'")

    found = asyncio.run(run())
    assert [entity.row_key for page in found for entity in page.entities] == [f"{number:05}" for number in range(990, 1000)]
    assert len(found) > 1
    assert found[0].entities == []  # no entities, but a token


def test_a_page_of_large_entities_is_short_and_goes_on(box: TableBox) -> None:  # T562
    """Otherwise a thousand entities of 1 MiB would be one response."""
    big = {f"s{number:02}": "x" * 30000 for number in range(15)}
    for number in range(24):
        assert box.insert("p", f"{number:02}", big, headers={"Prefer": "return-no-content"}).status == 204
    for number in range(24, 60):
        box.insert("p", f"{number:02}")
    assert 4 * MIB < len(box.query().body) < 5 * MIB
    assert len(json_of(box.query(select="RowKey"))["value"]) < 24
    assert box.rows(select="RowKey") == [f"{number:02}" for number in range(60)]


def test_a_page_of_many_selected_names_is_short_and_goes_on(filled: TableBox) -> None:  # T562
    """Each entity has `null` for missing ones."""
    names = ",".join(["RowKey", *[f"{'x' * 100}{number}" for number in range(250)]])
    reply = filled.query(select=names)
    assert 4 * MIB < len(reply.body) < 6 * MIB
    assert len(filled.rows(select=names)) == 1400
