"""NDR, the encoding of remote procedure calls (C706 chapter 14), as far as the server service needs it: numbers, strings,
pointers."""

import struct

_U32 = struct.Struct("<I")
_COUNTS = struct.Struct("<III")
MAX_STRING = 1024


class NdrError(ValueError):
    """The arguments of a call are not encoded as they should be."""


class NdrReader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        return int(_U32.unpack(self._take(4))[0])

    def string(self) -> str:
        """A conformant and varying string of UTF-16 with its terminator."""
        most, offset, count = _COUNTS.unpack(self._take(12))
        if offset or count > most or count > MAX_STRING:
            raise NdrError("a string has wrong lengths")
        characters = self._take(2 * count)
        self._at += -self._at % 4
        return characters.decode("utf-16-le", "replace").rstrip("\0")

    def optional_string(self) -> str | None:
        return self.string() if self.number() else None

    def optional_number(self) -> int | None:
        return self.number() if self.number() else None

    def _take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        if len(taken) != count:
            raise NdrError("arguments are missing")
        self._at += count
        return taken


class NdrWriter:
    """Pointers are written at once, and what they point to behind the structure that has them (`finish`)."""

    def __init__(self) -> None:
        self._built = bytearray()
        self._deferred: list[str] = []
        self._referent = 0x00020000

    def number(self, value: int) -> None:
        self._built += _U32.pack(value)

    def pointer(self, is_given: bool = True) -> None:
        self._referent += 4
        self.number(self._referent if is_given else 0)

    def string(self, value: str) -> None:
        """A pointer to a string."""
        self.pointer()
        self._deferred.append(value)

    def finish_structure(self) -> None:
        """Write what the pointers so far point to."""
        for value in self._deferred:
            text = (value + "\0").encode("utf-16-le")
            count = len(text) // 2
            self._built += _COUNTS.pack(count, 0, count) + text + bytes(-len(text) % 4)
        self._deferred.clear()

    def bytes(self) -> bytes:
        return bytes(self._built)
