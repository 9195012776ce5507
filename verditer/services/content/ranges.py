"""Arithmetic of byte ranges: ordered, disjoint pairs (start, end), end excluded. Ranges are consumed one at a time."""

from collections.abc import Iterable, Iterator

Range = tuple[int, int]


def joined(ranges: Iterable[Range]) -> Iterator[Range]:
    """Merge ranges that touch."""
    last: Range | None = None
    for start, end in ranges:
        if last is not None and last[1] == start:
            last = (last[0], end)
            continue
        if last is not None:
            yield last
        last = (start, end)
    if last is not None:
        yield last


def in_blocks(ranges: Iterable[Range], block_bytes: int, start: int, end: int) -> Iterator[Range]:
    """The blocks that the ranges touch, merged, and cut at the borders `start` and `end`."""
    low = high = -1
    for first, last in ranges:
        first, last = first // block_bytes * block_bytes, -(-last // block_bytes) * block_bytes
        if first <= high:
            high = max(high, last)
            continue
        if max(low, start) < min(high, end):
            yield max(low, start), min(high, end)
        low, high = first, last
    if max(low, start) < min(high, end):
        yield max(low, start), min(high, end)


def without(ranges: Iterable[Range], removed: Iterable[Range]) -> Iterator[Range]:
    """The part of `ranges` that is outside of all ranges in `removed`."""
    cuts = iter(removed)
    cut = next(cuts, None)
    for low, end in ranges:
        start = low
        while cut is not None and cut[0] < end:
            if cut[1] > start:
                if start < cut[0]:
                    yield start, cut[0]
                start = cut[1]
            if cut[1] > end:
                break  # it overlaps the next range as well
            cut = next(cuts, None)
        if start < end:
            yield start, end
