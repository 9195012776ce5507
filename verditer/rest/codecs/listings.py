"""The pages of List Containers and List Blobs. Written by hand into one string: a page of 5000 blobs is a hot path."""

from binascii import b2a_base64
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from verditer.core import etag as etags
from verditer.core.dates import iso, rfc1123, seconds
from verditer.core.lease import Lease, duration_of, state_of
from verditer.core.records.blob import Blob, BlobType, DeletedBlob, DeletedSnapshot, Snapshot, StagedBlob
from verditer.core.records.container import Container, DeletedContainer
from verditer.core.records.copy import CopyState
from verditer.core.tiers import state_of as tier_state_of
from verditer.rest.codecs.xml import element, escape, is_plain, is_representable, render
from verditer.services.blob.answers import BlobPage, ContainerPage, Prefix, VersionsOnly

_ECHOES = (("prefix", "Prefix"), ("marker", "Marker"), ("maxresults", "MaxResults"), ("delimiter", "Delimiter"))
_DAY = seconds(86400)
_NO_HEADERS = ("<Content-Encoding /><Content-Language />", "<Cache-Control /><Content-Disposition />")
_escaped = lru_cache(maxsize=256)(escape)  # content types are few
_INFERRED = "<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>"
_PLAIN = f"<BlobType>BlockBlob</BlobType>{_INFERRED}"
_UNLEASED = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"


def render_containers(page: ContainerPage, exchange: Any) -> bytes:
    include = exchange.address.query.get("include", "").lower()
    rows = "".join([_container(container, page.now, "metadata" in include) for container in page.containers])
    return _enumeration(exchange, "", f"<Containers>{rows}</Containers>", page.next_marker)


def render_blobs(page: BlobPage, exchange: Any) -> bytes:
    include = frozenset(exchange.address.query.get("include", "").lower().split(","))
    metadata, tags, copy = "metadata" in include, "tags" in include, "copy" in include
    rows = []
    for item in page.items:
        if isinstance(item, Blob):
            rows.append(_blob(item, page.now, metadata, tags, copy=copy))
        elif isinstance(item, Prefix):
            rows.append(f"<BlobPrefix>{_name(item.name)}</BlobPrefix>")
        elif isinstance(item, VersionsOnly):
            rows.append(_blob(item.latest, page.now, metadata, tags, "<HasVersionsOnly>true</HasVersionsOnly>", copy=copy))
        else:
            rows.append(_uncommitted(item))
    container = f' ContainerName="{escape(exchange.address.segments[0])}"'
    return _enumeration(exchange, container, f"<Blobs>{''.join(rows)}</Blobs>", page.next_marker)


def _enumeration(exchange: Any, attributes: str, rows: str, next_marker: str) -> bytes:
    """What the request asked is echoed, in Azure's order, before the rows."""
    query = exchange.address.query
    echoes = "".join([element(name, query[key]) for key, name in _ECHOES if query.get(key)])
    endpoint = escape(service_endpoint(exchange))
    return render(
        f'<EnumerationResults ServiceEndpoint="{endpoint}"{attributes}>{echoes}{rows}'
        f"{element('NextMarker', next_marker)}</EnumerationResults>"
    )


def service_endpoint(exchange: Any) -> str:
    scheme = "https" if exchange.request.secure else "http"
    host = exchange.request.headers.get("host", "")
    address = exchange.address
    account = f"{address.account}{'-secondary' if address.secondary else ''}/" if address.path_style else ""
    return f"{scheme}://{host}/{account}"


def _container(container: Container, now: int, metadata: bool) -> str:
    state, retention = "", ""
    if isinstance(container, DeletedContainer):
        state = f"<Deleted>true</Deleted><Version>{container.version:016X}</Version>"
        retention = _retention(container.version, container.expires, now)
    access = f"<PublicAccess>{container.public_access}</PublicAccess>" if container.public_access else ""
    return (
        f"<Container><Name>{escape(container.name)}</Name>{state}<Properties>"
        f"<Last-Modified>{rfc1123(container.etag)}</Last-Modified><Etag>{escape(etags.show(container.etag))}</Etag>"
        f"{_lease(container.lease, now)}{access}"
        "<DefaultEncryptionScope>$account-encryption-key</DefaultEncryptionScope>"
        "<DenyEncryptionScopeOverride>false</DenyEncryptionScopeOverride>"
        "<HasImmutabilityPolicy>false</HasImmutabilityPolicy><HasLegalHold>false</HasLegalHold>"
        f"<ImmutableStorageWithVersioningEnabled>false</ImmutableStorageWithVersioningEnabled>{retention}</Properties>"
        f"{_metadata(container.metadata) if metadata else ''}</Container>"
    )


