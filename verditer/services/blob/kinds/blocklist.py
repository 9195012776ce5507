"""Put Block List and Get Block List: staged blocks become a blob.

A commit moves no bytes of large blocks: their extents become part of the blob. The bytes of small blocks, which are in rows, are
gathered into one inline content, or into one new extent that is written before the transaction.
"""

from collections.abc import AsyncIterator
from enum import Enum

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.immutability import Alteration
from verditer.core.limits import MAX_COMMITTED_BLOCKS, MAX_METADATA
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType, Block, StagedBlob
from verditer.core.records.content import Slice
from verditer.core.records.record import span_of
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlockLists, Written
from verditer.services.blob.blobs import discard_staged
from verditer.services.blob.current import current_blob, require_blob, require_block_blob, require_container
from verditer.services.blob.encryption import check_digest, keyed, shown_encryption
from verditer.services.blob.expiry import drop_expired
from verditer.services.blob.history import check_replaceable, new_version, retire_replaced
from verditer.services.blob.kinds.block import NewBlobProperties, block_blob
from verditer.services.blob.new_blob import with_rare_properties
from verditer.services.blob.protection import check_alterable
from verditer.services.blob.tags import index_tags
from verditer.services.blob.tiers import check_tier
from verditer.services.content.layout import (
    blocks_of,
    put_block_runs,
    put_inline,
    put_layout,
    read_inline,
    slices_of,
)
from verditer.services.context import Context
from verditer.stream.digest import Checksums, digest, verify

ATTEMPTS = 5  # a commit is repeated when small blocks were staged again while they were gathered
GATHERED_AT_ONCE = 64  # small blocks read in one transaction: a few megabytes


class Search(Enum):
    """Among which blocks an entry of the list is searched."""

    LATEST = "Latest"
    COMMITTED = "Committed"
    UNCOMMITTED = "Uncommitted"


class PutBlockList(NewBlobProperties, frozen=True, kw_only=True):
    version: str
    blocks: tuple[tuple[Search, bytes], ...]
    document: bytes  # the request body: transactional checksums are of the XML
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class GetBlockList(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None
    block_list_type: str = "committed"


class ListedBlock(msgspec.Struct, frozen=True):
    """A block of the list and where its bytes are: in slices of extents, or at an offset of an inline content."""

    block_id: bytes
    size: int
    slices: tuple[Slice, ...] = ()
    inline: tuple[int, int] | None = None  # (content id, offset)
    key_sha256: bytes | None = None  # its bytes are encrypted under this key


async def put_block_list(ctx: Context, target: BlobName, request: PutBlockList, guard: Guard) -> Written:
    """Make the listed blocks the blob's content, in list order, and discard all other uncommitted blocks."""
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)
    if len(request.blocks) > MAX_COMMITTED_BLOCKS:
        raise StorageError(Code.BlockListTooLong)
    md5, crc64 = digest(request.document)
    verify(Checksums(md5=request.content_md5, crc64=request.content_crc64), md5, crc64)
    ctx = keyed(ctx, request)
    with ctx.activity.begin(ctx.now()) as work:
        gathered: dict[tuple[int, int], Slice] = {}
        for _ in range(ATTEMPTS):

            def commit(tx: Transaction, gathered: dict[tuple[int, int], Slice] = gathered) -> Written | None:
                return _commit(tx, target, request, guard, gathered, ctx.inline_limit)

            written = await work.write(ctx.engine, target.scope, commit)
            if written is not None:
                checksums = {"content_md5": md5} if request.content_md5 is not None else {"content_crc64": crc64}
                return msgspec.structs.replace(written, **checksums).for_version(request.version, md5)
            gathered = await _gather(ctx, target, request)
    raise StorageError(Code.ServerBusy)


def _commit(
    tx: Transaction,
    target: BlobName,
    request: PutBlockList,
    guard: Guard,
    gathered: dict[tuple[int, int], Slice],
    inline_limit: int,
) -> Written | None:
    """None: small blocks have to be gathered into an extent before."""
    container, previous = current_blob(tx, target)
    require_block_blob(previous)
    check_replaceable(tx, container, target, previous, BlobType.BLOCK)
    guard.check(previous, tx.now)
    check_online(previous, tx.now)
    check_alterable(container, previous, Alteration.REPLACE, tx.now)
    blocks = _find(tx, container.id, target.blob, previous, request)
    for block in blocks:
        check_digest(block.key_sha256, request)
    size = sum(block.size for block in blocks)
    inline = size <= inline_limit and all(block.inline or not block.size for block in blocks)
    if not inline and any(block.inline and block.inline not in gathered for block in blocks):
        return None

    drop_expired(tx, container, target)
    tick = tx.tick(previous.etag if previous is not None else 0)
    reused: frozenset[str] = frozenset()
    if inline:
        put_inline(tx, tick, b"".join([_bytes_of(tx, block) for block in blocks]))
    else:
        slices = [part for block in blocks for part in ((gathered[block.inline],) if block.inline else block.slices)]
        put_layout(tx, tick, slices)
        reused = frozenset(part.extent for part in slices)
    put_block_runs(tx, tick, [(block.block_id, block.size) for block in blocks])
    shared = previous is not None and retire_replaced(tx, target, container.history_policy, previous, tick, reused)
    discard_staged(tx, container.id, target.blob, reused)
    blob = block_blob(container.id, target.blob, request, tick, size=size, inline=inline, md5=request.blob_content_md5)
    blob = with_rare_properties(tx, container, target, blob, request)
    check_tier(tx, target, blob)
    index_tags(tx, previous, blob)
    version_id = new_version(container.history_policy, tick)
    tx.put(
        msgspec.structs.replace(
            blob,
            created=previous.created if previous is not None else tick,
            lease=guard.lease_after(previous, tx.now),
            shared=shared and not inline,
            version_id=version_id,
        )
    )
    return Written(etag=tick, version_id=version_id, encryption=shown_encryption(blob))


