"""Sessions of SMB clients are known to every process: a login in one process ends the former session in another."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.contract.files import ACCOUNT, Files, files_on
from tests.contract.handles import CLIENT, handle_on
from tests.contract.stores import Store
from tests.contract.test_handle_owners import process_on, records
from verditer.core.records.file_open import FileOpen, FileSession
from verditer.services.file.handles.closing import close_handles
from verditer.services.file.handles.processes import owners, sessions

SESSION = CLIENT.session_id


class Server:
    """Ends sessions as the SMB server does: handles first."""

    def __init__(self, files: Files) -> None:
        self.files = files
        self.ended: list[int] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def log_in(self, session_id: int = SESSION) -> bool:
        return await sessions.record_session(self.files.ctx, session_id, ACCOUNT, b"x", lambda: self._end(session_id))

    def _end(self, session_id: int) -> None:
        self.ended.append(session_id)
        self._tasks.append(asyncio.get_running_loop().create_task(self._ended(session_id)))

    async def _ended(self, session_id: int) -> None:
        await close_handles(self.files.ctx, self.files.ctx.handles.all())
        await sessions.forget_session(self.files.ctx, session_id)


@asynccontextmanager
async def two_processes(store: Store) -> AsyncIterator[tuple[Files, Files]]:
    async with files_on(store) as files, process_on(store, 1) as (first, _), process_on(store, 2) as (second, _):
        await files.put("file", b"x")
        yield first, second


async def test_a_login_ends_the_former_session_in_another_process(shared_store: Store) -> None:
    async with two_processes(shared_store) as (first, second):
        server = Server(first)
        assert await server.log_in()
        await handle_on(first, "file")
        found = await sessions.find_session(second.ctx, SESSION)
        assert found is not None
        assert (found.account, found.details) == (ACCOUNT, b"x")
        await sessions.end_former_session(second.ctx, "another", SESSION)
        assert server.ended == []
        await sessions.end_former_session(second.ctx, ACCOUNT, SESSION)
        assert server.ended == [SESSION]
        assert await records(second, FileOpen, FileSession) == []


async def test_an_id_names_one_session(shared_store: Store) -> None:
    async with two_processes(shared_store) as (first, second):
        assert await Server(first).log_in()
        assert not await Server(second).log_in()
        await sessions.forget_session(second.ctx, SESSION)
        assert await sessions.find_session(second.ctx, SESSION) is not None
        await sessions.forget_session(first.ctx, SESSION)
        assert await Server(second).log_in()


async def test_a_session_whose_process_does_not_answer_loses_its_handles(
    shared_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "LOOKS", 2)
    async with files_on(shared_store) as silent, process_on(shared_store, 1) as (files, _):
        await silent.put("file", b"x")
        await Server(silent).log_in()
        await handle_on(silent, "file")
        await sessions.end_former_session(files.ctx, ACCOUNT, SESSION)
        assert await records(files, FileOpen, FileSession) == []


async def test_the_sessions_of_a_process_end_with_it(shared_store: Store) -> None:
    async with files_on(shared_store) as files:
        async with process_on(shared_store, 1) as (stopped, _):
            await Server(stopped).log_in(1)
        assert await records(files, FileSession) == []
        server = Server(files)
        await server.log_in(2)
        (owner,) = await owners.owners(files.ctx)
        await owners.release(files.ctx, owner)
        assert await records(files, FileSession) == []
        await server.log_in(3)  # it finds that it was taken for dead
        assert server.ended == [2]
        assert [one.session_id for one in await records(files, FileSession) if isinstance(one, FileSession)] == [3]
