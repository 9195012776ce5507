"""Conditional headers: how they are read, and every row of the tables for reads, writes and missing targets."""

from collections.abc import Mapping
from itertools import product

import msgspec
import pytest

from verditer.core.conditions import NONE, Conditions, Kind, check, legal, parse
from verditer.core.dates import TICKS_PER_SECOND, rfc1123, seconds
from verditer.core.errors import Code, StorageError
from verditer.core.etag import bare, show
from verditer.core.lease import Lease
from verditer.core.tags import Comparison

SECOND = 638_000_000_000_000_000
ETAG = SECOND + 1_234_567  # Last-Modified is SECOND


class Record(msgspec.Struct, frozen=True):
    etag: int = ETAG
    lease: Lease | None = None
    tags: Mapping[str, str] | None = None
    copy_pending: bool = False


BLOB = Record(tags={"state": "open"})
PASS = None
WRITES = [Kind.CREATE, Kind.UPDATE, Kind.COPY_TARGET, Kind.COPY_SOURCE]
CODES = {
    Kind.CREATE: Code.ConditionNotMet,
    Kind.UPDATE: Code.ConditionNotMet,
    Kind.COPY_TARGET: Code.TargetConditionNotMet,
    Kind.COPY_SOURCE: Code.SourceConditionNotMet,
}

# One header each, as sent, that the blob above meets or fails.
MET = {
    "if-match": show(ETAG),
    "if-none-match": '"0x1"',
    "if-modified-since": rfc1123(SECOND - seconds(1)),
    "if-unmodified-since": rfc1123(SECOND),
    "x-ms-if-tags": "state = 'open'",
}
FAILED = {
    "if-match": '"0x1"',
    "if-none-match": show(ETAG),
    "if-modified-since": rfc1123(SECOND),
    "if-unmodified-since": rfc1123(SECOND - seconds(1)),
    "x-ms-if-tags": "state = 'closed'",
}


def refusal(kind: Kind, headers: Mapping[str, str], current: Record | None = BLOB, *, holder: bool = False) -> Code | None:
    try:
        check(kind, parse(headers), current, holder=holder)
    except StorageError as error:
        return error.code
    return None


def pick(**outcomes: bool | None) -> dict[str, str]:
    """Headers that pass (True), fail (False) or are absent (None)."""
    names = {
        "im": "if-match",
        "ius": "if-unmodified-since",
        "inm": "if-none-match",
        "ims": "if-modified-since",
        "tags": "x-ms-if-tags",
    }
    return {names[short]: (MET if met else FAILED)[names[short]] for short, met in outcomes.items() if met is not None}


# Reads


def test_reads_combine_their_headers_as_the_table_says() -> None:
    # contract B2; race E4: all 81 mixtures of passing, failing and absent headers
    for im, ius, inm, ims in product((True, False, None), repeat=4):
        if im is False or ius is False:
            expected: Code | None = Code.ConditionNotMet
        elif (inm, ims) in ((False, None), (None, False), (False, False)):
            expected = Code.NotModified
        else:
            expected = PASS
        assert refusal(Kind.READ, pick(im=im, ius=ius, inm=inm, ims=ims)) is expected, (im, ius, inm, ims)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"if-none-match": "*"}, Code.UnsatisfiableCondition),
        ({"if-none-match": "*", "if-match": show(ETAG)}, Code.UnsatisfiableCondition),
        ({"if-match": "*"}, PASS),
        ({"if-match": f'"0x1", {show(ETAG)}'}, PASS),
        ({"if-match": '"0x1","0x2"'}, Code.ConditionNotMet),
        ({"if-none-match": f'"0x1", {show(ETAG)}'}, Code.NotModified),
        ({"if-none-match": '"0x1","0x2"'}, PASS),
        (pick(tags=False), Code.ConditionNotMet),
        (pick(tags=True), PASS),
        (pick(im=True, tags=False), Code.ConditionNotMet),
        (pick(inm=False, tags=False), Code.NotModified),
    ],
)
def test_reads_take_lists_and_tags_and_refuse_the_none_match_star(headers: dict[str, str], code: Code | None) -> None:
    # contract B2
    assert refusal(Kind.READ, headers) is code


def test_not_modified_tells_what_the_client_has() -> None:
    # contract B2
    with pytest.raises(StorageError) as caught:
        check(Kind.READ, parse(pick(inm=False)), BLOB)
    assert caught.value.headers == {"ETag": show(ETAG), "Last-Modified": rfc1123(SECOND)}


# Writes

LEGAL = [{"if-match"}, {"if-none-match"}, {"if-modified-since"}, {"if-unmodified-since"}]
LEGAL += [{"if-none-match", "if-modified-since"}, {"if-match", "if-unmodified-since"}]
PLAIN = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"]


