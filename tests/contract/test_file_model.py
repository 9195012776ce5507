"""Random operations on a share against a model of plain dictionaries: trees, ranges, copies, snapshots, soft delete, collector.

The collector, with its sweep of extents, runs after every step; then the whole share and every snapshot are compared with the
model. Bodies of more than 64 bytes are extents, others are inline. At the end everything is deleted, and neither a record of the
share nor an extent may be left. `VERDITER_SEED` repeats a run.
"""

import copy
import os
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from tests.contract.files import ACCOUNT, SHARE, Files, files_on, path
from tests.contract.stores import Store
from verditer.core.dates import seconds
from verditer.core.errors import StorageError
from verditer.core.guard import SHARE_READ, SHARE_WRITE, Guard
from verditer.core.names import ShareName
from verditer.core.records.content import (
    ClosedContentView,
    ContentEnd,
    ContentView,
    FormerInterval,
    InlineInterval,
    Interval,
    SharedContent,
)
from verditer.core.records.file import DeletedShare, FileEntry, FilePermission, FormerFileEntry, ShareSnapshot, ShareUsage
from verditer.core.records.record import EVERY_KEY, Record
from verditer.core.records.settings import SettingsChange
from verditer.jobs import pacing
from verditer.jobs.collect import Collector
from verditer.partition.engine import Transaction
from verditer.services.content.intervals import CURRENT_VIEW
from verditer.services.file import shares
from verditer.services.settings import change_settings

STEPS = 120
NAMES = ("a", "B", "c")
MAX_BYTES = 300

R = TypeVar("R", bound=Record)
Tree = dict[str, "Tree | bytes"]
"""A directory: folded name → directory or content."""


def entry_at(tree: Tree, path: str) -> "Tree | bytes | None":
    found: Tree | bytes | None = tree
    for name in filter(None, path.upper().split("/")):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def parent_of(tree: Tree, path: str) -> tuple["Tree | bytes | None", str]:
    head, _, name = path.upper().rstrip("/").rpartition("/")
    return entry_at(tree, head), name


def bytes_in(tree: Tree) -> int:
    return sum(bytes_in(found) if isinstance(found, dict) else len(found) for found in tree.values())


