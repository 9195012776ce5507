"""Reading extents that are files: piece by piece, as files that the kernel copies, and short parts in one call to a thread."""

import asyncio
import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from verditer.stream.extents import COPY_BYTES, PIECE_BYTES, ExtentMissing, Take


class LocalFile:
    def __init__(self, reading: "Reading", pool: ThreadPoolExecutor, offset: int, length: int) -> None:
        self.left = length
        self._reading = reading
        self._pool = pool
        self._offset = offset

    async def copy(self, take: Take) -> None:
        wanted = min(self.left, COPY_BYTES)
        taken = await asyncio.wrap_future(self._pool.submit(self._reading.copy, take, self._offset, wanted))
        self._offset += taken
        self.left -= taken

    def close(self) -> None:
        self._reading.end(self._pool)


class Reading:
    """One read in progress. The lock keeps the file open while a piece is being read, even if the consumer has stopped."""

    def __init__(self, path: Path, end: int) -> None:
        self._path = path
        self._end = end
        self._file: int | None = None
        self._closed = False
        self._lock = threading.Lock()

    def piece(self, start: int) -> bytes:
        with self._lock:
            if self._closed:
                return b""
            wanted = min(self._end - start, PIECE_BYTES)
            return _read_exactly(self._opened(), self._path, start, wanted)

    def copy(self, take: Take, start: int, wanted: int) -> int:
        with self._lock:
            return 0 if self._closed else take(self._opened(), start, wanted)

    def end(self, pool: ThreadPoolExecutor) -> None:
        try:
            pool.submit(self.close)
        except RuntimeError:  # the store was closed before this reader: no thread reads any more
            self.close()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._file is not None:
                os.close(self._file)
                self._file = None

    def _opened(self) -> int:
        if self._file is None:
            self._file = _open(self._path, self._end)
        return self._file


def open_and_read(path: Path, start: int, length: int) -> tuple[bytes, int]:
    file = _open(path, start + length)
    try:
        return _read_exactly(file, path, start, length), file
    except BaseException:
        os.close(file)
        raise


def close_unwanted(reading: "Future[tuple[bytes, int]]") -> None:
    if not reading.cancelled() and reading.exception() is None:
        os.close(reading.result()[1])


def _open(path: Path, end: int) -> int:
    """The open file, which has `end` bytes at least."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise ExtentMissing(path.name) from None
    if os.fstat(file).st_size < end:
        os.close(file)
        raise ExtentMissing(path.name)
    return file


def _read_exactly(file: int, path: Path, start: int, wanted: int) -> bytes:
    piece = os.pread(file, wanted, start)
    if len(piece) < wanted:
        raise ExtentMissing(path.name)
    return piece
