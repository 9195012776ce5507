"""What every stored record has in common: a table, a key, a version and a declared life.

A record is a frozen struct. Its class names the table, the fields of its key and its `Lifecycle`. Records that are also read in
the order of a time have a rank, and their class names its fields. Engines see only table, key, rank and bytes.

Keys are bytes. Their order is the order in which Azure lists: integers big-endian, text by UTF-16 code unit.
"""

import struct
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, NamedTuple

import msgspec

from verditer.core.records.lifecycle import Lifecycle

KeyPart = int | str | bytes
_number = struct.Struct(">Q").pack
_BYTES = [bytes([number]) for number in range(256)]


class Record(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The fields are stored by position, so a later version may append fields with defaults. A field of a class that has
    subclasses with fields of their own also needs a new tag of those, which name it in `ADDED`. Any other change needs a new tag
    and a migration."""

    TABLE: ClassVar[str] = ""  # empty: records of this class are not stored, those of its subclasses are
    KEY: ClassVar[tuple[str, ...]]
    RANK: ClassVar[tuple[str, ...]] = ()
    LIFECYCLE: ClassVar[Lifecycle]  # each class has its own; none is inherited
    IS_PARENT: ClassVar[bool] = False  # derived: a class declares this one as its parent. Requests for a child read it first
    IS_COUNTER: ClassVar[bool] = False  # a number that many writes change: an engine may store it once for those of one commit
    IS_SELDOM_STORED: ClassVar[bool] = False  # many requests look for such records, and most of the time there is none at all
    IS_SHARED: ClassVar[bool] = False  # many requests ask the same. Derived for the classes above; others may declare it
    # The records that differ in the last part of their key only are few, and requests ask for all of them. The class is shared.
    IS_READ_TOGETHER: ClassVar[bool] = False
    ADDED: ClassVar[tuple[str, ...]] = ()  # fields with defaults that rows with the tag before this one do not have
    # The name of the first field, if that is a JSON object whose members the conditions of a scan may name. An engine may add a
    # space behind the object.
    DOCUMENT: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "LIFECYCLE" not in vars(cls):
            raise TypeError(f"{cls.__name__} declares no LIFECYCLE")
        cls.IS_SHARED |= cls.IS_COUNTER or cls.IS_SELDOM_STORED
        if isinstance(cls.LIFECYCLE.parent, type):
            cls.LIFECYCLE.parent.IS_PARENT = cls.LIFECYCLE.parent.IS_SHARED = True

    def key(self) -> bytes:
        return key_of(*_reader(self.KEY)(self))

    def key_parts(self) -> tuple[KeyPart, ...]:
        return _reader(self.KEY)(self)

    def rank(self) -> bytes:
        """For records whose class has a `RANK`."""
        return key_of(*[getattr(self, name) for name in self.RANK])


@cache
def _reader(names: tuple[str, ...]) -> Callable[[Record], tuple[KeyPart, ...]]:
    read: Callable[[Record], Any] = attrgetter(*names)
    return read if len(names) > 1 else lambda record: (read(record),)


class Span(NamedTuple):
    """The keys from `low` (included) to `high` (excluded)."""

    low: bytes
    high: bytes

    def after(self, key: bytes) -> "Span":
        """The rest of the span after a key."""
        return Span(max(self.low, key + b"\0"), self.high)

    def starting(self, key: bytes) -> "Span":
        """The rest of the span from a key on, the key included."""
        return Span(max(self.low, key), self.high)


EVERY_KEY = Span(b"", b"\xff" * 64)
"""All records of a table."""


def key_of(*parts: KeyPart) -> bytes:
    """The key made of these parts. Each part is self-delimiting, so a key is a prefix of exactly the keys below it."""
    key = b""
    for part in parts:
        if type(part) is int:  # every request makes some keys: this is faster than `isinstance` and `to_bytes`
            key += _number(part)
        elif isinstance(part, str):
            if part.isascii() and part.isprintable():  # the common case, and on the path of every request
                key += part.encode() + b"\0"
            else:
                key += text_bytes(part) + b"\0"
        elif isinstance(part, int):
            key += part.to_bytes(8, "big")
        else:
            key += _escaped(part) + b"\0"
    return key


def span_of(*parts: KeyPart) -> Span:
    """Every key that begins with these parts."""
    low = key_of(*parts)
    return Span(low, successor(low))


def span_of_prefix(*parts: KeyPart, prefix: str) -> Span:
    """Every key that begins with these parts, followed by text that begins with `prefix`."""
    low = key_of(*parts) + text_bytes(prefix)
    return Span(low, successor(low))


def successor(prefix: bytes) -> bytes:
    """The first key that no longer begins with `prefix`."""
    if prefix and (last := prefix[-1]) != 0xFF:
        return prefix[:-1] + _BYTES[last + 1]
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
    """The byte that ends a part does not occur inside it, and the order is preserved: 00 becomes 01 01, 01 becomes 01 02."""
    if 0 not in part and 1 not in part:
        return part
    return part.replace(b"\1", b"\1\2").replace(b"\0", b"\1\1")