class Run:
    def __init__(self, files: Files, chance: random.Random) -> None:
        self.files = files
        self.chance = chance
        self.tree: Tree = {}
        self.snapshots: dict[int, Tree] = {}
        self.collector = Collector(files.ctx, 3600)
        self.operations: list[Callable[[], Awaitable[None]]] = [
            *[self.make_directory, self.put, self.put, self.write, self.write, self.rename, self.delete],
            *[self.copy, self.snapshot, self.delete_snapshot, self.delete_and_restore],
        ]

    def path(self) -> str:
        return "/".join(self.chance.choice(NAMES) for _ in range(self.chance.randint(1, 3)))

    async def attempt(self, call: Awaitable[object]) -> bool:
        try:
            await call
        except StorageError:
            return False
        return True

    async def make_directory(self) -> None:
        path = self.path()
        parent, name = parent_of(self.tree, path)
        allowed = isinstance(parent, dict) and name not in parent
        assert await self.attempt(self.files.make_directory(f"{path}/")) is allowed
        if isinstance(parent, dict) and allowed:
            parent[name] = {}

    async def put(self) -> None:
        path, data = self.path(), self.chance.randbytes(self.chance.randint(0, MAX_BYTES))
        parent, name = parent_of(self.tree, path)
        allowed = isinstance(parent, dict) and not isinstance(parent.get(name), dict)
        assert await self.attempt(self.files.put(path, data)) is allowed
        if isinstance(parent, dict) and allowed:
            parent[name] = data

    async def write(self) -> None:
        path, start, data = self.path(), self.chance.randint(0, MAX_BYTES), self.chance.randbytes(self.chance.randint(1, 150))
        parent, name = parent_of(self.tree, path)
        before = parent.get(name) if isinstance(parent, dict) else None
        allowed = isinstance(before, bytes) and start + len(data) <= len(before)
        assert await self.attempt(self.files.write(path, start, data)) is allowed
        if isinstance(parent, dict) and isinstance(before, bytes) and allowed:
            parent[name] = before[:start] + data + before[start + len(data) :]

    async def rename(self) -> None:
        source, target, replace = self.path(), self.path(), self.chance.random() < 0.5
        moved = entry_at(self.tree, source)
        slash = "/" if isinstance(moved, dict) else ""
        parent, name = parent_of(self.tree, target)
        replaced = parent.get(name) if isinstance(parent, dict) else None
        into_itself = target.upper().startswith(f"{source.upper()}/")
        same = target.upper() == source.upper()
        free = replaced is None or same or (replace and isinstance(replaced, bytes))
        allowed = moved is not None and isinstance(parent, dict) and free and not into_itself
        assert await self.attempt(self.files.rename(source + slash, target + slash, replace=replace)) is allowed
        if isinstance(parent, dict) and moved is not None and allowed:
            home, old = parent_of(self.tree, source)
            assert isinstance(home, dict)
            del home[old]
            parent[name] = moved

    async def copy(self) -> None:
        """From the share as it is, or as a snapshot saw it."""
        source, target, snapshot = self.path(), self.path(), self.chance.choice([None, *self.snapshots])
        found = entry_at(self.tree if snapshot is None else self.snapshots[snapshot], source)
        parent, name = parent_of(self.tree, target)
        free = isinstance(parent, dict) and not isinstance(parent.get(name), dict)
        allowed = isinstance(found, bytes) and free
        assert await self.attempt(self.files.copy(source, target, snapshot)) is allowed
        if isinstance(parent, dict) and isinstance(found, bytes) and allowed:
            parent[name] = found

    async def delete(self) -> None:
        path = self.path()
        parent, name = parent_of(self.tree, path)
        found = parent.get(name) if isinstance(parent, dict) else None
        allowed = not found if isinstance(found, dict) else found is not None
        slash = "/" if isinstance(found, dict) else ""
        assert await self.attempt(self.files.delete(path + slash)) is allowed
        if isinstance(parent, dict) and allowed:
            del parent[name]

    async def snapshot(self) -> None:
        self.snapshots[await self.files.snapshot()] = copy.deepcopy(self.tree)

    async def delete_snapshot(self) -> None:
        if self.snapshots:
            gone = self.chance.choice(list(self.snapshots))
            del self.snapshots[gone]
            await self.files.delete_snapshot(gone)

    async def delete_and_restore(self) -> None:
        """Soft delete is on from here to the restoration; the collector runs in between."""
        ctx, target = self.files.ctx, ShareName(ACCOUNT, SHARE)
        await change_settings(ctx, ACCOUNT, SettingsChange(share_soft_delete_days=3))
        await self.delete_share()
        await self.collect()
        [deleted] = await self.stored(DeletedShare)
        request = shares.RestoreShare(deleted_name=SHARE, deleted_version=deleted.version)
        await shares.restore_share(ctx, target, request)
        await change_settings(ctx, ACCOUNT, SettingsChange(share_soft_delete_days=0))

    async def collect(self) -> None:
        await self.files.ctx.engine.move_clock(seconds(25 * 3600))
        await self.collector.collect()

    async def check(self) -> None:
        statistics = await shares.get_share_statistics(self.files.ctx, ShareName(ACCOUNT, SHARE), Guard(rule=SHARE_READ))
        assert statistics.usage_bytes == bytes_in(self.tree)
        await self.check_directory("", self.tree, None)
        for snapshot, tree in self.snapshots.items():
            await self.check_directory("", tree, snapshot)

    async def check_directory(self, path: str, expected: Tree, snapshot: int | None) -> None:
        names = await self.files.names(path, snapshot)
        assert sorted(name.upper() for name in names) == sorted(expected), (path, snapshot)
        for name, found in expected.items():
            if isinstance(found, dict):
                await self.check_directory(f"{path}{name}/", found, snapshot)
            else:
                assert await self.files.get(f"{path}{name}", snapshot) == found, (path, name, snapshot)

    async def delete_share(self) -> None:
        request = shares.DeleteShare(delete_snapshots="include")
        await shares.delete_share(self.files.ctx, ShareName(ACCOUNT, SHARE), request, Guard(rule=SHARE_WRITE))

    async def check_nothing_is_left(self) -> None:
        for _ in range(4):
            await self.collect()
        kinds: tuple[type[Record], ...] = (FileEntry, FormerFileEntry, ShareSnapshot, ShareUsage, FilePermission)
        kinds += (Interval, FormerInterval, InlineInterval, ContentView, ClosedContentView, ContentEnd, SharedContent)
        for kind in kinds:
            assert await self.stored(kind) == []
        assert [extent async for extent in self.files.ctx.extents.list()] == []

    async def stored(self, kind: type[R]) -> list[R]:
        return await self.files.ctx.engine.read((), lambda tx: list(tx.scan(kind, EVERY_KEY)), long=True)


