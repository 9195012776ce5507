"""Conditional headers: how they are read, and every row of the tables for reads, writes and missing targets."""

from collections.abc import Mapping
from itertools import product

import msgspec
import pytest

from verditer.core.conditions import ANY, NONE, ConditionRule, Conditions, EtagCondition, check, legal
from verditer.core.dates import TICKS_PER_SECOND, rfc1123, seconds
from verditer.core.errors import Code, StorageError
from verditer.core.guard import COPY_SOURCE, CREATE, TAGS_WRITE, GuardRule
from verditer.core.lease import Lease
from verditer.core.tags import Comparison
from verditer.rest.codecs.conditions import parse_conditions
from verditer.rest.codecs.etag import bare, show
from verditer.rest.errors import elements_of, headers_of

SECOND = 638_000_000_000_000_000
ETAG = SECOND + 1_234_567  # Last-Modified is SECOND


class Record(msgspec.Struct, frozen=True):
    etag: int = ETAG
    lease: Lease | None = None
    tags: Mapping[str, str] | None = None
    copy_pending: bool = False


BLOB = Record(tags={"state": "open"})
PASS = None
WRITES = [ConditionRule.CREATE, ConditionRule.UPDATE, ConditionRule.COPY_TARGET, ConditionRule.COPY_SOURCE]
CODES = {
    ConditionRule.CREATE: Code.ConditionNotMet,
    ConditionRule.UPDATE: Code.ConditionNotMet,
    ConditionRule.COPY_TARGET: Code.TargetConditionNotMet,
    ConditionRule.COPY_SOURCE: Code.SourceConditionNotMet,
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


def parse(headers: Mapping[str, str], rule: GuardRule = CREATE) -> Conditions:
    return parse_conditions(rule, headers)


def refusal(
    kind: ConditionRule, headers: Mapping[str, str], current: Record | None = BLOB, *, holds_lease: bool = False
) -> Code | None:
    try:
        check(kind, parse(headers), current, holds_lease=holds_lease)
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
        assert refusal(ConditionRule.READ, pick(im=im, ius=ius, inm=inm, ims=ims)) is expected, (im, ius, inm, ims)


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
    assert refusal(ConditionRule.READ, headers) is code


def test_not_modified_shows_what_the_client_has() -> None:
    # contract B2
    with pytest.raises(StorageError) as caught:
        check(ConditionRule.READ, parse(pick(inm=False)), BLOB)
    assert headers_of(caught.value) == [("ETag", show(ETAG)), ("Last-Modified", rfc1123(SECOND))]


# Writes

LEGAL = [{"if-match"}, {"if-none-match"}, {"if-modified-since"}, {"if-unmodified-since"}]
LEGAL += [{"if-none-match", "if-modified-since"}, {"if-match", "if-unmodified-since"}]
PLAIN = ["if-match", "if-none-match", "if-modified-since", "if-unmodified-since"]


@pytest.mark.parametrize("kind", WRITES)
def test_writes_take_one_header_or_one_of_two_pairs(kind: ConditionRule) -> None:
    # contract B2: every mixture that passes its comparison, with and without tags
    for chosen in product((True, False), repeat=4):
        names = {name for name, sent in zip(PLAIN, chosen, strict=True) if sent}
        expected = PASS if not names or names in LEGAL else Code.MultipleConditionHeadersNotSupported
        sent = {name: MET[name] for name in names}
        assert refusal(kind, sent) is expected, names
        assert refusal(kind, sent | pick(tags=True)) is expected, names


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("name", PLAIN)
def test_a_write_whose_condition_is_not_met_is_refused(kind: ConditionRule, name: str) -> None:
    # contract B1, B2
    assert refusal(kind, {name: MET[name]}) is PASS
    assert refusal(kind, {name: FAILED[name]}) is CODES[kind]


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize(("decides", "ignored"), [("if-none-match", "if-modified-since"), ("if-match", "if-unmodified-since")])
def test_the_etag_decides_in_a_pair(kind: ConditionRule, decides: str, ignored: str) -> None:
    # contract B2
    assert refusal(kind, {decides: MET[decides], ignored: FAILED[ignored]}) is PASS
    assert refusal(kind, {decides: FAILED[decides], ignored: MET[ignored]}) is CODES[kind]


@pytest.mark.parametrize("kind", WRITES)
def test_tags_are_a_further_condition_of_a_write(kind: ConditionRule) -> None:
    # Recordings of Azure: unmet tag conditions of a copy have the plain error, unlike its other conditions.
    assert refusal(kind, pick(tags=False)) is Code.ConditionNotMet
    assert refusal(kind, pick(im=True, tags=False)) is Code.ConditionNotMet
    assert refusal(kind, pick(im=False, tags=True)) is CODES[kind]
    assert refusal(kind, pick(im=True, tags=True)) is PASS
    assert refusal(kind, pick(tags=True), Record(tags=None)) is Code.ConditionNotMet


@pytest.mark.parametrize("kind", WRITES)
@pytest.mark.parametrize("name", ["if-match", "if-none-match"])
def test_a_write_takes_one_etag_only(kind: ConditionRule, name: str) -> None:
    assert refusal(kind, {name: f'{show(ETAG)}, "0x1"'}) is Code.MultipleConditionHeadersNotSupported


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (ConditionRule.CREATE, Code.BlobAlreadyExists),
        (ConditionRule.COPY_TARGET, Code.BlobAlreadyExists),
        (ConditionRule.COPY_SOURCE, Code.SourceConditionNotMet),
        (ConditionRule.UPDATE, Code.ConditionNotMet),
        (ConditionRule.SEAL, Code.ConditionNotMet),
        (ConditionRule.DELETE, PASS),
    ],
)
def test_none_match_star_asks_whether_something_exists(kind: ConditionRule, code: Code | None) -> None:
    # contract B2; race E2
    assert refusal(kind, {"if-none-match": "*"}) is code
    assert refusal(kind, {"if-none-match": "*", "if-modified-since": FAILED["if-modified-since"]}) is code
    assert refusal(kind, {"if-match": "*"}) is PASS


