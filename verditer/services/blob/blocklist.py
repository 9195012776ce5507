"""Put Block List and Get Block List: staged blocks become a blob.

A commit names blocks; it moves no bytes of large ones, whose extents simply pass to the blob. Small blocks, which were kept
beside their records, are gathered: into one small content, or into one new extent that is written before the transaction.
"""

from collections.abc import AsyncIterator
from enum import Enum

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.guard import Guard
from verditer.core.limits import MAX_COMMITTED_BLOCKS, MAX_METADATA
from verditer.core.names import BlobName, check_blob_name, check_metadata
from verditer.core.records.blob import Blob, BlobType, Block, StagedBlob
from verditer.core.records.content import Slice
from verditer.core.records.record import span_of
from verditer.core.tiers import check_online
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlockLists, Written
from verditer.services.blob.blobs import discard_staged
from verditer.services.blob.block import BlobHeaders, block_blob
from verditer.services.blob.content import (
    blocks_of,
    inline_bytes,
    put_block_runs,
    put_inline,
    put_layout,
    slices_of,
)
from verditer.services.blob.current import current_blob, require_blob, require_block_blob, require_container
from verditer.services.blob.history import check_replaceable, new_version, retire_replaced
from verditer.services.blob.receiving import as_told
from verditer.services.blob.tags import index_tags
from verditer.services.blob.tiers import check_tier
from verditer.services.context import Context
from verditer.stream.digest import Checksums, digest, verify

ATTEMPTS = 5  # a commit starts again when its small blocks were staged anew while they were gathered
GATHERED_AT_ONCE = 64  # small blocks read in one go: a few megabytes


class Search(Enum):
    """Where a block of the list is looked for."""

    LATEST = "Latest"
    COMMITTED = "Committed"
    UNCOMMITTED = "Uncommitted"


