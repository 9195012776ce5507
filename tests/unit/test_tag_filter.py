"""The `where` of Find Blobs by Tags."""

import pytest

from verditer.core.errors import Code, StorageError
from verditer.core.tag_filter import parse_filter


@pytest.mark.parametrize(
    ("where", "tags", "found"),
    [
        ("a='1'", {"a": "1"}, True),
        ("a='1'", {"a": "2"}, False),
        ("a='1'", {}, False),
        ("\"my tag\" = 'x y'", {"my tag": "x y"}, True),
        ("a>='1' AND a<'3'", {"a": "2"}, True),
        ("a>='1' and a<'3'", {"a": "3"}, False),
        ("a='1'AND b='2'", {"a": "1", "b": "2"}, True),
        ("a='1' AND b='2'", {"a": "1"}, False),
        ("android='x'", {"android": "x"}, True),
    ],
)
def test_a_filter_holds_for_tags(where: str, tags: dict[str, str], found: bool) -> None:
    assert parse_filter(where).holds(tags) is found


@pytest.mark.parametrize(
    "where",
    [
        "",
        "a",
        "a=1",
        "a<>'1'",
        "a='1' OR b='2'",
        "(a='1')",
        "a='1' b='2'",
        "a='1' AND",
        "a='1' AND a='2'",
        "a>'1' AND a>'2'",
        "@container='c'",
        "@container>'c' AND a='1'",
        "@container='c' AND @container='d' AND a='1'",
        " AND ".join(f"t{number}='1'" for number in range(11)),
    ],
)
def test_what_is_no_filter_is_refused_by_name(where: str) -> None:
    with pytest.raises(StorageError) as refusal:
        parse_filter(where)
    assert refusal.value.code is Code.InvalidQueryParameterValue
    assert refusal.value.field == "where"


def test_a_filter_may_name_its_container() -> None:
    assert parse_filter("@Container = 'here' AND a='1'").container == "here"


def test_the_index_is_read_by_the_comparison_that_finds_least() -> None:
    assert [comparison.key for comparison in parse_filter("a>'1' AND b='2'").driver()] == ["b"]
    assert [comparison.key for comparison in parse_filter("a>'1' AND b>'2' AND a<'3'").driver()] == ["a", "a"]


def test_only_the_tags_it_names_are_shown() -> None:
    assert parse_filter("a='1'").selected({"a": "1", "b": "2"}) == {"a": "1"}
