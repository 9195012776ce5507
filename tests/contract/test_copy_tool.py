"""`verditer copy` from the embedded store to PostgreSQL and back, interrupted, killed and without room."""

import asyncio
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.contract.files import ACCOUNT, SHARE, Files
from tests.contract.processes import data, process
from tests.contract.s3 import S3Server
from tests.contract.stores import PostgresStore
from tests.contract.whole_stores import checked, expect_filled, fill, make_filled, serving, written_to
from verditer.cli import main
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.names import ShareName
from verditer.core.records.activity import Horizon
from verditer.core.records.file_open import FileOwner
from verditer.core.records.record import EVERY_KEY
from verditer.partition.engine import EngineUnavailable
from verditer.services.file import shares
from verditer.stream.extents import ExtentStore
from verditer.stream.s3_client import within
from verditer.stream.s3_location import S3Location
from verditer.tools import copy as copying
from verditer.tools.backup import back_up, restore
from verditer.tools.check import check_store
from verditer.tools.copy import copy_store
from verditer.tools.copy_state import CopiedExtent, StoreCopyState
from verditer.tools.extent_digests import ExtentDigests
from verditer.tools.progress import ProgressLine
from verditer.tools.stores import OpenStore, StoreAddress, opened


async def test_a_store_moves_to_postgres_and_back(tmp_path: Path, postgres: PostgresStore) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
        await one.ctx.engine.move_clock(seconds(3600))
        await one.put("later", b"later")
    there = StoreAddress(tmp_path / "shared", postgres.conninfo)
    for source, target, work in (
        (StoreAddress(tmp_path / "a"), there, tmp_path / "work1"),
        (there, StoreAddress(tmp_path / "b"), tmp_path / "work2"),
    ):
        async with opened(source) as first, opened(target) as second:
            copied = await copy_store(first, second, work, ProgressLine())
            assert copied.extents == 5
            tick = await second.engine.write([()], lambda tx: tx.tick())
            assert tick > await first.engine.read((), lambda tx: tx.now) - seconds(60)
    async with process(postgres, tmp_path / "shared" / "extents") as node:
        await expect_filled(node)
    async with serving(tmp_path / "b") as other:
        await expect_filled(other)
        assert await other.get("later") == b"later"
    assert (await checked(StoreAddress(tmp_path / "b"))).is_sound


async def test_a_database_is_copied_while_nodes_write_to_it(tmp_path: Path, postgres: PostgresStore) -> None:
    source = StoreAddress(tmp_path / "shared", postgres.conninfo)
    async with process(postgres, tmp_path / "shared" / "extents") as node:
        await fill(node)
        async with written_to(node) as written:
            before = len(written)
            async with opened(source) as first, opened(StoreAddress(tmp_path / "b")) as second:
                await copy_store(first, second, tmp_path / "work", ProgressLine())
    found = await checked(StoreAddress(tmp_path / "b"))
    assert (found.complaints, found.orphans) == ([], 0)
    async with serving(tmp_path / "b") as other:
        await expect_filled(other)
        for number in range(before):
            assert await other.get(f"more-{number}") == data("m", 2000)
        assert await other.get("changing") in [data(str(number), 2000) for number in range(before - 1, written[-1] + 2)]


