"""Keys sort in the order of Azure's listings, and a span contains exactly the keys below its parts."""

from hypothesis import given
from hypothesis import strategies as st

from verditer.core.records.record import key_of, span_of, span_of_prefix, text_bytes

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.integers(0, 2**64 - 1)


def utf16(text: str) -> bytes:
    return text.encode("utf-16-be")


@given(texts, texts)
def test_text_sorts_by_utf16_code_unit(one: str, other: str) -> None:
    assert (key_of(one) < key_of(other)) == (utf16(one) < utf16(other))


@given(numbers, numbers)
def test_numbers_sort_by_value(one: int, other: int) -> None:
    assert (key_of(one) < key_of(other)) == (one < other)


@given(numbers, texts, texts, st.binary(max_size=8))
def test_a_span_holds_what_is_below_its_parts_and_nothing_else(number: int, name: str, other: str, tail: bytes) -> None:
    span = span_of(number, name)
    assert span.low <= key_of(number, name, tail) < span.high
    if other != name:
        assert not span.low <= key_of(number, other, tail) < span.high


@given(numbers, texts, texts)
def test_a_span_of_a_prefix_holds_the_names_that_begin_with_it(number: int, name: str, prefix: str) -> None:
    span = span_of_prefix(number, prefix=prefix)
    assert (span.low <= key_of(number, name) < span.high) == utf16(name).startswith(utf16(prefix))


@given(texts)
def test_no_part_contains_what_ends_it(text: str) -> None:
    assert b"\0" not in text_bytes(text)
