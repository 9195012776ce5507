"""A database that stops answering: nothing hangs, and the engine goes on when the database does. Runs on a real server."""

import asyncio
import contextlib
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.contract.postgres import PostgresServer, running_server
from tests.contract.stores import RECORDS, Note, PostgresStore
from tests.contract.tcp_proxy import TcpProxy, running_proxy
from verditer.core.errors import Code, StorageError
from verditer.core.records.record import span_of
from verditer.partition.engine import Engine, EngineUnavailable, Transaction
from verditer.partition.postgres.database import Database
from verditer.partition.postgres.engine import PostgresEngine
from verditer.partition.postgres.locking.advisory_locks import AdvisoryLocks
from verditer.partition.postgres.locking.self_test import check_locks, check_sessions
from verditer.partition.postgres.pipeline import PipelineCall, PipelineConnection
from verditer.services.account import development_accounts
from verditer.services.context import Context
from verditer.services.readiness import PROBE_SECONDS, Readiness
from verditer.stream.memory import MemoryExtents

SCOPE = ("account", "blob", "container", "blob")
DEADLINE = 2.0
SLACK = 3.0  # a busy machine
CANCEL_WAITING = """
    SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def increment(tx: Transaction) -> int:
    note = tx.get(Note, 1, "counter")
    value = note.value + 1 if note else 1
    tx.put(Note(space=1, name="counter", value=value))
    return value


@contextlib.asynccontextmanager
async def impatient(conninfo: str, deadline: float = DEADLINE) -> AsyncIterator[Engine]:
    engine = PostgresEngine(conninfo, records=RECORDS, lock_seconds=deadline / 2, deadline_seconds=deadline)
    await engine.open()
    try:
        yield engine
    finally:
        await engine.close()


@contextlib.contextmanager
def paused(postgres: PostgresStore) -> Iterator[None]:
    postgres.server.pause()
    try:
        yield
    finally:
        postgres.server.resume()


async def expect_refusals(engine: Engine) -> None:
    """A read, a write, a long read: each ends within the deadline, and a moment for those that wait for a connection."""

    async def refused(call: "asyncio.Future[object]") -> float:
        began = monotonic()
        with pytest.raises(EngineUnavailable):
            await call
        return monotonic() - began

    calls = [
        engine.read(SCOPE, lambda tx: tx.now),
        engine.write([SCOPE], increment),
        engine.read(SCOPE, lambda tx: list(tx.scan(Note, span_of(1))), long=True),
    ]
    async with asyncio.timeout(3 * DEADLINE + 5 + SLACK):
        took = await asyncio.gather(*[refused(asyncio.ensure_future(call)) for call in calls])
    assert max(took) < DEADLINE + SLACK


async def until_served(engine: Engine) -> int:
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(EngineUnavailable):
                return await engine.write([SCOPE], increment)
            await asyncio.sleep(0.05)


async def test_a_stopped_server_hangs_nothing_and_serves_when_it_goes_on(postgres: PostgresStore) -> None:
    async with impatient(postgres.conninfo) as engine:
        assert await engine.write([SCOPE], increment) == 1
        await engine.read(SCOPE, lambda tx: list(tx.scan(Note, span_of(1))), long=True)
        with paused(postgres):
            await expect_refusals(engine)
            await expect_refusals(engine)  # now on connections that have to be opened
        assert await until_served(engine) >= 2


async def test_dropped_packets_hang_nothing_and_are_survived(postgres: PostgresStore) -> None:
    async with running_proxy(unix_socket(postgres)) as proxy, impatient(through(postgres, proxy)) as engine:
        assert await engine.write([SCOPE], increment) == 1
        proxy.drop()
        await expect_refusals(engine)
        proxy.cut()
        proxy.restore()
        assert await until_served(engine) >= 2


async def test_a_refused_write_is_answered_once_though_its_connection_breaks_then(
    postgres: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = PipelineConnection.run

    async def breaking(connection: PipelineConnection, calls: Sequence[PipelineCall], deadline_seconds: float) -> Any:
        if [call.statement for call in calls] == [b"COMMIT"]:
            postgres.break_connections()
        return await run(connection, calls, deadline_seconds)

    def refuse(tx: Transaction) -> None:
        tx.get(Note, 1, "counter")
        raise LookupError

    async with impatient(postgres.conninfo) as engine:
        assert await engine.write([SCOPE], increment) == 1
        monkeypatch.setattr(PipelineConnection, "run", breaking)
        with pytest.raises(LookupError):
            await engine.write([SCOPE], refuse)
        monkeypatch.undo()
        assert await engine.write([SCOPE], increment) == 2


async def test_a_read_that_the_server_cancels_leaves_its_connection_usable(postgres: PostgresStore) -> None:
    def counter(tx: Transaction) -> Note | None:
        return tx.get(Note, 1, "counter")

    engine = PostgresEngine(postgres.conninfo, records=RECORDS, readers=1)
    await engine.open()
    try:
        assert await engine.write([SCOPE], increment) == 1
        with psycopg.connect(postgres.conninfo) as other:
            other.execute("LOCK TABLE test_note IN ACCESS EXCLUSIVE MODE")
            waiting = asyncio.ensure_future(engine.read(SCOPE, counter))
            while not await asyncio.to_thread(lambda: other.execute(CANCEL_WAITING).rowcount):  # each round asks the server
                pass
            with pytest.raises(EngineUnavailable):
                await waiting
        found = await engine.read(SCOPE, counter)
        assert found is not None
        assert found.value == 1
    finally:
        await engine.close()


async def test_a_slow_network_is_no_failure(postgres: PostgresStore) -> None:
    async with running_proxy(unix_socket(postgres)) as proxy, impatient(through(postgres, proxy), deadline=10) as engine:
        proxy.delay_seconds = 0.05
        values = await asyncio.gather(*[engine.write([SCOPE], increment) for _ in range(20)])
        assert sorted(values) == list(range(1, 21))


async def test_readiness_turns_while_the_database_is_stopped(postgres: PostgresStore) -> None:
    async with impatient(postgres.conninfo) as engine:
        ctx = Context(engine=engine, extents=MemoryExtents(lambda: "x", None), accounts=development_accounts(), inline_limit=0)
        readiness = Readiness(ctx)
        assert (await readiness.state()).is_ready
        with paused(postgres):
            readiness._probed_at = 0
            began = monotonic()
            states = await asyncio.gather(*[readiness.state() for _ in range(5)])
            assert monotonic() - began < PROBE_SECONDS + SLACK
            assert not any(state.is_ready for state in states)
        await until_served(engine)
        readiness._probed_at = 0
        assert (await readiness.state()).is_ready
        readiness.draining = True
        assert not (await readiness.state()).is_ready


async def test_a_read_only_server_is_never_written_to_and_is_left_for_the_primary(postgres: PostgresStore) -> None:
    name = conninfo_to_dict(postgres.conninfo)["dbname"]
    async with impatient(postgres.conninfo) as engine:
        assert await engine.write([SCOPE], increment) == 1
        postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        postgres.break_connections()
        with pytest.raises(EngineUnavailable):
            await engine.write([SCOPE], increment)
        with psycopg.connect(postgres.conninfo, autocommit=True, options="-c default_transaction_read_only=off") as connection:
            connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = off".encode())
        assert await until_served(engine) == 2


async def test_the_first_host_that_takes_writes_is_used(postgres: PostgresStore) -> None:
    """As after a failover: the first host of the connection string is gone."""
    async with (
        running_proxy(unix_socket(postgres)) as gone,
        running_proxy(unix_socket(postgres)) as primary,
        impatient(through(postgres, gone, primary)) as engine,
    ):
        assert await engine.write([SCOPE], increment) == 1
        await gone.stop()
        assert await until_served(engine) >= 2


async def test_hosts_that_answer_nothing_do_not_hide_the_one_that_does(postgres: PostgresStore) -> None:
    async with (
        running_proxy(unix_socket(postgres)) as silent,
        running_proxy(unix_socket(postgres)) as primary,
        impatient(through(postgres, silent, primary)) as engine,
    ):
        assert await engine.write([SCOPE], increment) == 1
        silent.cut()
        silent.drop()  # an attempt to connect takes longer than the deadline
        assert await until_served(engine) >= 2


async def test_a_former_primary_that_comes_back_is_left_for_its_successor() -> None:
    """A primary that was suspended, or cut off, does not know at once that it was replaced, and accepts connections."""
    with running_server() as primary, running_server(primary=primary) as standby:
        async with running_proxy(primary.socket) as former, running_proxy(standby.socket) as successor:
            hosts = f"host=127.0.0.1,127.0.0.1 port={former.port},{successor.port} user=postgres dbname=postgres"
            async with impatient(hosts) as engine:
                await engine.write([SCOPE], increment)
                await asyncio.to_thread(until_replayed, standby, primary)
                await former.stop()
                standby.promote()
                value = await until_served(engine)
                assert value >= 2
                await former.start(former.port)
                successor.cut()
                assert await until_served(engine) > value
                [note] = await engine.read(SCOPE, lambda tx: list(tx.scan(Note, span_of(1))), long=True)
                assert note.value > value


def until_replayed(standby: PostgresServer, primary: PostgresServer) -> None:
    with primary.connect() as one, standby.connect() as other:
        [written] = one.execute("SELECT pg_current_wal_lsn()").fetchone() or [None]
        replayed = "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn"
        while other.execute(replayed, (written,)).fetchone() != (True,):
            time.sleep(0.02)


def test_a_database_whose_locks_exclude_nothing_is_refused(postgres: PostgresStore) -> None:
    with psycopg.connect(postgres.conninfo, autocommit=True) as one, psycopg.connect(postgres.conninfo, autocommit=True) as other:
        one.execute("CREATE TABLE store (name TEXT PRIMARY KEY, value BIGINT NOT NULL)")
        check_locks(one, other, AdvisoryLocks())
        for connection in (one, other):  # functions of the same name that grant everything, found before those of the server
            connection.execute("CREATE SCHEMA IF NOT EXISTS stubs")
            for function in ("pg_try_advisory_xact_lock", "pg_try_advisory_xact_lock_shared"):
                connection.execute(
                    f"CREATE OR REPLACE FUNCTION stubs.{function}(bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'".encode()
                )
            connection.execute("SET search_path = stubs, pg_catalog, public")
        with pytest.raises(EngineUnavailable, match=r"granted twice.*--postgres-locks rows"):
            check_locks(one, other, AdvisoryLocks())


def test_connections_that_share_sessions_or_lose_settings_are_refused(postgres: PostgresStore) -> None:
    """As behind a pooler in transaction mode, and behind one that ignores the settings of a connection."""
    database = Database(postgres.conninfo, 1)
    with database.connect() as one, database.connect() as other:
        check_sessions(one, other)
        with pytest.raises(EngineUnavailable, match="does not keep sessions"):
            check_sessions(one, one)
        other.execute("SET plan_cache_mode = auto")
        with pytest.raises(EngineUnavailable, match="settings"):
            check_sessions(one, other)


def unix_socket(postgres: PostgresStore) -> Path:
    return Path(str(conninfo_to_dict(postgres.conninfo)["host"])) / ".s.PGSQL.5432"


def through(postgres: PostgresStore, *proxies: TcpProxy) -> str:
    parts = conninfo_to_dict(postgres.conninfo)
    hosts, ports = ",".join("127.0.0.1" for _ in proxies), ",".join(str(proxy.port) for proxy in proxies)
    return f"host={hosts} port={ports} user={parts['user']} dbname={parts['dbname']}"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
async def test_a_full_disk_is_reported_as_such_and_reads_go_on(postgres: PostgresStore) -> None:
    """The tables are on a disk of 16 MB, the write-ahead log is elsewhere."""
    name = conninfo_to_dict(postgres.conninfo)["dbname"]
    with small_disk() as disk:
        postgres.execute(f"CREATE TABLESPACE small LOCATION '{disk}'")
        postgres.execute(f"ALTER DATABASE {name} SET default_tablespace = small")
        try:
            async with impatient(postgres.conninfo) as engine:
                stored, refusal = await fill_until_refused(engine)
                found = await engine.read(SCOPE, lambda tx: sum(1 for _ in tx.scan(Note, span_of(1))), long=True)
            assert (refusal.code, found) == (Code.InsufficientStorage, stored)
            assert stored > 20
        finally:
            drop_database(postgres, str(name))


@contextlib.contextmanager
def small_disk() -> Iterator[Path]:
    disk = Path(tempfile.mkdtemp(prefix="verditer-disk-", dir="/tmp"))
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m,mode=0777", "none", str(disk)], check=True)
    try:
        (disk / "space").mkdir(mode=0o700)
        shutil.chown(disk / "space", "nobody")
        yield disk / "space"
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        disk.rmdir()


async def fill_until_refused(engine: Engine) -> tuple[int, StorageError]:
    for number in range(1000):
        body = partial(put_note, name=str(number), data=random.Random(number).randbytes(60_000))
        try:
            await engine.write([(*SCOPE, str(number))], body)
        except StorageError as error:
            return number, error
    raise AssertionError("the disk is not full")


def put_note(tx: Transaction, name: str, data: bytes) -> None:
    tx.put(Note(space=1, name=name, data=data))


def drop_database(postgres: PostgresStore, name: str) -> None:
    with postgres.server.connect() as connection:
        connection.execute(f"DROP DATABASE {name}".encode())
        connection.execute("DROP TABLESPACE small")
