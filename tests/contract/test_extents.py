"""Extents: one suite for every store, then what only files on a disk can show (syncing, modes, a full disk, leftovers)."""

import asyncio
import errno
import os
import random
import resource
import stat
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.contract.extent_stores import run
from tests.contract.s3 import S3Server
from tests.fresh_process import run_in_fresh_process
from verditer.core.errors import Code, StorageError
from verditer.stream import open_files as open_files_module
from verditer.stream.extents import PIECE_BYTES, ExtentMissing, ExtentStore, ExtentWriter
from verditer.stream.local import LocalExtents
from verditer.stream.memory import MemoryExtents
from verditer.stream.s3 import S3Extents

MAKERS = ["local", "memory", "s3"]
LARGE = random.Random(1).randbytes(3 * PIECE_BYTES + 12_345)


def ids() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"{next(numbers):016x}{random.getrandbits(64):016x}"


def local(folder: Path) -> LocalExtents:
    return LocalExtents(folder / "extents", ids())


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ExtentStore:
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        return S3Extents(server.location(), ids(), credentials=server.credentials())
    made: ExtentStore = local(tmp_path) if request.param == "local" else MemoryExtents(ids())
    return made


async def put(store: ExtentStore, *batches: list[bytes] | bytes) -> str:
    writer = store.new()
    for batch in batches:
        await writer.write(batch)
    await writer.commit()
    return writer.id


async def get(store: ExtentStore, extent: str, offset: int, length: int) -> bytes:
    return b"".join([piece async for piece in store.read(extent, offset, length)])


async def listed(store: ExtentStore) -> dict[str, int]:
    return {extent: size async for extent, size in store.list()}


# every store


@pytest.mark.parametrize(
    ("offset", "length"),
    [
        (0, len(LARGE)),
        (1, 1),
        (7, PIECE_BYTES),
        (PIECE_BYTES - 1, 2),
        (13, 2 * PIECE_BYTES + 1),
        (len(LARGE), 0),
        (len(LARGE) - 1, 1),
    ],
)
def test_what_was_written_reads_back_at_any_offset(store: ExtentStore, offset: int, length: int) -> None:
    async def scenario() -> None:
        extent = await put(store, [LARGE[:5], LARGE[5:70_000]], LARGE[70_000:])
        assert await get(store, extent, offset, length) == LARGE[offset : offset + length]

    run(store, scenario)


def test_a_read_comes_in_pieces_of_bounded_size(store: ExtentStore) -> None:
    async def scenario() -> None:
        extent = await put(store, LARGE)
        sizes = [len(piece) async for piece in store.read(extent, 0, len(LARGE))]
        assert sizes == [PIECE_BYTES] * 3 + [12_345]

    run(store, scenario)


def test_an_empty_extent_exists(store: ExtentStore) -> None:
    async def scenario() -> None:
        extent = await put(store)
        assert await get(store, extent, 0, 0) == b""
        assert await listed(store) == {extent: 0}

    run(store, scenario)


@pytest.mark.parametrize(("offset", "length"), [(0, 101), (100, 1), (5000, 1), (50, 2 * PIECE_BYTES)])
def test_a_read_past_the_end_is_missing_before_any_piece(store: ExtentStore, offset: int, length: int) -> None:
    async def scenario() -> None:
        pieces = store.read(await put(store, bytes(100)), offset, length)
        with pytest.raises(ExtentMissing):
            await anext(pieces)

    run(store, scenario)


def test_an_absent_extent_is_missing(store: ExtentStore) -> None:
    async def scenario() -> None:
        with pytest.raises(ExtentMissing):
            await get(store, ids()(), 0, 1)

    run(store, scenario)


def test_a_deleted_extent_is_gone_and_deleting_again_is_fine(store: ExtentStore) -> None:
    async def scenario() -> None:
        kept, gone = await put(store, b"kept"), await put(store, b"gone")
        await store.delete(gone)
        await store.delete(gone)
        assert await listed(store) == {kept: 4}
        with pytest.raises(ExtentMissing):
            await get(store, gone, 0, 4)

    run(store, scenario)


def test_deleting_an_extent_does_not_break_a_read_that_has_begun(store: ExtentStore) -> None:  # race G1
    async def scenario() -> None:
        extent = await put(store, LARGE)
        pieces = store.read(extent, 0, len(LARGE))
        first = await anext(pieces)
        await store.delete(extent)
        assert first + b"".join([piece async for piece in pieces]) == LARGE

    run(store, scenario)


