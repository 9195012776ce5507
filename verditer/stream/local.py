"""Extents as files on a local disk. Implements the contract of `extents.py`; all calls to the disk run in a few threads.

An extent is one file, which has its final name from the first byte on. No record names it before `commit` has synced it, so it
need not be renamed. After a crash, an incomplete file is an extent that no record names.
"""

import asyncio
import errno
import os
import re
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

from verditer.core.errors import Code, StorageError
from verditer.core.records.lifecycle import ExtentId
from verditer.stream.extents import PIECE_BYTES, ExtentsUnavailable, NewId
from verditer.stream.local_reading import LocalFile, Reading, close_unwanted, open_and_read
from verditer.stream.open_files import OpenFiles

THREADS = 4
WRITEBACK_BYTES = 4 << 20
SHARDS = tuple(f"{number:02x}" for number in range(256))
_ID = re.compile(r"[0-9a-f]{32}")
_DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}

P = ParamSpec("P")
T = TypeVar("T")


class LocalExtents:
    """Files at `<folder>/<shard>/<id>`. The shard is two of the random digits of the id, so the folders fill evenly."""

    is_remote = False

    def __init__(self, folder: Path, new_id: NewId) -> None:
        self._folder = folder
        self._new_id = new_id
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="extents")
        self._writing: set[str] = set()
        self._open_files = OpenFiles()

    async def open(self) -> None:
        await self._run(_make_folders, self._folder)

    async def close(self) -> None:
        """Return when all calls to the disk that have begun are done."""
        self._open_files.close()
        await asyncio.to_thread(self._pool.shutdown)

    async def probe(self) -> None:
        try:
            await self._run(os.stat, self._folder)
        except OSError as error:
            raise ExtentsUnavailable(f"the folder of extents cannot be read: {error.strerror}") from None

    def new(self) -> "LocalWriter":
        extent = ExtentId(self._new_id())
        self._writing.add(extent)
        return LocalWriter(extent, self._path(extent), self._pool, self._writing)

    def read_now(self, extent: str, offset: int, length: int) -> bytes | None:
        return self._open_files.read(extent, offset, length)

    async def read(self, extent: str, offset: int, length: int) -> AsyncIterator[bytes]:
        if 0 < length <= PIECE_BYTES and self._open_files.may_keep:
            yield await self._read_and_keep(extent, offset, length)
            return
        reading = Reading(self._path(extent), offset + length)
        ahead: Future[bytes] | None = None
        try:
            for start in range(offset, offset + length, PIECE_BYTES):
                current, ahead = ahead, self._pool.submit(reading.piece, start)  # read ahead while the consumer sends
                if current is not None:
                    yield await asyncio.wrap_future(current)
            if ahead is not None:
                yield await asyncio.wrap_future(ahead)
        finally:
            reading.end(self._pool)

    async def _read_and_keep(self, extent: str, offset: int, length: int) -> bytes:
        """In one call to a thread. The file stays open for a while, as a client that reads a part often reads on soon."""
        reading = self._pool.submit(open_and_read, self._path(extent), offset, length)
        try:
            piece, file = await asyncio.wrap_future(reading)
        except asyncio.CancelledError:
            reading.add_done_callback(close_unwanted)
            raise
        self._open_files.keep(extent, file)
        return piece

    def file(self, extent: str, offset: int, length: int) -> "LocalFile":
        return LocalFile(Reading(self._path(extent), offset + length), self._pool, offset, length)

    async def delete(self, extent: str) -> None:
        # Not synced: if a loss of power brings the extent back, no record names it, and it is collected again.
        self._open_files.forget(extent)  # before: the last close of a deleted file frees its blocks, which may take long
        await self._run(_unlink, self._path(extent))
        self._open_files.forget(extent)  # it may have been read meanwhile

    async def list(self) -> AsyncIterator[tuple[str, int]]:
        for shard in SHARDS:
            for found in await self._run(_scan, self._folder / shard):
                yield found

    def is_writing(self, extent: str) -> bool:
        return extent in self._writing

    def _path(self, extent: str) -> Path:
        assert _ID.fullmatch(extent), "extent ids are generated, never a name that a client sent"
        return self._folder / extent[16:18] / extent

    async def _run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._pool.submit(work, *args, **kwargs))


