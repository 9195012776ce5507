"""List Containers and List Blobs, flat and by hierarchy. Every page is one committed state (contract G3).

A page costs what it shows: names that fold into a prefix are skipped by one look-up, however many there are.
"""

import heapq
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

import msgspec

from verditer.core.errors import invalid_query
from verditer.core.names import AccountName, ContainerName
from verditer.core.records.blob import Blob, Snapshot, StagedBlob
from verditer.core.records.container import Container
from verditer.core.records.record import Span, key_of, span_of_prefix, successor, text_bytes
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlobPage, ContainerPage, Prefix
from verditer.services.blob.current import require_container
from verditer.services.blob.markers import decode_marker, encode_marker
from verditer.services.context import Context

T = TypeVar("T")
INLINE_PAGE = 256  # items: a page up to this long is read on the event loop, a longer one beside it
_LAST = b"\xff" * 8  # the blob itself sorts behind its snapshots

Item = Blob | StagedBlob | Prefix


class ListContainers(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str = ""
    marker: str = ""
    max_results: int = 5000
    include: frozenset[str] = frozenset()


class ListBlobs(msgspec.Struct, frozen=True, kw_only=True):
    prefix: str = ""
    delimiter: str = ""
    marker: str = ""
    max_results: int = 5000
    include: frozenset[str] = frozenset()
    start_from: str = ""


async def list_containers(ctx: Context, target: AccountName, request: ListContainers) -> ContainerPage:
    span = span_of_prefix(target.account, prefix=request.prefix)
    if request.marker:
        span = span.starting(key_of(target.account) + decode_marker(request.marker))

    def look(tx: Transaction) -> ContainerPage:
        found = list(tx.scan(Container, span, limit=request.max_results + 1))
        more = found[request.max_results :]
        marker = encode_marker(text_bytes(more[0].name)) if more else ""
        return ContainerPage(containers=found[: request.max_results], next_marker=marker, now=tx.now)

    return await ctx.engine.scan(target.scope, look)


async def list_blobs(ctx: Context, target: ContainerName, request: ListBlobs) -> BlobPage:
    if request.delimiter and "snapshots" in request.include:
        raise invalid_query("include", "snapshots", "Snapshots cannot be listed with a delimiter.")
    start = decode_marker(request.marker) if request.marker else b""

    def look(limit: int) -> Callable[[Transaction], BlobPage | None]:
        """A page, or None when `limit` items were not all there was and more were asked for."""

        def body(tx: Transaction) -> BlobPage | None:
            container = require_container(tx, target)
            found = list(islice(_items(tx, container.id, request, start), limit + 1))
            if len(found) > limit and limit < request.max_results:
                return None
            more = found[limit:]
            marker = encode_marker(_position(more[0])) if more else ""
            return BlobPage(items=found[:limit], next_marker=marker, now=tx.now)

        return body

    page = await ctx.engine.read(target.scope, look(min(request.max_results, INLINE_PAGE)))
    if page is None:
        page = await ctx.engine.scan(target.scope, look(request.max_results))
    assert page is not None
    return page


def _items(tx: Transaction, container_id: int, request: ListBlobs, start: bytes) -> Iterator[Item]:
    """Everything the listing shows from `start` on, in order; computed as it is asked for."""
    span = span_of_prefix(container_id, prefix=request.prefix)
    if request.start_from:
        span = span.starting(key_of(container_id) + text_bytes(request.start_from))
    if start:
        # A position is name, separator, eight bytes of rank; blobs are found by name alone.
        span = span.starting(key_of(container_id) + (start[:-8] if start[-9:-8] == b"\0" else start))
    if request.delimiter:
        return _folded(tx, container_id, request, span)
    if not request.include & {"snapshots", "uncommittedblobs"}:
        return iter(tx.scan(Blob, span))
    return _merged(tx, container_id, request, span, start)


def _merged(tx: Transaction, container_id: int, request: ListBlobs, span: Span, start: bytes) -> Iterator[Item]:
    sources: list[Iterator[Item]] = [iter(tx.scan(Blob, span))]
    if "snapshots" in request.include:
        snapshots = span.starting(key_of(container_id) + start) if start else span
        sources.append(iter(tx.scan(Snapshot, snapshots)))
    if "uncommittedblobs" in request.include:
        staged = tx.scan(StagedBlob, span)
        sources.append(one for one in staged if tx.get(Blob, container_id, one.name) is None)
    return heapq.merge(*sources, key=_position)


def _folded(tx: Transaction, container_id: int, request: ListBlobs, span: Span) -> Iterator[Item]:
    """Names with the delimiter behind the prefix become one Prefix each, and the scan jumps over all of them."""
    while True:
        for item in _either(tx, container_id, request, span):
            cut = item.name.find(request.delimiter, len(request.prefix))
            if cut < 0:
                yield item
                continue
            folder = item.name[: cut + len(request.delimiter)]
            yield Prefix(folder)
            span = span.starting(successor(key_of(container_id) + text_bytes(folder)))
            break
        else:
            return


def _either(tx: Transaction, container_id: int, request: ListBlobs, span: Span) -> Iterator[Blob | StagedBlob]:
    blobs: Iterator[Blob | StagedBlob] = iter(tx.scan(Blob, span))
    if "uncommittedblobs" not in request.include:
        return blobs
    staged = (one for one in tx.scan(StagedBlob, span) if tx.get(Blob, container_id, one.name) is None)
    return heapq.merge(blobs, staged, key=_position)


def _position(item: Item) -> bytes:
    """Where an item stands in the listing: what a marker holds and what merging compares."""
    if isinstance(item, Prefix):
        return text_bytes(item.name)
    rank = item.snapshot.to_bytes(8, "big") if isinstance(item, Snapshot) else _LAST
    return text_bytes(item.name) + b"\0" + rank
