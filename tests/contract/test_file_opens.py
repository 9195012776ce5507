"""The open table: which REST operations an open handle forbids, through the service layer on every engine.

The expected table is Microsoft's ("Managing file locks in Azure Files"), written out cell by cell.
It does not list Copy File, which counts as Create File for its target and as Get File for its source.
"""

from collections.abc import Awaitable, Callable

import pytest

from tests.contract.files import READ, WRITE, Files, files_on, path
from tests.contract.stores import Store
from verditer.core.errors import Code, StorageError
from verditer.core.files.share_modes import FileAccess
from verditer.core.lease import INFINITE, LeaseAction, LeaseRequest
from verditer.core.records.file_open import FileLock, FileOpen, PendingDelete
from verditer.partition.engine import Transaction
from verditer.services.file import files as file_functions
from verditer.services.file import leases, ranges, reading
from verditer.services.file.directories import SetMetadata

R, W, D = FileAccess.READ, FileAccess.WRITE, FileAccess.DELETE
MODES = {"none": FileAccess(0), "R": R, "W": W, "D": D, "RW": R | W, "RD": R | D, "WD": W | D, "RWD": R | W | D}


async def copy_to_file(files: Files) -> None:
    await files.put("source", b"new")
    try:
        await files.copy("source", "file")
    finally:
        await files.delete("source")


Operation = Callable[[Files], Awaitable[object]]
OPERATIONS: dict[str, Operation] = {
    "Create": lambda files: files.put("file", b"new"),
    "Get": lambda files: files.get("file"),
    "SetProps": lambda files: file_functions.set_file_properties(
        files.ctx, path("file"), file_functions.SetFileProperties(content_type="text/plain"), WRITE
    ),
    "SetMeta": lambda files: file_functions.set_file_metadata(files.ctx, path("file"), SetMetadata(metadata={"a": "b"}), WRITE),
    "PutRange": lambda files: files.write("file", 0, b"x"),
    "ListRanges": lambda files: ranges.list_ranges(files.ctx, path("file"), ranges.ListRanges(), READ),
    "Delete": lambda files: files.delete("file"),
    "CopyTo": lambda files: copy_to_file(files),
    "CopyFrom": lambda files: files.copy("file", "copy"),
    "Lease": lambda files: leases.lease_file(
        files.ctx, path("file"), LeaseRequest(action=LeaseAction.ACQUIRE, duration=INFINITE)
    ),
}
# Share mode of one handle with access R+W → operation → whether it is refused.
TRUTH = """
        Create Get  SetProps SetMeta PutRange ListRanges Delete Lease CopyTo CopyFrom
none    X      X    X        X       X        X          X      X     X      X
R       X      ok   X        X       X        ok         X      X     X      ok
W       X      X    ok       ok      ok       X          X      X     X      X
D       X      X    X        X       X        X          X      X     X      X
RW      X      ok   ok       ok      ok       ok         X      X     X      ok
RD      X      ok   X        X       X        ok         X      X     X      ok
WD      ok     X    ok       ok      ok       X          X      X     ok     X
RWD     ok     ok   ok       ok      ok       ok         X      X     ok     ok
"""


def cells() -> list[tuple[str, str, bool]]:
    heading, *rows = TRUTH.strip().splitlines()
    return [
        (row.split()[0], operation, cell == "X")
        for row in rows
        for operation, cell in zip(heading.split(), row.split()[1:], strict=True)
    ]


@pytest.mark.parametrize(("mode", "operation", "is_refused"), cells())
async def test_a_share_mode_decides_about_rest_operations(store: Store, mode: str, operation: str, is_refused: bool) -> None:
    # contract F2
    async with files_on(store) as files:
        await files.put("file", b"data")
        await files.open("file", R | W, MODES[mode])
        before = await files.entry("file")
        if is_refused:
            with pytest.raises(StorageError) as refusal:
                await OPERATIONS[operation](files)
            assert refusal.value.code is Code.SharingViolation
            assert await files.entry("file") == before
        else:
            await OPERATIONS[operation](files)


@pytest.mark.parametrize(("access", "is_refused"), [(FileAccess(0), False), (R, False), (W, True), (D, True), (R | W | D, True)])
async def test_a_lease_is_acquired_beside_readers_only(store: Store, access: FileAccess, is_refused: bool) -> None:
    # contract F2
    async with files_on(store) as files:
        await files.put("file", b"data")
        await files.open("file", access, R | W | D)
        if is_refused:
            with pytest.raises(StorageError) as refusal:
                await OPERATIONS["Lease"](files)
            assert refusal.value.code is Code.SharingViolation
        else:
            await OPERATIONS["Lease"](files)


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_a_pending_delete_is_reported_as_such_until_it_is_taken_back(store: Store, operation: str) -> None:
    # contract F3
    async with files_on(store) as files:
        await files.put("file", b"data")
        handle = await files.open("file", FileAccess(0), R | W | D, delete_pending=True)
        with pytest.raises(StorageError) as refusal:
            await OPERATIONS[operation](files)
        assert refusal.value.code is Code.SMBDeletePending
        assert await files.names() == []

        def unmark(tx: Transaction) -> None:
            tx.delete(FileOpen, handle.share_id, handle.node_id, handle.handle_id)
            tx.delete(PendingDelete, handle.share_id, handle.parent_id, handle.node_id)

        await files.ctx.engine.write([path("file").scope], unmark)
        assert await files.names() == ["file"]
        assert await files.get("file") == b"data"


async def test_delete_leaves_nothing_pending(store: Store) -> None:
    # contract F4
    async with files_on(store) as files:
        await files.make_directory("a/")
        await files.put("a/file", b"data")
        await files.delete("a/file")
        await files.delete("a/")
        assert await files.names() == []
        with pytest.raises(StorageError) as refusal:
            await files.get("a/file")
        assert refusal.value.code is Code.ParentNotFound


@pytest.mark.parametrize(
    ("operation", "exclusive", "is_refused"),
    [
        ("Get", True, True),
        ("Get", False, False),
        ("PutRange", True, True),
        ("PutRange", False, True),
        ("ListRanges", True, False),
    ],
)
async def test_a_byte_range_lock_decides_about_rest_operations(
    store: Store, operation: str, exclusive: bool, is_refused: bool
) -> None:
    # contract F2
    async with files_on(store) as files:
        await files.put("file", b"0123456789")
        handle = await files.open("file", R | W, R | W | D)
        lock = FileLock(
            share_id=handle.share_id,
            node_id=handle.node_id,
            handle_id=handle.handle_id,
            lock_id=1,
            start=8,
            length=2,
            exclusive=exclusive,
        )
        await files.ctx.engine.write([path("file").scope], lambda tx: tx.put(lock))
        if is_refused:
            with pytest.raises(StorageError) as refusal:
                await OPERATIONS[operation](files)
            assert refusal.value.code is Code.FileLockConflict
        else:
            await OPERATIONS[operation](files)
        beside = await reading.get_file(files.ctx, path("file"), reading.GetFile(range=(0, 7)), READ)
        assert beside.length == 8
