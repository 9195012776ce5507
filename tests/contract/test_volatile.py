"""Volatile records: a commit that changes nothing else asks no disk, and neither does anybody who sees it.

Such records are lost with the machine, and only with it: a process that is killed loses none.
"""

import asyncio
from pathlib import Path

import psycopg
import pytest

from tests.contract.stores import RECORDS, Note, PostgresStore, SqliteStore, Store, WorkersStore, opened
from tests.contract.test_log import SCOPE, Disk, both, disk, look, setting, workers
from verditer.core.records.file_open import FileOwner
from verditer.partition.engine import Transaction

__all__ = ["disk", "workers"]


def owning(name: str) -> FileOwner:
    return FileOwner(owner=name, instance="i", number=0, heartbeat=1)


def own(tx: Transaction) -> None:
    tx.put(owning("a"))


def own_many(tx: Transaction) -> None:
    tx.put(owning("b"), owning("c"))
    tx.delete(FileOwner, "b")


def owner_there(tx: Transaction) -> bool:
    return tx.get(FileOwner, "a") is not None


async def test_nobody_waits_for_the_disk_because_of_volatile_records(workers: WorkersStore, disk: Disk) -> None:
    async with both(workers, disk) as (one, other):
        await one.write([SCOPE], setting("synced"))
        disk.shut()
        await one.write([SCOPE], own)
        await other.write([SCOPE], own_many)
        for engine in (one, other):
            assert await engine.read(SCOPE, owner_there)
            assert await engine.read(SCOPE, owner_there, long=True)
            assert await engine.read(SCOPE, look) == ["synced"]
        assert not disk.asked.acquire(blocking=False)


async def test_a_durable_change_beside_a_volatile_one_is_synced(workers: WorkersStore, disk: Disk) -> None:  # contract G6
    def mixed(tx: Transaction) -> None:
        own(tx)
        setting("a")(tx)

    async with both(workers, disk) as (one, other):
        disk.shut()
        write = asyncio.ensure_future(one.write([SCOPE], mixed))
        await disk.is_asked()
        volatile = asyncio.ensure_future(other.write([SCOPE], own_many))  # what it has seen is not synced
        await disk.is_asked()
        reader = asyncio.ensure_future(other.read(SCOPE, look))
        await disk.is_asked()
        assert not any(each.done() for each in (write, volatile, reader))
        disk.open()
        await asyncio.gather(write, volatile)
        assert await reader == ["a"]


async def test_a_batch_of_both_kinds_is_synced(workers: WorkersStore, disk: Disk) -> None:  # contract G6
    async with both(workers, disk) as (one, _):
        disk.shut()
        batch = [asyncio.ensure_future(one.write([SCOPE], body)) for body in (own, setting("a"), own_many)]
        await disk.is_asked()
        assert not any(each.done() for each in batch)
        disk.open()
        await asyncio.gather(*batch)


async def test_volatile_records_outlive_their_engine(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "store")
    async with opened(store) as engine:
        await engine.write([SCOPE], own)
    async with opened(store) as engine:
        assert await engine.read(SCOPE, owner_there)


async def test_volatile_tables_are_unlogged_in_postgresql_and_no_others(store: Store) -> None:
    if not isinstance(store, PostgresStore):
        pytest.skip("of PostgreSQL")
    async with opened(store):
        with psycopg.connect(store.conninfo) as connection:
            query = "SELECT relname FROM pg_class WHERE relpersistence = 'u' AND relkind = 'r'"
            unlogged = {name for (name,) in connection.execute(query)}
    assert unlogged == {kind.TABLE for kind in RECORDS if kind.LIFECYCLE.volatile}
    assert Note.TABLE not in unlogged


# A deferred trigger runs at COMMIT, and notes whether that commit waits for the log.
SPY = """
    CREATE UNLOGGED TABLE commit_level (level TEXT);
    CREATE FUNCTION note_level() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO commit_level VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER spy AFTER INSERT OR UPDATE ON file_owner
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_level();
    CREATE CONSTRAINT TRIGGER spy AFTER INSERT OR UPDATE ON test_note
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_level();
"""


async def test_only_a_volatile_transaction_of_postgresql_does_not_wait_for_its_log(store: Store) -> None:  # contract G6
    if not isinstance(store, PostgresStore):
        pytest.skip("of PostgreSQL")

    def mixed(tx: Transaction) -> None:
        own(tx)
        setting("b")(tx)

    async with opened(store) as engine:
        with psycopg.connect(store.conninfo, autocommit=True) as connection:
            connection.execute(SPY.encode())
            for body, expected in ((own, "off"), (setting("a"), "on"), (own_many, "off"), (mixed, "on")):
                await engine.write([SCOPE], body)
                levels = {level for (level,) in connection.execute("DELETE FROM commit_level RETURNING level")}
                assert levels == {expected}