class PutBlockList(BlobHeaders, frozen=True, kw_only=True):
    version: str
    blocks: tuple[tuple[Search, bytes], ...]
    document: bytes  # the request body: transactional checksums are of the XML
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class GetBlockList(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None
    block_list_type: str = "committed"


class Piece(msgspec.Struct, frozen=True):
    """One block of the list and where its bytes are: slices of extents, or `offset` bytes into a small content."""

    block_id: bytes
    size: int
    slices: tuple[Slice, ...] = ()
    inline: tuple[int, int] | None = None  # (content id, offset)


async def put_block_list(ctx: Context, target: BlobName, request: PutBlockList, guard: Guard) -> Written:
    """Make the listed blocks the blob's content, in list order, and forget every other uncommitted block."""
    check_blob_name(target.blob)
    check_metadata(request.metadata, MAX_METADATA)
    if len(request.blocks) > MAX_COMMITTED_BLOCKS:
        raise StorageError(Code.BlockListTooLong)
    md5, crc64 = digest(request.document)
    verify(Checksums(md5=request.content_md5, crc64=request.content_crc64), md5, crc64)
    with ctx.activity.since(ctx.now()) as work:
        gathered: dict[tuple[int, int], Slice] = {}
        for _ in range(ATTEMPTS):

            def commit(tx: Transaction, gathered: dict[tuple[int, int], Slice] = gathered) -> Written | None:
                return _commit(tx, target, request, guard, gathered, ctx.inline_limit)

            written = await work.write(ctx.engine, target.scope, commit)
            if written is not None:
                checksums = {"content_md5": md5} if request.content_md5 is not None else {"content_crc64": crc64}
                return as_told(request.version, md5, msgspec.structs.replace(written, **checksums))
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
    """None: small blocks have to be gathered into an extent first."""
    container, previous = current_blob(tx, target)
    require_block_blob(previous)
    check_replaceable(tx, container, target, previous, BlobType.BLOCK)
    guard.check(previous, tx.now)
    check_online(previous, tx.now)
    pieces = _find(tx, container.id, target.blob, previous, request)
    size = sum(piece.size for piece in pieces)
    inline = size <= inline_limit and all(piece.inline or not piece.size for piece in pieces)
    if not inline and any(piece.inline and piece.inline not in gathered for piece in pieces):
        return None

    tick = tx.tick(previous.etag if previous is not None else 0)
    kept: frozenset[str] = frozenset()
    if inline:
        put_inline(tx, tick, b"".join([_bytes_of(tx, piece) for piece in pieces]))
    else:
        slices = [part for piece in pieces for part in ((gathered[piece.inline],) if piece.inline else piece.slices)]
        put_layout(tx, tick, slices)
        kept = frozenset(part.extent for part in slices)
    put_block_runs(tx, tick, [(piece.block_id, piece.size) for piece in pieces])
    shared = previous is not None and retire_replaced(tx, target, container.keeping, previous, tick, kept)
    discard_staged(tx, container.id, target.blob, kept)
    blob = block_blob(container.id, target.blob, request, tick, size=size, inline=inline, md5=request.blob_content_md5)
    check_tier(tx, target, blob)
    index_tags(tx, previous, blob)
    version_id = new_version(container.keeping, tick)
    tx.put(
        msgspec.structs.replace(
            blob,
            created=previous.created if previous is not None else tick,
            lease=guard.lease_after(previous, tx.now),
            shared=shared and not inline,
            version_id=version_id,
        )
    )
    return Written(etag=tick, version_id=version_id)


def _find(tx: Transaction, container_id: int, name: str, previous: Blob | None, request: PutBlockList) -> list[Piece]:
    """Each block of the list where it says to look; one that is not there spoils the whole list."""
    searches: dict[bytes, Search] = {}
    if any(searches.setdefault(block_id, search) is not search for search, block_id in request.blocks):
        raise StorageError(Code.InvalidBlockList)  # one block may occur often, but always through the same element
    uncommitted = {block.block_id: _staged_piece(block) for block in tx.scan(Block, span_of(container_id, name))}
    committed = {piece.block_id: piece for piece in _committed_pieces(tx, previous)} if previous is not None else {}
    lists = {
        Search.LATEST: committed | uncommitted,
        Search.COMMITTED: committed,
        Search.UNCOMMITTED: uncommitted,
    }
    pieces = [lists[search].get(block_id) for search, block_id in request.blocks]
    if None in pieces:
        raise StorageError(Code.InvalidBlockList)
    return [piece for piece in pieces if piece is not None]


def _staged_piece(block: Block) -> Piece:
    if block.extent is None:
        return Piece(block.block_id, block.size, inline=(block.content_id, 0))
    return Piece(block.block_id, block.size, (Slice(block.extent, 0, block.size),))


def _committed_pieces(tx: Transaction, blob: Blob) -> list[Piece]:
    pieces: list[Piece] = []
    blocks = blocks_of(tx, blob)
    slices = iter(slices_of(tx, blob, 0, blob.size) if blocks and blob.size and not blob.inline else ())
    position = 0
    for block_id, size in blocks:
        if blob.inline:
            pieces.append(Piece(block_id, size, inline=(blob.content_id, position)))
        else:
            pieces.append(Piece(block_id, size, (next(slices),)))  # a commit writes one slice per block
        position += size
    return pieces


def _bytes_of(tx: Transaction, piece: Piece) -> bytes:
    if piece.inline is None:
        return b""
    content_id, offset = piece.inline
    return inline_bytes(tx, content_id)[offset : offset + piece.size]


async def _gather(ctx: Context, target: BlobName, request: PutBlockList) -> dict[tuple[int, int], Slice]:
    """Write the bytes of all small blocks of the list into one extent. Durable before any record names it."""

    def find(tx: Transaction) -> list[Piece]:
        container, previous = current_blob(tx, target)
        return _find(tx, container.id, target.blob, previous, request)

    wanted = {piece.inline: piece for piece in await ctx.engine.scan(target.scope, find) if piece.inline}
    gathered: dict[tuple[int, int], Slice] = {}
    writer = ctx.extents.new()
    position = 0
    try:
        async for piece, data in _small_bytes(ctx, target, list(wanted.values())):
            assert piece.inline is not None
            gathered[piece.inline] = Slice(writer.id, position, piece.size)
            position += piece.size
            await writer.write(data)
        await writer.commit()
    except BaseException:
        await writer.abort()
        raise
    return gathered


async def _small_bytes(ctx: Context, target: BlobName, pieces: list[Piece]) -> AsyncIterator[tuple[Piece, bytes]]:
    """A block that was staged anew meanwhile comes short; the commit notices, since its content has another id."""
    for first in range(0, len(pieces), GATHERED_AT_ONCE):
        some = pieces[first : first + GATHERED_AT_ONCE]

        def fetch(tx: Transaction, some: list[Piece] = some) -> list[bytes]:
            return [_bytes_of(tx, piece) for piece in some]

        for piece, data in zip(some, await ctx.engine.scan(target.scope, fetch), strict=True):
            if len(data) == piece.size:
                yield piece, data


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
            committed=(blocks_of(tx, blob) if blob is not None else []) if kind != "uncommitted" else None,
            uncommitted=[(block.block_id, block.size) for block in waiting] if kind != "committed" else None,
        )

    return await ctx.engine.scan(target.scope, look)
