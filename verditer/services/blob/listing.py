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
from verditer.partition.engine import Transaction
from verditer.services.blob.answers import BlobPage, ContainerPage, Prefix, VersionsOnly
from verditer.services.blob.current import require_container
from verditer.services.blob.history import as_snapshot
from verditer.services.blob.markers import decode_marker, encode_marker
from verditer.services.context import Context

T = TypeVar("T")
INLINE_PAGE = 256  # items: a page up to this long is read on the event loop, a longer one beside it
MERGED = frozenset({"snapshots", "versions", "deleted", "deletedwithversions", "uncommittedblobs"})

# The states of a name are listed by rank: snapshots by their ticks, versions by theirs behind them, the blob itself last.
_VERSIONS = 1 << 62  # above every tick
_LAST = (1 << 64) - 1
_VERSIONS_ONLY = _LAST - 1
_DELETED = _LAST - 2

Item = Blob | StagedBlob | VersionsOnly | Prefix


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
    start = decode_marker(request.marker) if request.marker else b""

    def look(tx: Transaction) -> ContainerPage:
        found = list(islice(_containers(tx, target.account, request, start), request.max_results + 1))
        more = found[request.max_results :]
        marker = encode_marker(_container_position(more[0])) if more else ""
        return ContainerPage(containers=found[: request.max_results], next_marker=marker, now=tx.now)

    return await ctx.engine.scan(target.scope, look)


def _containers(tx: Transaction, account: str, request: ListContainers, start: bytes) -> Iterator[Container]:
    """By name; of one name the deleted ones first, in the order of their deletion."""
    span = span_of_prefix(account, prefix=request.prefix)
    named = span.starting(key_of(account) + _name_part(start)) if start else span
    containers = tx.scan(Container, named)
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

    page = None
    if request.include.isdisjoint(MERGED):  # states that are not shown are passed over, however many they are
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
        span = span.starting(key_of(container_id) + _name_part(start))
    return (_folded if request.delimiter else _merged)(tx, container_id, request, span, start)


def _name_part(start: bytes) -> bytes:
    """A position is name, separator, eight bytes of rank, or the name of a prefix; blobs are found by name alone."""
    return start[:-8] if start[-9:-8] == b"\0" else start


def _merged(tx: Transaction, container_id: int, request: ListBlobs, span: Span, start: bytes) -> Iterator[Item]:
    """Every state the listing asks for. Each source begins where the last page stopped, also within the states of one name."""
    include = request.include
    blobs = iter(tx.scan(Blob, span))
    if include.isdisjoint(MERGED):
        return blobs
    snapshots, versions = (_ranked_span(container_id, span, start, base) for base in (0, _VERSIONS))
    sources: list[Iterator[Item]] = [blobs]
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
    """For states that are keyed by name and tick, and whose ranks are their ticks and `base`."""
    if start[-9:-8] != b"\0":
        return span
    tick = max(0, int.from_bytes(start[-8:], "big") - base)
    return span.starting(key_of(container_id) + start[:-8] + tick.to_bytes(8, "big"))


def _deleted_blobs(tx: Transaction, container_id: int, request: ListBlobs, span: Span, start: bytes) -> Iterator[Item]:
    """A deleted blob that has been created again counts as one of the snapshots."""
    for deleted in tx.scan(DeletedBlob, span):
        item = deleted if tx.get(Blob, container_id, deleted.name) is None else as_snapshot(deleted)
        wanted = type(item) is DeletedBlob or "snapshots" in request.include
        if wanted and item.expires > tx.now and _position(item) >= start:
            yield item


def _versions_only(tx: Transaction, container_id: int, span: Span) -> Iterator[Item]:
    """Names that have versions, deleted ones among them, and no blob: one look-up for each name that has versions."""
    while True:
        found = [next(tx.scan(kind, span, limit=1), None) for kind in (BlobVersion, DeletedVersion)]
        names = [one.name for one in found if one is not None]
        if not names:
            return
        name = min(names, key=text_bytes)
        states = span_of(container_id, name)
        if tx.get(Blob, container_id, name) is None:
            latest: Blob | None = next(tx.scan(BlobVersion, states, limit=1, reverse=True), None)
            if latest is None:
                latest = next((one for one in tx.scan(DeletedVersion, states, reverse=True) if one.expires > tx.now), None)
            if latest is not None:
                yield VersionsOnly(latest)
        span = span.starting(states.high)


def _folded(tx: Transaction, container_id: int, request: ListBlobs, span: Span, start: bytes) -> Iterator[Item]:
    """Names with the delimiter behind the prefix become one Prefix each, and the scan jumps over all of them."""
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


def _position(item: Item) -> bytes:
    """Where an item stands in the listing: what a marker holds and what merging compares."""
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
