"""List Containers and List Blobs, flat and by hierarchy. Every page is one committed state (contract G3).

The cost of a page depends on what it shows: one look-up skips all names that belong to a prefix.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import TypeVar

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.names import SYSTEM_CONTAINERS, AccountName, ContainerName
from verditer.core.records.blob import (
    Blob,
    BlobVersion,
    DeletedBlob,
    DeletedSnapshot,
    DeletedVersion,
    Snapshot,
    StagedBlob,
)
from verditer.core.records.container import Container, DeletedContainer
from verditer.core.records.record import Span, key_of, span_of, span_of_prefix, successor, text_bytes
from verditer.partition.engine import Order, Transaction
from verditer.services.blob.answers import BlobPage, ContainerPage, ListedItem, Prefix, VersionsOnly
from verditer.services.blob.current import require_container
from verditer.services.blob.history import as_snapshot
from verditer.services.context import Context
from verditer.services.markers import decode_marker, first_page

T = TypeVar("T")
INLINE_PAGE = 256  # items: a longer page is read by a thread
MERGED = frozenset({"snapshots", "versions", "deleted", "deletedwithversions", "uncommittedblobs"})

# The states of a name are listed by rank: snapshots by tick, then versions by tick, then the blob itself.
_VERSIONS = 1 << 62  # above every tick
_LAST = (1 << 64) - 1
_VERSIONS_ONLY = _LAST - 1
_DELETED = _LAST - 2


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
    end_before: str = ""


async def list_containers(ctx: Context, target: AccountName, request: ListContainers) -> ContainerPage:
    start = decode_marker(request.marker) if request.marker else b""

    def look(tx: Transaction) -> ContainerPage:
        found = _containers(tx, target.account, request, start)
        page, marker = first_page(found, request.max_results, _container_position)
        return ContainerPage(containers=page, next_marker=marker, now=tx.now)

    return await ctx.engine.read(target.scope, look, long=True)


def _containers(tx: Transaction, account: str, request: ListContainers, start: bytes) -> Iterator[Container]:
    """Containers by name. Of one name, deleted containers come first, in the order of their deletion."""
    span = span_of_prefix(account, prefix=request.prefix)
    named = span.starting(key_of(account) + _name_part(start)) if start else span
    containers = (one for one in tx.scan(Container, named) if one.name not in SYSTEM_CONTAINERS or "system" in request.include)
    if "deleted" not in request.include:
        return iter(containers)
    ranked = span.starting(key_of(account) + start) if start else span
    deleted = (one for one in tx.scan(DeletedContainer, ranked) if one.expires > tx.now)
    return heapq.merge(containers, deleted, key=_container_position)


def _container_position(container: Container) -> bytes:
    rank = container.version if isinstance(container, DeletedContainer) else _LAST
    return text_bytes(container.name) + b"\0" + rank.to_bytes(8, "big")


async def list_blobs(ctx: Context, target: ContainerName, request: ListBlobs) -> BlobPage:
    if request.delimiter and "snapshots" in request.include:
        raise StorageError(
            Code.InvalidQueryParameterValue,
            field="include",
            value="snapshots",
            reason="Snapshots cannot be listed with a delimiter.",
        )
    start = decode_marker(request.marker) if request.marker else b""

    def look(limit: int) -> Callable[[Transaction], BlobPage | None]:
        """A page, or None when `limit` items are not enough for it."""

        def body(tx: Transaction) -> BlobPage | None:
            container = require_container(tx, target)
            items = _items(tx, container.id, request, start)
            if container.blob_settings.hierarchical:
                items = (item for item in items if not (isinstance(item, Blob) and item.is_expired(tx.now)))
            found, marker = first_page(items, limit, _position)
            if marker and limit < request.max_results:
                return None
            return BlobPage(items=found, next_marker=marker, now=tx.now, settings=container.blob_settings)

        return body

    page = None
    if request.include.isdisjoint(MERGED):  # otherwise states that are not listed have to be skipped, and there may be many
        page = await ctx.engine.read(target.scope, look(min(request.max_results, INLINE_PAGE)))
    if page is None:
        page = await ctx.engine.read(target.scope, look(request.max_results), long=True)
    assert page is not None
    return page


def _items(tx: Transaction, container_id: int, request: ListBlobs, start: bytes) -> Iterator[ListedItem]:
    """The items of the listing from `start` on, in order, computed lazily."""
    span = span_of_prefix(container_id, prefix=request.prefix)
    if request.start_from:
        span = span.starting(key_of(container_id) + text_bytes(request.start_from))
    if request.end_before:
        span = Span(span.low, min(span.high, key_of(container_id) + text_bytes(request.end_before)))
    if start:
        span = span.starting(key_of(container_id) + _name_part(start))
    return (_folded if request.delimiter else _merged)(tx, container_id, request, span, start)


def _name_part(start: bytes) -> bytes:
    """The name in a position. A position is a name, a separator and eight bytes of rank, or the name of a prefix."""
    return start[:-8] if start[-9:-8] == b"\0" else start


def _merged(tx: Transaction, container_id: int, request: ListBlobs, span: Span, start: bytes) -> Iterator[ListedItem]:
    """The states that the request includes. Each scan begins where the last page ended, also between states of one name."""
    include = request.include
    blobs = iter(tx.scan(Blob, span))
    if include.isdisjoint(MERGED):
        return blobs
    snapshots, versions = (_ranked_span(container_id, span, start, base) for base in (0, _VERSIONS))
    sources: list[Iterator[ListedItem]] = [blobs]
    if "snapshots" in include:
        sources.append(iter(tx.scan(Snapshot, snapshots)))
    if "versions" in include:
        sources.append(iter(tx.scan(BlobVersion, versions)))
    if "deleted" in include:
        sources.append(_deleted_blobs(tx, container_id, request, span, start))
        if "snapshots" in include:
            sources.append(one for one in tx.scan(DeletedSnapshot, snapshots) if one.expires > tx.now)
        if "versions" in include:
            sources.append(one for one in tx.scan(DeletedVersion, versions) if one.expires > tx.now)
    if "deletedwithversions" in include:
        sources.append(one for one in _versions_only(tx, container_id, span) if _position(one) >= start)
    if "uncommittedblobs" in include:
        staged = tx.scan(StagedBlob, span)
        sources.append(one for one in staged if tx.get(Blob, container_id, one.name) is None)
    return heapq.merge(*sources, key=_position)


def _ranked_span(container_id: int, span: Span, start: bytes, base: int) -> Span:
    """The span of states that are keyed by name and tick. Their rank is `base` plus the tick."""
    if start[-9:-8] != b"\0":
        return span
    tick = max(0, int.from_bytes(start[-8:], "big") - base)
    return span.starting(key_of(container_id) + start[:-8] + tick.to_bytes(8, "big"))


def _deleted_blobs(tx: Transaction, container_id: int, request: ListBlobs, span: Span, start: bytes) -> Iterator[ListedItem]:
    """A deleted blob whose name exists again is listed as a snapshot."""
    for deleted in tx.scan(DeletedBlob, span):
        item = deleted if tx.get(Blob, container_id, deleted.name) is None else as_snapshot(deleted)
        wanted = type(item) is DeletedBlob or "snapshots" in request.include
        if wanted and item.expires > tx.now and _position(item) >= start:
            yield item


def _versions_only(tx: Transaction, container_id: int, span: Span) -> Iterator[ListedItem]:
    """Names that have versions, possibly deleted ones, but no blob. One look-up for each name that has versions."""
    while True:
        found = [next(tx.scan(kind, span, limit=1), None) for kind in (BlobVersion, DeletedVersion)]
        names = [one.name for one in found if one is not None]
        if not names:
            return
        name = min(names, key=text_bytes)
        states = span_of(container_id, name)
        if tx.get(Blob, container_id, name) is None:
            latest: Blob | None = next(tx.scan(BlobVersion, states, limit=1, order=Order.KEY_DESCENDING), None)
            if latest is None:
                latest = next(
                    (one for one in tx.scan(DeletedVersion, states, order=Order.KEY_DESCENDING) if one.expires > tx.now), None
                )
            if latest is not None:
                yield VersionsOnly(latest)
        span = span.starting(states.high)


def _folded(tx: Transaction, container_id: int, request: ListBlobs, span: Span, start: bytes) -> Iterator[ListedItem]:
    """Names with the delimiter after the prefix become one Prefix, and the scan skips all of them."""
    while True:
        for item in _merged(tx, container_id, request, span, start):
            cut = item.name.find(request.delimiter, len(request.prefix))
            if cut < 0:
                yield item
                continue
            folder = item.name[: cut + len(request.delimiter)]
            yield Prefix(folder)
            span, start = span.starting(successor(key_of(container_id) + text_bytes(folder))), b""
            break
        else:
            return


def _position(item: ListedItem) -> bytes:
    """The position of an item in the listing: it orders items and is stored in markers."""
    if isinstance(item, Prefix):
        return text_bytes(item.name)
    return text_bytes(item.name) + b"\0" + _rank(item).to_bytes(8, "big")


def _rank(item: Blob | StagedBlob | VersionsOnly) -> int:
    if isinstance(item, Snapshot | DeletedSnapshot):
        return item.snapshot
    if isinstance(item, BlobVersion | DeletedVersion):
        assert item.version_id is not None
        return _VERSIONS + item.version_id
    if isinstance(item, VersionsOnly):
        return _VERSIONS_ONLY
    return _DELETED if isinstance(item, DeletedBlob) else _LAST
