"""Handles of SMB clients through the service layer, on every engine: opening, closing, reading, writing, listing."""

import pytest

from tests.contract.files import Files, files_on
from tests.contract.handles import ALL, ATTRIBUTES, DELETE, READ, WRITE, close, created, handle_on, opened
from tests.contract.stores import Store
from verditer.core.errors import Code, StorageError
from verditer.core.files.access_mask import AccessMask
from verditer.core.files.attributes import FileAttributes
from verditer.core.guard import SHARE_WRITE, Guard
from verditer.core.names import ShareName
from verditer.core.records.file_open import FileOpen
from verditer.core.records.record import EVERY_KEY
from verditer.services.file import shares
from verditer.services.file.handles import closing, copying, data, listing, state
from verditer.services.file.handles.requests import BasicChange, ByteRange, Chunk, CreateAction, CreateDisposition, FreezableTime

SHARE_GUARD = Guard(rule=SHARE_WRITE)

# CreateDisposition → what it does with an existing file, and without one. From MS-SMB2 2.2.13 and 2.2.14.
DISPOSITIONS = {
    CreateDisposition.SUPERSEDE: (CreateAction.SUPERSEDED, CreateAction.CREATED),
    CreateDisposition.OPEN: (CreateAction.OPENED, Code.ResourceNotFound),
    CreateDisposition.CREATE: (Code.ResourceAlreadyExists, CreateAction.CREATED),
    CreateDisposition.OPEN_IF: (CreateAction.OPENED, CreateAction.CREATED),
    CreateDisposition.OVERWRITE: (CreateAction.OVERWRITTEN, Code.ResourceNotFound),
    CreateDisposition.OVERWRITE_IF: (CreateAction.OVERWRITTEN, CreateAction.CREATED),
}


async def open_records(files: Files) -> list[FileOpen]:
    return await files.ctx.engine.read((), lambda tx: list(tx.scan(FileOpen, EVERY_KEY)))


async def refusal_of(files: Files, name: str, access: int = int(READ), share_mode: int = ALL, **how: object) -> Code:
    with pytest.raises(StorageError) as refusal:
        await opened(files, name, access, share_mode, **how)  # type: ignore[arg-type]
    return refusal.value.code


@pytest.mark.parametrize("exists", [True, False])
@pytest.mark.parametrize("disposition", CreateDisposition)
async def test_a_disposition_decides_what_an_open_does(store: Store, disposition: CreateDisposition, exists: bool) -> None:
    expected = DISPOSITIONS[disposition][0 if exists else 1]
    async with files_on(store) as files:
        if exists:
            await files.put("file", b"data")
        if isinstance(expected, Code):
            assert await refusal_of(files, "file", disposition=disposition) is expected
            return
        found = await opened(files, "file", disposition=disposition)
        assert found.action is expected
        kept = expected is CreateAction.OPENED and exists
        assert await files.get("file") == (b"data" if kept else b"")
        await close(files, found.handle)
        assert await open_records(files) == []


async def test_what_is_written_through_a_handle_is_read_through_rest_and_back(store: Store) -> None:
    # contract F5
    async with files_on(store) as files:
        handle = await created(files, "file", b"hello")
        assert await files.get("file") == b"hello"
        large = bytes(range(256)) * 4096  # beyond what is stored inline
        assert await data.write(files.ctx, handle, 10, large) == len(large)
        assert await data.read(files.ctx, handle, 0, 20) == b"hello" + bytes(5) + large[:10]
        assert await files.get("file") == b"hello" + bytes(5) + large
        await files.write("file", 0, b"REST!")
        assert await data.read(files.ctx, handle, 0, 5) == b"REST!"
        assert await data.read(files.ctx, handle, 10 + len(large) - 2, 99) == large[-2:]
        assert await data.read(files.ctx, handle, 1 << 40, 99) == b""
        assert await data.write(files.ctx, handle, data.APPEND, b"end") == 3
        assert (await files.get("file"))[-3:] == b"end"
        assert (await state.entry_of(files.ctx, handle)).entry == await files.entry("file")