class LocalWriter:
    """The first write opens the file. The lock makes `abort` wait for a write whose caller was cancelled."""

    def __init__(self, extent: ExtentId, path: Path, pool: ThreadPoolExecutor, writing: set[str]) -> None:
        self.id = extent
        self._path = path
        self._pool = pool
        self._writing = writing
        self._file: int | None = None
        self._size = 0
        self._sent_to_disk = 0
        self._aborted = False
        self._lock = threading.Lock()

    async def write(self, pieces: Sequence[bytes | bytearray] | bytes) -> None:
        await asyncio.wrap_future(self._pool.submit(self._write, pieces))

    async def commit(self) -> None:
        await asyncio.wrap_future(self._pool.submit(self._commit))

    async def abort(self) -> None:
        # Shielded: a caller that aborts because it was cancelled may be cancelled again, and the file must still be removed.
        await asyncio.shield(asyncio.wrap_future(self._pool.submit(self._abort)))

    def _write(self, pieces: Sequence[bytes | bytearray] | bytes) -> None:
        with self._disk() as file:
            for piece in [pieces] if isinstance(pieces, bytes) else pieces:
                _write_all(file, piece)
                self._size += len(piece)
            if self._size - self._sent_to_disk >= WRITEBACK_BYTES:
                _start_writeback(file, self._sent_to_disk, self._size - self._sent_to_disk)
                self._sent_to_disk = self._size

    def _commit(self) -> None:
        with self._disk() as file:
            _sync(file)
            sync_folder(self._path.parent)
            self._close()

    def _abort(self) -> None:
        with self._lock:
            self._discard()

    @contextmanager
    def _disk(self) -> Iterator[int]:
        """The open file, with the lock held. When a call to the disk fails, the file is removed before the error is raised."""
        with self._lock:
            assert not self._aborted, "the extent was aborted"
            try:
                if self._file is None:
                    self._file = _create(self._path)
                yield self._file
            except OSError as error:
                self._discard()
                if error.errno in _DISK_FULL:
                    raise StorageError(Code.InsufficientStorage) from error
                raise

    def _discard(self) -> None:
        self._aborted = True
        _unlink(self._path)
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._writing.discard(self.id)


def _make_folders(folder: Path) -> None:
    """Create and sync all shards here, so that a commit has to sync only its own shard."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for shard in SHARDS:
        (folder / shard).mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder)
    sync_folder(folder.parent)


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)


def _write_all(file: int, data: bytes | bytearray) -> None:
    written = os.write(file, data)
    while written < len(data):  # when a disk fills up, it first takes a part of the data and then refuses the rest
        written += os.write(file, memoryview(data)[written:])


def _start_writeback(file: int, offset: int, length: int) -> None:
    """Start writing to the disk while the rest of the body arrives, so that `commit` waits less (256 MiB: 435 → 520 MiB/s).

    POSIX_FADV_DONTNEED makes Linux start writing these pages. They stay in its cache nevertheless, since they are dirty.
    """
    if sys.platform == "linux":
        os.posix_fadvise(file, offset, length, os.POSIX_FADV_DONTNEED)


def _sync(file: int) -> None:
    if sys.platform == "linux":
        os.fdatasync(file)
    else:
        os.fsync(file)


def sync_folder(folder: Path) -> None:
    """The name of a new file is durable when its folder has been synced."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _unlink(path: Path) -> None:
    path.unlink(missing_ok=True)


def _scan(shard: Path) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    with os.scandir(shard) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # deleted meanwhile
                if _ID.fullmatch(entry.name):
                    found.append((entry.name, entry.stat().st_size))
    return found
