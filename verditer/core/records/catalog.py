"""All record classes, found by importing every module of this package, and what their declarations say together.

The schema, the collector, the removal of children, expiry and account reset go through these tuples. No other place lists record
classes.
"""

import importlib
import pkgutil
from collections.abc import Iterator

from verditer.core import records
from verditer.core.records.lifecycle import Reset, Root
from verditer.core.records.record import Record


def _record_classes() -> Iterator[type[Record]]:
    for module in pkgutil.iter_modules(records.__path__, f"{records.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and issubclass(value, Record) and value.__module__ == module.name and value.TABLE:
                yield value


RECORDS: tuple[type[Record], ...] = tuple(_record_classes())
"""Each has a table of its own."""

CHILDREN = tuple(kind for kind in RECORDS if isinstance(kind.LIFECYCLE.parent, type))
"""Records below another record. They are removed some time after it."""

EXPIRING = tuple(kind for kind in RECORDS if kind.LIFECYCLE.expiry is not None)

REMOVED_BY_RESET = tuple(
    kind for kind in RECORDS if (kind.LIFECYCLE.parent, kind.LIFECYCLE.reset) == (Root.ACCOUNT, Reset.REMOVED)
)
"""Records directly below an account. What is below them follows as their children."""