@pytest.mark.parametrize("kind", WRITES)
def test_writes_take_one_header_or_one_of_two_pairs(kind: Kind) -> None:
    # contract B2: every mixture that passes its comparison, with and without tags
    for chosen in product((True, False), repeat=4):
        names = {name for name, sent in zip(PLAIN, chosen, strict=True) if sent}
        expected = PASS if not names or names in LEGAL else Code.MultipleConditionHeadersNotSupported
        sent = {name: MET[name] for name in names}
        assert refusal(kind, sent) is expected, names
        assert refusal(kind, sent | pick(tags=True)) is expected, names


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("name", PLAIN)
def test_a_write_whose_condition_is_not_met_is_refused(kind: Kind, name: str) -> None:
    # contract B1, B2
    assert refusal(kind, {name: MET[name]}) is PASS
    assert refusal(kind, {name: FAILED[name]}) is CODES[kind]


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize(("decides", "ignored"), [("if-none-match", "if-modified-since"), ("if-match", "if-unmodified-since")])
def test_the_etag_decides_in_a_pair(kind: Kind, decides: str, ignored: str) -> None:
    # contract B2
    assert refusal(kind, {decides: MET[decides], ignored: FAILED[ignored]}) is PASS
    assert refusal(kind, {decides: FAILED[decides], ignored: MET[ignored]}) is CODES[kind]


@pytest.mark.parametrize("kind", WRITES)
def test_tags_are_a_further_condition_of_a_write(kind: Kind) -> None:
    assert refusal(kind, pick(tags=False)) is CODES[kind]
    assert refusal(kind, pick(im=True, tags=False)) is CODES[kind]
    assert refusal(kind, pick(im=False, tags=True)) is CODES[kind]
    assert refusal(kind, pick(im=True, tags=True)) is PASS
    assert refusal(kind, pick(tags=True), Record(tags=None)) is CODES[kind]


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("name", ["if-match", "if-none-match"])
def test_a_write_takes_one_etag_only(kind: Kind, name: str) -> None:
    assert refusal(kind, {name: f'{show(ETAG)}, "0x1"'}) is Code.MultipleConditionHeadersNotSupported


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (Kind.CREATE, Code.BlobAlreadyExists),
        (Kind.COPY_TARGET, Code.BlobAlreadyExists),
        (Kind.COPY_SOURCE, Code.SourceConditionNotMet),
        (Kind.UPDATE, PASS),
    ],
)
def test_none_match_star_asks_whether_something_exists(kind: Kind, code: Code | None) -> None:
    # contract B2; race E2
    assert refusal(kind, {"if-none-match": "*"}) is code
    assert refusal(kind, {"if-none-match": "*", "if-modified-since": FAILED["if-modified-since"]}) is code
    assert refusal(kind, {"if-match": "*"}) is PASS


def test_who_holds_the_lease_overwrites_despite_the_none_match_star() -> None:
    assert refusal(Kind.CREATE, {"if-none-match": "*"}, holder=True) is PASS
    assert refusal(Kind.CREATE, {"if-none-match": show(ETAG)}, holder=True) is Code.ConditionNotMet


# Kinds that look at some headers only


@pytest.mark.parametrize(
    ("kind", "headers", "code"),
    [
        (Kind.CONTAINER, pick(im=False, inm=False, tags=False), PASS),
        (Kind.CONTAINER, pick(ims=True), PASS),
        (Kind.CONTAINER, pick(ims=False), Code.ConditionNotMet),
        (Kind.CONTAINER, pick(ius=True), PASS),
        (Kind.CONTAINER, pick(ius=False), Code.ConditionNotMet),
        (Kind.CONTAINER, pick(ims=True, ius=True), Code.MultipleConditionHeadersNotSupported),
        (Kind.CONTAINER_METADATA, pick(ims=False), Code.ConditionNotMet),
        (Kind.CONTAINER_METADATA, pick(ims=True, ius=False, im=False), PASS),
        (Kind.TAGS_ONLY, pick(im=False, inm=False, ims=False, ius=False), PASS),
        (Kind.TAGS_ONLY, pick(tags=False), Code.ConditionNotMet),
        (Kind.TAGS_ONLY, pick(tags=True), PASS),
        (Kind.NOT_USED, pick(im=False, inm=False, ims=False, ius=False, tags=False), PASS),
    ],
)
def test_a_kind_ignores_the_headers_it_does_not_look_at(kind: Kind, headers: dict[str, str], code: Code | None) -> None:
    # contract B3
    assert refusal(kind, headers) is code


# Missing targets


@pytest.mark.parametrize(
    ("headers", "met"),
    [
        ({}, True),
        ({"if-match": show(ETAG)}, False),
        ({"if-match": "*"}, False),
        ({"if-none-match": "*"}, True),
        ({"if-none-match": show(ETAG)}, True),
        (pick(ims=False), True),
        (pick(ims=True), True),
        (pick(ius=False), True),
        (pick(ius=True), True),
        (pick(tags=True), False),
    ],
)
@pytest.mark.parametrize("kind", [Kind.CREATE, Kind.COPY_TARGET])
def test_what_does_not_exist_matches_no_etag_and_no_tags(kind: Kind, headers: dict[str, str], met: bool) -> None:
    # race E1 (If-Match: * on a missing blob), E3 (If-Match when creating)
    assert refusal(kind, headers, None) is (PASS if met else CODES[kind])