def test_an_extent_is_writing_until_it_commits_or_aborts(store: ExtentStore) -> None:  # race G1
    async def scenario() -> None:
        first, second = store.new(), store.new()
        assert store.is_writing(first.id)
        assert store.is_writing(second.id)
        await first.write(b"bytes")
        assert store.is_writing(first.id)
        assert (await listed(store))[first.id] == 5
        await first.commit()
        await second.abort()
        assert not store.is_writing(first.id)
        assert not store.is_writing(second.id)

    run(store, scenario)


def test_an_aborted_extent_leaves_nothing(store: ExtentStore) -> None:
    async def scenario() -> None:
        writer = store.new()
        await writer.write(LARGE)
        await writer.abort()
        await writer.abort()
        assert await listed(store) == {}

    run(store, scenario)


def test_an_abort_after_the_commit_takes_the_bytes_back(store: ExtentStore) -> None:
    async def scenario() -> None:
        writer = store.new()
        await writer.write(b"bytes")
        await writer.commit()
        await writer.abort()
        assert await listed(store) == {}

    run(store, scenario)


def test_many_writers_at_once_keep_apart(store: ExtentStore) -> None:
    async def scenario() -> None:
        bodies = [bytes([number]) * (10_000 + number) for number in range(40)]
        extents = await asyncio.gather(*(put(store, body[:5000], [body[5000:]]) for body in bodies))
        assert await asyncio.gather(*(get(store, e, 0, len(b)) for e, b in zip(extents, bodies, strict=True))) == bodies

    run(store, scenario)


def test_a_reader_that_stops_early_holds_nothing_open(store: ExtentStore) -> None:
    async def scenario() -> None:
        extent = await put(store, LARGE)
        before = open_files()
        for _ in range(20):
            pieces = store.read(extent, 0, len(LARGE))
            await anext(pieces)
            await pieces.aclose()  # type: ignore[attr-defined]
        await store.close()  # waits for what the threads still do
        assert open_files() == before

    run(store, scenario)


def test_a_reader_may_outlive_its_store(store: ExtentStore) -> None:
    async def scenario() -> None:
        before = open_files()
        pieces = store.read(await put(store, LARGE), 0, len(LARGE))
        await anext(pieces)
        await store.close()
        await pieces.aclose()  # type: ignore[attr-defined]
        assert open_files() == before

    run(store, scenario)


def open_files(folder: Path | str = "") -> list[str]:
    """The extents this process has open, below a folder."""
    links = (os.path.join("/proc/self/fd", number) for number in os.listdir("/proc/self/fd"))
    names = [os.readlink(link) for link in links if os.path.islink(link)]
    return [name for name in names if name.startswith(str(folder)) and "extents" in name]


# memory


def test_memory_has_no_files() -> None:
    store: ExtentStore = MemoryExtents(ids())
    assert store.file(ids()(), 0, 1) is None


def test_memory_refuses_what_would_pass_its_limit_and_goes_on() -> None:
    store = MemoryExtents(ids(), limit_bytes=100)

    async def scenario() -> None:
        kept = await put(store, bytes(60))
        writer = store.new()
        await writer.write(bytes(30))
        with pytest.raises(StorageError) as refused:
            await writer.write(bytes(11))
        assert refused.value.code is Code.InsufficientStorage
        await writer.abort()
        assert await listed(store) == {kept: 60}
        await put(store, bytes(40))  # the refused upload gave its room back, and the limit itself is allowed
        await store.delete(kept)
        await put(store, bytes(60))

    run(store, scenario)


# files on a disk


def test_a_stretch_can_be_copied_from_its_file(tmp_path: Path) -> None:
    store = local(tmp_path)
    copied = bytearray()

    def take(file: int, offset: int, count: int) -> int:
        copied.extend(os.pread(file, min(count, 500_000), offset))
        return min(count, 500_000)

    async def scenario() -> None:
        extent = await put(store, LARGE)
        file = store.file(extent, 13, 2 * PIECE_BYTES)
        await file.copy(take)
        await store.delete(extent)  # it is open: what is left can still be taken
        while file.left:
            await file.copy(take)
        assert copied == LARGE[13 : 13 + 2 * PIECE_BYTES]
        file.close()
        await store.close()
        file.close()
        assert open_files(tmp_path) == []

    run(store, scenario)


