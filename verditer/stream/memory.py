"""Extents in memory, for tests and for servers that keep nothing. Implements the contract of `extents.py`, with a limit."""

from collections.abc import AsyncIterator, Sequence

from verditer.core.errors import Code, StorageError
from verditer.core.records.lifecycle import ExtentId
from verditer.stream.extents import PIECE_BYTES, ExtentMissing, NewId


class MemoryExtents:
    """`limit_bytes` bounds the size of all extents together, including those that are being written. None sets no bound."""

    is_remote = False

    def __init__(self, new_id: NewId, limit_bytes: int | None = None) -> None:
        self._new_id = new_id
        self._limit_bytes = limit_bytes
        self._held_bytes = 0
        self._extents: dict[str, bytearray] = {}
        self._writing: set[str] = set()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def probe(self) -> None:
        pass

    def new(self) -> "MemoryWriter":
        extent = ExtentId(self._new_id())
        self._extents[extent] = bytearray()
        self._writing.add(extent)
        return MemoryWriter(self, extent)

    async def read(self, extent: str, offset: int, length: int) -> AsyncIterator[bytes]:
        data = self._extents.get(extent)
        if data is None or len(data) < offset + length:
            raise ExtentMissing(extent)
        with memoryview(data) as view:
            for start in range(offset, offset + length, PIECE_BYTES):
                yield bytes(view[start : min(start + PIECE_BYTES, offset + length)])

    def read_now(self, extent: str, offset: int, length: int) -> bytes | None:
        data = self._extents.get(extent)
        if data is None or len(data) < offset + length:
            return None
        return bytes(memoryview(data)[offset : offset + length])

    def file(self, extent: str, offset: int, length: int) -> None:
        return None

    async def delete(self, extent: str) -> None:
        self._remove(extent)

    async def list(self) -> AsyncIterator[tuple[str, int]]:
        for extent, size in [(extent, len(data)) for extent, data in self._extents.items()]:
            yield extent, size

    def is_writing(self, extent: str) -> bool:
        return extent in self._writing

    def _append(self, extent: str, data: bytes) -> None:
        if self._limit_bytes is not None and self._held_bytes + len(data) > self._limit_bytes:
            self._remove(extent)
            raise StorageError(Code.InsufficientStorage)
        self._extents[extent] += data
        self._held_bytes += len(data)

    def _remove(self, extent: str) -> None:
        self._writing.discard(extent)
        self._held_bytes -= len(self._extents.pop(extent, b""))


class MemoryWriter:
    def __init__(self, store: MemoryExtents, extent: ExtentId) -> None:
        self.id = extent
        self._store = store

    async def write(self, pieces: Sequence[bytes | bytearray] | bytes) -> None:
        self._store._append(self.id, pieces if isinstance(pieces, bytes) else b"".join(pieces))

    async def commit(self) -> None:
        self._store._writing.discard(self.id)

    async def abort(self) -> None:
        self._store._remove(self.id)
