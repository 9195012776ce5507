"""The entity data model: the range and canonical form of each type, invalid values, and round trips through the stored form."""

import base64
import math
import re
import uuid
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.entities import put
from verditer.core.conditions import EtagCondition
from verditer.core.dates import MAX_TICKS, parse_iso
from verditer.core.edm import (
    FIRST_DATETIME,
    Edm,
    JsonValue,
    Members,
    binary_bytes,
    canonical,
    datetime_text,
    decode_members,
    double_of,
    encode_members,
    infer_value,
    kind_of,
    size_of,
    utf16_units,
)
from verditer.core.errors import Code, StorageError
from verditer.rest.codecs.etag import parse_entity_condition, show_entity
from verditer.services.table.properties import document_of, merged, own_properties, sent_keys

# T400-T408, T412
# fmt: off
ACCEPTED = [
    (Edm.STRING,   "",                                     ""),
    (Edm.STRING,   " a b ",                                " a b "),
    (Edm.INT32,    5,                                      5),
    (Edm.INT32,    "-2147483648",                          -2147483648),
    (Edm.INT64,    "9223372036854775807",                  "9223372036854775807"),
    (Edm.INT64,    -9223372036854775808,                   "-9223372036854775808"),
    (Edm.INT64,    "+007",                                 "7"),
    (Edm.DOUBLE,   3,                                      3.0),
    (Edm.DOUBLE,   "3.14",                                 3.14),
    (Edm.DOUBLE,   "NaN",                                  "NaN"),
    (Edm.DOUBLE,   "-Infinity",                            "-Infinity"),
    (Edm.BOOLEAN,  "False",                                False),
    (Edm.BOOLEAN,  True,                                   True),
    (Edm.DATETIME, "1601-01-01T00:00:00Z",                 "1601-01-01T00:00:00Z"),
    (Edm.DATETIME, "9999-12-31T23:59:59.9999999Z",         "9999-12-31T23:59:59.9999999Z"),
    (Edm.DATETIME, "2021-06-08T02:05:09.1200000Z",         "2021-06-08T02:05:09.12Z"),
    (Edm.DATETIME, "2021-06-08T02:05:09.0000000Z",         "2021-06-08T02:05:09Z"),
    (Edm.DATETIME, "2021-06-08T02:05:09.123456789Z",       "2021-06-08T02:05:09.1234567Z"),
    (Edm.DATETIME, "2021-06-08T02:05:09",                  "2021-06-08T02:05:09Z"),
    (Edm.DATETIME, "2021-06-08T02:05:09+01:30",            "2021-06-08T00:35:09Z"),
    (Edm.GUID,     "A455C695-DF98-5678-AAAA-81D3367E5A34", "a455c695-df98-5678-aaaa-81d3367e5a34"),
    (Edm.BINARY,   "AAECAw==",                             "AAECAw=="),
    (Edm.BINARY,   "",                                     ""),
]
REFUSED = [
    (Edm.STRING, 5), (Edm.STRING, None),
    (Edm.INT32, 2147483648), (Edm.INT32, "x"), (Edm.INT32, 1.5), (Edm.INT32, True), (Edm.INT32, ""),
    (Edm.INT64, "9223372036854775808"), (Edm.INT64, 1.0), (Edm.INT64, "0x1"),
    (Edm.DOUBLE, "1e999"), (Edm.DOUBLE, "nan"), (Edm.DOUBLE, True), (Edm.DOUBLE, ""), (Edm.DOUBLE, 10**400),
    (Edm.BOOLEAN, "yes"), (Edm.BOOLEAN, 1),
    (Edm.DATETIME, ""), (Edm.DATETIME, "1600-12-31T23:59:59Z"), (Edm.DATETIME, "2021-02-30T00:00:00Z"), (Edm.DATETIME, 5),
    (Edm.GUID, "a455c695"), (Edm.GUID, "{a455c695-df98-5678-aaaa-81d3367e5a34}"), (Edm.GUID, 5),
    (Edm.BINARY, "A"), (Edm.BINARY, "!!!!"), (Edm.BINARY, 5),
]
# fmt: on