def test_what_was_read_a_moment_ago_is_read_again_without_waiting(tmp_path: Path) -> None:
    store = local(tmp_path)

    async def scenario() -> None:
        extent = await put(store, LARGE)
        assert store.read_now(extent, 0, 10) is None
        assert await get(store, extent, 5, 4096) == LARGE[5:4101]
        assert store.read_now(extent, 70_000, 4096) == LARGE[70_000:74_096]
        assert store.read_now(extent, len(LARGE) - 1, 1) == LARGE[-1:]
        assert store.read_now(extent, len(LARGE) - 1, 2) is None
        assert len(open_files(tmp_path)) == 1
        await store.delete(extent)
        assert store.read_now(extent, 0, 10) is None
        assert open_files(tmp_path) == []

    run(store, scenario)


def test_files_that_were_read_are_closed_after_a_while_and_are_never_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_files_module, "KEPT_SECONDS", 0.0)
    monkeypatch.setattr(open_files_module, "MAX_FILES", 3)
    store = local(tmp_path)

    async def scenario() -> None:
        extents = [await put(store, bytes([number]) * 100) for number in range(8)]
        assert await asyncio.gather(*(get(store, extent, 0, 100) for extent in extents)) == [bytes([n]) * 100 for n in range(8)]
        assert len(open_files(tmp_path)) <= 3
        for _ in range(100):  # iterations of the event loop
            await asyncio.sleep(0)
        assert open_files(tmp_path) == []

    run(store, scenario)


@pytest.mark.parametrize(("offset", "length"), [(0, 101), (100, 1)])
def test_a_file_that_is_too_short_is_missing_before_anything_is_copied(tmp_path: Path, offset: int, length: int) -> None:
    store = local(tmp_path)

    def take(*_: int) -> int:
        raise AssertionError("there is nothing to take")

    async def scenario() -> None:
        for extent in (await put(store, bytes(100)), ids()()):
            file = store.file(extent, offset, length)
            with pytest.raises(ExtentMissing):
                await file.copy(take)
            file.close()
        await store.close()
        assert open_files(tmp_path) == []

    run(store, scenario)


def replace_below(patch: pytest.MonkeyPatch, folder: Path, call: str, replacement: Callable[..., Any]) -> None:
    """Replace a function of `os` for files in or below one folder. Other servers in this process keep the real function."""
    real = getattr(os, call)

    def chosen(file: Any, *args: Any, **more: Any) -> Any:
        path = Path(os.readlink(f"/proc/self/fd/{file}") if isinstance(file, int) else file)
        return (replacement if path.is_relative_to(folder) else real)(file, *args, **more)

    patch.setattr(os, call, chosen)


def test_commit_returns_after_the_file_and_then_its_folder_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # contract G6
    synced: list[str] = []

    def recorded(sync: Callable[[int], None]) -> Callable[[int], None]:
        def record(file: int) -> None:
            sync(file)
            synced.append(os.readlink(f"/proc/self/fd/{file}"))

        return record

    for call in ("fdatasync", "fsync"):
        replace_below(monkeypatch, tmp_path, call, recorded(getattr(os, call)))
    store = local(tmp_path)

    async def scenario() -> None:
        assert synced == [str(tmp_path / "extents"), str(tmp_path)]  # the names of the shards and of their folder
        writer = store.new()
        await writer.write(b"bytes")
        await writer.commit()
        shard = tmp_path / "extents" / writer.id[16:18]
        assert synced[2:] == [str(shard / writer.id), str(shard)]

    run(store, scenario)