def test_who_holds_the_lease_overwrites_despite_the_none_match_star() -> None:
    assert refusal(ConditionRule.CREATE, {"if-none-match": "*"}, holds_lease=True) is PASS
    assert refusal(ConditionRule.CREATE, {"if-none-match": show(ETAG)}, holds_lease=True) is Code.ConditionNotMet
    assert refusal(ConditionRule.UPDATE, {"if-none-match": "*"}, holds_lease=True) is Code.ConditionNotMet


# Kinds that look at some headers only


@pytest.mark.parametrize(
    ("kind", "headers", "code"),
    [
        (ConditionRule.CONTAINER, pick(im=False, inm=False, tags=False), PASS),
        (ConditionRule.CONTAINER, pick(ims=True), PASS),
        (ConditionRule.CONTAINER, pick(ims=False), Code.ConditionNotMet),
        (ConditionRule.CONTAINER, pick(ius=True), PASS),
        (ConditionRule.CONTAINER, pick(ius=False), Code.ConditionNotMet),
        (ConditionRule.CONTAINER, pick(ims=True, ius=True), Code.MultipleConditionHeadersNotSupported),
        (ConditionRule.CONTAINER_METADATA, pick(ims=False), Code.ConditionNotMet),
        (ConditionRule.CONTAINER_METADATA, pick(ims=True, ius=False, im=False), PASS),
        (ConditionRule.TAGS_ONLY, pick(im=False, inm=False, ims=False, ius=False), PASS),
        (ConditionRule.TAGS_ONLY, pick(tags=False), Code.ConditionNotMet),
        (ConditionRule.TAGS_ONLY, pick(tags=True), PASS),
        (ConditionRule.NOT_USED, pick(im=False, inm=False, ims=False, ius=False, tags=False), PASS),
    ],
)
def test_a_kind_ignores_the_headers_it_does_not_look_at(kind: ConditionRule, headers: dict[str, str], code: Code | None) -> None:
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
@pytest.mark.parametrize("kind", [ConditionRule.CREATE, ConditionRule.COPY_TARGET])
def test_what_does_not_exist_matches_no_etag_and_no_tags(kind: ConditionRule, headers: dict[str, str], met: bool) -> None:
    # race E1 (If-Match: * on a missing blob), E3 (If-Match when creating)
    assert refusal(kind, headers, None) is (PASS if met else CODES[kind])


def test_what_may_not_be_asked_is_refused_before_anything_is_looked_at() -> None:
    for kind, headers, code in [
        (ConditionRule.READ, {"if-none-match": "*"}, Code.UnsatisfiableCondition),
        (ConditionRule.UPDATE, pick(im=True, inm=True), Code.MultipleConditionHeadersNotSupported),
    ]:
        with pytest.raises(StorageError) as caught:
            legal(kind, parse(headers))
        assert caught.value.code is code


