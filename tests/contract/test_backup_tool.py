"""`verditer backup` of a store that is served, and `verditer restore`."""

import asyncio
import contextlib
import errno
import os
import re
import sqlite3
from functools import partial
from pathlib import Path

import pytest

from tests.contract.processes import data
from tests.contract.whole_stores import checked, expect_filled, fill, make_filled, serving, written_to
from verditer.partition.engine import EngineUnavailable
from verditer.partition.migrations import VERSION
from verditer.tools import backup
from verditer.tools.backup import NotABackup, back_up, restore
from verditer.tools.progress import ProgressLine
from verditer.tools.stores import DATABASE, StoreAddress


async def test_a_store_is_backed_up_while_it_is_written_to_and_restored(tmp_path: Path) -> None:
    async with serving(tmp_path / "a") as one:
        await fill(one)
        async with written_to(one) as written:
            before = len(written)
            manifest = await asyncio.to_thread(back_up, tmp_path / "a", tmp_path / "backup", ProgressLine())
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