async def test_a_share_agrees_with_its_model(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    # contract G3, F1
    monkeypatch.setattr(pacing, "PAUSE_FACTOR", 0.0)
    seed = int(os.environ.get("VERDITER_SEED") or random.randrange(1 << 32))
    print(f"VERDITER_SEED={seed}")  # shown when the test fails
    async with files_on(store) as files:
        run = Run(files, random.Random(seed))
        for _ in range(STEPS):
            await run.chance.choice(run.operations)()
            await run.collect()
            await run.check()
        await run.delete_share()
        await run.check_nothing_is_left()


async def test_a_soft_deleted_share_leaves_nothing_when_its_retention_ends(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "PAUSE_FACTOR", 0.0)
    async with files_on(store) as files:
        run = Run(files, random.Random(0))
        await change_settings(files.ctx, ACCOUNT, SettingsChange(share_soft_delete_days=3))
        await files.put("a", b"x" * 200)
        await files.snapshot()
        await files.put("a", b"y" * 200)
        await run.delete_share()
        await run.collect()  # a day later
        assert await run.stored(FileEntry) != []
        assert await run.stored(FormerFileEntry) != []
        await run.check_nothing_is_left()


def putting(record: Record) -> Callable[[Transaction], None]:
    return lambda tx: tx.put(record)


@pytest.mark.parametrize("has_view", [False, True])
async def test_a_file_keeps_its_content_while_it_lives_and_no_longer(
    store: Store, monkeypatch: pytest.MonkeyPatch, has_view: bool
) -> None:
    """`has_view`: the content has a view of its own, as in stores that were written before step 8 of the schema."""
    monkeypatch.setattr(pacing, "PAUSE_FACTOR", 0.0)
    async with files_on(store) as files:
        run = Run(files, random.Random(0))
        for name in ("kept", "deleted"):
            entry = await files.put(name, b"x" * 200)
            view = ContentView(content_id=entry.content_id, view=CURRENT_VIEW, scope=path(name).scope, group=entry.tree_id)
            if has_view:
                await files.ctx.engine.write([view.scope], putting(view))
        taken = await files.snapshot()
        for name in ("kept", "deleted"):
            await files.write(name, 100, b"y" * 50)
        await files.delete("deleted")
        await run.collect()
        for name in ("kept", "deleted"):
            assert await files.get(name, taken) == b"x" * 200
        await files.delete_snapshot(taken)
        await run.collect()
        assert await files.get("kept") == b"x" * 100 + b"y" * 50 + b"x" * 50
        assert {row.content_id for row in await run.stored(Interval)} == {(await files.entry("kept")).content_id}
        await run.delete_share()
        await run.check_nothing_is_left()
