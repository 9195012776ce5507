"""What every stored record has in common: a table, a key, a version.

A record is a frozen struct. Its class names the table, the fields that make its key and, where something is taken in order of
time rather than of name, the fields that make its rank. Engines see only table, key, rank and bytes.

Keys are bytes whose order is the order Azure lists in: whole numbers big-endian, text by UTF-16 code unit.
"""

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import msgspec

Part = int | str | bytes


class Record(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """Stored by position, so a later version may append fields with defaults. A changed shape gets a new tag (see `upgrade`)."""

    TABLE: ClassVar[str]
    KEY: ClassVar[tuple[str, ...]]
    RANK: ClassVar[tuple[str, ...]] = ()
    PARENT: ClassVar[bool] = False  # every request about what is in it looks at it first
    SIFTED: ClassVar[bool] = False  # scans may look for marks in its first field, which is text (`Mark` in `partition/engine.py`)

    def key(self) -> bytes:
        return key_of(*_reader(self.KEY)(self))

    def rank(self) -> bytes:
        """Of records that have one."""
        return key_of(*[getattr(self, name) for name in self.RANK])


@cache
def _reader(names: tuple[str, ...]) -> Callable[[Record], tuple[Part, ...]]:
    read: Callable[[Record], Any] = attrgetter(*names)
    return read if len(names) > 1 else lambda record: (read(record),)


class Span(NamedTuple):
    """The keys from `low` (included) to `high` (excluded)."""

    low: bytes
    high: bytes

    def after(self, key: bytes) -> "Span":
        """What is left of the span behind one key."""
        return Span(max(self.low, key + b"\0"), self.high)

    def starting(self, key: bytes) -> "Span":
        """What is left of the span from one key on."""
        return Span(max(self.low, key), self.high)


def key_of(*parts: Part) -> bytes:
    """The key made of these parts. Each part is self-delimiting, so a key is a prefix of exactly the keys below it."""
    key = b""
    for part in parts:
        if isinstance(part, str):
            if part.isascii() and part.isprintable():  # mostly, and on the path of every request
                key += part.encode() + b"\0"
            else:
                key += text_bytes(part) + b"\0"
        elif isinstance(part, int):
            key += part.to_bytes(8, "big")
        else:
            key += _escaped(part) + b"\0"
    return key


def span_of(*parts: Part) -> Span:
    """Every key that begins with these parts."""
    low = key_of(*parts)
    return Span(low, successor(low))


def span_of_prefix(*parts: Part, prefix: str) -> Span:
    """Every key that begins with these parts, followed by text that begins with `prefix`."""
    low = key_of(*parts) + text_bytes(prefix)
    return Span(low, successor(low))


def successor(prefix: bytes) -> bytes:
    """The first key that no longer begins with `prefix`."""
    stripped = prefix.rstrip(b"\xff")
    return stripped[:-1] + bytes([stripped[-1] + 1]) if stripped else b"\xff" * (len(prefix) + 9)


def text_bytes(text: str) -> bytes:
    """UTF-8, with characters beyond U+FFFF written as surrogate pairs, so that bytes sort as UTF-16 code units do."""
    if text.isascii():
        return _escaped(text.encode())
    if max(text) > "\uffff":
        units = text.encode("utf-16-be", "surrogatepass")
        text = "".join([chr(units[i] << 8 | units[i + 1]) for i in range(0, len(units), 2)])
    return _escaped(text.encode("utf-8", "surrogatepass"))


def _escaped(part: bytes) -> bytes:
    """Bytes that end a part do not occur inside it, and the order stays as it was: 00 becomes 01 01, 01 becomes 01 02."""
    if 0 not in part and 1 not in part:
        return part
    return part.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1")
