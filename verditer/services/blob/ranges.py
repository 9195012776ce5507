"""Arithmetic of ranges: ordered, disjoint pairs (start, end), end excluded, taken one at a time however many there are."""

from collections.abc import Iterable, Iterator

Range = tuple[int, int]


def joined(ranges: Iterable[Range]) -> Iterator[Range]:
    """Ranges that touch become one."""
    held: Range | None = None
    for start, end in ranges:
        if held is not None and held[1] == start:
            held = (held[0], end)
            continue
        if held is not None:
            yield held
        held = (start, end)
    if held is not None:
        yield held


def without(ranges: Iterable[Range], taken: Iterable[Range]) -> Iterator[Range]:
    """What is left of `ranges` when everything in `taken` is cut out."""
    cuts = iter(taken)
    cut = next(cuts, None)
    for low, end in ranges:
        start = low
        while cut is not None and cut[0] < end:
            if cut[1] > start:
                if start < cut[0]:
                    yield start, cut[0]
                start = cut[1]
            if cut[1] > end:
                break  # it reaches into what follows
            cut = next(cuts, None)
        if start < end:
            yield start, end
