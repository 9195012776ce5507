"""The directory tree of a share: names, renames and snapshots, on every engine."""

import asyncio
import contextlib

import msgspec
import pytest

from tests.contract.files import Files, files_on, path
from tests.contract.stores import Store
from verditer.core.errors import Code, StorageError
from verditer.core.records.file import FileEntry
from verditer.partition.engine import Transaction
from verditer.services.file.current import locate, require_share, tree_of


async def test_names_are_found_in_any_case_and_keep_theirs(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("Reports/")
        await files.put("reports/Ärger.TXT", b"text")
        assert await files.names("REPORTS/") == ["Ärger.TXT"]
        assert await files.get("rePorts/ärger.txt") == b"text"


async def test_a_renamed_directory_takes_everything_below_it_along(store: Store) -> None:
    async with files_on(store) as files:
        for name in ("a/", "a/b/", "a/b/c/"):
            await files.make_directory(name)
        await files.put("a/b/c/file", b"data")
        await files.rename("a/", "z/")
        assert await files.get("z/b/c/file") == b"data"
        with pytest.raises(StorageError) as refusal:
            await files.get("a/b/c/file")
        assert refusal.value.code is Code.ParentNotFound


async def test_a_remembered_path_is_not_used_after_a_directory_on_it_has_changed(store: Store) -> None:
    """Each change is followed by the same look-ups, which this process has remembered."""
    async with files_on(store) as files:
        for name in ("a/", "a/b/", "a/b/c/", "other/", "other/b/", "other/b/c/"):
            await files.make_directory(name)
        await files.put("a/b/c/file", b"first")
        await files.put("other/b/c/file", b"second")
        assert await files.get("a/b/c/file") == b"first"
        await files.rename("a/", "gone/")
        await files.rename("other/", "a/")
        assert await files.get("a/b/c/file") == b"second"
        await files.delete("a/b/c/file")
        await files.delete("a/b/c/")
        with pytest.raises(StorageError) as refusal:
            await files.put("a/b/c/file")
        assert refusal.value.code is Code.ParentNotFound
        assert await files.get("gone/b/c/file") == b"first"


async def test_a_way_remembered_from_a_write_that_failed_is_not_used(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("a/")

        def fail(tx: Transaction) -> None:
            share = require_share(tx, path("a/b/file"))
            parent = located(tx, "a/")
            tree_of(share).put(tx, msgspec.structs.replace(parent, parent_id=parent.node_id, node_id=tx.tick(), folded="B"), None)
            assert locate(tx, path("a/b/file")).entry is None  # remembers the way to a/b
            raise StorageError(Code.InvalidInput)

        with pytest.raises(StorageError):
            await files.ctx.engine.write([path("a/").scope], fail)
        with pytest.raises(StorageError) as refusal:
            await files.put("a/b/file")
        assert refusal.value.code is Code.ParentNotFound


def located(tx: Transaction, name: str) -> FileEntry:
    entry = locate(tx, path(name)).entry
    assert entry is not None
    return entry


async def test_names_of_nfs_shares_may_differ_in_case(store: Store) -> None:
    async with files_on(store, protocols="NFS") as files:
        for name in ("dir/", "DIR/"):
            await files.make_directory(name)
        await files.put("dir/file", b"lower")
        await files.put("dir/FILE", b"upper")
        assert await files.names() == ["DIR", "dir"]
        assert await files.names("dir/") == ["FILE", "file"]
        assert await files.get("dir/file") == b"lower"
        with pytest.raises(StorageError) as refusal:
            await files.get("DIR/file")
        assert refusal.value.code is Code.ResourceNotFound
        await files.rename("dir/file", "dir/File")
        assert await files.names("dir/", prefix="F") == ["FILE", "File"]


async def test_a_directory_cannot_be_moved_into_itself(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("a/")
        await files.make_directory("a/b/")
        with pytest.raises(StorageError):
            await files.rename("a/", "a/b/c/")
        assert await files.names("a/") == ["b"]


async def test_of_two_directories_that_move_into_each_other_one_stays(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("a/")
        await files.make_directory("b/")
        outcomes = await asyncio.gather(files.rename("a/", "b/a/"), files.rename("b/", "a/b/"), return_exceptions=True)
        assert sorted(outcome is None for outcome in outcomes) == [False, True]
        assert len(await files.names()) == 1


async def test_of_many_renames_to_one_name_one_succeeds(store: Store) -> None:
    # contract G5
    async with files_on(store) as files:
        for number in range(8):
            await files.put(f"file{number}", bytes([number]))
        renames = [files.rename(f"file{number}", "target") for number in range(8)]
        outcomes = await asyncio.gather(*renames, return_exceptions=True)
        assert [outcome for outcome in outcomes if outcome is None] == [None]
        refusals = [outcome.code for outcome in outcomes if isinstance(outcome, StorageError)]
        assert refusals == [Code.ResourceAlreadyExists] * 7
        assert len(await files.names()) == 8


async def test_a_snapshot_keeps_names_contents_and_sizes(store: Store) -> None:
    async with files_on(store) as files:
        await files.make_directory("a/")
        await files.put("a/file", b"0123456789" * 20)
        snapshot = await files.snapshot()
        await files.write("a/file", 5, b"x" * 100)
        await files.put("a/other", b"new")
        await files.rename("a/", "b/")
        assert await files.get("a/file", snapshot) == b"0123456789" * 20
        assert await files.names("a/", snapshot) == ["file"]
        assert await files.names("", snapshot) == ["a"]
        assert await files.get("b/file") == b"01234" + b"x" * 100 + (b"0123456789" * 20)[105:]
        await files.delete("b/file")
        assert await files.get("a/file", snapshot) == b"0123456789" * 20
        assert await files.names("b/") == ["other"]


async def test_each_snapshot_sees_its_own_state(store: Store) -> None:
    async with files_on(store) as files:
        await files.put("file", b"0" * 300)
        taken = []
        for number in range(1, 5):
            taken.append(await files.snapshot())
            await files.write("file", number * 10, b"%d" % number * 50)
        contents = [await files.get("file", snapshot) for snapshot in taken]
        expected = bytearray(b"0" * 300)
        for number, content in enumerate(contents, 1):
            assert content == bytes(expected)
            expected[number * 10 : number * 10 + 50] = b"%d" % number * 50
        await files.delete_snapshot(taken[1])
        assert await files.get("file", taken[2]) == contents[2]
        assert await files.get("file", taken[0]) == contents[0]


async def test_two_writers_of_disjoint_ranges_both_succeed(store: Store) -> None:
    # contract F1
    async with files_on(store) as files:
        await files.put("file", size=4096)
        await asyncio.gather(*[files.write("file", number * 512, bytes([number + 1]) * 512) for number in range(8)])
        assert await files.get("file") == b"".join(bytes([number + 1]) * 512 for number in range(8))


async def test_the_last_writer_of_a_range_wins(store: Store) -> None:
    # contract F1, G1
    async with files_on(store) as files:
        await files.put("file", size=512)
        entries = [await files.write("file", 0, bytes([number]) * 512) for number in range(3)]
        assert await files.get("file") == bytes([2]) * 512
        assert len({entry.etag for entry in entries}) == 3


async def test_nothing_is_torn_while_two_writers_write_disjoint_ranges_many_times(store: Store) -> None:
    # contract F1
    half = 300
    async with files_on(store) as files:
        await files.put("file", size=2 * half)

        async def write(start: int) -> None:
            for number in range(1, 9):
                await files.write("file", start, bytes([number]) * half)

        async def read() -> None:
            for _ in range(16):
                data = await files.get("file")
                assert len(set(data[:half])) == len(set(data[half:])) == 1, "a read saw a part of a write"

        await asyncio.gather(write(0), write(half), read())
        assert await files.get("file") == bytes([8]) * 2 * half


async def test_of_many_that_create_one_directory_one_succeeds(store: Store) -> None:
    # contract G5
    async with files_on(store) as files:
        outcomes = await asyncio.gather(*[files.make_directory("new/") for _ in range(8)], return_exceptions=True)
        assert [outcome for outcome in outcomes if outcome is None] == [None]
        refusals = [outcome.code for outcome in outcomes if isinstance(outcome, StorageError)]
        assert refusals == [Code.ResourceAlreadyExists] * 7


async def test_what_is_created_below_a_directory_that_is_renamed_is_neither_lost_nor_doubled(store: Store) -> None:
    """Every acknowledged creation is found afterwards, below the new name or below a new directory of the old name."""
    async with files_on(store) as files:
        await files.make_directory("here/")

        async def create(number: int) -> int | None:
            try:
                await files.put(f"here/{number}", bytes([number]))
            except StorageError as error:
                if error.code is not Code.ParentNotFound:
                    raise
                return None
            return number

        async def move() -> None:
            for _ in range(4):
                await files.rename("here/", "there/")
                await files.rename("there/", "here/")

        *created, _ = await asyncio.gather(*[create(number) for number in range(24)], move())
        found = await files.names("here/")
        assert sorted(map(int, found)) == sorted(number for number in created if number is not None)


async def test_a_listing_shows_a_directory_wholly_before_or_wholly_after_its_rename(store: Store) -> None:
    # contract G3
    async with files_on(store) as files:
        await files.make_directory("a/")
        inside = [f"{number:02}" for number in range(20)]
        for name in inside:
            await files.put(f"a/{name}")

        async def move() -> None:
            for _ in range(6):
                await files.rename("a/", "b/")
                await files.rename("b/", "a/")

        async def look() -> None:
            for _ in range(12):
                assert await files.names() in (["a"], ["b"])
                with contextlib.suppress(StorageError):
                    assert await files.names("a/") == inside

        await asyncio.gather(move(), look(), look())


async def test_deleting_and_renaming_a_directory_at_once_has_one_winner(store: Store) -> None:
    # contract F4
    async with files_on(store) as files:
        for _ in range(6):
            await files.make_directory("a/")
            deleted, renamed = await asyncio.gather(files.delete("a/"), files.rename("a/", "b/"), return_exceptions=True)
            assert (deleted is None) != (renamed is None)
            assert await files.names() == ([] if deleted is None else ["b"])
            if renamed is None:
                await files.delete("b/")


async def test_crossing_renames_neither_wait_for_each_other_for_ever_nor_build_a_cycle(store: Store) -> None:
    async with files_on(store) as files:
        for name in ("a/", "a/x/", "b/", "b/y/"):
            await files.make_directory(name)
        for _ in range(4):
            crossing = [("a/", "b/y/a/"), ("b/", "a/x/b/"), ("b/y/a/", "a/"), ("a/x/b/", "b/")]
            renames = asyncio.gather(*[files.rename(source, target) for source, target in crossing], return_exceptions=True)
            outcomes = await asyncio.wait_for(renames, 60)
            assert all(outcome is None or isinstance(outcome, StorageError) for outcome in outcomes)
            assert await count_directories(files) == 4, "a directory can no longer be reached from the root"


async def count_directories(files: Files, below: str = "") -> int:
    names = await files.names(below)
    return len(names) + sum([await count_directories(files, f"{below}{name}/") for name in names])