# Reading the headers


@pytest.mark.parametrize(
    ("text", "etags"),
    [
        ("*", ANY),
        ("*, *", EtagCondition((None, None), any=True)),
        ('"*"', ANY),
        ('"0x8D1"', EtagCondition((0x8D1,))),
        ("0x8D1", EtagCondition((0x8D1,))),
        ('""0x8D1""', EtagCondition((None,))),
        ('"0x8D1", "0x8D2"', EtagCondition((0x8D1, 0x8D2))),
        ("0x8D1,0x8D2", EtagCondition((0x8D1, 0x8D2))),
        ("0x8D1,*", EtagCondition((0x8D1, None), any=True)),
        ('"with, comma"', EtagCondition((None,))),
        ('W/"0x8D1"', EtagCondition((None,))),
        *[(text, EtagCondition((None,))) for text in ('"0x8d1"', '"0X8D1"', '"0x08D1"', '"8D1"', '"0x"', '"+0x8D1"', '"0x8D_1"')],
    ],
)
def test_etags_are_read_with_and_without_quotes(text: str, etags: EtagCondition) -> None:
    assert parse({"if-match": text}) == Conditions(if_match=etags)
    assert parse({"if-none-match": text}) == Conditions(if_none_match=etags)


def test_an_etag_has_a_quoted_and_a_bare_form() -> None:
    assert (show(0x8DC1A2B3C4D5E6F), bare(0x8DC1A2B3C4D5E6F)) == ('"0x8DC1A2B3C4D5E6F"', "0x8DC1A2B3C4D5E6F")
    assert refusal(ConditionRule.UPDATE, {"if-match": bare(ETAG)}) is PASS


def test_a_weak_etag_matches_nothing_and_is_no_error() -> None:
    # race E8
    assert refusal(ConditionRule.UPDATE, {"if-match": 'W/"wrong"'}) is Code.ConditionNotMet
    assert refusal(ConditionRule.UPDATE, {"if-match": f"W/{show(ETAG)}"}) is Code.ConditionNotMet
    assert refusal(ConditionRule.READ, {"if-none-match": f"W/{show(ETAG)}"}) is PASS


def test_dates_compare_whole_seconds() -> None:
    # contract B2: a write later in the same second does not count as modified since that second
    late = Record(etag=SECOND + TICKS_PER_SECOND - 1)
    same = {"if-modified-since": rfc1123(SECOND)}
    assert refusal(ConditionRule.READ, same, late) is Code.NotModified
    assert refusal(ConditionRule.UPDATE, {"if-unmodified-since": rfc1123(SECOND)}, late) is PASS
    assert refusal(ConditionRule.READ, same, Record(etag=SECOND + TICKS_PER_SECOND)) is PASS


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
    assert elements_of(caught.value) == {"HeaderName": name, "HeaderValue": value}


def test_conditions_on_a_source_or_on_the_blob_of_tags_have_a_prefix() -> None:
    date = rfc1123(SECOND)
    plain = {"if-match": "0xA", "if-none-match": "0xB", "if-modified-since": date, "if-unmodified-since": date}
    wanted = Conditions(
        if_match=EtagCondition((0xA,)),
        if_none_match=EtagCondition((0xB,)),
        if_modified_since=SECOND,
        if_unmodified_since=SECOND,
        if_tags=Comparison("t", "=", "1"),
    )
    assert parse({**plain, "x-ms-if-tags": "t = '1'"}) == wanted
    for rule, prefix, tags in [(COPY_SOURCE, "x-ms-source-", "x-ms-source-if-tags"), (TAGS_WRITE, "x-ms-blob-", "x-ms-if-tags")]:
        assert parse({prefix + name: value for name, value in plain.items()} | {tags: "t = '1'"}, rule) == wanted
        assert parse(plain, rule) is NONE


def test_a_request_without_conditions_is_the_one_empty_value() -> None:
    assert parse({"host": "localhost", "x-ms-version": "2024-11-04"}) is NONE
    assert legal(ConditionRule.CONTAINER, parse({"if-match": "a"})) is NONE
    for kind in ConditionRule:
        assert refusal(kind, {}) is refusal(kind, {}, None) is PASS