@pytest.mark.parametrize(("kind", "sent", "stored"), ACCEPTED)
def test_a_value_has_one_spelling(kind: Edm, sent: object, stored: JsonValue) -> None:
    found = canonical(kind, sent)
    assert (found, type(found)) == (stored, type(stored))
    assert canonical(kind, found) == found


@pytest.mark.parametrize(("kind", "sent"), REFUSED)
def test_a_value_that_is_not_of_its_type_is_refused(kind: Edm, sent: object) -> None:
    with pytest.raises(StorageError) as error:
        canonical(kind, sent)
    assert (error.value.code, error.value.message) == (Code.InvalidInput, "An error occurred while processing this request.")


@pytest.mark.parametrize(
    ("sent", "kind", "stored"),  # T410
    [
        ("x", Edm.STRING, "x"),
        (True, Edm.BOOLEAN, True),
        (1, Edm.INT32, 1),
        (-(2**31), Edm.INT32, -(2**31)),
        (2**31, Edm.DOUBLE, 2147483648.0),
        (1.0, Edm.DOUBLE, 1.0),
    ],
)
def test_without_annotation_the_json_value_says_the_type(sent: object, kind: Edm, stored: JsonValue) -> None:
    found = infer_value(sent)
    assert (found, kind_of(found, None)) == (stored, kind)
    assert type(found) is type(stored)


@pytest.mark.parametrize("sent", [[], {}, None, 10**400, math.inf])
def test_what_is_no_value_is_refused(sent: object) -> None:  # T409
    with pytest.raises(StorageError):
        infer_value(sent)


values = st.one_of(
    st.tuples(st.just(Edm.STRING), st.text(st.characters(exclude_categories=["Cs"]))),
    st.tuples(st.just(Edm.INT32), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(Edm.INT64), st.integers(-(2**63), 2**63 - 1).map(str)),
    st.tuples(st.just(Edm.DOUBLE), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(Edm.DOUBLE), st.sampled_from(["NaN", "Infinity", "-Infinity"])),
    st.tuples(st.just(Edm.BOOLEAN), st.booleans()),
    st.tuples(st.just(Edm.DATETIME), st.integers(FIRST_DATETIME, MAX_TICKS).map(datetime_text)),
    st.tuples(st.just(Edm.GUID), st.uuids().map(str)),
    st.tuples(st.just(Edm.BINARY), st.binary().map(lambda data: base64.b64encode(data).decode())),
)