def test_a_commit_whose_sync_fails_fails_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # contract G6
    def broken(file: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    store = local(tmp_path)

    async def scenario() -> None:
        writer = store.new()
        await writer.write(b"bytes")
        replace_below(monkeypatch, tmp_path, "fdatasync", broken)
        with pytest.raises(OSError, match="broken"):
            await writer.commit()
        assert await listed(store) == {}
        assert not store.is_writing(writer.id)

    run(store, scenario)


def test_files_and_folders_are_for_the_owner_alone(tmp_path: Path) -> None:
    store = local(tmp_path)

    async def scenario() -> None:
        extent = await put(store, b"bytes")
        shard = tmp_path / "extents" / extent[16:18]
        assert [stat.S_IMODE(path.stat().st_mode) for path in (shard.parent, shard, shard / extent)] == [0o700, 0o700, 0o600]

    run(store, scenario)


def test_a_store_opened_again_lists_what_was_committed_and_what_was_interrupted(tmp_path: Path) -> None:
    ended: list[str] = []

    async def first_life() -> None:
        ended.append(await put(before, b"committed"))
        interrupted = before.new()
        await interrupted.write(b"half")
        ended.append(interrupted.id)

    async def second_life() -> None:
        committed, interrupted = ended
        assert await listed(after) == {committed: 9, interrupted: 4}
        assert not after.is_writing(interrupted)
        await after.delete(interrupted)
        assert await listed(after) == {committed: 9}
        assert await get(after, committed, 0, 9) == b"committed"

    before = local(tmp_path)
    run(before, first_life)
    after = local(tmp_path)
    run(after, second_life)


def test_a_file_that_is_no_extent_is_not_listed(tmp_path: Path) -> None:
    store = local(tmp_path)

    async def scenario() -> None:
        extent = await put(store, b"bytes")
        (tmp_path / "extents" / extent[16:18] / "notes.txt").write_text("not ours")
        assert await listed(store) == {extent: 5}

    run(store, scenario)


def test_a_name_that_is_no_id_never_becomes_a_path(tmp_path: Path) -> None:
    store = local(tmp_path)

    async def scenario() -> None:
        with pytest.raises(AssertionError):
            await store.delete("../" * 10 + "ab")

    run(store, scenario)


@pytest.mark.parametrize("reason", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("call", ["open", "write", "fdatasync"])
def test_a_full_disk_refuses_leaves_nothing_and_the_next_write_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, reason: int
) -> None:
    def full(*args: object) -> int:
        raise OSError(reason, "no room")

    async def write_and_commit(writer: ExtentWriter) -> None:
        await writer.write(LARGE)
        await writer.commit()

    store = local(tmp_path)

    async def scenario() -> None:
        writer = store.new()
        with monkeypatch.context() as disk:
            replace_below(disk, tmp_path, call, full)
            with pytest.raises(StorageError) as refused:
                await write_and_commit(writer)
        assert refused.value.code is Code.InsufficientStorage
        assert await listed(store) == {}
        assert not store.is_writing(writer.id)
        await writer.abort()
        assert await get(store, await put(store, LARGE), 0, len(LARGE)) == LARGE

    run(store, scenario)


def test_a_refusal_by_the_kernel_in_the_middle_of_a_write_leaves_nothing(tmp_path: Path) -> None:
    """In a process of its own, since the limit on the size of files is one of the process."""
    run_in_fresh_process(_write_with_limited_file_size, tmp_path)


def _write_with_limited_file_size(tmp_path: Path) -> None:
    """The kernel refuses larger files (EFBIG), after taking the part that fits."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
    store = local(tmp_path)

    async def scenario() -> None:
        with pytest.raises(StorageError) as refused:
            await put(store, bytes(700_000), bytes(700_000))
        assert refused.value.code is Code.InsufficientStorage
        assert await listed(store) == {}
        await put(store, bytes(1 << 20))

    run(store, scenario)


def test_an_abort_waits_for_the_write_whose_caller_was_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # race G2: closing the file under a running write would let the write land in whatever is opened next
    store = local(tmp_path)

    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        begun, go_on = asyncio.Event(), asyncio.Event()
        write = os.write

        def slow_write(file: int, data: bytes) -> int:
            loop.call_soon_threadsafe(begun.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result()
            return write(file, data)  # fails with EBADF if the file was closed meanwhile

        results: list[object] = []

        def watched_write(file: int, data: bytes) -> int:
            try:
                written = slow_write(file, data)
            except BaseException as error:
                results.append(error)
                raise
            results.append(written)
            return written

        replace_below(monkeypatch, tmp_path, "write", watched_write)
        writer = store.new()
        writing = asyncio.ensure_future(writer.write(b"bytes"))
        await begun.wait()
        writing.cancel()
        aborting = asyncio.ensure_future(writer.abort())
        await asyncio.wait([writing])
        assert not aborting.done()
        go_on.set()
        await aborting
        assert results == [5]
        assert await listed(store) == {}

    run(store, scenario)
