"""Which extents the records of a store name, and how many bytes of each they need. Derived from the declarations of the
classes."""

from collections.abc import Iterator
from typing import Any

from verditer.core.records.lifecycle import ExtentNames
from verditer.core.records.record import Record


def extents_needed_by(record: Record) -> Iterator[tuple[str, int]]:
    """(extent, bytes) for every extent that must be there. Records that keep an extent for running reads only need none."""
    names = record.LIFECYCLE.extents
    if names is None or names.released is not None:
        return
    for holder in _holders(record, names):
        extent = getattr(holder, names.path.rpartition(".")[2])
        if extent is not None:
            yield extent, getattr(holder, "offset", 0) + getattr(holder, "length", 0)


def releases(record: Record) -> Iterator[str]:
    """The extents that the record keeps until the collector removes them."""
    names = record.LIFECYCLE.extents
    if names is not None and names.released is not None:
        yield from names.of(record)


def _holders(record: Record, names: ExtentNames) -> list[Any]:
    """The objects whose field is the id of an extent: the record itself, or what one of its fields holds."""
    holders: list[Any] = [record]
    for name in names.path.split(".")[:-1]:
        found = [getattr(holder, name) for holder in holders]
        holders = [item for value in found for item in (value if isinstance(value, tuple) else (value,))]
    return [holder for holder in holders if holder is not None]
