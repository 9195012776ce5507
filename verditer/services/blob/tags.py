"""Blob index tags: get, set, and Find Blobs by Tags. Changing tags never changes the ETag."""

from collections.abc import Iterator
from itertools import islice

import msgspec

from verditer.core.guard import Guard
from verditer.core.names import AccountName, BlobName, ContainerName
from verditer.core.records.blob import Blob
from verditer.core.records.container import Container
from verditer.core.records.record import Span, key_of, span_of, successor
from verditer.core.records.tags import TagEntry
from verditer.core.tag_filter import TagFilter, parse_filter
from verditer.core.tags import Comparison
from verditer.partition.engine import Transaction
from verditer.services.blob.current import require_blob, require_container
from verditer.services.context import Context
from verditer.services.markers import decode_marker, encode_marker
from verditer.stream.digest import Checksums, digest, verify

EXAMINED = 20_000  # index rows examined for one page; a page that ends because of this limit has a marker


class GetBlobTags(msgspec.Struct, frozen=True, kw_only=True):
    snapshot: int | None = None
    version_id: int | None = None


class SetBlobTags(msgspec.Struct, frozen=True, kw_only=True):
    tags: dict[str, str]
    document: bytes
    version_id: int | None = None
    content_md5: bytes | None = None
    content_crc64: bytes | None = None


class FindBlobs(msgspec.Struct, frozen=True, kw_only=True):
    where: str
    marker: str = ""
    max_results: int = 5000
    include: frozenset[str] = frozenset()


class TaggedBlob(msgspec.Struct, frozen=True, kw_only=True):
    container: str
    blob: str
    tags: dict[str, str]


class FoundPage(msgspec.Struct, frozen=True, kw_only=True):
    where: str
    blobs: list[TaggedBlob]
    next_marker: str


async def get_tags(ctx: Context, target: BlobName, request: GetBlobTags, guard: Guard) -> dict[str, str]:
    def look(tx: Transaction) -> dict[str, str]:
        blob = require_blob(tx, target, request.snapshot, request.version_id)
        guard.check(blob, tx.now)
        return blob.tags or {}

    return await ctx.engine.read(target.scope, look)


async def set_tags(ctx: Context, target: BlobName, request: SetBlobTags, guard: Guard) -> None:
    """Replace all tags. ETag and Last-Modified do not change."""
    md5, crc64 = digest(request.document)
    verify(Checksums(md5=request.content_md5, crc64=request.content_crc64), md5, crc64)

    def commit(tx: Transaction) -> None:
        blob = require_blob(tx, target, version_id=request.version_id)
        guard.check(blob, tx.now)
        tagged = msgspec.structs.replace(blob, tags=request.tags or None)
        if type(blob) is Blob:  # the index contains current blobs only
            index_tags(tx, blob, tagged)
        tx.put(tagged)

    await ctx.engine.write([target.scope], commit)


def index_tags(tx: Transaction, before: Blob | None, after: Blob | None) -> None:
    """Update the index for a blob that is created, replaced, tagged or deleted. Every such transaction calls it."""
    old = set(before.tags.items()) if before is not None and before.tags else set()
    new = set(after.tags.items()) if after is not None and after.tags else set()
    if old == new:
        return
    blob = after or before
    assert blob is not None
    for tag, value in old - new:
        tx.delete(TagEntry, blob.container_id, tag, value, blob.name)
    for tag, value in new - old:
        tx.put(TagEntry(container_id=blob.container_id, tag=tag, value=value, blob=blob.name))


async def find_blobs(ctx: Context, target: AccountName, request: FindBlobs) -> FoundPage:
    tag_filter = parse_filter(request.where)

    def look(tx: Transaction) -> FoundPage:
        containers = tx.scan(Container, span_of(target.account))
        return _page(tx, containers, tag_filter, request)

    return await ctx.engine.read(target.scope, look, long=True)


async def find_blobs_in_container(ctx: Context, target: ContainerName, request: FindBlobs) -> FoundPage:
    tag_filter = parse_filter(request.where)
    return await ctx.engine.read(
        target.scope, lambda tx: _page(tx, iter([require_container(tx, target)]), tag_filter, request), long=True
    )


def _page(tx: Transaction, containers: Iterator[Container], tag_filter: TagFilter, request: FindBlobs) -> FoundPage:
    """A marker is a container's name and the key of the next index row in it."""
    first, _, start = decode_marker(request.marker).partition(b"\0") if request.marker else (b"", b"", b"")
    found: list[TaggedBlob] = []
    budget = EXAMINED
    for container in containers:
        if container.name.encode() < first or tag_filter.container not in (None, container.name):
            continue
        span = _span(container.id, tag_filter.driver())
        if container.name.encode() == first:
            span = span.starting(start)
        for entry in islice(tx.scan(TagEntry, span), budget + 1):
            if len(found) == request.max_results or not budget:
                marker = encode_marker(container.name.encode() + b"\0" + entry.key())
                return FoundPage(where=request.where, blobs=found, next_marker=marker)
            budget -= 1
            blob = tx.get(Blob, container.id, entry.blob)
            if blob is not None and blob.tags and tag_filter.holds(blob.tags) and not blob.is_expired(tx.now):
                found.append(TaggedBlob(container=container.name, blob=blob.name, tags=tag_filter.selected(blob.tags)))
    return FoundPage(where=request.where, blobs=found, next_marker="")


def _span(container_id: int, driver: tuple[Comparison, ...]) -> Span:
    """The index rows of one tag within the bounds of its comparisons."""
    span = span_of(container_id, driver[0].key)
    for comparison in driver:
        value = key_of(container_id, comparison.key, comparison.value)
        if comparison.operator == "=":
            return Span(value, successor(value))
        if comparison.operator in (">", ">="):
            span = span.starting(value if comparison.operator == ">=" else successor(value))
        else:
            span = Span(span.low, value if comparison.operator == "<" else successor(value))
    return span
