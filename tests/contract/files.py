"""The File service without a front end: a context on a store, and short forms of the operations that tests call."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.contract.stores import Store
from verditer.core.files.names import split_path
from verditer.core.files.share_modes import FileAccess
from verditer.core.guard import FILE_READ, FILE_WRITE, NO_GUARD, SHARE_WRITE, Guard
from verditer.core.names import FilePath, ShareName
from verditer.core.records.file import FileEntry
from verditer.core.records.file_open import FileOpen, PendingDelete
from verditer.core.records.record import Record
from verditer.services.content.reading import whole_body
from verditer.services.context import Context
from verditer.services.copying.sources import FileSource
from verditer.services.file import directories, files, links, listing, ranges, reading, renaming, shares, snapshots
from verditer.services.file.copying.copy import copy_file
from verditer.services.file.copying.put_copy import CopyFile
from verditer.stream.memory import MemoryExtents

ACCOUNT, SHARE = "account", "share"
READ, WRITE = Guard(rule=FILE_READ), Guard(rule=FILE_WRITE)


class Body:
    """A request body that has arrived."""

    ended = True

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.length: int | None = len(data)

    async def read(self) -> bytes:
        data, self._data = self._data, b""
        return data


def path(text: str) -> FilePath:
    """`a/b` is a file; `a/b/` and the empty text are directories."""
    entries = split_path(text, is_directory=not text or text.endswith("/"))
    return FilePath(ACCOUNT, SHARE, tuple(entry.name for entry in entries), tuple(entry.folded for entry in entries))


class Files:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self._handles = itertools.count(1)

    async def make_directory(self, name: str) -> None:
        await directories.create_directory(self.ctx, path(name), directories.CreateDirectory())

    async def put(self, name: str, data: bytes = b"", size: int | None = None) -> FileEntry:
        request = files.CreateFile(size=len(data) if size is None else size)
        return (await files.create_file(self.ctx, path(name), request, WRITE, Body(data))).entry

    async def write(self, name: str, start: int, data: bytes, guard: Guard = WRITE) -> FileEntry:
        request = ranges.PutRange(range=(start, start + len(data) - 1))
        return (await ranges.put_range(self.ctx, path(name), request, guard, Body(data))).entry

    async def get(self, name: str, snapshot: int | None = None) -> bytes:
        read = await reading.get_file(self.ctx, path(name), reading.GetFile(snapshot=snapshot), READ)
        return await whole_body(read.body)

    async def entry(self, name: str) -> FileEntry:
        return (await files.get_file_properties(self.ctx, path(name), files.GetFileProperties(), READ)).entry

    async def delete(self, name: str) -> None:
        if name.endswith("/"):
            await directories.delete_directory(self.ctx, path(name))
        else:
            await files.delete_file(self.ctx, path(name), WRITE)

    async def rename(self, source: str, target: str, *, replace: bool = False) -> None:
        call = renaming.rename_directory if source.endswith("/") else renaming.rename_file
        await call(self.ctx, path(target), renaming.Rename(replace_existing=replace), path(source))

    async def copy(self, source: str, target: str, snapshot: int | None = None) -> None:
        """Copy File, from a file of the same account."""
        found = FileSource(path=path(source), snapshot=snapshot, guard=NO_GUARD, shown=source, same_account=True)
        await copy_file(self.ctx, path(target), CopyFile(), WRITE, found)

    async def link(self, name: str, file: str) -> FileEntry:
        """Create a hard link."""
        return (await links.create_hard_link(self.ctx, path(name), links.CreateHardLink(target_file=file), WRITE)).entry

    async def link_text(self, name: str, snapshot: int | None = None) -> str | None:
        request = files.GetFileProperties(snapshot=snapshot)
        return (await links.get_symbolic_link(self.ctx, path(name), request)).entry.link_text

    async def symbolic_link(self, name: str, text: str) -> FileEntry:
        request = links.CreateSymbolicLink(link_text=text)
        return (await links.create_symbolic_link(self.ctx, path(name), request, WRITE)).entry

    async def names(self, directory: str = "", snapshot: int | None = None, prefix: str = "") -> list[str]:
        page = await listing.list_entries(self.ctx, path(directory), listing.ListEntries(snapshot=snapshot, prefix=prefix))
        return [entry.name for entry in page.entries]

    async def snapshot(self) -> int:
        return (await snapshots.snapshot_share(self.ctx, ShareName(ACCOUNT, SHARE), snapshots.SnapshotShare())).snapshot

    async def delete_snapshot(self, snapshot: int) -> None:
        request = shares.DeleteShare(snapshot=snapshot)
        await shares.delete_share(self.ctx, ShareName(ACCOUNT, SHARE), request, Guard(rule=SHARE_WRITE))

    async def open(self, name: str, access: FileAccess, share_mode: FileAccess, *, delete_pending: bool = False) -> FileOpen:
        """Put a handle into the open table, as an SMB server does."""
        entry = await self.entry(name)
        handle = FileOpen(
            share_id=entry.tree_id,
            node_id=entry.node_id,
            handle_id=next(self._handles),
            account=ACCOUNT,
            share=SHARE,
            owner=self.ctx.handles.owner,
            access=int(access),
            share_mode=int(share_mode),
            path=path(name).names,
            folded_path=path(name).folded,
            parent_id=entry.parent_id,
            session_id=1,
            client="127.0.0.1:1",
            opened=self.ctx.now(),
            delete_pending=delete_pending,
        )
        records: list[Record] = [handle]
        if delete_pending:
            records.append(PendingDelete(share_id=entry.tree_id, parent_id=entry.parent_id, node_id=entry.node_id))
        await self.ctx.engine.write([path(name).scope], lambda tx: tx.put(*records))
        return handle


@asynccontextmanager
async def files_on(store: Store, protocols: str = "SMB") -> AsyncIterator[Files]:
    """A share on a store, with extents in memory."""
    engine = store.build()
    await engine.open()
    numbers = itertools.count()
    extents = MemoryExtents(lambda: f"{engine.now():016x}{next(numbers):016x}")
    ctx = Context(engine=engine, extents=extents, accounts={}, inline_limit=64)
    try:
        await shares.create_share(ctx, ShareName(ACCOUNT, SHARE), shares.CreateShare(protocols=protocols))
        yield Files(ctx)
    finally:
        await engine.close()
