"""Random opens, locks, deletes and REST requests against a model of plain lists, and races between processes.

`VERDITER_SEED` replays a run.
"""

import asyncio
import os
import random
from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

from tests.contract.files import Files, files_on, path
from tests.contract.handles import DELETE, READ, WRITE, opened
from tests.contract.stores import Store
from verditer.core.errors import Code, StorageError
from verditer.services.context import Context
from verditer.services.file.handles import closing, data, deleting, locking, renaming
from verditer.services.file.handles.handle import Handle
from verditer.services.file.handles.requests import ByteRange, CreateDisposition, LockRequest
from verditer.stream.memory import MemoryExtents

T = TypeVar("T")
STEPS = 150
NAMES = ("a", "b")
MASKS = {1: int(READ), 2: int(WRITE), 4: int(DELETE)}


@dataclass(eq=False)
class ModelOpen:
    name: str
    access: int
    share_mode: int
    deletes_on_close: bool
    locks: list[tuple[int, int, bool]] = field(default_factory=list)


class Model:
    """Files by name, and who has them open."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.pending: set[str] = set()
        self.opens: list[ModelOpen] = []

    def of(self, name: str) -> list[ModelOpen]:
        return [one for one in self.opens if one.name == name]

    def open(self, wanted: ModelOpen, disposition: CreateDisposition) -> Code | None:
        exists = wanted.name in self.files
        if wanted.name in self.pending:
            return Code.SMBDeletePending
        if exists and disposition is CreateDisposition.CREATE:
            return Code.ResourceAlreadyExists
        if not exists and disposition in (CreateDisposition.OPEN, CreateDisposition.OVERWRITE):
            return Code.ResourceNotFound
        overwrites = exists and disposition is CreateDisposition.OVERWRITE
        access = wanted.access | (2 if overwrites else 0)
        for one in self.of(wanted.name):
            if access and one.access and (access & ~one.share_mode or one.access & ~wanted.share_mode):
                return Code.SharingViolation
        if overwrites or not exists:
            self.files[wanted.name] = bytearray()
        self.opens.append(wanted)
        return None

    def close(self, one: ModelOpen) -> None:
        self.opens.remove(one)
        if one.deletes_on_close:
            self.pending.add(one.name)
        if one.name in self.pending and not self.of(one.name):
            self.pending.discard(one.name)
            del self.files[one.name]

    def lock(self, one: ModelOpen, start: int, length: int, exclusive: bool) -> Code | None:
        for other in self.of(one.name):
            for first, size, is_exclusive in other.locks:
                overlaps = start < first + size and first < start + length
                if overlaps and (exclusive or (is_exclusive and other is not one)):
                    return Code.ByteRangeNotGranted
        one.locks.append((start, length, exclusive))
        return None

    def write(self, one: ModelOpen, start: int, content: bytes) -> Code | None:
        for other in self.of(one.name):
            for first, size, exclusive in other.locks:
                if start < first + size and first < start + len(content) and not (exclusive and other is one):
                    return Code.FileLockConflict
        file = self.files[one.name]
        file.extend(bytes(max(0, start + len(content) - len(file))))
        file[start : start + len(content)] = content
        return None

    def rest(self, name: str, need: int, *, alone: bool = False) -> Code | None:
        """What a REST request with this access is told."""
        if name not in self.files:
            return Code.ResourceNotFound
        if name in self.pending:
            return Code.SMBDeletePending
        if (alone and self.of(name)) or any(one.access and need & ~one.share_mode for one in self.of(name)):
            return Code.SharingViolation
        return None


class Run:
    def __init__(self, files: Files, chance: random.Random) -> None:
        self.files = files
        self.ctx = files.ctx
        self.chance = chance
        self.model = Model()
        self.handles: list[tuple[Handle, ModelOpen]] = []

    async def step(self) -> None:
        actions = [self.open, self.open, self.get, self.delete, self.names]
        if self.handles:
            actions += [self.close, self.close, self.mark, self.lock, self.unlock, self.write, self.write]
        await self.chance.choice(actions)()

    async def expect(self, expected: Code | None, call: Awaitable[T]) -> T | None:
        result, refusal = None, None
        try:
            result = await call
        except StorageError as error:
            refusal = error.code
        assert refusal is expected
        return result

    def some(self) -> tuple[Handle, ModelOpen]:
        return self.chance.choice(self.handles)

    async def open(self) -> None:
        access, share_mode = self.chance.choice([1, 2, 3, 4, 5, 7, 0]), self.chance.choice([7, 7, 7, 3, 1, 0, 5])
        deletes = bool(access & 4) and self.chance.random() < 0.3
        wanted = ModelOpen(self.chance.choice(NAMES), access, share_mode, deletes)
        disposition = self.chance.choice(
            [CreateDisposition.OPEN, CreateDisposition.OPEN_IF, CreateDisposition.CREATE, CreateDisposition.OVERWRITE]
        )
        mask = sum(bits for bit, bits in MASKS.items() if access & bit) or 0x80
        call = opened(self.files, wanted.name, mask, share_mode, disposition, delete_on_close=deletes)
        found = await self.expect(self.model.open(wanted, disposition), call)
        if found is not None:
            self.handles.append((found.handle, wanted))

    async def close(self) -> None:
        handle, one = self.some()
        self.handles.remove((handle, one))
        self.model.close(one)
        await closing.close_handle(self.ctx, handle)

    async def mark(self) -> None:
        handle, one = self.some()
        delete = self.chance.random() < 0.6
        if not one.access & 4:
            await self.expect(Code.AccessNotGranted, deleting.set_disposition(self.ctx, handle, delete=delete))
            return
        (self.model.pending.add if delete else self.model.pending.discard)(one.name)
        await deleting.set_disposition(self.ctx, handle, delete=delete)

    async def lock(self) -> None:
        handle, one = self.some()
        start, length, exclusive = self.chance.randrange(20), self.chance.randrange(1, 10), self.chance.random() < 0.5
        wanted = LockRequest(start, length, exclusive)
        expected = self.model.lock(one, start, length, exclusive)
        await self.expect(expected, locking.lock(self.ctx, handle, [wanted], wait=False))

    async def unlock(self) -> None:
        handle, one = self.some()
        if one.locks:
            start, length, _ = self.chance.choice(one.locks)
            held = [lock for lock in one.locks if lock[:2] == (start, length)]
            one.locks.remove(next((lock for lock in held if lock[2]), held[0]))
            await locking.unlock(self.ctx, handle, [ByteRange(start, length)])
        else:
            await self.expect(Code.ByteRangeNotLocked, locking.unlock(self.ctx, handle, [ByteRange(0, 1)]))

    async def write(self) -> None:
        handle, one = self.some()
        start, content = self.chance.randrange(30), self.chance.randbytes(self.chance.randrange(1, 100))
        expected = self.model.write(one, start, content) if one.access & 2 else Code.AccessNotGranted
        await self.expect(expected, data.write(self.ctx, handle, start, content))

    async def get(self) -> None:
        name = self.chance.choice(NAMES)
        expected = self.model.rest(name, 1)
        size = len(self.model.files.get(name, b""))
        locks = [lock for one in self.model.of(name) for lock in one.locks]
        if expected is None and any(exclusive and start < size for start, _, exclusive in locks):
            expected = Code.FileLockConflict
        found = await self.expect(expected, self.files.get(name))
        if expected is None:
            assert found == bytes(self.model.files[name])

    async def delete(self) -> None:
        name = self.chance.choice(NAMES)
        expected = self.model.rest(name, 4, alone=True)
        await self.expect(expected, self.files.delete(name))
        if expected is None:
            del self.model.files[name]

    async def names(self) -> None:
        assert await self.files.names() == sorted(set(self.model.files) - self.model.pending)


async def test_random_handles_agree_with_the_model(store: Store) -> None:
    seed = int(os.environ.get("VERDITER_SEED") or random.randrange(1 << 32))
    print(f"VERDITER_SEED={seed}")  # shown when the test fails
    async with files_on(store) as files:
        run = Run(files, random.Random(seed))
        for _ in range(STEPS):
            await run.step()
        for handle, one in run.handles:
            run.model.close(one)
            await closing.close_handle(files.ctx, handle)
        run.handles.clear()
        await run.names()
        for name, content in run.model.files.items():
            assert await files.get(name) == bytes(content)


async def _processes(store: Store, files: Files) -> list[Files]:
    """The process of `files`, and another one on the same store where that is possible."""
    if not store.shared:
        return [files, files]
    engine = store.build()
    await engine.open()
    return [files, Files(Context(engine=engine, extents=MemoryExtents(str), accounts={}, inline_limit=64))]


@pytest.mark.parametrize("disposition", [CreateDisposition.CREATE, CreateDisposition.OPEN_IF])
async def test_of_many_who_create_one_name_one_does(store: Store, disposition: CreateDisposition) -> None:
    async with files_on(store) as here:
        both = await _processes(store, here)
        racers = [opened(both[n % 2], "file", int(WRITE), 7, disposition) for n in range(8)]
        found = await asyncio.gather(*racers, return_exceptions=True)
        created = [one for one in found if not isinstance(one, BaseException) and one.action.name == "CREATED"]
        assert len(created) == 1
        if disposition is CreateDisposition.OPEN_IF:
            assert not any(isinstance(one, BaseException) for one in found)
        if both[1] is not here:
            await both[1].ctx.engine.close()


async def test_of_many_who_want_a_file_for_themselves_or_a_lock_one_gets_it(store: Store) -> None:
    async with files_on(store) as here:
        await here.put("file", b"x")
        both = await _processes(store, here)
        for _ in range(3):
            found = await asyncio.gather(*[opened(both[n % 2], "file", int(WRITE), 0) for n in range(6)], return_exceptions=True)
            winners = [one for one in found if not isinstance(one, BaseException)]
            assert len(winners) == 1
            assert {one.code for one in found if isinstance(one, StorageError)} == {Code.SharingViolation}
            owner = next(files for files in both if files.ctx.handles.find(winners[0].handle.handle_id) is not None)
            await closing.close_handle(owner.ctx, winners[0].handle)
        handles = [(files, (await opened(files, "file", int(WRITE))).handle) for files in (both * 3)]
        wanted = [LockRequest(0, 4, True)]
        granted = await asyncio.gather(
            *[locking.lock(files.ctx, handle, wanted, wait=False) for files, handle in handles], return_exceptions=True
        )
        assert sum(one is None for one in granted) == 1
        if both[1] is not here:
            await both[1].ctx.engine.close()


async def test_locks_that_are_waited_for_count_without_a_gap(store: Store) -> None:
    """Clients of two processes add one to a number in a file, each under a lock that it waits for."""
    async with files_on(store) as here:
        await here.put("file", b"00000000")
        both = await _processes(store, here)

        async def add(files: Files) -> None:
            handle = (await opened(files, "file", READ | WRITE)).handle
            await locking.lock(files.ctx, handle, [LockRequest(0, 8, True)], wait=True)
            number = int(await data.read(files.ctx, handle, 0, 8))
            await data.write(files.ctx, handle, 0, b"%08d" % (number + 1))
            await locking.unlock(files.ctx, handle, [ByteRange(0, 8)])
            await closing.close_handle(files.ctx, handle)

        async with asyncio.timeout(60):
            await asyncio.gather(*[add(both[n % 2]) for n in range(16)])
        assert await here.get("file") == b"00000016"
        if both[1] is not here:
            await both[1].ctx.engine.close()


async def test_a_rename_and_writes_through_handles_do_not_lose_each_other(store: Store) -> None:
    async with files_on(store) as here:
        await here.put("a", b"")
        both = await _processes(store, here)
        mover = (await opened(here, "a", int(DELETE))).handle
        writers = [(files, (await opened(files, "a", int(WRITE))).handle) for files in both]

        async def move() -> None:
            for number in range(10):
                await renaming.rename(here.ctx, mover, path("ab"[number % 2 - 1]), replace_existing=False)

        async def write(files: Files, handle: Handle, first: int) -> None:
            for number in range(20):
                await data.write(files.ctx, handle, first + 2 * number, b"x")

        async with asyncio.timeout(60):
            await asyncio.gather(move(), *[write(files, handle, n) for n, (files, handle) in enumerate(writers)])
        name = (await here.names())[0]
        for files, handle in [*writers, (here, mover)]:
            await closing.close_handle(files.ctx, handle)
        assert await here.get(name) == b"x" * 40
        if both[1] is not here:
            await both[1].ctx.engine.close()
