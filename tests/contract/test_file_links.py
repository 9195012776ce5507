"""Symbolic and hard links in NFS shares: one file under several names, on every engine."""

import asyncio

import msgspec
import pytest

from tests.contract.files import ACCOUNT, WRITE, Files, files_on, path
from tests.contract.stores import Store
from verditer.core.errors import Code, StorageError
from verditer.core.lease import INFINITE, LeaseAction, LeaseRequest
from verditer.core.records.content import ClosedContentView
from verditer.core.records.file import FileEntry
from verditer.core.records.record import span_of
from verditer.services.file import directories, leases, listing
from verditer.services.file import files as file_operations
from verditer.services.file.usage import usage_of


async def test_both_names_of_a_file_see_every_change(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.make_directory("a/")
        created = await files.put("a/one", b"0" * 200)
        linked = await files.link("two", "/a/one")
        assert (linked.node_id, linked.link_count, linked.name) == (created.node_id, 2, "two")
        await files.write("two", 50, b"x" * 100)
        assert await files.get("a/one") == await files.get("two") == b"0" * 50 + b"x" * 100 + b"0" * 50
        request = directories.SetMetadata(metadata={"colour": "blue"})
        await file_operations.set_file_metadata(files.ctx, path("a/one"), request, WRITE)
        assert shared(await files.entry("a/one")) == shared(await files.entry("two"))
        assert (await files.entry("two")).metadata == {"colour": "blue"}


def shared(entry: FileEntry) -> FileEntry:
    """What two names of one file have in common: everything but the name."""
    return msgspec.structs.replace(entry, parent_id=0, folded="", name="")


async def test_the_content_goes_with_the_last_name(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"0" * 200)
        await files.link("two", "one")
        await files.link("three", "two")
        await files.delete("one")
        assert await files.names() == ["three", "two"]
        assert (await files.entry("two")).link_count == 2
        assert (await used_bytes(files), await closed_contents(files)) == (200, 0)
        await files.delete("three")
        assert (await files.entry("two")).link_count == 1
        assert await files.get("two") == b"0" * 200
        await files.delete("two")
        assert (await used_bytes(files), await closed_contents(files)) == (0, 1)
        assert await stored_entries(files) == 1  # the root directory


async def used_bytes(files: Files) -> int:
    share = await share_id(files)
    return await files.ctx.engine.read((ACCOUNT,), lambda tx: usage_of(tx, share))


async def closed_contents(files: Files) -> int:
    return await files.ctx.engine.read((ACCOUNT,), lambda tx: len(list(tx.scan(ClosedContentView, span_of()))))


async def stored_entries(files: Files) -> int:
    share = await share_id(files)
    return await files.ctx.engine.read((ACCOUNT,), lambda tx: len(list(tx.scan(FileEntry, span_of(share)))))


async def share_id(files: Files) -> int:
    page = await listing.list_entries(files.ctx, path(""), listing.ListEntries())
    return page.directory.tree_id


async def test_a_snapshot_sees_the_names_and_the_content_of_its_time(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"0" * 200)
        before = await files.snapshot()
        await files.link("two", "one")
        between = await files.snapshot()
        await files.write("two", 0, b"x" * 200)
        await files.delete("one")
        after = await files.snapshot()
        await files.delete("two")
        assert [await files.names("", taken) for taken in (before, between, after)] == [["one"], ["one", "two"], ["two"]]
        assert await files.get("one", before) == await files.get("one", between) == await files.get("two", between) == b"0" * 200
        assert await files.get("two", after) == b"x" * 200
        await files.delete_snapshot(before)
        assert await files.get("two", between) == b"0" * 200
        assert await files.names() == []


async def test_a_listing_shows_the_size_under_each_name(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"0" * 200)
        await files.link("two", "one")
        page = await listing.list_entries(files.ctx, path(""), listing.ListEntries())
        assert [(entry.name, entry.size, entry.link_count) for entry in page.entries] == [("one", 200, 2), ("two", 200, 2)]


async def test_a_name_is_renamed_and_the_other_stays(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.make_directory("a/")
        await files.put("one", b"data")
        await files.link("two", "one")
        await files.rename("one", "a/moved")
        assert await files.names() == ["a", "two"]
        assert (await files.get("a/moved"), await files.get("two")) == (b"data", b"data")
        assert shared(await files.entry("a/moved")) == shared(await files.entry("two"))
        await files.rename("two", "a/moved", replace=True)  # rename(2): both are names of one file, so both stay
        assert (await files.names(), await files.names("a/")) == (["a", "two"], ["moved"])


async def test_a_rename_over_a_name_takes_that_name_only(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"0" * 200)
        await files.link("two", "one")
        await files.put("other", b"new")
        await files.rename("other", "two", replace=True)
        assert (await files.get("one"), await files.get("two")) == (b"0" * 200, b"new")
        assert (await files.entry("one")).link_count == 1
        assert await used_bytes(files) == 203


async def test_creating_a_file_over_a_name_replaces_it_under_each(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"old content")
        await files.link("two", "one")
        await files.put("two", b"new")
        assert await files.get("one") == b"new"
        assert (await files.entry("one")).link_count == 2
        assert await used_bytes(files) == 3


async def test_a_lease_holds_under_each_name(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"data")
        await files.link("two", "one")
        request = LeaseRequest(action=LeaseAction.ACQUIRE, duration=INFINITE)
        await leases.lease_file(files.ctx, path("one"), request)
        with pytest.raises(StorageError) as refusal:
            await files.write("two", 0, b"x")
        assert refusal.value.code is Code.FileLeaseIdMissing
        assert await files.names() == ["one", "two"]


async def test_writers_that_come_by_different_names_lose_nothing(store: Store) -> None:
    # contract F1
    async with files_on(store, "NFS") as files:
        await files.put("one", size=4096)
        await files.link("two", "one")
        names = ("one", "two")
        await asyncio.gather(*[files.write(names[number % 2], number * 512, bytes([number + 1]) * 512) for number in range(8)])
        assert await files.get("one") == b"".join(bytes([number + 1]) * 512 for number in range(8))


async def test_of_many_names_made_and_removed_at_once_the_count_is_right(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"data")
        await asyncio.gather(*[files.link(f"link{number}", "one") for number in range(8)])
        await asyncio.gather(*[files.delete(f"link{number}") for number in range(5)])
        assert (await files.entry("one")).link_count == 4
        assert len(await files.names()) == 4


async def test_a_file_has_at_most_178_names(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        await files.put("one", b"data")
        for number in range(177):
            await files.link(f"link{number}", "one")
        with pytest.raises(StorageError) as refusal:
            await files.link("more", "one")
        assert refusal.value.code is Code.InvalidInput
        assert (await files.entry("one")).link_count == 178


async def test_a_symbolic_link_keeps_its_text(store: Store) -> None:
    async with files_on(store, "NFS") as files:
        link = await files.symbolic_link("link", "dir%2Ffile")
        assert link.posix is not None
        assert (link.posix.mode, link.size, link.link_count) == ("0777", 0, 1)
        snapshot = await files.snapshot()
        await files.rename("link", "moved")
        assert await files.link_text("moved") == await files.link_text("link", snapshot) == "dir%2Ffile"
        await files.put("moved", b"a file now")
        with pytest.raises(StorageError) as refusal:
            await files.link_text("moved")
        assert refusal.value.code is Code.ResourceTypeMismatch
        assert await files.link_text("link", snapshot) == "dir%2Ffile"
        await files.delete("moved")
        assert await files.names() == []


async def test_a_share_for_smb_has_no_links(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("one", b"data")
        for refused in (files.link("two", "one"), files.symbolic_link("two", "one"), files.link_text("one")):
            with pytest.raises(StorageError) as refusal:
                await refused
            assert refusal.value.code is Code.InvalidInput
        assert await files.names() == ["one"]
