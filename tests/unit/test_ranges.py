"""Union and difference of ranges, compared with sets of pages."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from verditer.services.content.ranges import Range, joined, without

PAGES = st.frozensets(st.integers(0, 40))
CUTS = st.frozensets(st.integers(1, 40))


def ranges_of(pages: Iterable[int], cuts: frozenset[int] = frozenset()) -> list[Range]:
    """Ordered, disjoint ranges over these pages; adjacent ranges are separate where there is a cut."""
    ranges: list[Range] = []
    for page in sorted(pages):
        if ranges and ranges[-1][1] == page and page not in cuts:
            ranges[-1] = (ranges[-1][0], page + 1)
        else:
            ranges.append((page, page + 1))
    return ranges


def pages_of(ranges: Iterable[Range]) -> list[int]:
    return [page for start, end in ranges for page in range(start, end)]


@given(PAGES, CUTS)
def test_ranges_that_touch_become_one(pages: frozenset[int], cuts: frozenset[int]) -> None:
    assert list(joined(ranges_of(pages, cuts))) == ranges_of(pages)


@given(PAGES, PAGES, CUTS, CUTS)
def test_what_is_cut_out_is_gone_and_nothing_else(
    pages: frozenset[int], taken: frozenset[int], cuts: frozenset[int], other_cuts: frozenset[int]
) -> None:
    left = list(without(ranges_of(pages, cuts), ranges_of(taken, other_cuts)))
    assert pages_of(left) == sorted(pages - taken)
    assert all(start < end for start, end in left)
