"""The collector removes extents that no record names, and none that a running operation may need."""

import asyncio
import itertools
import secrets
from pathlib import Path

import pytest

from tests.contract.processes import LARGE, Body, data, process, until_files
from tests.contract.stores import Store
from verditer.core.errors import Code, StorageError
from verditer.core.records.activity import Horizon
from verditer.core.records.blob import Blob, Snapshot
from verditer.core.records.content import Garbage, Layout
from verditer.partition.engine import Engine, EngineUnavailable
from verditer.services.activity import ANNOUNCE_SECONDS, DEAD_AFTER_SECONDS
from verditer.stream.local import LocalExtents


async def test_bytes_without_a_name_are_removed_after_the_horizon(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for name in ("overwritten", "deleted", "emptied", "kept"):
            await one.put(name, data(name))
        await one.put("overwritten", data("new"))
        await one.put("emptied", b"small")
        await one.delete("deleted")
        await one.collect(0)
        assert one.files() == 5  # a read may be running
        await one.collect()
        assert one.files() == 2
        assert await one.get("overwritten") == data("new")
        assert await one.get("kept") == data("kept")
        assert await one.count(Garbage) == 0


async def test_bytes_being_read_are_kept(store: Store, tmp_path: Path) -> None:
    # contract G3, race G1
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for number in range(4):
            await one.stage("blob", b"%d" % number, data(str(number)))
        await one.commit("blob", b"0", b"1", b"2", b"3")
        reading = await one.open("blob")
        first = await anext(reading)
        await one.put("blob", b"other")
        await one.collect(300)
        assert one.files() == 4
        assert first + b"".join([piece async for piece in reading]) == b"".join(data(str(number)) for number in range(4))
        await one.collect()
        assert one.files() == 0


async def test_a_store_that_is_away_is_one_line_in_the_log(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def unavailable(engine: Engine) -> int:
        raise EngineUnavailable("the database does not answer")

    async with process(store, tmp_path / "extents") as one:
        with monkeypatch.context() as patch:
            patch.setattr(one.ctx.activity, "announce", unavailable)
            await one.collector.start(collecting=False)
            await one.collector.stop()
    [record] = caplog.records
    assert record.getMessage() == "announcing failed and will be tried again: the database does not answer"
    assert record.exc_info is None


async def test_an_upload_may_take_days(store: Store, tmp_path: Path) -> None:
    # race G1: days pass and the collector sweeps while a blob and a block arrive
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        bodies = [Body(data("a"), data("b"), slow=True) for _ in range(2)]
        uploads = [asyncio.ensure_future(one.put("blob", bodies[0])), asyncio.ensure_future(one.stage("staged", b"1", bodies[1]))]
        await until_files(one, 2)
        for _ in range(3):
            await one.collect(50)
            assert one.files() == 2
        for body in bodies:
            body.go_on.set()
        await asyncio.gather(*uploads)
        await one.collect(50)
        await one.commit("staged", b"1")
        assert await one.get("blob") == await one.get("staged") == data("a") + data("b")


async def test_bytes_that_another_process_reads_or_writes_are_kept(shared_store: Store, tmp_path: Path) -> None:
    # race G1
    async with process(shared_store, tmp_path / "extents") as one, process(shared_store, tmp_path / "extents") as other:
        await one.create()
        await one.stage("read", b"1", data("1"))
        await one.stage("read", b"2", data("2"))
        await one.commit("read", b"1", b"2")
        body = Body(data("a"), data("b"), slow=True)
        uploading = asyncio.ensure_future(other.put("written", body))
        reading = await other.open("read")
        first = await anext(reading)
        await one.delete("read")
        await until_files(one, 3)
        for _ in range(20):
            await other.ctx.activity.announce(other.ctx.engine)  # as it does every half minute
            await one.collect(0.15)
        assert one.files() == 3
        body.go_on.set()
        await uploading
        assert first + b"".join([piece async for piece in reading]) == data("1") + data("2")
        await other.ctx.activity.announce(other.ctx.engine)
        await one.collect(0.15)
        assert one.files() == 1
        assert await one.get("written") == data("a") + data("b")


async def test_a_process_does_not_look_dead_because_the_clock_is_moved(shared_store: Store, tmp_path: Path) -> None:
    # contract G3: the clock jumps by days between two announcements of a process, and the other one collects each time
    async with process(shared_store, tmp_path / "extents") as one, process(shared_store, tmp_path / "extents") as other:
        await one.create()
        for id in (b"1", b"2"):
            await one.stage("read", id, data(id.decode()))
        await one.commit("read", b"1", b"2")
        body = Body(data("a"), data("b"), slow=True)
        uploading = asyncio.ensure_future(other.put("written", body))
        reading = await other.open("read")
        first = await anext(reading)
        await one.put("read", b"new")
        await until_files(one, 3)
        for _ in range(5):
            await one.watch(60)
            await one.collect(48)
        assert one.files() == 3
        assert first + b"".join([piece async for piece in reading]) == data("1") + data("2")
        body.go_on.set()
        await uploading
        await other.ctx.activity.announce(other.ctx.engine)
        await one.collect(48)
        assert one.files() == 1
        assert await one.get("written") == data("a") + data("b")


async def test_a_download_counts_as_running_before_its_first_byte_is_read(store: Store, tmp_path: Path) -> None:
    # contract G3: the clock jumps between the read of the record and the first read of the extent
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("blob", data("x"))
        reading = await one.open("blob")
        await one.put("blob", b"other")
        await one.collect(48)
        assert b"".join([piece async for piece in reading]) == data("x")
        await one.open("blob")  # and is dropped, unread: nothing waits for it
        await one.collect(48)
        assert one.files() == 0


async def test_a_process_that_slept_beside_the_others_is_not_dead(shared_store: Store, tmp_path: Path) -> None:
    # a machine was suspended: the process that wakes first has not seen the other one silent for long
    async with process(shared_store, tmp_path / "extents") as one, process(shared_store, tmp_path / "extents") as other:
        await one.create()
        await other.ctx.activity.announce(other.ctx.engine)
        await one.watch(60)
        one.clock.moved_seconds += 10 * DEAD_AFTER_SECONDS
        await one.collect(48)
        assert await one.count(Horizon) == 2


async def test_an_old_upload_of_a_process_taken_for_dead_is_refused(shared_store: Store, tmp_path: Path) -> None:
    # contract G6: it slept so long that the extent of its upload was swept
    async with process(shared_store, tmp_path / "extents") as one, process(shared_store, tmp_path / "extents") as sleeper:
        await one.create()
        await sleeper.put("before", data("x"))
        body = Body(data("a"), data("b"), slow=True)
        uploading = asyncio.ensure_future(sleeper.put("lost", body))
        await until_files(one, 2)
        await one.watch(DEAD_AFTER_SECONDS + ANNOUNCE_SECONDS)
        await one.collect(48)
        assert one.files() == 1
        await sleeper.ctx.activity.announce(sleeper.ctx.engine)  # it wakes, and announces before the upload is done
        body.go_on.set()
        with pytest.raises(StorageError) as refusal:
            await uploading
        assert refusal.value.code is Code.ServerBusy
        with pytest.raises(StorageError):
            await one.get("lost")
        await sleeper.put("lost", data("again"))
        await one.collect(0)
        assert await one.get("lost") == data("again")
        assert await one.get("before") == data("x")


async def test_a_process_announces_before_it_names_an_extent(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.ctx.activity.withdraw(one.ctx.engine)
        await one.put("small", b"x")
        assert await one.count(Horizon) == 0
        await one.put("large", data("x"))
        assert await one.count(Horizon) == 1
        await one.later(1000)
        await one.put("large", data("y"))  # its announcement is old, but nobody has taken it for dead
        assert await one.get("large") == data("y")


async def test_a_recent_upload_of_a_process_taken_for_dead_is_committed(shared_store: Store, tmp_path: Path) -> None:
    async with process(shared_store, tmp_path / "extents") as one, process(shared_store, tmp_path / "extents") as sleeper:
        await one.create()
        await one.watch(DEAD_AFTER_SECONDS + ANNOUNCE_SECONDS)
        await one.collect(48)
        assert await one.count(Horizon) == 1
        await sleeper.ctx.engine.read((), lambda tx: tx.now)  # it learns the time of the store
        await sleeper.put("blob", data("x"))
        assert await one.count(Horizon) == 2
        assert await one.get("blob") == data("x")


async def test_a_dead_process_holds_back_the_removal_for_ten_minutes(kept_store: Store, tmp_path: Path) -> None:
    async with process(kept_store, tmp_path / "extents") as died:
        await died.create()
        await died.put("blob", data("x"))
    async with process(kept_store, tmp_path / "extents") as one:
        await one.delete("blob")
        await one.collect(0)
        assert await one.count(Horizon) == 2
        await one.watch(DEAD_AFTER_SECONDS + ANNOUNCE_SECONDS)
        await one.collect()
        assert await one.count(Horizon) == 1
        assert one.files() == 0


async def test_shared_bytes_are_removed_with_their_last_name(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("blob", data("old"))
        first, second = await one.snapshot("blob"), await one.snapshot("blob")
        await one.put("blob", data("new"))
        await one.collect(48)
        assert await one.get("blob", first) == await one.get("blob", second) == data("old")
        await one.delete("blob", first)
        await one.collect(48)
        assert await one.get("blob", second) == data("old")
        await one.delete("blob", second)
        await one.collect(48)
        assert one.files() == 1
        await one.delete("blob")
        await one.collect(48)
        assert one.files() == 0
        assert await one.count(Layout, Garbage, Blob, Snapshot) == 0


async def test_blocks_that_a_commit_keeps_outlive_the_collector(store: Store, tmp_path: Path) -> None:
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        for id in (b"1", b"2"):
            await one.stage("blob", id, data(id.decode()))
        await one.commit("blob", b"1", b"2")
        await one.stage("blob", b"3", data("3"))
        await one.stage("blob", b"s", data("s", 500))  # small: gathered into an extent of its own
        await one.commit("blob", b"3", b"s", b"1")
        await one.collect(48)
        assert await one.get("blob") == data("3") + data("s", 500) + data("1")
        assert one.files() == 3


async def test_a_half_written_extent_of_a_killed_process_is_swept(store: Store, tmp_path: Path) -> None:
    # race G2
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        await one.put("kept", data("k"))
        writer = LocalExtents(tmp_path / "extents", lambda: f"{one.ctx.now():016x}{secrets.token_hex(8)}").new()
        await writer.write(b"half")  # by a process that is killed then
        await one.collector.collect()
        assert one.files() == 2  # the process may still be running
        await one.collect(48)
        assert one.files() == 1
        assert await one.get("kept") == data("k")


async def test_nothing_is_lost_while_the_collector_runs_without_pause(store: Store, tmp_path: Path) -> None:
    # race G1
    async with process(store, tmp_path / "extents") as one:
        await one.create()
        stop = False
        rounds = 0

        async def collect() -> None:
            nonlocal rounds
            while not stop:
                await one.collect(25)
                rounds += 1
                await asyncio.sleep(0.005)

        async def work(number: int) -> None:
            for iteration in itertools.count():
                if (
                    iteration >= 26 and iteration % 2 == 0 and rounds > 1
                ):  # on a slow host the first round may take all 26 iterations
                    return  # the last one put a blob with one extent
                pattern = f"{number}-{iteration};"
                if iteration % 2:
                    await one.put(f"blob-{number}", data(pattern))
                else:
                    await one.stage(f"blob-{number}", b"1", data(pattern, LARGE // 2))
                    await one.stage(f"blob-{number}", b"2", data(pattern, 500))
                    await one.commit(f"blob-{number}", b"1", b"2")
                expected = data(pattern) if iteration % 2 else data(pattern, LARGE // 2) + data(pattern, 500)
                reading = await one.open(f"blob-{number}")
                first = await anext(reading)
                await asyncio.sleep(0.002)
                assert first + b"".join([piece async for piece in reading]) == expected

        collecting = asyncio.ensure_future(collect())
        try:
            await asyncio.gather(*[work(number) for number in range(6)])
        finally:
            stop = True
            await collecting
        await one.collect(25)
        await one.collect(25)
        assert one.files() == 6
