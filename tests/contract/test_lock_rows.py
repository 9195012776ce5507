"""The PostgreSQL engine with lock rows instead of advisory locks: it keeps the whole contract of engines, and the kind of locks
is a matter of the store. Runs on a real server.
"""

import asyncio
import inspect
from contextlib import AsyncExitStack

import psycopg
import pytest

from tests.contract import test_engine, test_engine_scopes, test_postgres
from tests.contract.postgres import PostgresServer
from tests.contract.stores import RECORDS, LockRowsStore, PostgresStore, Store, opened
from tests.contract.test_postgres import SCOPE, increment
from verditer.partition.engine import EngineUnavailable
from verditer.partition.postgres.engine import PostgresEngine
from verditer.partition.postgres.locking.advisory_locks import AdvisoryLocks
from verditer.partition.postgres.locking.lock_rows import LockRows
from verditer.partition.postgres.locking.self_test import check_locks

ENGINE_FIXTURES = {"store", "kept_store", "shared_store"}
LOCK_TESTS = (
    test_postgres.test_writes_beside_each_other_run_side_by_side,
    test_postgres.test_a_write_excludes_writes_on_its_scope_and_above_and_below,
    test_postgres.test_a_write_that_waits_for_another_process_goes_on_when_that_ends,
    test_postgres.test_writes_of_two_processes_on_one_scope_lose_nothing,
    test_postgres.test_a_record_being_claimed_is_passed_over,
    test_postgres.test_processes_that_start_together_prepare_the_store_once,
)


def _is_engine_test(name: str, test: object) -> bool:
    return (
        name.startswith("test_")
        and inspect.isfunction(test)
        and bool(ENGINE_FIXTURES & inspect.signature(test).parameters.keys())
    )


# The same tests, with the fixtures of this module.
for _module in (test_engine, test_engine_scopes):
    globals().update({name: test for name, test in vars(_module).items() if _is_engine_test(name, test)})
globals().update({test.__name__: test for test in LOCK_TESTS})


@pytest.fixture
def store(postgres: PostgresStore) -> Store:
    return postgres


@pytest.fixture
def kept_store(postgres: PostgresStore) -> Store:
    return postgres


@pytest.fixture
def shared_store(postgres: PostgresStore) -> Store:
    return postgres


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> PostgresStore:
    return LockRowsStore(postgres_server)


async def test_a_node_takes_the_locks_that_the_store_has(postgres: PostgresStore) -> None:
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(opened(postgres))
        other = PostgresEngine(postgres.conninfo, records=RECORDS)
        await other.open()
        stack.push_async_callback(other.close)
        assert [engine.locking.name for engine in (first, other) if isinstance(engine, PostgresEngine)] == ["rows", "rows"]
        await asyncio.gather(*[engine.write([SCOPE], increment) for engine in (first, other) for _ in range(20)])
        assert await first.write([SCOPE], increment) == 41


@pytest.mark.parametrize(("made_with", "asked"), [("rows", "advisory"), ("advisory", "rows"), (None, "rows")])
async def test_a_store_never_has_two_kinds_of_locks(postgres: PostgresStore, made_with: str | None, asked: str) -> None:
    """Nodes with different kinds would not exclude each other."""
    maker = PostgresEngine(postgres.conninfo, records=RECORDS, locks=made_with)
    await maker.open()
    await maker.close()
    with pytest.raises(EngineUnavailable, match=f"made with {made_with or 'advisory'} locks"):
        await PostgresEngine(postgres.conninfo, records=RECORDS, locks=asked).open()


async def test_nodes_that_make_a_store_together_agree_on_its_locks(postgres: PostgresStore) -> None:
    """One of them was told, the others were not."""
    engines = [PostgresEngine(postgres.conninfo, records=RECORDS, locks=locks) for locks in ("rows", None, None, "rows")]
    opened = await asyncio.gather(*[engine.open() for engine in engines], return_exceptions=True)
    serving = [engine for engine, error in zip(engines, opened, strict=True) if error is None]
    assert all(isinstance(error, EngineUnavailable) for error in opened if error is not None)
    assert len({engine.locking.name for engine in serving}) == 1
    values = await asyncio.gather(*[engine.write([SCOPE], increment) for engine in serving])
    assert sorted(values) == list(range(1, len(serving) + 1))
    await asyncio.gather(*[engine.close() for engine in serving])


def test_the_self_test_finds_row_locks_where_advisory_locks_are_stubs(postgres: PostgresStore) -> None:
    with psycopg.connect(postgres.conninfo, autocommit=True) as one, psycopg.connect(postgres.conninfo, autocommit=True) as other:
        one.execute("CREATE TABLE store (name TEXT PRIMARY KEY, value BIGINT NOT NULL)")
        LockRows().exclude_migrations(one)
        one.execute("CREATE SCHEMA stubs")
        for function in ("pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared"):
            one.execute(f"CREATE FUNCTION stubs.{function}(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'".encode())
        for connection in (one, other):
            connection.execute("SET search_path = stubs, pg_catalog, public")
        with pytest.raises(EngineUnavailable):
            check_locks(one, other, AdvisoryLocks())
        check_locks(one, other, LockRows())
        one.execute("DELETE FROM scope_lock")  # row locks that never exclude, as far as a client can see
        with pytest.raises(EngineUnavailable, match="with rows locks"):
            check_locks(one, other, LockRows())
