"""Bounded caches keyed by texts that clients send."""

from verditer.core.caches import BoundedCache, bounded_cache


def test_short_texts_are_remembered_and_long_ones_are_not() -> None:
    asked: list[str] = []

    @bounded_cache(2, longest=3)
    def ask(text: str) -> int:
        asked.append(text)
        return len(text)

    assert [ask(text) for text in ("abc", "abc", "abcd", "abcd")] == [3, 3, 4, 4]
    assert asked == ["abc", "abcd", "abcd"]


def test_no_more_than_so_many_are_remembered() -> None:
    asked: list[str] = []

    @bounded_cache(2, longest=3)
    def ask(text: str) -> None:
        asked.append(text)

    for text in ("a", "b", "c", "a"):
        ask(text)
    assert asked == ["a", "b", "c", "a"]


def test_what_is_full_begins_anew() -> None:
    kept = BoundedCache[tuple[str, str], int](2)
    for number in range(5):
        kept.keep(("place", str(number)), number)
        assert len(kept) <= 2
        assert kept["place", str(number)] == number