async def test_a_copy_announces_that_it_reads_as_long_as_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collectors do not count a process that has been silent for ten minutes."""
    await make_filled(tmp_path / "a")
    copy_extent, seen = copying._copy_extent, list[list[Horizon]]()

    async def horizons(store: OpenStore) -> list[Horizon]:
        return await store.engine.read((), lambda tx: list(tx.scan(Horizon, EVERY_KEY)))

    async def slow(source: object, target: OpenStore, extent: str, length: int) -> CopiedExtent:
        for _ in range(1000):
            seen.append([each for each in await horizons(first) if each.process not in before])
            if len({horizon.heartbeat for [horizon] in seen}) > 2:
                break
            await asyncio.sleep(0.01)
        return await copy_extent(source, target, extent, length)  # type: ignore[arg-type]

    monkeypatch.setattr(copying, "_copy_extent", slow)
    monkeypatch.setattr(copying, "ANNOUNCE_SECONDS", 0.01)
    async with opened(StoreAddress(tmp_path / "a")) as first, opened(StoreAddress(tmp_path / "b")) as second:
        before = {horizon.process for horizon in await horizons(first)}
        await copy_store(first, second, tmp_path / "work", ProgressLine())
        assert len({horizon.heartbeat for [horizon] in seen}) > 2
        assert len({(horizon.process, horizon.oldest) for [horizon] in seen}) == 1
        assert {horizon.process for horizon in await horizons(first)} == before


async def test_files_and_snapshots_of_shares_are_backed_up_and_copied(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        files = Files(one.ctx)
        await shares.create_share(one.ctx, ShareName(ACCOUNT, SHARE), shares.CreateShare())
        await files.make_directory("folder/")
        await files.put("folder/file", data("f", 50_000))
        snapshot = await files.snapshot()
        await files.write("folder/file", 10, data("g", 20_000))
    now = data("f", 10) + data("g", 20_000) + data("f", 29_990)
    await asyncio.to_thread(back_up, tmp_path / "a", tmp_path / "backup", ProgressLine())
    restore(tmp_path / "backup", tmp_path / "b", ProgressLine())
    async with opened(StoreAddress(tmp_path / "b")) as first, opened(StoreAddress(tmp_path / "c")) as second:
        await copy_store(first, second, tmp_path / "work", ProgressLine())
    for folder in ("b", "c"):
        assert (await checked(StoreAddress(tmp_path / folder))).is_sound
        async with serving(tmp_path / folder) as other:
            assert await Files(other.ctx).get("folder/file") == now
            assert await Files(other.ctx).get("folder/file", snapshot) == data("f", 50_000)


async def test_an_interrupted_copy_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
    copy_extent, sent = copying._copy_extent, list[str]()

    async def failing(source: object, target: OpenStore, extent: str, length: int) -> CopiedExtent:
        if len(sent) == 3:
            raise EngineUnavailable("the network is down")
        sent.append(extent)
        return await copy_extent(source, target, extent, length)  # type: ignore[arg-type]

    async def run() -> None:
        async with opened(StoreAddress(tmp_path / "a")) as first, opened(StoreAddress(tmp_path / "b")) as second:
            await copy_store(first, second, tmp_path / "work", ProgressLine())

    monkeypatch.setattr(copying, "_copy_extent", failing)
    with pytest.raises(EngineUnavailable, match="network"):
        await run()
    first_time, sent = sent, []
    await run()
    assert (len(first_time), len(sent)) == (3, 2)
    assert not set(first_time) & set(sent)
    async with serving(tmp_path / "b") as other:
        await expect_filled(other)
    assert not (tmp_path / "work").exists()  # a copy of another day begins anew


async def test_an_extent_that_disappears_during_a_copy_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await make_filled(tmp_path / "a")
    copy_extent = copying._copy_extent

    async def losing(source: ExtentStore, target: OpenStore, extent: str, length: int) -> CopiedExtent:
        await source.delete(extent)
        return await copy_extent(source, target, extent, length)

    monkeypatch.setattr(copying, "_copy_extent", losing)
    async with opened(StoreAddress(tmp_path / "a")) as first, opened(StoreAddress(tmp_path / "b")) as second:
        with pytest.raises(EngineUnavailable, match="of the source is missing or too short"):
            await copy_store(first, second, tmp_path / "work", ProgressLine())


async def test_half_a_line_of_a_killed_copy_does_not_count(tmp_path: Path) -> None:
    state = StoreCopyState(tmp_path, "a", "b")
    for name in ("one", "two"):
        state.add(CopiedExtent(extent=name, length=1, digest="00"))
    state.close()
    file = tmp_path / "copied.jsonl"
    file.write_bytes(file.read_bytes()[:-10])
    state = StoreCopyState(tmp_path, "a", "b")
    assert list(state.extents) == ["one"]
    state.add(CopiedExtent(extent="three", length=1, digest="00"))
    state.close()
    assert list(StoreCopyState(tmp_path, "a", "b").extents) == ["one", "three"]
    with pytest.raises(EngineUnavailable, match="another copy"):
        StoreCopyState(tmp_path, "a", "c")


def test_an_unfinished_copy_does_not_go_on_with_another_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words may name another store in another folder, at another port, or at another endpoint."""
    monkeypatch.chdir(tmp_path)
    here = StoreAddress(Path("a")).shown
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    s3 = S3Location(bucket="bucket", prefix="x", endpoint="http://one")
    shown = [
        here,
        StoreAddress(Path("a")).shown,
        StoreAddress(Path("a"), "postgresql://user:secret@host/store").shown,
        StoreAddress(Path("a"), "postgresql://user:secret@host:5433/store").shown,
        StoreAddress(Path("a"), "postgresql://user:secret@host/store", s3).shown,
        StoreAddress(Path("a"), "postgresql://user:secret@host/store", replace(s3, endpoint="http://two")).shown,
    ]
    assert len(set(shown)) == len(shown)
    assert "secret" not in "".join(shown)