async def test_a_file_is_resized_zeroed_and_its_ranges_are_known(store: Store) -> None:
    async with files_on(store) as files:
        handle = await created(files, "file", b"x" * 8192)
        await data.set_end_of_file(files.ctx, handle, 1 << 20)
        assert await copying.allocated_ranges(files.ctx, handle, 0, 1 << 20, 9) == [ByteRange(0, 8192)]
        await data.zero_range(files.ctx, handle, 4096, 1 << 20)
        assert await copying.allocated_ranges(files.ctx, handle, 0, 1 << 20, 9) == [ByteRange(0, 4096)]
        await data.set_allocation(files.ctx, handle, 1 << 21)
        assert (await files.entry("file")).size == 1 << 20
        await data.set_allocation(files.ctx, handle, 10)
        assert await files.get("file") == b"x" * 10


async def test_a_write_beyond_the_quota_or_the_largest_file_is_refused(store: Store) -> None:
    async with files_on(store) as files:
        await shares.set_share_properties(
            files.ctx, ShareName("account", "share"), shares.ShareProperties(quota_gib=1), SHARE_GUARD
        )
        handle = await created(files, "file")
        await data.set_end_of_file(files.ctx, handle, 1 << 30)
        for offset, expected in ((1 << 30, Code.ShareSizeLimitReached), (1 << 42, Code.FileTooLarge)):
            with pytest.raises(StorageError) as refusal:
                await data.write(files.ctx, handle, offset, b"x")
            assert refusal.value.code is expected
        assert await data.write(files.ctx, handle, 0, b"x") == 1


async def test_chunks_are_copied_within_the_server(store: Store) -> None:
    async with files_on(store) as files:
        source, target = await created(files, "source", b"0123456789"), await created(files, "target")
        assert await copying.copy_chunk(files.ctx, source, target, Chunk(0, 5, 4)) == 4
        assert await copying.copy_chunk(files.ctx, source, target, Chunk(8, 0, 2)) == 2
        assert await files.get("target") == b"89" + bytes(3) + b"0123"
        with pytest.raises(StorageError) as refusal:
            await copying.copy_chunk(files.ctx, source, target, Chunk(9, 0, 2))  # it reaches beyond the end
        assert refusal.value.code is Code.InvalidRange


async def test_a_handle_needs_the_access_for_what_it_does(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"data")
        reader, writer = await handle_on(files, "file", READ), await handle_on(files, "file", WRITE)
        appender = await handle_on(files, "file", AccessMask.APPEND_DATA)
        assert await data.write(files.ctx, appender, 4, b"more") == 4
        refused = [
            data.write(files.ctx, reader, 0, b"x"),
            data.read(files.ctx, writer, 0, 1),
            data.write(files.ctx, appender, 0, b"x"),
            data.set_end_of_file(files.ctx, reader, 0),
            state.set_times_and_attributes(files.ctx, reader, BasicChange(attributes=1)),
            state.get_security(files.ctx, reader),
        ]
        for call in refused:
            with pytest.raises(StorageError) as refusal:
                await call
            assert refusal.value.code is Code.AccessNotGranted
        assert await files.get("file") == b"datamore"


