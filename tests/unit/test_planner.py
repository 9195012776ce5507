"""The query planner: which keys each filter scans, which part remains to be evaluated, and that both find exactly the matches."""

import asyncio
import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.entities import KEYS, Value, entity, nodes, predicate, properties
from verditer.core.edm import Edm, encode_members
from verditer.core.records.record import Span, key_of, span_of
from verditer.core.records.table import Entity
from verditer.partition.engine import Condition, MemberBetween, MemberEquals, Transaction
from verditer.partition.sqlite import snapshot_reader
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.partition.sqlite.prefilter import prefilter_sql
from verditer.services.table import planner
from verditer.services.table.filter import Compare, Literal, Node, parse_filter
from verditer.services.table.planner import END, MAX_BOXES, Box, Plan, merged, plan
from verditer.services.table.query import _prepared

ALL = "everything"
WHOLE = "the whole filter"

# A span is shown as its first and last key: `p|r` is a complete pair, `<` means just before a key and
# `>` just after it.
# fmt: off
PLANS = [
    # filter                                                         scans                                  rest
    ("",                                                             [ALL],                                 ""),
    ("true",                                                         [ALL],                                 ""),
    ("false",                                                        [],                                    ""),
    ("Age gt 5",                                                     [ALL],                                 WHOLE),
    ("PartitionKey eq 'p'",                                          ["<p .. >p"],                          ""),
    ("PartitionKey eq 'p' and RowKey eq 'r'",                        ["<p|r .. >p|r"],                      ""),
    ("RowKey eq 'r' and PartitionKey eq 'p'",                        ["<p|r .. >p|r"],                      ""),
    ("PartitionKey eq 'p' and RowKey eq 'r' and Age gt 5",           ["<p|r .. >p|r"],                      "Age gt 5"),
    ("PartitionKey eq 'p' and RowKey ge 'ab' and RowKey lt 'ac'",    ["<p|ab .. <p|ac"],                    ""),  # T534
    ("PartitionKey eq 'p' and RowKey gt 'a'",                        [">p|a .. end of p"],                  ""),
    ("PartitionKey eq 'p' and RowKey le 'a'",                        ["<p .. >p|a"],                        ""),
    ("PartitionKey ge 'a' and PartitionKey lt 'b'",                  ["<a .. <b"],                          ""),
    ("PartitionKey gt 'a'",                                          [">a .. end"],                         ""),
    ("PartitionKey le 'a'",                                          ["start .. >a"],                       ""),
    ("PartitionKey eq 'a' or PartitionKey eq 'c'",                   ["<a .. >a", "<c .. >c"],              ""),
    ("PartitionKey eq 'c' or PartitionKey eq 'a' or PartitionKey eq 'a'", ["<a .. >a", "<c .. >c"],              ""),
    ("PartitionKey lt 'c' or PartitionKey ge 'b'",                   [ALL],                                 ""),
    ("PartitionKey eq 'p' and (RowKey eq 'a' or RowKey eq 'b')",     ["<p|a .. >p|a", "<p|b .. >p|b"],      ""),
    ("(PartitionKey eq 'p' and RowKey eq 'a') or (PartitionKey eq 'q' and RowKey eq 'b')",
                                                                    ["<p|a .. >p|a", "<q|b .. >q|b"],      ""),
    ("(PartitionKey eq 'p' or PartitionKey eq 'q') and Name eq 'x'", ["<p .. >p", "<q .. >q"],              "Name eq 'x'"),
    ("PartitionKey eq 'p' and PartitionKey eq 'q'",                  [],                                    ""),
    ("PartitionKey eq 'p' and RowKey gt 'b' and RowKey lt 'a'",      [],                                    ""),
    ("RowKey eq 'r'",                                                [ALL],                                 WHOLE),
    ("PartitionKey gt 'a' and RowKey eq 'r'",                        [">a .. end"],                         WHOLE),
    ("PartitionKey ne 'p'",                                          [ALL],                                 WHOLE),
    ("PartitionKey eq 'p' and RowKey ne 'r'",                        ["<p .. >p"],                          "RowKey ne 'r'"),
    ("not (PartitionKey eq 'p')",                                    [ALL],                                 WHOLE),
    ("PartitionKey eq 'p' or Age gt 5",                              [ALL],                                 WHOLE),
    ("PartitionKey eq 5",                                            [ALL],                                 WHOLE),
    ("PartitionKey eq ''",                                           ["< .. >"],                            ""),
]
# fmt: on