@given(st.dictionaries(st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,9}", fullmatch=True), values, max_size=8))
def test_every_type_survives_the_stored_form(properties: dict[str, tuple[Edm, JsonValue]]) -> None:
    members: Members = {}
    for name, (kind, value) in properties.items():
        put(members, name, kind, canonical(kind, value))
    document = encode_members(members)
    found = decode_members(document)
    assert found == members
    assert encode_members(found) == document
    for name, (kind, value) in properties.items():
        annotation = found.get(f"{name}@odata.type")
        assert kind_of(found[name], None if annotation is None else str(annotation)) is kind
        assert (found[name], type(found[name])) == (value, type(value))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_shows_a_point_or_an_exponent(value: float) -> None:  # T183
    text = encode_members({"x": value}).decode()[5:-1]
    assert re.search(r"[.e]", text)
    assert double_of(float(text)) == value


@given(st.integers(FIRST_DATETIME, MAX_TICKS), st.integers(FIRST_DATETIME, MAX_TICKS))
def test_moments_sort_as_their_text_without_the_z(one: int, other: int) -> None:  # T530
    assert parse_iso(datetime_text(one)) == one
    assert (one < other) == (datetime_text(one)[:-1] < datetime_text(other)[:-1])


def test_an_etag_is_the_timestamp_in_quotes_with_its_colons_escaped() -> None:  # T300
    def shown(moment: str) -> str:
        return show_entity(parse_iso(moment) or 0)

    assert shown("2020-11-07T01:23:15.4923920Z") == "W/\"datetime'2020-11-07T01%3A23%3A15.492392Z'\""
    assert shown("2020-11-07T01:23:15Z") == "W/\"datetime'2020-11-07T01%3A23%3A15Z'\""


@given(st.integers(FIRST_DATETIME, MAX_TICKS))
def test_an_etag_that_was_shown_matches_its_version_and_no_other(etag: int) -> None:
    for text in (show_entity(etag), show_entity(etag).replace("%3A", ":"), show_entity(etag).replace("%3A", "%3a")):
        condition = parse_entity_condition(text)
        assert condition is not None
        assert condition.matches(etag)
        assert not condition.matches(etag + 1)


@pytest.mark.parametrize(
    "text",
    [
        "W/\"datetime'2020-11-07T01%3A23%3A15.4923920Z'\"",
        "W/\"datetime'2020-11-07T01%3A23%3A15.0Z'\"",
        "W/\"datetime'2020-11-07T01%3A23%3A15'\"",
        "W/\"datetime'2020-11-07T02%3A23%3A15+01:00'\"",
        'W/"2020-11-07T01:23:15Z"',
        'W/"0x1"',
        'W/""',
    ],
)
def test_an_etag_that_is_written_differently_matches_nothing(text: str) -> None:
    assert parse_entity_condition(text) == EtagCondition((None,))


@given(st.binary())
def test_the_length_behind_a_base64_text_is_known_without_decoding(data: bytes) -> None:
    assert binary_bytes(base64.b64encode(data).decode()) == len(data)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_lengths_count_utf16_units(text: str) -> None:
    assert utf16_units(text) == len(text.encode("utf-16-le")) // 2


def test_sizes_follow_the_published_formula() -> None:  # T432
    sizes = {kind: size_of(kind, value) for kind, value in (
        (Edm.STRING, "ab𝄞"), (Edm.BINARY, "AAEC"), (Edm.INT32, 1), (Edm.INT64, "1"), (Edm.DOUBLE, 1.0), (Edm.BOOLEAN, True),
        (Edm.DATETIME, "2021-06-08T02:05:09Z"), (Edm.GUID, str(uuid.UUID(int=1))),
    )}  # fmt: skip
    assert sizes == {
        Edm.STRING: 12, Edm.BINARY: 7, Edm.INT32: 4, Edm.INT64: 8, Edm.DOUBLE: 8, Edm.BOOLEAN: 1, Edm.DATETIME: 8, Edm.GUID: 16,
    }  # fmt: skip


# --- entities as they are sent --------------------------------------------------------------------------------------------


def stored_of(pairs: Sequence[tuple[str, object]]) -> Members:
    return own_properties(dict(pairs))


def refusal_of(*pairs: tuple[str, object]) -> Code:
    with pytest.raises(StorageError) as error:
        document_of(stored_of(pairs), "p", "r")
    return error.value.code


def test_annotations_may_stand_anywhere_and_junk_is_tolerated() -> None:  # T411, T414, T419, T333
    pairs = [
        ("odata.etag", "W/x"), ("odata.metadata", "http://…"), ("__metadata", 1), ("Timestamp", "not a date"),
        ("Big", "5"), ("Big@odata.type", "Edm.Int64"), ("X@odata.type@odata.type", "Edm.String"),
        ("Plain@odata.type", "Edm.String"), ("Plain", "p"), ("PartitionKey", "p"), ("RowKey@odata.type", "Edm.Int64"),
    ]  # fmt: skip
    assert stored_of(pairs) == {"Big@odata.type": "Edm.Int64", "Big": "5", "Plain": "p"}


def test_null_is_not_stored() -> None:  # T416
    assert stored_of([("X", None), ("Y@odata.type", "Edm.Int32"), ("Y", None)]) == {}


def test_names_are_case_sensitive_identifiers() -> None:  # T434, T435
    assert stored_of([("birthday", 1), ("Birthday", 2), ("timestamp", 3), ("etag", 4), ("_x", 5), ("größe", 6)]) == {
        "birthday": 1, "Birthday": 2, "timestamp": 3, "etag": 4, "_x": 5, "größe": 6,
    }  # fmt: skip
    for name in ("123", "a-b", "a b", "", "a.b"):
        assert refusal_of((name, 1)) is Code.PropertyNameInvalid


def test_limits_are_exact() -> None:  # T430, T433, T436
    assert refusal_of(("n" * 256, 1)) is Code.PropertyNameTooLong
    assert stored_of([("n" * 255, 1)])
    assert refusal_of(("A", "x" * 32769)) is Code.PropertyValueTooLarge
    assert refusal_of(("A", "𝄞" * 16385)) is Code.PropertyValueTooLarge
    assert stored_of([("A", "x" * 32768), ("B", "𝄞" * 16384)])
    binary = ("B@odata.type", "Edm.Binary")
    assert refusal_of(binary, ("B", base64.b64encode(bytes(65537)).decode())) is Code.PropertyValueTooLarge
    assert stored_of([binary, ("B", base64.b64encode(bytes(65536)).decode())])
    assert refusal_of(*[(f"p{number}", 1) for number in range(253)]) is Code.TooManyProperties
    mixed: list[tuple[str, object]] = [(f"p{number}@odata.type", "Edm.Int64") for number in range(252)]
    assert document_of(stored_of(mixed + [(f"p{number}", "1") for number in range(252)]), "p", "r")


def test_an_entity_is_at_most_one_mebibyte_by_the_formula() -> None:  # T431
    # 4 + 2·(1 + 1), and for each of 15 properties 8 + 2·3 + 65536 + 4; the last one has the remaining bytes
    rest = 1024 * 1024 - 8 - 15 * (8 + 6 + 65536 + 4) - (8 + 6 + 4)
    pairs = [(f"p{number:02}", "x" * 32768) for number in range(15)]
    assert document_of(stored_of([*pairs, ("q00", "x" * (rest // 2))]), "p", "r")
    assert refusal_of(*pairs, ("q00", "x" * (rest // 2 + 1))) is Code.EntityTooLarge


def test_half_a_character_is_refused() -> None:
    assert refusal_of(("A", "\ud800")) is Code.InvalidInput


@pytest.mark.parametrize(
    ("pairs", "code"),  # T439, T440
    [
        ([("PartitionKey", "p")], Code.PropertiesNeedValue),
        ([("PartitionKey", "p"), ("RowKey", None)], Code.PropertiesNeedValue),
        ([("PartitionKey", "p"), ("RowKey", 5)], Code.InvalidInput),
        ([("PartitionKey", "p"), ("RowKey", True)], Code.InvalidInput),
        ([("PartitionKey", "p"), ("RowKey@odata.type", "Edm.Int64"), ("RowKey", "5")], Code.InvalidInput),
    ],
)
def test_an_insert_needs_both_keys_as_strings(pairs: list[tuple[str, object]], code: Code) -> None:
    with pytest.raises(StorageError) as error:
        sent_keys(dict(pairs))
    assert error.value.code is code


def test_a_merge_keeps_what_it_does_not_mention_and_changes_types() -> None:  # T331
    current: Members = {"A@odata.type": "Edm.Int64", "A": "5", "B": 1, "C": "c"}
    change: Members = {"A": "text", "B@odata.type": "Edm.Guid", "B": "a455c695-df98-5678-aaaa-81d3367e5a34"}
    assert merged(current, change) == {"C": "c", **change}
