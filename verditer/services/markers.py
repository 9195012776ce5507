"""Pages of a listing, and markers: the position where the next page begins, as opaque text."""

import base64
import binascii
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from verditer.core.errors import Code, StorageError

T = TypeVar("T")


def encode_marker(position: bytes) -> str:
    return base64.urlsafe_b64encode(position).decode()


def decode_marker(marker: str) -> bytes:
    try:
        return base64.b64decode(marker.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise StorageError(Code.InvalidQueryParameterValue, field="marker", value=marker) from None


def first_page(items: Iterable[T], limit: int, position: Callable[[T], bytes]) -> tuple[list[T], str]:
    """The first items, at most `limit`, and the marker of the item behind them; empty if there is none."""
    found = list(islice(items, limit + 1))
    behind = found[limit:]
    return found[:limit], encode_marker(position(behind[0])) if behind else ""