GLOB = "body GLOB +?"
NUMBER = (
    "CAST(ltrim(CAST(substr(CAST(body AS BLOB), instr(CAST(body AS BLOB), ?) + 6, 26) AS TEXT), '\"') AS REAL) BETWEEN ? AND ?"
)


def shown(span: Span) -> str:
    if span == (b"", END):
        return ALL
    return f"{_edge(span.low, 'start')} .. {_edge(span.high, 'end')}"


def _edge(key: bytes, none: str) -> str:
    if key in (b"", END):
        return none
    if key.endswith(END):
        return f"end of {key[:-2].decode()}"
    side = {0: "<", 1: ">"}[key[-1]]
    return side + key[:-1].replace(b"\0", b"|").decode()


@pytest.mark.parametrize(("source", "scans", "rest"), PLANS)
def test_a_filter_scans_these_keys_and_evaluates_the_rest(source: str, scans: list[str], rest: str) -> None:
    found = plan(parse_filter(source))
    assert [shown(span) for span in found.spans] == scans
    assert found.residual == parse_filter(source if rest == WHOLE else rest)


@pytest.mark.parametrize(
    ("source", "conditions"),
    [
        ("Name eq 'x'", [MemberEquals("Name", "x")]),
        ("Name eq 'x' and T eq true", [MemberEquals("Name", "x"), MemberEquals("T", True)]),
        ("Age gt 5 and Name eq 'x'", [MemberBetween("Age", 5, math.inf), MemberEquals("Name", "x")]),
        ("Age eq -15", [MemberBetween("Age", -15, -15)]),
        ("Age le 5.5", [MemberBetween("Age", -math.inf, 5.5)]),
        ("Age eq 0", [MemberBetween("Age", 0, 0)]),
        ("Age eq 5.5", [MemberBetween("Age", 5.5, 5.5)]),
        ("W eq datetime'2020-01-01T00:00:00.50Z'", [MemberEquals("W", "2020-01-01T00:00:00.5Z")]),
        ("Name gt 'x' or Age eq 5", []),
        ("Name ne 'x'", []),
        ("not (Name eq 'x')", []),
        ("RowKey eq 'x'", []),
        ("Timestamp eq datetime'2020-01-01T00:00:00Z'", []),
    ],
)
def test_a_filter_gives_conditions_that_an_engine_may_use(source: str, conditions: list[Condition]) -> None:
    assert list(plan(parse_filter(source)).conditions) == conditions


@pytest.mark.parametrize(
    ("conditions", "sql", "values"),
    [
        ([MemberEquals("Name", "x")], GLOB, ['*Name":"x"*']),
        ([MemberEquals("Name", "*?[x]"), MemberEquals("T", True)], f"{GLOB} AND {GLOB}", ['*Name":"[*][?][[]x]"*', '*T":true*']),
        ([MemberBetween("Age", -15, -15)], GLOB, ['*Age":["-][1-][15][,.5}]*']),
        ([MemberBetween("Age", 0, 0), MemberEquals("Name", "x")], f"{GLOB} AND {NUMBER}", ['*Name":"x"*', b'"Age":', 0, 0]),
        ([MemberBetween("Age", 5.5, 5.5)], NUMBER, [b'"Age":', 5.5 - 5.5e-9, 5.5 + 5.5e-9]),
        ([MemberBetween("Age", -math.inf, 5)], NUMBER, [b'"Age":', -math.inf, 5 + 5e-9]),
    ],
)
def test_conditions_are_sql_with_the_cheapest_first(conditions: list[Condition], sql: str, values: list[object]) -> None:
    found, bound = prefilter_sql(tuple(conditions))
    assert (found, list(bound)) == (sql, values)


