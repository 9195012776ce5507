"""Symbolic and hard links, which only NFS shares have. `file_tree.py` says how a file with several names is stored."""

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.files.names import split_path
from verditer.core.files.share_modes import LOOK
from verditer.core.files.times import GivenTime
from verditer.core.guard import Guard
from verditer.core.limits import MAX_HARD_LINKS, MAX_LINK_TEXT, MAX_METADATA
from verditer.core.names import FilePath, check_metadata
from verditer.core.records.file import NFS, FileEntry, Share
from verditer.partition.engine import Transaction
from verditer.services.context import Context
from verditer.services.file import opens
from verditer.services.file.answers import EntryState
from verditer.services.file.current import Located, locate, require_file
from verditer.services.file.directories import check_parent
from verditer.services.file.files import GetFileProperties, new_content
from verditer.services.file.opens import check_access
from verditer.services.file.properties import EntryProperties, new_properties

SYMBOLIC_LINK_MODE = "0777"


class CreateSymbolicLink(msgspec.Struct, frozen=True, kw_only=True):
    """`link_text` is where the link points to, percent-encoded. It is stored as it is sent and never resolved."""

    link_text: str
    creation_time: GivenTime | None = None
    last_write_time: GivenTime | None = None
    owner: str | None = None
    group: str | None = None
    metadata: dict[str, str] = msgspec.field(default_factory=dict)


class CreateHardLink(msgspec.Struct, frozen=True, kw_only=True):
    """`target_file` is the path of an existing file of the share, from its root."""

    target_file: str


async def create_symbolic_link(ctx: Context, target: FilePath, request: CreateSymbolicLink, guard: Guard) -> EntryState:
    check_metadata(request.metadata, MAX_METADATA)
    _check_length(request.link_text, "link_text")

    def commit(tx: Transaction) -> EntryState:
        located = _free_name(tx, target)
        guard.check(None, tx.now)
        given = EntryProperties(
            creation_time=request.creation_time,
            last_write_time=request.last_write_time,
            mode=SYMBOLIC_LINK_MODE,
            owner=request.owner,
            group=request.group,
        )
        properties = new_properties(tx, located.share, located.parent, given, is_directory=False)
        tick = tx.tick()
        entry = FileEntry(
            tree_id=located.share.id,
            parent_id=located.parent.node_id,
            folded=located.name,
            name=target.names[-1],
            node_id=tick,
            is_directory=False,
            epoch=0,
            etag=tick,
            metadata=request.metadata,
            content_id=tick,
            intervals=new_content(tx, located.share, tick),
            link_text=request.link_text,
            **properties,
        )
        return EntryState(entry=located.tree.put(tx, entry, None), now=tx.now)

    return await opens.write(ctx, [target.scope], commit)


async def get_symbolic_link(ctx: Context, target: FilePath, request: GetFileProperties) -> EntryState:
    def read(tx: Transaction) -> EntryState:
        located, entry = require_file(tx, target, request.snapshot)
        _check_protocol(located.share)
        if entry.link_text is None:
            raise StorageError(Code.ResourceTypeMismatch)
        return EntryState(entry=entry, now=tx.now)

    return await opens.read(ctx, target.scope, read)


async def create_hard_link(ctx: Context, target: FilePath, request: CreateHardLink, guard: Guard) -> EntryState:
    """One more name for an existing file. The lease that the guard checks is the lease of that file."""
    _check_length(request.target_file, "target_file")
    entries = split_path(request.target_file.removeprefix("/"), is_directory=False)
    names, folded = tuple(entry.name for entry in entries), tuple(entry.folded for entry in entries)
    existing = FilePath(target.account, target.share, names, folded)

    def commit(tx: Transaction) -> EntryState:
        located = _free_name(tx, target)
        _, file = require_file(tx, existing)
        guard.check(file, tx.now)
        check_access(tx, file, LOOK)
        if file.link_count >= MAX_HARD_LINKS:
            raise StorageError(Code.InvalidInput, message=f"A file has at most {MAX_HARD_LINKS} hard links.")
        added = located.tree.add_name(tx, file, located.parent.node_id, located.name, target.names[-1])
        return EntryState(entry=added, now=tx.now)

    return await opens.write(ctx, [existing.scope, target.scope], commit)


def _free_name(tx: Transaction, target: FilePath) -> Located:
    """The directory for a new link."""
    located = locate(tx, target)
    _check_protocol(located.share)
    if located.entry is not None:
        raise StorageError(Code.ResourceAlreadyExists)
    check_parent(tx, located)
    return located


def _check_protocol(share: Share) -> None:
    if share.protocols != NFS:
        raise StorageError(Code.InvalidInput, message="Links are supported only in shares with the NFS protocol enabled.")


def _check_length(text: str, field: str) -> None:
    if not text or len(text) > MAX_LINK_TEXT:
        raise StorageError(Code.InvalidHeaderValue, field=field, value=text)
