"""Whole stores: checked, backed up while they serve, restored, and copied from the embedded store to PostgreSQL and back."""

import asyncio
import contextlib
import errno
import itertools
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.contract.files import ACCOUNT, SHARE, Files
from tests.contract.processes import BOX, Process, data, process
from tests.contract.s3 import S3Server
from tests.contract.stores import PostgresStore, SqliteStore
from verditer.cli import main
from verditer.core.dates import seconds
from verditer.core.errors import Code, StorageError
from verditer.core.names import QueueName, ShareName
from verditer.core.records.activity import Horizon
from verditer.core.records.file_open import FileOwner
from verditer.core.records.record import EVERY_KEY
from verditer.partition.engine import EngineUnavailable
from verditer.partition.migrations import VERSION
from verditer.services.file import shares
from verditer.services.queue import queues
from verditer.stream.extents import ExtentStore
from verditer.stream.s3_client import within
from verditer.stream.s3_location import S3Location
from verditer.tools import backup
from verditer.tools import copy as copying
from verditer.tools.backup import NotABackup, back_up, restore
from verditer.tools.check import Findings, check_store
from verditer.tools.copy import copy_store
from verditer.tools.copy_state import CopiedExtent, StoreCopyState
from verditer.tools.extent_digests import ExtentDigests
from verditer.tools.progress import ProgressLine
from verditer.tools.stores import DATABASE, OpenStore, StoreAddress, opened

QUEUE = QueueName(BOX.account, "orders")
LARGE = {f"large-{number}": data(str(number), 50_000 + number) for number in range(4)}


@contextlib.asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Process]:
    """A server on an embedded store, without its front end."""
    async with process(SqliteStore(folder), folder / "extents") as one:
        yield one


async def fill(one: Process) -> None:
    await one.create()
    for name, body in LARGE.items():
        await one.put(name, body)
    await one.put("small", b"small")
    await one.stage("staged", b"1", data("s"))
    await one.snapshot("large-1")
    await queues.create_queue(one.ctx, QUEUE, queues.CreateQueue())
    await one.say(QUEUE, "hello")


async def make_filled(folder: Path) -> None:
    async with serving(folder) as one:
        await fill(one)


async def expect_filled(one: Process) -> None:
    for name, body in LARGE.items():
        assert await one.get(name) == body
    assert await one.get("small") == b"small"
    await one.commit("staged", b"1")
    assert await one.get("staged") == data("s")


async def checked(address: StoreAddress, *, read_bytes: bool = True) -> Findings:
    async with opened(address) as store:
        return await check_store(store.engine, store.extents, ProgressLine(), ExtentDigests() if read_bytes else None)


# Check