def _blob(blob: Blob, now: int, metadata: bool, tags: bool, state: str = "", *, copy: bool = False) -> str:
    """`state` is told instead of what the record says about itself."""
    lease = retention = ""
    if type(blob) is Blob:
        lease = _UNLEASED if blob.lease is None else _lease(blob.lease, now)
        if blob.version_id is not None:
            state = f"<VersionId>{iso(blob.version_id)}</VersionId><IsCurrentVersion>true</IsCurrentVersion>"
    elif not state:
        state = _former(blob)
        retention = _retention(blob.deleted, blob.expires, now) if isinstance(blob, DeletedBlob) else ""
    md5 = "<Content-MD5 />"
    if blob.content_md5 is not None:
        md5 = f"<Content-MD5>{b2a_base64(blob.content_md5, newline=False).decode()}</Content-MD5>"
    modified = rfc1123(blob.etag)
    created = modified if blob.created == blob.etag else rfc1123(blob.created)
    before, after = _NO_HEADERS
    if blob.content_encoding or blob.content_language or blob.cache_control or blob.content_disposition:
        before = f"{element('Content-Encoding', blob.content_encoding)}{element('Content-Language', blob.content_language)}"
        after = f"{element('Cache-Control', blob.cache_control)}{element('Content-Disposition', blob.content_disposition)}"
    plain = blob.blob_type is BlobType.BLOCK and blob.tier is None  # as most are
    kind = _PLAIN if plain else f"{_sequence_number(blob)}<BlobType>{blob.blob_type.value}</BlobType>{_tier(blob, now)}"
    copied = _copy(blob.copy) if copy and blob.copy is not None else ""
    more = f"<TagCount>{len(blob.tags)}</TagCount>" if blob.tags else ""
    asked = (_metadata(blob.metadata) if metadata else "") + (_tags(blob.tags) if tags and blob.tags else "")
    return (
        f"<Blob>{_name(blob.name)}{state}<Properties><Creation-Time>{created}</Creation-Time>"
        f"<Last-Modified>{modified}</Last-Modified><Etag>0x{blob.etag:X}</Etag>"
        f"<Content-Length>{blob.size}</Content-Length><Content-Type>{_escaped(blob.content_type)}</Content-Type>{before}"
        f"<Content-CRC64 />{md5}{after}{kind}{lease}{copied}<ServerEncrypted>true</ServerEncrypted>{retention}{more}"
        f"{'<Sealed>true</Sealed>' if blob.sealed else ''}</Properties>{asked}<OrMetadata /></Blob>"
    )


def _former(blob: Blob) -> str:
    """Which state of its name a record is, when it is not the blob itself."""
    deleted = "<Deleted>true</Deleted>" if isinstance(blob, DeletedBlob) else ""
    if isinstance(blob, Snapshot | DeletedSnapshot):
        return f"{deleted}<Snapshot>{iso(blob.snapshot)}</Snapshot>"
    return f"{deleted}<VersionId>{iso(blob.version_id)}</VersionId>" if blob.version_id is not None else deleted


def _retention(deleted: int, expires: int, now: int) -> str:
    days = (expires - now) // _DAY
    return f"<DeletedTime>{rfc1123(deleted)}</DeletedTime><RemainingRetentionDays>{days}</RemainingRetentionDays>"


def _uncommitted(staged: StagedBlob) -> str:
    """Nothing is known yet but the name: no Last-Modified, no Etag."""
    return (
        f"<Blob>{_name(staged.name)}<Properties><Content-Length>0</Content-Length><BlobType>BlockBlob</BlobType>"
        f"{_UNLEASED}<ServerEncrypted>true</ServerEncrypted></Properties></Blob>"
    )


def _name(name: str) -> str:
    if is_plain(name):
        return f"<Name>{name}</Name>"
    if is_representable(name):
        return f"<Name>{escape(name)}</Name>"
    return f'<Name Encoded="true">{quote(name, safe="/")}</Name>'


def _sequence_number(blob: Blob) -> str:
    number = blob.sequence_number
    return f"<x-ms-blob-sequence-number>{number}</x-ms-blob-sequence-number>" if number is not None else ""


def _tier(blob: Blob, now: int) -> str:
    if blob.tier is None and blob.blob_type is BlobType.PAGE:
        return ""  # only those of premium accounts have one
    if blob.tier is None:
        return _INFERRED
    tier = tier_state_of(blob, now)
    changed = f"<AccessTierChangeTime>{rfc1123(tier.changed)}</AccessTierChangeTime>" if tier.changed else ""
    pending = ""
    if tier.rehydration is not None:
        priority = tier.rehydration.priority
        pending = f"<ArchiveStatus>{tier.archive_status}</ArchiveStatus><RehydratePriority>{priority}</RehydratePriority>"
    return f"<AccessTier>{tier.tier}</AccessTier>{pending}{changed}"


def _copy(copy: CopyState) -> str:
    completed = rfc1123(copy.completed) if copy.completed is not None else None
    return (
        f"<CopyId>{copy.id}</CopyId><CopyStatus>{copy.status.value}</CopyStatus>{element('CopySource', copy.source)}"
        f"<CopyProgress>{copy.copied}/{copy.total}</CopyProgress>"
        f"{element('CopyCompletionTime', completed) if completed else ''}"
        f"{element('CopyStatusDescription', copy.description) if copy.description else ''}"
    )


def _lease(lease: Lease | None, now: int) -> str:
    state = state_of(lease, now)
    duration = duration_of(lease, now)
    tail = f"<LeaseDuration>{duration}</LeaseDuration>" if duration else ""
    return f"<LeaseStatus>{state.status}</LeaseStatus><LeaseState>{state.value}</LeaseState>{tail}"


def _metadata(metadata: dict[str, str]) -> str:
    if not metadata:
        return "<Metadata />"
    return f"<Metadata>{''.join([element(name, value) for name, value in metadata.items()])}</Metadata>"


def _tags(tags: dict[str, str]) -> str:
    rows = "".join([f"<Tag>{element('Key', key)}{element('Value', value)}</Tag>" for key, value in tags.items()])
    return f"<Tags><TagSet>{rows}</TagSet></Tags>"
