"""A process that holds handles until it is killed: `python -m tests.contract.holder FOLDER` or a libpq connection string."""

import asyncio
import sys
from pathlib import Path

from tests.contract.files import Files
from tests.contract.handles import DELETE, READ, WRITE, handle_on
from verditer.jobs.handles import HandleMonitor
from verditer.partition.engine import Engine
from verditer.partition.postgres.engine import PostgresEngine
from verditer.partition.sqlite.engine import SqliteEngine
from verditer.services.context import Context
from verditer.services.file.handles import deleting, locking
from verditer.services.file.handles.requests import LockRequest
from verditer.stream.memory import MemoryExtents


async def hold(where: str) -> None:
    engine: Engine = PostgresEngine(where) if "=" in where else SqliteEngine(Path(where))
    await engine.open()
    ctx = Context(engine=engine, extents=MemoryExtents(str), accounts={}, inline_limit=64)
    await HandleMonitor(ctx, number=3, is_only_server="=" not in where, has_workers=True).start()
    files = Files(ctx)
    await handle_on(files, "on-close", DELETE, delete_on_close=True)
    await deleting.set_disposition(ctx, await handle_on(files, "pending", DELETE), delete=True)
    await locking.lock(ctx, await handle_on(files, "locked", READ | WRITE, 0), [LockRequest(0, 1, True)], wait=False)
    print("holding", flush=True)
    await asyncio.Event().wait()


asyncio.run(hold(sys.argv[1]))
