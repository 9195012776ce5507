"""ETags: the tick of the write that made the version, and its two forms on the wire.

`HybridClock.tick` never gives a tick twice (invariant 4), so an ETag names one version of one object for ever, and the same
number, cut to its second, is the Last-Modified date.
"""

from typing import TypeAlias

Etag: TypeAlias = int


def show(etag: Etag) -> str:
    """As headers carry it: quoted."""
    return f'"0x{etag:X}"'


def bare(etag: Etag) -> str:
    """As listings carry it, and as conditions compare it: without quotes."""
    return f"0x{etag:X}"