def _find(tx: Transaction, container_id: int, name: str, previous: Blob | None, request: PutBlockList) -> list[ListedBlock]:
    """The blocks of the list. One missing block makes the whole list invalid."""
    searches: dict[bytes, Search] = {}
    if any(searches.setdefault(block_id, search) is not search for search, block_id in request.blocks):
        raise StorageError(Code.InvalidBlockList)  # a block may occur several times, but always with the same search
    uncommitted = {block.block_id: _staged_block(block) for block in tx.scan(Block, span_of(container_id, name))}
    committed = {block.block_id: block for block in _committed_blocks(tx, previous)} if previous is not None else {}
    lists = {
        Search.LATEST: committed | uncommitted,
        Search.COMMITTED: committed,
        Search.UNCOMMITTED: uncommitted,
    }
    blocks = [lists[search].get(block_id) for search, block_id in request.blocks]
    if None in blocks:
        raise StorageError(Code.InvalidBlockList)
    return [block for block in blocks if block is not None]


def _staged_block(block: Block) -> ListedBlock:
    if block.extent is None:
        return ListedBlock(block.block_id, block.size, inline=(block.content_id, 0))
    return ListedBlock(block.block_id, block.size, (Slice(block.extent, 0, block.size),), key_sha256=block.key_sha256)


def _committed_blocks(tx: Transaction, blob: Blob) -> list[ListedBlock]:
    listed: list[ListedBlock] = []
    blocks = blocks_of(tx, blob.content_id)
    key = blob.rare.key_sha256 if blob.rare is not None else None
    slices = iter(slices_of(tx, blob.content_id, 0, blob.size) if blocks and blob.size and not blob.inline else ())
    position = 0
    for block_id, size in blocks:
        if blob.inline:
            listed.append(ListedBlock(block_id, size, inline=(blob.content_id, position)))
        else:
            listed.append(ListedBlock(block_id, size, (next(slices),), key_sha256=key))  # a commit writes one slice per block
        position += size
    return listed


def _bytes_of(tx: Transaction, block: ListedBlock) -> bytes:
    if block.inline is None:
        return b""
    content_id, offset = block.inline
    return read_inline(tx, content_id)[offset : offset + block.size]


async def _gather(ctx: Context, target: BlobName, request: PutBlockList) -> dict[tuple[int, int], Slice]:
    """Write the bytes of all small blocks of the list into one extent. Durable before any record names it."""

    def find(tx: Transaction) -> list[ListedBlock]:
        container, previous = current_blob(tx, target)
        return _find(tx, container.id, target.blob, previous, request)

    wanted = {block.inline: block for block in await ctx.engine.read(target.scope, find, long=True) if block.inline}
    gathered: dict[tuple[int, int], Slice] = {}
    writer = ctx.extents.new()
    position = 0
    try:
        async for block, data in _small_bytes(ctx, target, list(wanted.values())):
            assert block.inline is not None
            gathered[block.inline] = Slice(writer.id, position, block.size)
            position += block.size
            await writer.write(data)
        await writer.commit()
    except BaseException:
        await writer.abort()
        raise
    return gathered


async def _small_bytes(ctx: Context, target: BlobName, blocks: list[ListedBlock]) -> AsyncIterator[tuple[ListedBlock, bytes]]:
    """A block that was staged again meanwhile is left out. The commit notices, because its content has another id."""
    for first in range(0, len(blocks), GATHERED_AT_ONCE):
        some = blocks[first : first + GATHERED_AT_ONCE]

        def fetch(tx: Transaction, some: list[ListedBlock] = some) -> list[bytes]:
            return [_bytes_of(tx, block) for block in some]

        for block, data in zip(some, await ctx.engine.read(target.scope, fetch, long=True), strict=True):
            if len(data) == block.size:
                yield block, data


async def get_block_list(ctx: Context, target: BlobName, request: GetBlockList, guard: Guard) -> BlockLists:
    def look(tx: Transaction) -> BlockLists:
        container = require_container(tx, target)
        if request.snapshot is None and request.version_id is None:
            _, blob = current_blob(tx, target)
            staged = tx.get(StagedBlob, container.id, target.blob)
        else:
            blob, staged = require_blob(tx, target, request.snapshot, request.version_id), None
        if blob is None and staged is None:
            raise StorageError(Code.BlobNotFound)
        require_block_blob(blob)
        guard.check(blob, tx.now)
        kind = request.block_list_type
        waiting = tx.scan(Block, span_of(container.id, target.blob)) if staged is not None else iter(())
        return BlockLists(
            blob=blob,
            committed=(blocks_of(tx, blob.content_id) if blob is not None else []) if kind != "uncommitted" else None,
            uncommitted=[(block.block_id, block.size) for block in waiting] if kind != "committed" else None,
        )

    return await ctx.engine.read(target.scope, look, long=True)