async def test_kinds_and_attributes_are_checked_when_a_file_is_opened(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("d/")
        read_only = int(FileAttributes.READ_ONLY)
        await close(files, (await opened(files, "ro", disposition=CreateDisposition.CREATE, attributes=read_only)).handle)
        await close(files, (await opened(files, "h", disposition=CreateDisposition.CREATE, attributes=2)).handle)
        assert await refusal_of(files, "ro/") is Code.NotADirectory
        assert await refusal_of(files, "d", disposition=CreateDisposition.OVERWRITE) is Code.IsADirectory
        assert await refusal_of(files, "ro", int(WRITE)) is Code.ReadOnlyAttribute
        assert await refusal_of(files, "ro", disposition=CreateDisposition.OVERWRITE) is Code.ReadOnlyAttribute
        assert await refusal_of(files, "ro", int(DELETE), delete_on_close=True) is Code.CannotDeleteReadOnly
        assert await refusal_of(files, "h", disposition=CreateDisposition.OVERWRITE) is Code.HiddenOrSystemAttribute
        assert await refusal_of(files, "x/y") is Code.ParentNotFound
        assert await refusal_of(files, "x") is Code.ResourceNotFound
        await opened(files, "h", disposition=CreateDisposition.OVERWRITE, attributes=2)
        await opened(files, "ro", int(DELETE | READ))


async def test_a_directory_is_listed_page_by_page(store: Store) -> None:
    async with files_on(store) as files:
        for name in ("b", "A", "c", "aa"):
            await files.put(name)
        root = await handle_on(files, "", READ)
        first = await listing.list_page(files.ctx, root, None, None, 2)
        assert [entry.name for entry in first] == ["A", "aa"]
        rest = await listing.list_page(files.ctx, root, None, first[-1].folded, 9)
        assert [entry.name for entry in rest] == ["b", "c"]
        assert [entry.name for entry in await listing.list_page(files.ctx, root, "a", "A", 9)] == ["aa"]
        found = await listing.find_child(files.ctx, root, "AA")
        assert found is not None
        assert found.name == "aa"


async def test_times_are_set_frozen_and_thawed(store: Store) -> None:
    async with files_on(store) as files:
        handle = (await opened(files, "file", WRITE | ATTRIBUTES, disposition=CreateDisposition.CREATE)).handle
        early = files.ctx.now() - 10**9
        await state.set_times_and_attributes(files.ctx, handle, BasicChange(created=early, accessed=early, written=early))
        await data.write(files.ctx, handle, 0, b"x")
        entry = await files.entry("file")
        assert (entry.created, entry.accessed, entry.written) == (early, early, early)
        await state.set_times_and_attributes(files.ctx, handle, BasicChange(thaws=frozenset({FreezableTime.WRITTEN})))
        await data.write(files.ctx, handle, 0, b"y")
        assert (await files.entry("file")).written > early


async def test_a_security_descriptor_is_changed_in_parts(store: Store) -> None:
    async with files_on(store) as files:
        every = READ | AccessMask.READ_CONTROL | AccessMask.WRITE_DAC | AccessMask.WRITE_OWNER
        handle = (await opened(files, "file", every, disposition=CreateDisposition.CREATE)).handle
        before = await state.get_security(files.ctx, handle)
        key = (await files.entry("file")).permission_key
        await state.set_security(files.ctx, handle, before, 7)
        assert await state.get_security(files.ctx, handle) == before
        assert (await files.entry("file")).permission_key == key
        with pytest.raises(StorageError) as refusal:
            await state.set_security(files.ctx, handle, b"\1\0", 4)
        assert refusal.value.code is Code.FileInvalidPermission


async def test_a_transient_handle_has_no_record(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"data")
        handle = (await opened(files, "file", int(ATTRIBUTES), is_transient=True)).handle
        assert await open_records(files) == []
        assert (await state.entry_of(files.ctx, handle)).entry.size == 4
        await state.set_times_and_attributes(files.ctx, handle, BasicChange(attributes=2))
        entry = await closing.close_handle(files.ctx, handle)
        assert entry is not None
        assert entry.attributes == 2


async def test_a_snapshot_is_opened_as_a_previous_version_and_cannot_be_changed(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"before")
        snapshot = await files.snapshot()
        await files.write("file", 0, b"after!")
        old = (await opened(files, "file", int(READ), snapshot=snapshot)).handle
        assert await data.read(files.ctx, old, 0, 99) == b"before"
        assert await refusal_of(files, "file", int(WRITE), snapshot=snapshot) is Code.SnapshotIsReadOnly
        root = (await opened(files, "", int(READ), snapshot=snapshot)).handle
        await files.delete("file")
        assert [entry.name for entry in await listing.list_page(files.ctx, root, None, None, 9)] == ["file"]
        assert await data.read(files.ctx, old, 0, 99) == b"before"
        await close(files, old, root)


async def test_a_closed_handle_stays_closed(store: Store) -> None:
    async with files_on(store) as files:
        handle = await created(files, "file", b"x")
        await close(files, handle, handle)
        for call in (data.read(files.ctx, handle, 0, 1), data.write(files.ctx, handle, 0, b"x")):
            with pytest.raises(StorageError) as refusal:
                await call
            assert refusal.value.code is Code.HandleClosed


async def test_the_handles_of_a_deleted_share_are_closed(store: Store) -> None:
    async with files_on(store) as files:
        handle = await created(files, "file", b"x")
        await shares.delete_share(files.ctx, ShareName("account", "share"), shares.DeleteShare(), SHARE_GUARD)
        with pytest.raises(StorageError) as refusal:
            await data.read(files.ctx, handle, 0, 1)
        assert refusal.value.code is Code.HandleClosed