def test_what_may_not_be_asked_is_refused_before_anything_is_looked_at() -> None:
    for kind, headers, code in [
        (Kind.READ, {"if-none-match": "*"}, Code.UnsatisfiableCondition),
        (Kind.UPDATE, pick(im=True, inm=True), Code.MultipleConditionHeadersNotSupported),
    ]:
        with pytest.raises(StorageError) as caught:
            legal(kind, parse(headers))
        assert caught.value.code is code


# Reading the headers


@pytest.mark.parametrize(
    ("text", "etags"),
    [
        ("*", ("*",)),
        ('"0x8D1"', ("0x8D1",)),
        ("0x8D1", ("0x8D1",)),
        ('""0x8D1""', ('"0x8D1"',)),
        ('"0x8D1", "0x8D2"', ("0x8D1", "0x8D2")),
        ("0x8D1,0x8D2", ("0x8D1", "0x8D2")),
        ('"with, comma"', ("with, comma",)),
        ('W/"0x8D1"', ('W/"0x8D1"',)),
    ],
)
def test_etags_are_read_with_and_without_quotes(text: str, etags: tuple[str, ...]) -> None:
    assert parse({"if-match": text}) == Conditions(if_match=etags)
    assert parse({"if-none-match": text}) == Conditions(if_none_match=etags)


def test_an_etag_has_a_quoted_and_a_bare_form() -> None:
    assert (show(0x8DC1A2B3C4D5E6F), bare(0x8DC1A2B3C4D5E6F)) == ('"0x8DC1A2B3C4D5E6F"', "0x8DC1A2B3C4D5E6F")
    assert refusal(Kind.UPDATE, {"if-match": bare(ETAG)}) is PASS


def test_a_weak_etag_matches_nothing_and_is_no_error() -> None:
    # race E8
    assert refusal(Kind.UPDATE, {"if-match": 'W/"wrong"'}) is Code.ConditionNotMet
    assert refusal(Kind.UPDATE, {"if-match": f"W/{show(ETAG)}"}) is Code.ConditionNotMet
    assert refusal(Kind.READ, {"if-none-match": f"W/{show(ETAG)}"}) is PASS


def test_dates_compare_whole_seconds() -> None:
    # contract B2: a write later in the same second does not count as modified since that second
    late = Record(etag=SECOND + TICKS_PER_SECOND - 1)
    same = {"if-modified-since": rfc1123(SECOND)}
    assert refusal(Kind.READ, same, late) is Code.NotModified
    assert refusal(Kind.UPDATE, {"if-unmodified-since": rfc1123(SECOND)}, late) is PASS
    assert refusal(Kind.READ, same, Record(etag=SECOND + TICKS_PER_SECOND)) is PASS


def test_a_null_date_is_no_condition() -> None:
    # race E4
    assert parse({"if-unmodified-since": "null", "if-modified-since": "null"}) is NONE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("if-modified-since", "yesterday"),
        ("if-modified-since", ""),
        ("if-unmodified-since", "2024-01-01T00:00:00Z"),
        ("if-unmodified-since", f"{rfc1123(SECOND)}, {rfc1123(SECOND)}"),
        ("if-match", ""),
        ("if-none-match", " , "),
        ("x-ms-if-tags", "state = open"),
        ("x-ms-if-tags", "@container = 'c'"),
    ],
)
def test_a_header_that_cannot_be_read_is_named(name: str, value: str) -> None:
    with pytest.raises(StorageError) as caught:
        parse({name: value})
    assert caught.value.code is Code.InvalidHeaderValue
    assert caught.value.details == {"HeaderName": name, "HeaderValue": value}


def test_a_prefix_reads_another_family_of_headers() -> None:
    date = rfc1123(SECOND)
    plain = {"if-match": "a", "if-none-match": "b", "if-modified-since": date, "if-unmodified-since": date}
    wanted = Conditions(
        if_match=("a",),
        if_none_match=("b",),
        if_modified_since=SECOND,
        if_unmodified_since=SECOND,
        if_tags=Comparison("t", "=", "1"),
    )
    assert parse({**plain, "x-ms-if-tags": "t = '1'"}) == wanted
    for prefix, tags in [("x-ms-source-", "x-ms-source-if-tags"), ("x-ms-blob-", "x-ms-if-tags")]:
        assert parse({prefix + name: value for name, value in plain.items()} | {tags: "t = '1'"}, prefix) == wanted
        assert parse(plain, prefix) is NONE


def test_a_request_without_conditions_is_the_one_empty_value() -> None:
    assert parse({"host": "localhost", "x-ms-version": "2024-11-04"}) is NONE
    assert legal(Kind.CONTAINER, parse({"if-match": "a"})) is NONE
    for kind in Kind:
        assert refusal(kind, {}) is refusal(kind, {}, None) is PASS