def test_a_prefilter_looks_for_little_however_much_is_asked_for() -> None:
    """A slow search for repetitions in a text would delay other requests."""
    for name, value in (("a" * 255, "x"), ("A", "x" * 60_000), ("a" * 60_000, "x")):
        sql, patterns = prefilter_sql(plan(Compare(name, "eq", Literal(Edm.STRING, value))).conditions)
        assert sum(len(str(pattern)) for pattern in patterns) <= 160
        assert len(sql) <= 100


def test_only_short_filters_are_kept() -> None:
    for length, kept in ((100, True), (60_000, False)):
        node = Compare("A", "eq", Literal(Edm.STRING, "x" * length))
        assert (_prepared(node) is _prepared(node)) == kept


def test_an_or_of_many_keys_is_many_small_scans() -> None:
    source = " or ".join(f"(PartitionKey eq 'p' and RowKey eq '{number:04}')" for number in range(900))
    found = plan(parse_filter(source))
    assert (len(found.spans), found.residual) == (900, None)


def test_as_many_keys_as_a_request_names_are_scanned_one_by_one() -> None:
    keys = " or ".join(f"RowKey eq '{number:x}'" for number in range(1900))
    found = plan(parse_filter(f"PartitionKey eq 'p' and A eq 5 and ({keys})"))
    assert (len(found.spans), found.residual) == (1900, parse_filter("A eq 5"))


def test_more_boxes_than_that_are_one_scan() -> None:
    sides = [" or ".join(f"{name} eq '{number}'" for number in range(30)) for name in ("PartitionKey", "RowKey")]
    source = " or ".join([f"(({sides[0]}) and ({sides[1]}))"] * 4)
    assert plan(parse_filter(source)) == Plan((Span(b"", END),), parse_filter(source))


def test_what_would_be_too_many_scans_is_scanned_by_one_side_and_evaluated_whole() -> None:
    partitions = " or ".join(f"PartitionKey eq '{number}'" for number in range(40))
    rows = " or ".join(f"RowKey eq '{number}'" for number in range(60))
    source = f"({partitions}) and ({rows})"
    found, rest = plan(parse_filter(source)), parse_filter(source)
    assert MAX_BOXES < 40 * 60
    assert (len(found.spans), found.residual) == (40, rest)


def test_no_more_boxes_are_made_on_the_way_either(monkeypatch: pytest.MonkeyPatch) -> None:
    made = itertools.count()
    monkeypatch.setattr(planner, "Box", lambda *spans: Box(*spans) if next(made) >= 0 else None)
    side = " or ".join(f"RowKey gt '{number:02}'" for number in range(44))
    plan(parse_filter(" and ".join([f"({side})"] * 30)))
    assert next(made) <= 30 * 44 + MAX_BOXES


def test_merged_spans_are_sorted_and_apart() -> None:
    spans = [Span(b"d", b"e"), Span(b"a", b"b"), Span(b"b", b"c"), Span(b"x", b"x"), Span(b"a", b"aa")]
    assert merged(spans) == [Span(b"a", b"c"), Span(b"d", b"e")]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_stored_keys_are_ordered_as_pairs_of_utf16_texts(one: str, other: str) -> None:  # T526, T567
    pairs = [(one, other), (other, one)]
    assert (key_of(*pairs[0]) < key_of(*pairs[1])) == (
        [text.encode("utf-16-be") for text in pairs[0]] < [text.encode("utf-16-be") for text in pairs[1]]
    )


stores = st.dictionaries(st.tuples(st.sampled_from(KEYS), st.sampled_from(KEYS)), properties, max_size=12)


def found_by(what: Plan, entities: list[Entity]) -> list[Entity]:
    matches = None if what.residual is None else predicate(what.residual)
    prefix = key_of(1)
    return [
        entity
        for span in what.spans
        for entity in entities
        if prefix + span.low <= entity.key() < prefix + span.high and (matches is None or matches(entity))
    ]