async def test_a_copy_that_is_killed_again_and_again_ends_complete(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
        for number in range(60):
            await one.put(f"more-{number}", data(str(number), 20_000))
    for extents, number in ((10, signal.SIGKILL), (30, signal.SIGINT), (50, signal.SIGKILL), (1000, signal.SIGKILL)):
        status = await asyncio.to_thread(copy_until, tmp_path, extents, number)
        assert status in (0, 130 if number is signal.SIGINT else -signal.SIGKILL)
        if status == 0:
            break
    assert status == 0
    found = await checked(StoreAddress(tmp_path / "b"))
    assert (found.complaints, found.extents, found.orphans) == ([], 65, 0)
    async with serving(tmp_path / "b") as other:
        await expect_filled(other)


def copy_until(folder: Path, extents: int, number: signal.Signals) -> int:
    """Send the copy a signal when it has so many extents. Returns its status, 0 if it was complete before."""
    command = [sys.executable, "-m", "verditer", "copy", "--from", "a", "--to", "b", "--work", "work"]
    state, limit = folder / "work" / "copied.jsonl", time.monotonic() + 120
    with subprocess.Popen(command, cwd=folder) as process:
        while process.poll() is None and time.monotonic() < limit:
            if state.exists() and state.read_bytes().count(b"CopiedExtent") >= extents:
                process.send_signal(number)
                break
            time.sleep(0.001)
        return process.wait(timeout=120)


def test_a_command_that_is_interrupted_while_it_starts_has_not_done_its_work() -> None:
    code = "import os, signal, verditer.entry; os.kill(os.getpid(), signal.SIGINT)"
    for words, status in ((["copy", "--from", "a"], 130), (["--silent"], 0), ([], 0)):
        assert subprocess.run([sys.executable, "-c", code, *words]).returncode == status


async def test_a_cancelled_call_of_s3_ends_although_its_answer_has_come() -> None:
    answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    call = asyncio.create_task(within(10, answer))
    await asyncio.sleep(0)
    answer.set_result(1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_open_handles_are_not_copied(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
        owner = FileOwner(owner="node", instance="node", number=0, heartbeat=1)
        await one.ctx.engine.write([()], lambda tx: tx.put(owner))
    async with opened(StoreAddress(tmp_path / "a")) as first, opened(StoreAddress(tmp_path / "b")) as second:
        await copy_store(first, second, tmp_path / "work", ProgressLine())
        for store, expected in ((first, [owner]), (second, [])):
            assert await store.engine.read((), lambda tx: list(tx.scan(FileOwner, EVERY_KEY))) == expected


async def test_a_target_that_holds_something_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        async with serving(tmp_path / name) as one:
            await fill(one)
    async with opened(StoreAddress(tmp_path / "a")) as first, opened(StoreAddress(tmp_path / "b")) as second:
        with pytest.raises(EngineUnavailable, match="already"):
            await copy_store(first, second, tmp_path / "work", ProgressLine())
    assert not (tmp_path / "work").exists()  # the next copy may have another target


async def test_a_target_with_the_extents_of_another_store_is_refused(tmp_path: Path, postgres: PostgresStore) -> None:
    """The copies of one store have extents of the same names, and each of two stores would remove those of the other."""
    for name in ("a", "b"):
        await make_filled(tmp_path / name)
    async with (
        opened(StoreAddress(tmp_path / "a")) as first,
        opened(StoreAddress(tmp_path / "b", postgres.conninfo)) as second,
    ):
        with pytest.raises(EngineUnavailable, match="holds extents already"):
            await copy_store(first, second, tmp_path / "work", ProgressLine())
    assert not (tmp_path / "work").exists()
    assert (await checked(StoreAddress(tmp_path / "b"))).is_sound


def test_a_target_with_the_extents_of_the_source_is_refused(
    tmp_path: Path, postgres: PostgresStore, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy begins an extent by deleting what an interrupted copy has left of it in the target."""
    asyncio.run(make_filled(tmp_path / "a"))
    (tmp_path / "link").symlink_to("a")
    for folder in ("a", "link"):
        command = ["copy", "--from", str(tmp_path / "a"), "--to", postgres.conninfo, "--to-extents", str(tmp_path / folder)]
        assert main([*command, "--work", str(tmp_path / "work")]) == 1
        assert "the same place for extents" in capsys.readouterr().err
    assert main(["check", "--location", str(tmp_path / "a")]) == 0
    there = StoreAddress(tmp_path, "dbname=one", S3Location(bucket="bucket", prefix="x", endpoint="http://s3"))
    elsewhere = StoreAddress(tmp_path, "dbname=two", S3Location(bucket="bucket", prefix="y", endpoint="http://s3"))
    assert there.shares_extents_with(there._replace(database="dbname=two"))
    assert not there.shares_extents_with(elsewhere)
    assert not there.shares_extents_with(there._replace(extents=None))


def test_a_copy_without_room_says_so_and_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["copy", "--from", str(tmp_path / "a"), "--to", str(tmp_path / "b"), "--work", str(tmp_path / "work")]
    asyncio.run(make_filled(tmp_path / "a"))
    with monkeypatch.context() as patched:
        patched.setattr(copying, "_load_records", Mock(side_effect=StorageError(Code.InsufficientStorage)))
        assert main(command) == 1
    said = capsys.readouterr().err
    assert f"no space left for {tmp_path / 'b'}" in said
    assert f"{tmp_path / 'work'} holds an unfinished copy" in said
    assert main([*command[:4], str(tmp_path / "c"), *command[5:]]) == 1
    assert "remove the folder to give it up" in capsys.readouterr().err
    assert main(command) == 0
    said = capsys.readouterr().err
    assert f"going on with the records of {datetime.now(UTC):%Y-%m-%dT}" in said
    assert "unfinished" not in said


async def test_extents_move_to_s3(
    tmp_path: Path, postgres: PostgresStore, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    async with serving(tmp_path / "a") as one:
        await fill(one)
    there = StoreAddress(tmp_path / "unused", postgres.conninfo, s3_server.location("moved"))
    async with opened(StoreAddress(tmp_path / "a")) as first, opened(there) as second:
        await copy_store(first, second, tmp_path / "work", ProgressLine())
        found = await check_store(second.engine, second.extents, ProgressLine(), ExtentDigests())
    assert (found.complaints, found.extents, found.orphans) == ([], 5, 0)
