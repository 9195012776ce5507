"""`verditer check`: what it finds and what it does not take for damage, and what all commands refuse."""

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.contract.processes import data, process
from tests.contract.stores import PostgresStore, SqliteStore
from tests.contract.whole_stores import checked, fill, make_filled, serving
from verditer.cli import main
from verditer.partition.engine import EngineUnavailable
from verditer.tools.check import check_store
from verditer.tools.extent_digests import ExtentDigests
from verditer.tools.progress import ProgressLine
from verditer.tools.stores import StoreAddress, opened


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