async def test_a_sound_store_is_sound_and_orphans_are_counted(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
    orphan = tmp_path / "a" / "extents" / "ab" / f"{1:016x}ab{0:014x}"
    orphan.write_bytes(b"never named")
    found = await checked(StoreAddress(tmp_path / "a"))
    assert (found.complaints, found.extents, found.orphans, found.orphan_bytes) == ([], 5, 1, 11)


@pytest.mark.parametrize("damage", ["missing", "short"])
async def test_a_damaged_extent_is_found(tmp_path: Path, damage: str) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
    (extent,) = [path for path in (tmp_path / "a" / "extents").rglob("*") if path.is_file() and path.stat().st_size == 50_002]
    if damage == "missing":
        extent.unlink()
    else:
        extent.write_bytes(extent.read_bytes()[:-1])
    found = await checked(StoreAddress(tmp_path / "a"))
    assert len(found.complaints) == 1
    assert extent.name in found.complaints[0]


def test_an_extent_whose_bytes_changed_since_the_last_check_is_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def make(*names: str) -> None:
        async with serving(tmp_path / "a") as one:
            await (fill(one) if not names else asyncio.sleep(0))
            for name in names:
                await one.put(name, data(name))

    command = ["check", "--location", str(tmp_path / "a"), "--digests", str(tmp_path / "digests.json")]
    asyncio.run(make())
    assert main(command) == 0
    asyncio.run(make("new"))
    assert main(command) == 0
    (extent,) = [path for path in (tmp_path / "a" / "extents").rglob("*") if path.is_file() and path.stat().st_size == 50_002]
    before = extent.read_bytes()
    for _ in range(2):  # the digest of the damaged extent is not taken over
        extent.write_bytes(before[:100] + bytes([before[100] ^ 1]) + before[101:])
        assert main(command) == 1
        assert f"extent {extent.name} was changed" in capsys.readouterr().out
    extent.write_bytes(before)
    assert main(command) == 0
    (tmp_path / "digests.json").write_text("[]")
    assert main(command) == 1
    assert "is no list of digests" in capsys.readouterr().err


def test_the_digest_of_an_extent_that_is_missing_for_a_while_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(make_filled(tmp_path / "a"))
    command = ["check", "--location", str(tmp_path / "a"), "--digests", str(tmp_path / "digests.json")]
    assert main(command) == 0
    (extent,) = [path for path in (tmp_path / "a" / "extents").rglob("*") if path.is_file() and path.stat().st_size == 50_002]
    body = extent.read_bytes()
    extent.unlink()
    assert main(command) == 1
    extent.write_bytes(b"x" + body[1:])
    capsys.readouterr()
    assert main(command) == 1
    assert f"extent {extent.name} was changed" in capsys.readouterr().out
    (tmp_path / "digests.json.part").mkdir()
    assert main(command) == 1
    assert f"extent {extent.name} was changed" in capsys.readouterr().out  # although the digests cannot be written


async def test_what_a_node_removes_while_extents_are_read_is_no_damage(tmp_path: Path, postgres: PostgresStore) -> None:
    async with process(postgres, tmp_path / "shared" / "extents") as node:
        await fill(node)

        class DeletingExtents(ExtentDigests):
            async def read_all(self, *arguments: Any) -> dict[str, str]:
                await node.delete("large-2")
                await node.collect(hours=2)
                return await super().read_all(*arguments)

        async with opened(StoreAddress(tmp_path / "shared", postgres.conninfo)) as store:
            found = await check_store(store.engine, store.extents, ProgressLine(), DeletingExtents())
    assert found.complaints == []


async def test_a_record_that_cannot_be_read_is_found(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
    SqliteStore(tmp_path / "a").execute("UPDATE container SET body = x'c1'")
    found = await checked(StoreAddress(tmp_path / "a"))
    assert ["table container" in complaint for complaint in found.complaints] == [True]


def test_a_damaged_database_is_one_line_and_no_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(make_filled(tmp_path / "a"))
    database = tmp_path / "a" / "verditer.db"
    with contextlib.closing(sqlite3.connect(database)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'blob'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    whole = database.read_bytes()
    commands = (
        ["check", "--location", str(tmp_path / "a")],
        ["backup", "--location", str(tmp_path / "a"), "--to", str(tmp_path / "b")],
        ["copy", "--from", str(tmp_path / "a"), "--to", str(tmp_path / "c"), "--work", str(tmp_path / "w")],
    )
    no_tables, no_database = b"", bytes([1]) * len(whole)
    one_page = whole[: (page - 1) * size] + bytes([0xA5]) * size + whole[page * size :]
    for damaged, refusing in ((one_page, commands), (no_database, commands), (no_tables, commands[1:2])):
        for command in refusing:
            database.write_bytes(damaged)
            assert main(command) == 1, command
            said = capsys.readouterr()
            assert "table blob cannot be read" in said.out or "database" in said.err, said
            assert "table blob" in said.out or command[0] != "check" or damaged is not one_page


async def test_a_store_that_a_server_uses_is_not_opened(tmp_path: Path) -> None:
    async with serving(tmp_path / "a"):
        with pytest.raises(EngineUnavailable, match="in use by another verditer process: stop it"):
            await checked(StoreAddress(tmp_path / "a"))


def test_the_commands_work_and_refuse_what_is_no_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.run(make_filled(tmp_path / "a"))
    assert main(["check", "--location", str(tmp_path / "none")]) == 1
    assert main(["copy", "--from", str(tmp_path / "none"), "--to", str(tmp_path / "b")]) == 1
    assert "holds no store" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
    assert main(["check", "--location", str(tmp_path / "a"), "--read"]) == 0
    assert "the store is sound" in capsys.readouterr().out
    assert main(["backup", "--location", str(tmp_path / "a"), "--to", str(tmp_path / "backup")]) == 0
    assert main(["restore", "--from", str(tmp_path / "backup"), "--location", str(tmp_path / "c")]) == 0
    assert main(["copy", "--from", str(tmp_path / "c"), "--to", str(tmp_path / "d"), "--work", str(tmp_path / "w")]) == 0
    assert "verified by digest" in capsys.readouterr().out
    next(path for path in (tmp_path / "d" / "extents").rglob("*") if path.is_file()).unlink()
    assert main(["check", "--location", str(tmp_path / "d")]) == 1


def test_a_database_without_a_store_is_refused_and_left_as_it_is(
    tmp_path: Path, postgres: PostgresStore, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there" / "extents").mkdir(parents=True)
    for folder, reason in (("none", "has no folder with extents"), ("there", "the database holds no store")):
        assert main(["check", "--database", postgres.conninfo, "--location", str(tmp_path / folder)]) == 1
        assert reason in capsys.readouterr().err
        copy = ["copy", "--from", postgres.conninfo, "--from-extents", str(tmp_path / folder), "--to", str(tmp_path / "b")]
        assert main([*copy, "--work", str(tmp_path / "w")]) == 1
        assert reason in capsys.readouterr().err
    assert [path.name for path in tmp_path.rglob("*")] == ["there", "extents"]
    with psycopg.connect(postgres.conninfo) as connection:
        assert connection.execute("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'").fetchone() == (0,)


def test_a_user_of_the_database_without_its_privileges_is_told(
    tmp_path: Path, postgres: PostgresStore, capsys: pytest.CaptureFixture[str]
) -> None:
    asyncio.run(make_filled(tmp_path / "a"))
    postgres.execute("REVOKE ALL ON SCHEMA public FROM public")
    postgres.execute("DROP ROLE IF EXISTS weak")
    postgres.execute("CREATE ROLE weak LOGIN")
    weak = make_conninfo(postgres.conninfo, user="weak", password="secret")
    command = ["copy", "--from", str(tmp_path / "a"), "--to", weak, "--to-extents", str(tmp_path / "b")]
    assert main([*command, "--work", str(tmp_path / "w")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("verditer: the user of the database may not do this: ")
    assert "secret" not in said


@pytest.mark.parametrize("database", ["postgresql://user:secret@host/store", "host=h user=user password=secret"])
def test_a_mistake_on_the_command_line_shows_no_password(database: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["check", database])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "unrecognized arguments" in said
    assert "user" in said
    assert "secret" not in said


# Backup and restore


async def test_a_store_is_backed_up_while_it_is_written_to_and_restored(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
        written, some = list[int](), asyncio.Event()

        async def write_on() -> None:
            for number in itertools.count():
                await one.put(f"more-{number}", data("m", 2000))
                written.append(number)
                if number == 5:
                    some.set()

        writing = asyncio.ensure_future(write_on())
        await some.wait()
        before = len(written)
        manifest = await asyncio.to_thread(back_up, tmp_path / "a", tmp_path / "backup", ProgressLine())
        writing.cancel()
    assert manifest.records > 10
    restore(tmp_path / "backup", tmp_path / "b", ProgressLine())
    found = await checked(StoreAddress(tmp_path / "b"))
    assert (found.complaints, found.orphans) == ([], 0)
    async with serving(tmp_path / "b") as other:
        await expect_filled(other)
        for number in range(before):  # acknowledged before the backup began
            assert await other.get(f"more-{number}") == data("m", 2000)
        await other.put("new", data("n"))


async def test_a_changed_or_incomplete_backup_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
    back_up(tmp_path / "a", tmp_path / "backup", ProgressLine())
    with pytest.raises(EngineUnavailable, match="not empty"):
        back_up(tmp_path / "a", tmp_path / "backup", ProgressLine())
    extent = next(path for path in (tmp_path / "backup" / "extents").rglob("*") if path.is_file())
    extent.write_bytes(b"x" + extent.read_bytes()[1:])
    with pytest.raises(NotABackup, match="changed"):
        restore(tmp_path / "backup", tmp_path / "b", ProgressLine())
    (tmp_path / "backup" / "backup.json").unlink()
    with pytest.raises(NotABackup):
        restore(tmp_path / "backup", tmp_path / "c", ProgressLine())


async def test_a_backup_that_a_server_has_written_to_is_not_restored(tmp_path: Path) -> None:
    await make_filled(tmp_path / "a")
    back_up(tmp_path / "a", tmp_path / "backup", ProgressLine())
    async with serving(tmp_path / "backup") as one:
        await one.put("small", b"smaller")
    restore(tmp_path / "backup", tmp_path / "b", ProgressLine())  # every extent is in the list of the backup
    async with serving(tmp_path / "backup") as one:
        await one.put("new", data("n"))
    with pytest.raises(NotABackup, match="was written to"):
        restore(tmp_path / "backup", tmp_path / "c", ProgressLine())
    assert not (tmp_path / "c").exists()


async def test_a_backup_of_an_earlier_schema_is_restored_and_one_of_a_later_schema_is_refused(tmp_path: Path) -> None:
    await make_filled(tmp_path / "a")
    back_up(tmp_path / "a", tmp_path / "backup", ProgressLine())
    set_schema(tmp_path / "backup", VERSION - 1)
    with contextlib.closing(sqlite3.connect(tmp_path / "backup" / DATABASE)) as connection:
        connection.execute("UPDATE blob SET body = 'not as today'")
        connection.commit()
    restore(tmp_path / "backup", tmp_path / "b", ProgressLine())
    set_schema(tmp_path / "backup", VERSION + 1)
    with pytest.raises(EngineUnavailable, match="knows up to"):
        restore(tmp_path / "backup", tmp_path / "c", ProgressLine())


@pytest.mark.parametrize(("version", "reason"), [(VERSION + 1, "knows up to"), (VERSION - 1, "serve it once with this one")])
async def test_a_store_of_another_schema_is_not_backed_up(tmp_path: Path, version: int, reason: str) -> None:
    await make_filled(tmp_path / "a")
    set_schema(tmp_path / "a", version)
    with pytest.raises(EngineUnavailable, match=reason):
        back_up(tmp_path / "a", tmp_path / "backup", ProgressLine())


def set_schema(folder: Path, version: int) -> None:
    with contextlib.closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute("UPDATE store SET value = ? WHERE name = 'schema'", (version,))
        connection.commit()
    if (manifest := folder / "backup.json").exists():
        manifest.write_bytes(re.sub(rb'"schema":[0-9]+', b'"schema":%d' % version, manifest.read_bytes()))


@pytest.mark.parametrize("existed", [True, False])
def test_a_backup_or_restore_that_fails_leaves_the_folder_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, existed: bool
) -> None:
    """Here it fails as on a full disk."""
    asyncio.run(make_filled(tmp_path / "a"))
    back_up(tmp_path / "a", tmp_path / "backup", ProgressLine())
    target = tmp_path / "new"
    if existed:
        target.mkdir()
    commands = (partial(back_up, tmp_path / "a"), partial(restore, tmp_path / "backup"))
    for command in commands:
        with monkeypatch.context() as patched:
            patched.setattr(backup, "_copy_database", no_space)
            with pytest.raises(OSError, match="No space left") as failed:
                command(target, ProgressLine())
        assert failed.value.filename == str(target)
        assert (target.exists(), list(tmp_path.glob("new/*"))) == (existed, [])
    restore(tmp_path / "backup", target, ProgressLine())


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


# Copy


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
    source, written, some = StoreAddress(tmp_path / "shared", postgres.conninfo), list[int](), asyncio.Event()
    async with process(postgres, tmp_path / "shared" / "extents") as node:
        await fill(node)

        async def write_on() -> None:
            for number in itertools.count():
                await node.put(f"more-{number}", data("m", 2000))
                await node.put("changing", data(str(number), 2000))
                written.append(number)
                if number == 5:
                    some.set()

        writing = asyncio.ensure_future(write_on())
        await some.wait()
        before = len(written)
        async with opened(source) as first, opened(StoreAddress(tmp_path / "b")) as second:
            await copy_store(first, second, tmp_path / "work", ProgressLine())
        writing.cancel()
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