@settings(max_examples=300)
@given(stores, nodes())
def test_spans_and_rest_find_what_a_full_scan_finds(stored: dict[tuple[str, str], dict[str, Value]], node: Node) -> None:
    entities = sorted((entity(*keys, known) for keys, known in stored.items()), key=Entity.key)
    whole = predicate(node)
    assert found_by(plan(node), entities) == [entity for entity in entities if whole(entity)]


def test_the_prefilter_loses_no_match() -> None:
    """The same filters with the prefilter of the SQLite engine. A key that looks like a JSON member must not confuse it."""
    loop = asyncio.new_event_loop()
    engine = SqliteEngine(None)
    loop.run_until_complete(engine.open())
    table_ids = itertools.count(1)

    def skipped(stored: list[dict[str, Value]], node: Node) -> int:
        table_id = next(table_ids)
        entities = [entity('"A":5', f"{number:04}", known, table_id=table_id) for number, known in enumerate(stored)]

        def body(tx: Transaction) -> list[Entity]:
            for one in entities:
                tx.put(one)
            return list(tx.scan(Entity, span_of(table_id), conditions=plan(node).conditions))

        passed = loop.run_until_complete(engine.write([()], body))
        matches = predicate(node)
        assert [one for one in passed if matches(one)] == [one for one in entities if matches(one)]
        return len(entities) - len(passed)

    @settings(max_examples=300, deadline=None)
    @given(st.lists(properties, min_size=1, max_size=8), nodes(["A", "B"]))
    def check(stored: list[dict[str, Value]], node: Node) -> None:
        skipped(stored, node)

    check()
    equals_seven = parse_filter("A eq 7")
    assert equals_seven is not None
    others: list[dict[str, Value]] = [{"A": (Edm.INT32, 8)}, {"B": (Edm.INT32, 7)}] * 500
    assert skipped([{"A": (Edm.INT32, 7)}, *others], equals_seven) > 900  # one in 128 passes regardless of its contents
    loop.run_until_complete(engine.close())
    loop.close()


LENGTHS = [30, 250, 255, 256, 257, 512, 1024, 65535, 65536, 65792, 131072]


@pytest.mark.parametrize("name", ["A", "Ab", "Größe", "n" * 255, "n" * 9000])
@pytest.mark.parametrize("text", ["x", "*?[a]^", '"\\\0', "𝄞" * 300])
def test_the_prefilter_loses_no_match_of_any_length_anywhere(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lengths include those whose encoding contains a NUL."""
    monkeypatch.setattr(snapshot_reader, "monotonic", lambda: 0.0)  # no time limit for a short read
    entities = [_of_length(length, name, text, first) for length in LENGTHS for first in (True, False)]
    conditions = plan(Compare(name, "eq", Literal(Edm.STRING, text))).conditions
    assert asyncio.run(_passed(entities, conditions)) == [len(entities)] * 2


async def _passed(entities: list[Entity], conditions: tuple[Condition, ...]) -> list[int]:
    """The numbers of records that a short read and a long read return."""
    engine = SqliteEngine(None)
    await engine.open()

    def store(tx: Transaction) -> None:
        for one in entities:
            tx.put(one)

    def count(tx: Transaction) -> int:
        return len(list(tx.scan(Entity, span_of(1), conditions=conditions)))

    try:
        await engine.write([()], store)
        return [await engine.read((), count), await engine.read((), count, long=True)]
    finally:
        await engine.close()


def _of_length(length: int, name: str, text: str, first: bool) -> Entity:
    """An entity whose document has about this length, exactly if possible, with the property first or last."""
    wanted = encode_members({name: text})[1:-1]
    filling = b'"Z":"' + b"z" * max(0, length - len(wanted) - 9) + b'"'
    document = b"{" + b",".join([wanted, filling] if first else [filling, wanted]) + b"}"
    return Entity(properties=document, table_id=1, partition_key=str(first), row_key=str(length), etag=1)
