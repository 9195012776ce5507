"""Which opens, locks and deletes of SMB clients exclude each other, as tables, through the service layer on every engine."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from tests.contract.files import Files, files_on, path
from tests.contract.handles import ALL, DELETE, READ, WRITE, Listener, close, created, handle_on, opened
from tests.contract.stores import Store
from verditer.core.errors import Code, StorageError
from verditer.core.lease import INFINITE, LeaseAction, LeaseRequest
from verditer.core.records.file_open import FileLock, FileOpen
from verditer.core.records.record import EVERY_KEY
from verditer.services.file import directories, leases
from verditer.services.file.handles import closing, data, deleting, listing, locking, renaming, rest, state
from verditer.services.file.handles.requests import ByteRange, CreateDisposition, LockRequest, Opened

R, W, D = 1, 2, 4
MODES = {"-": 0, "R": R, "W": W, "D": D, "RW": R | W, "RD": R | D, "WD": W | D, "RWD": R | W | D}
MASKS = {"R": READ, "W": WRITE, "D": DELETE}

# The share mode of an open handle → the access of a second one → whether it is refused. From smb.md §9.
SHARING = """
        R   W   D   -
-       X   X   X   ok
R       ok  X   X   ok
W       X   ok  X   ok
D       X   X   ok  ok
RW      ok  ok  X   ok
RD      ok  X   ok  ok
WD      X   ok  ok  ok
RWD     ok  ok  ok  ok
"""


def sharing_cells() -> list[tuple[str, str, bool]]:
    heading, *rows = SHARING.strip().splitlines()
    return [
        (row.split()[0], access, cell == "X")
        for row in rows
        for access, cell in zip(heading.split(), row.split()[1:], strict=True)
    ]


async def code_of(awaitable: Awaitable[object]) -> Code | None:
    """The code of the refusal; None: it succeeded."""
    try:
        await awaitable
    except StorageError as error:
        return error.code
    return None


@pytest.mark.parametrize(("mode", "access", "is_refused"), sharing_cells())
async def test_a_share_mode_decides_about_a_second_open_and_the_second_about_the_first(
    store: Store, mode: str, access: str, is_refused: bool
) -> None:
    expected = Code.SharingViolation if is_refused else None
    mask = int(MASKS[access]) if access in MASKS else 0x80
    async with files_on(store) as files:
        await files.put("one", b"x")
        await opened(files, "one", int(READ), MODES[mode])  # its access is within what the second shares
        assert await code_of(opened(files, "one", mask, ALL)) is expected
        await files.put("two", b"x")
        await opened(files, "two", mask, ALL)
        assert await code_of(opened(files, "two", int(READ), MODES[mode])) is expected


async def test_overwriting_counts_as_writing_and_superseding_as_deleting(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"x")
        reader = await handle_on(files, "file", READ, R | D)
        assert await code_of(opened(files, "file", int(READ), disposition=CreateDisposition.OVERWRITE)) is Code.SharingViolation
        await close(files, reader)
        await handle_on(files, "file", READ, R | W)
        assert await code_of(opened(files, "file", int(READ), disposition=CreateDisposition.SUPERSEDE)) is Code.SharingViolation
        assert await code_of(opened(files, "file", int(READ), disposition=CreateDisposition.OVERWRITE)) is None


@pytest.mark.parametrize(("access", "is_refused"), [("R", False), ("W", True), ("D", True), ("-", False)])
async def test_a_lease_refuses_opens_that_write_or_delete(store: Store, access: str, is_refused: bool) -> None:
    # contract F2
    async with files_on(store) as files:
        await files.put("file", b"x")
        request = LeaseRequest(action=LeaseAction.ACQUIRE, duration=INFINITE)
        await leases.lease_file(files.ctx, path("file"), request)
        mask = int(MASKS[access]) if access in MASKS else 0x80
        assert await code_of(opened(files, "file", mask)) is (Code.SharingViolation if is_refused else None)


# Byte-range locks: held (start, length, exclusive) by the same or another handle → wanted → whether it is granted. smb.md §13.
MAX = (1 << 64) - 1
LOCKS = [
    ("other", (0, 10, True), (5, 10, True), False),
    ("other", (0, 10, True), (5, 10, False), False),
    ("other", (0, 10, False), (5, 10, True), False),
    ("other", (0, 10, False), (5, 10, False), True),
    ("other", (0, 10, True), (10, 10, True), True),
    ("same", (0, 10, True), (0, 10, True), False),
    ("same", (0, 10, False), (0, 10, True), False),
    ("same", (0, 10, True), (0, 10, False), True),
    ("same", (0, 10, False), (0, 10, False), True),
    ("other", (9, 2, True), (10, 0, True), False),
    ("other", (10, 2, True), (10, 0, True), True),
    ("other", (10, 0, True), (10, 2, True), True),
    ("other", (10, 0, True), (9, 2, True), False),
    ("other", (10, 0, True), (10, 0, True), True),
    ("other", (0, MAX, True), (MAX - 1, 1, False), False),
    ("other", (MAX, 1, True), (MAX, 1, False), False),
]


@pytest.mark.parametrize(("holder", "held", "wanted", "is_granted"), LOCKS)
async def test_locks_exclude_each_other(
    store: Store, holder: str, held: tuple[int, int, bool], wanted: tuple[int, int, bool], is_granted: bool
) -> None:
    async with files_on(store) as files:
        one = await created(files, "file", b"0123456789")
        other = await handle_on(files, "file")
        await locking.lock(files.ctx, one, [LockRequest(*held)], wait=False)
        second = one if holder == "same" else other
        refused = await code_of(locking.lock(files.ctx, second, [LockRequest(*wanted)], wait=False))
        assert refused is (None if is_granted else Code.ByteRangeNotGranted)


async def test_locks_exclude_reads_and_writes(store: Store) -> None:
    async with files_on(store) as files:
        one, other = await created(files, "file", b"0123456789"), await handle_on(files, "file")
        await locking.lock(files.ctx, one, [LockRequest(0, 4, True), LockRequest(6, 2, False)], wait=False)
        cases = [
            (data.read(files.ctx, other, 3, 1), Code.FileLockConflict),
            (data.read(files.ctx, other, 4, 4), None),
            (data.write(files.ctx, other, 3, b"x"), Code.FileLockConflict),
            (data.write(files.ctx, other, 7, b"x"), Code.FileLockConflict),
            (data.write(files.ctx, other, 8, b"x"), None),
            (data.read(files.ctx, one, 0, 4), None),
            (data.write(files.ctx, one, 0, b"x"), None),
            (data.write(files.ctx, one, 6, b"x"), Code.FileLockConflict),  # also of the handle that holds the shared lock
        ]
        for call, expected in cases:
            assert await code_of(call) is expected
        await closing.close_handle(files.ctx, one)
        assert await code_of(data.write(files.ctx, other, 0, b"0123456789")) is None


async def test_locks_are_taken_all_or_none_and_released_one_by_one(store: Store) -> None:
    async with files_on(store) as files:
        one, other = await created(files, "file"), await handle_on(files, "file")
        await locking.lock(files.ctx, one, [LockRequest(0, 5, True), LockRequest(0, 5, False)], wait=False)
        both = [LockRequest(20, 5, True), LockRequest(4, 2, True)]
        assert await code_of(locking.lock(files.ctx, other, both, wait=False)) is Code.ByteRangeNotGranted
        assert await code_of(locking.lock(files.ctx, one, both[:1], wait=False)) is None
        assert await code_of(locking.unlock(files.ctx, one, [ByteRange(0, 4)])) is Code.ByteRangeNotLocked
        assert await code_of(locking.unlock(files.ctx, one, [ByteRange(0, 5)])) is None  # the exclusive one goes first
        assert await code_of(locking.lock(files.ctx, other, [LockRequest(0, 5, False)], wait=False)) is None
        twice = [ByteRange(0, 5), ByteRange(0, 5)]
        assert await code_of(locking.unlock(files.ctx, one, twice)) is Code.ByteRangeNotLocked
        assert await code_of(locking.unlock(files.ctx, one, twice[:1])) is Code.ByteRangeNotLocked
        beyond = LockRequest(MAX, 2, True)
        assert await code_of(locking.lock(files.ctx, one, [beyond], wait=False)) is Code.InvalidByteRange


async def test_a_lock_is_waited_for_and_the_wait_can_be_cancelled(store: Store) -> None:
    async with files_on(store) as files:
        one, other = await created(files, "file"), await handle_on(files, "file")
        await locking.lock(files.ctx, one, [LockRequest(0, 5, True)], wait=True)
        waiting = asyncio.ensure_future(locking.lock(files.ctx, other, [LockRequest(0, 5, True)], wait=True))
        cancelled = asyncio.ensure_future(locking.lock(files.ctx, other, [LockRequest(4, 5, True)], wait=True))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        await locking.unlock(files.ctx, one, [ByteRange(0, 5)])
        async with asyncio.timeout(5):
            await waiting
        lost = asyncio.ensure_future(locking.lock(files.ctx, one, [LockRequest(0, 5, True)], wait=True))
        await asyncio.sleep(0.05)
        await closing.close_handle(files.ctx, one)
        async with asyncio.timeout(5):
            assert await code_of(lost) is Code.HandleClosed


async def is_there(files: Files, name: str) -> bool:
    return await code_of(files.entry(name)) is None


async def test_a_file_is_deleted_with_its_last_handle(store: Store) -> None:
    # contract F3
    async with files_on(store) as files:
        await files.put("file", b"x")
        one, other = await handle_on(files, "file", READ | DELETE), await handle_on(files, "file", READ | WRITE)
        await deleting.set_disposition(files.ctx, one, delete=True)
        assert (await state.entry_of(files.ctx, other)).delete_pending
        assert await code_of(opened(files, "file")) is Code.SMBDeletePending
        assert await code_of(opened(files, "file", disposition=CreateDisposition.CREATE)) is Code.SMBDeletePending
        assert await code_of(files.get("file")) is Code.SMBDeletePending
        assert await code_of(files.put("file")) is Code.SMBDeletePending
        assert await files.names() == []
        root = await handle_on(files, "", READ)
        assert [entry.name for entry in await listing.list_page(files.ctx, root, None, None, 9)] == ["file"]
        await data.write(files.ctx, other, 0, b"y")
        await closing.close_handle(files.ctx, one)  # the mark stays with the file
        assert await code_of(files.get("file")) is Code.SMBDeletePending
        assert await closing.close_handle(files.ctx, other) is None
        assert await code_of(files.get("file")) is Code.ResourceNotFound
        await files.put("file", b"new")
        assert await files.names() == ["file"]


async def test_the_mark_is_taken_off_by_any_handle_that_may_delete(store: Store) -> None:
    # contract F3
    async with files_on(store) as files:
        await files.put("file", b"x")
        one, other = await handle_on(files, "file", DELETE), await handle_on(files, "file", DELETE)
        await deleting.set_disposition(files.ctx, one, delete=True)
        await deleting.set_disposition(files.ctx, other, delete=False)
        assert await files.names() == ["file"]
        await close(files, one, other)
        assert await files.get("file") == b"x"


async def test_delete_on_close_belongs_to_one_handle(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"x")
        doomed = await handle_on(files, "file", DELETE, delete_on_close=True)
        other = await handle_on(files, "file", READ)
        assert await files.get("file") == b"x"  # not pending yet
        entry = await closing.close_handle(files.ctx, doomed)
        assert entry is not None
        assert await code_of(files.get("file")) is Code.SMBDeletePending
        await close(files, other)
        assert not await is_there(files, "file")


async def test_a_directory_is_deleted_only_when_it_is_empty(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("d/")
        await files.put("d/file")
        handle = await handle_on(files, "d/", DELETE)
        assert await code_of(deleting.set_disposition(files.ctx, handle, delete=True)) is Code.DirectoryNotEmpty
        await closing.close_handle(files.ctx, handle)
        await close(files, await handle_on(files, "d/", DELETE, delete_on_close=True))
        assert await files.names() == ["d"]
        await files.delete("d/file")
        handle = await handle_on(files, "d/", DELETE)
        await deleting.set_disposition(files.ctx, handle, delete=True)
        assert await code_of(opened(files, "d/new", disposition=CreateDisposition.CREATE)) is Code.SMBDeletePending
        assert await code_of(files.put("d/new")) is Code.SMBDeletePending
        await close(files, handle)
        assert await files.names() == []


async def test_read_only_files_and_the_root_are_not_deleted(store: Store) -> None:
    async with files_on(store) as files:
        handle = (await opened(files, "file", int(DELETE), disposition=CreateDisposition.CREATE, attributes=1)).handle
        assert await code_of(deleting.set_disposition(files.ctx, handle, delete=True)) is Code.CannotDeleteReadOnly
        root = await handle_on(files, "", DELETE)
        assert await code_of(deleting.set_disposition(files.ctx, root, delete=True)) is Code.CannotDeleteReadOnly


async def test_force_close_ends_a_handle_and_completes_a_pending_delete(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("pending", b"x")
        await files.put("doomed", b"x")
        listener = Listener()
        one = (await opened(files, "pending", int(DELETE), listener=listener)).handle
        await deleting.set_disposition(files.ctx, one, delete=True)
        await handle_on(files, "doomed", DELETE, delete_on_close=True)
        for name in ("pending", "doomed"):
            found = await rest.list_handles(files.ctx, path(name), rest.ListHandles())
            assert [handle.client for handle in found.handles] == ["127.0.0.1:5"]
            await rest.force_close_handles(files.ctx, path(name), rest.ForceCloseHandles(handle_id="*"))
        assert listener.is_closed
        assert await code_of(state.entry_of(files.ctx, one)) is Code.HandleClosed
        assert await files.names() == ["doomed"]  # a forced close does not delete on close
        assert await files.get("doomed") == b"x"


async def test_a_rename_moves_all_handles_with_the_entry(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("d/")
        one = await created(files, "file", b"x")
        other = await handle_on(files, "file")
        await renaming.rename(files.ctx, one, path("d/NEW"), replace_existing=False)
        assert await files.get("d/new") == b"x"
        await data.write(files.ctx, other, 0, b"y")
        assert other.path.names == ("d", "NEW")
        await files.rename("d/new", "again")  # by REST
        assert await data.read(files.ctx, one, 0, 9) == b"y"
        found = await rest.list_handles(files.ctx, path("again"), rest.ListHandles())
        assert {handle.path for handle in found.handles} == {("again",)}
        await renaming.rename(files.ctx, one, path("AGAIN"), replace_existing=False)  # only its case
        assert await files.names() == ["AGAIN", "d"]
        await close(files, one, other)


async def test_what_stands_in_the_way_of_a_rename(store: Store) -> None:
    async with files_on(store) as files:
        for name in ("d/", "e/"):
            await files.make_directory(name)
        for name in ("file", "open", "d/child"):
            await files.put(name, b"x")
        await files.put("other", b"y")
        source = await handle_on(files, "file", DELETE, 0)
        assert await code_of(renaming.rename(files.ctx, source, path("x/y"), replace_existing=True)) is Code.ParentNotFound
        assert (
            await code_of(renaming.rename(files.ctx, source, path("other"), replace_existing=False)) is Code.ResourceAlreadyExists
        )
        assert await code_of(renaming.rename(files.ctx, source, path("e/"), replace_existing=True)) is Code.EntryInUse
        reader = await handle_on(files, "open", READ, ALL)
        assert await code_of(renaming.rename(files.ctx, source, path("open"), replace_existing=True)) is Code.EntryInUse
        assert await code_of(renaming.rename(files.ctx, reader, path("z"), replace_existing=True)) is Code.AccessNotGranted
        await renaming.rename(files.ctx, source, path("other"), replace_existing=True)
        await close(files, source)
        assert await files.get("other") == b"x"
        directory = await handle_on(files, "d/", DELETE, ALL)
        child = await handle_on(files, "d/child", READ)
        assert await code_of(renaming.rename(files.ctx, directory, path("g/"), replace_existing=False)) is Code.EntryInUse
        await close(files, child)
        assert await code_of(renaming.rename(files.ctx, directory, path("d/g/"), replace_existing=False)) is Code.EntryInUse
        await renaming.rename(files.ctx, directory, path("g/"), replace_existing=False)
        assert await files.get("g/child") == b"x"


async def test_a_handle_that_may_delete_the_directory_keeps_an_entry_in_it(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("d/")
        await files.put("d/file")
        parent = await handle_on(files, "d/", READ | DELETE)
        handle = await handle_on(files, "d/file", DELETE)
        assert await code_of(renaming.rename(files.ctx, handle, path("d/g"), replace_existing=False)) is Code.SharingViolation
        await close(files, parent)
        assert await code_of(renaming.rename(files.ctx, handle, path("d/g"), replace_existing=False)) is None
        assert await code_of(directories.delete_directory(files.ctx, path("d/"))) is Code.DirectoryNotEmpty


async def test_a_client_that_gives_up_during_the_commit_leaves_no_handle_and_no_lock(store: Store) -> None:
    async with files_on(store) as files:
        handle = await created(files, "file", b"x")
        calls: list[Callable[[], Awaitable[object]]] = [
            lambda: opened(files, "file", int(READ)),
            lambda: locking.lock(files.ctx, handle, [LockRequest(0, 1, True)], wait=True),
        ]
        for call in calls:
            for steps in range(12):  # wherever it is by then
                task = asyncio.ensure_future(call())
                for _ in range(steps):
                    await asyncio.sleep(0)
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, StorageError):
                    found = await task
                    if isinstance(found, Opened):
                        await closing.close_handle(files.ctx, found.handle)
                    elif not task.cancelled():
                        await locking.unlock(files.ctx, handle, [ByteRange(0, 1)])
        assert await files.ctx.engine.read((), lambda tx: len(list(tx.scan(FileOpen, EVERY_KEY)))) == 1
        assert await files.ctx.engine.read((), lambda tx: list(tx.scan(FileLock, EVERY_KEY))) == []
