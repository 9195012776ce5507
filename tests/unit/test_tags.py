"""Tags: valid and invalid sets, and the grammar of x-ms-if-tags."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core.errors import Code, StorageError
from verditer.core.tags import parse_condition, validate
from verditer.rest.headers.blob_values import tag_set


@pytest.mark.parametrize(
    ("text", "tags"),
    [
        ("", {}),
        ("a=1", {"a": "1"}),
        ("a=1&b=2", {"a": "1", "b": "2"}),
        ("a=", {"a": ""}),
        ("tag+one=two%20words", {"tag one": "two words"}),
        ("a=1%2B1%3D2", {"a": "1+1=2"}),
        ("a=x=y&", {"a": "x=y"}),
        ("A=1&a=2", {"A": "1", "a": "2"}),
        ("k-./:_=v-./:_", {"k-./:_": "v-./:_"}),
    ],
)
def test_tags_are_read_from_the_header(text: str, tags: dict[str, str]) -> None:
    assert (tag_set("", text) or {}) == tags


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("=1", Code.EmptyTagName),
        ("a=1&a=2", Code.DuplicateTagNames),
        ("a", Code.InvalidTag),
        ("a=semi;colon", Code.InvalidTag),
        ("a%26=1", Code.InvalidTag),
        ("a=%C3%A9", Code.InvalidTag),
        ("a=line%0A", Code.InvalidTag),
        ("a=%FF", Code.InvalidTag),
        ("k" * 129 + "=1", Code.TagsTooLarge),
        ("a=" + "v" * 257, Code.TagsTooLarge),
        ("&".join(f"k{number}=v" for number in range(11)), Code.TagsTooLarge),
    ],
)
def test_tags_that_break_a_rule_are_refused_by_name(text: str, code: Code) -> None:
    with pytest.raises(StorageError) as caught:
        tag_set("", text)
    assert caught.value.code is code


def test_tags_may_be_as_many_and_as_long_as_the_limits_say() -> None:
    tags = {f"{number}".rjust(128, "k"): "v" * 256 for number in range(10)}
    assert validate(tags.items()) == tags


TAGS = {"status": "done", "priority": "05", "due date": "2024-01-31", "empty": ""}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("status = 'done'", True),
        ("status='done'", True),
        ("status = 'Done'", False),
        ("Status = 'done'", False),
        ("status <> 'open'", True),
        ("status <> 'done'", False),
        ("priority > '04'", True),
        ("priority > '05'", False),
        ("priority >= '05'", True),
        ("priority < '05'", False),
        ("priority < '5'", True),
        ("priority <= '05'", True),
        ("\"due date\" >= '2024-01-01' AND \"due date\" < '2024-02-01'", True),
        ("\"status\" = 'done'", True),
        ("empty = ''", True),
        ("absent = 'x'", False),
        ("absent <> 'x'", False),
        ("status = 'open' OR priority = '05'", True),
        ("status = 'open' or priority = '05'", True),
        ("status = 'done' and priority = '06'", False),
        ("status = 'done' OR status = 'x' AND priority = '06'", True),
        ("(status = 'done' OR status = 'x') AND priority = '06'", False),
        ("((status = 'done'))", True),
        ("  ( status='done' )  ", True),
    ],
)
def test_a_condition_is_compared_with_the_tags(text: str, holds: bool) -> None:
    condition = parse_condition(text)
    assert condition is not None
    assert condition.holds(TAGS) is holds
    assert condition.holds({}) is False  # a blob without tags fails every condition


def test_a_value_that_no_tag_can_have_makes_the_condition_malformed() -> None:
    assert parse_condition(f"a = '{'v' * 256}'") is not None
    assert [parse_condition(f"a = '{value}'") for value in ("it''s", "v!", "v" * 257)] == [None] * 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "status",
        "status =",
        "= 'done'",
        "status = done",
        'status = "done"',
        "'status' = 'done'",
        "status == 'done'",
        "status != 'done'",
        "status = 'done",
        "status = 'done' AND",
        "status = 'done' priority = '05'",
        "AND = 'x'",
        "(status = 'done'",
        "status = 'done')",
        "()",
        "NOT status = 'done'",
        "\"\" = 'x'",
        "\"a;b\" = 'x'",
        "a-b = 'x'",
        "@container = 'photos'",
        "k" * 129 + " = 'x'",
        " AND ".join(f"k{number} = 'v'" for number in range(11)),
        "(" * 33 + "a = 'x'" + ")" * 33,
        "(" * 50_000,
    ],
)
def test_what_is_not_a_condition_is_none(text: str) -> None:
    assert parse_condition(text) is None


def test_a_condition_may_name_ten_keys_and_repeat_them() -> None:
    names = [f"k{number % 10}" for number in range(40)]
    assert parse_condition(" AND ".join(f"{name} >= 'v'" for name in names)) is not None


Tree = tuple[str, Callable[[dict[str, str]], bool]]
OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def leaf(key: str, name: str, value: str) -> Tree:
    return f"{key} {name} '{value}'", lambda tags: key in tags and OPERATORS[name](tags[key], value)


def both(left: Tree, right: Tree) -> Tree:
    return f"({left[0]}) AND ({right[0]})", lambda tags: left[1](tags) and right[1](tags)


def either(left: Tree, right: Tree) -> Tree:
    return f"({left[0]}) OR ({right[0]})", lambda tags: left[1](tags) or right[1](tags)


LEAVES = st.builds(leaf, st.sampled_from("abc"), st.sampled_from(sorted(OPERATORS)), st.sampled_from(["", "1", "2", "10"]))
TREES = st.recursive(LEAVES, lambda inner: st.builds(both, inner, inner) | st.builds(either, inner, inner), max_leaves=8)


@given(TREES, st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "1", "2", "10"])))
def test_random_conditions_agree_with_python(tree: Tree, tags: dict[str, str]) -> None:
    condition = parse_condition(tree[0])
    assert condition is not None
    assert condition.holds(tags) is tree[1](tags)


@given(st.text(max_size=40))
def test_no_text_breaks_the_parser(text: str) -> None:
    condition = parse_condition(text)
    assert condition is None or condition.holds({}) is False
