"""The pages of List Containers and List Blobs. Written by hand into one string: a page of 5000 blobs is a hot path."""

from binascii import b2a_base64
from functools import lru_cache
from urllib.parse import quote

from verditer.core.dates import iso, rfc1123, seconds
from verditer.core.lease import Lease, duration_of, state_of
from verditer.core.records.blob import Blob, BlobType, DeletedBlob, DeletedSnapshot, RareProperties, Snapshot, StagedBlob
from verditer.core.records.container import BlobSettings, Container, DeletedContainer
from verditer.core.records.copy import CopyState
from verditer.core.tiers import SMART, inferred_page_tier
from verditer.core.tiers import state_of as tier_state_of
from verditer.rest.codecs import etag as etags
from verditer.rest.codecs.blob import arrow_listing
from verditer.rest.codecs.copies import status_description
from verditer.rest.codecs.leases import lease_status
from verditer.rest.codecs.xml import element, escape, is_plain, is_representable, render
from verditer.rest.http.message import Response
from verditer.rest.stages import Decoded
from verditer.services.blob.answers import BlobPage, ContainerPage, Prefix, VersionsOnly
from verditer.services.blob.last_access import last_access_of, smart_tier_of

_ECHOES = (("prefix", "Prefix"), ("marker", "Marker"), ("maxresults", "MaxResults"), ("delimiter", "Delimiter"))
_DAY = seconds(86400)
_NO_HEADERS = ("<Content-Encoding /><Content-Language />", "<Cache-Control /><Content-Disposition />")
_escaped = lru_cache(maxsize=256)(escape)  # there are few different content types
_INFERRED = "<AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>"
_PLAIN = f"<BlobType>BlockBlob</BlobType>{_INFERRED}"
_UNLEASED = "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"


def render_containers(page: ContainerPage, decoded: Decoded) -> bytes:
    include = decoded.address.query.get("include", "").lower()
    rows = "".join([_container(container, page.now, "metadata" in include) for container in page.containers])
    return enumeration(decoded, "", f"<Containers>{rows}</Containers>", page.next_marker)


def render_blobs(page: BlobPage, decoded: Decoded) -> bytes | Response:
    """XML, or Arrow for a client that asks for it, if the extra is installed."""
    include = frozenset(decoded.address.query.get("include", "").lower().split(","))
    metadata, tags, copy = "metadata" in include, "tags" in include, "copy" in include
    if arrow_listing.MEDIA_TYPE in decoded.request.headers.get("accept", "") and arrow_listing.is_served(decoded.version):
        return arrow_listing.render_arrow(page, metadata=metadata, tags=tags, copy=copy)
    rows = []
    for item in page.items:
        if isinstance(item, Blob):
            rows.append(_blob(item, page, metadata, tags, copy=copy))
        elif isinstance(item, Prefix):
            rows.append(f"<BlobPrefix>{_name(item.name)}</BlobPrefix>")
        elif isinstance(item, VersionsOnly):
            rows.append(_blob(item.latest, page, metadata, tags, "<HasVersionsOnly>true</HasVersionsOnly>", copy=copy))
        else:
            rows.append(_uncommitted(item))
    container = f' ContainerName="{escape(decoded.address.segments[0])}"'
    return enumeration(decoded, container, f"<Blobs>{''.join(rows)}</Blobs>", page.next_marker)


def enumeration(decoded: Decoded, attributes: str, rows: str, next_marker: str) -> bytes:
    """The parameters of the request, repeated before the rows in Azure's order."""
    query = decoded.address.query
    echoes = "".join([element(name, query[key]) for key, name in _ECHOES if query.get(key)])
    endpoint = escape(service_endpoint(decoded))
    return render(
        f'<EnumerationResults ServiceEndpoint="{endpoint}"{attributes}>{echoes}{rows}'
        f"{element('NextMarker', next_marker)}</EnumerationResults>"
    )


def service_endpoint(decoded: Decoded) -> str:
    scheme = "https" if decoded.request.secure else "http"
    host = decoded.request.headers.get("host", "")
    address = decoded.address
    account = f"{address.account}{'-secondary' if address.secondary else ''}/" if address.path_style else ""
    return f"{scheme}://{host}/{account}"


def _container(container: Container, now: int, metadata: bool) -> str:
    state, retention = "", ""
    if isinstance(container, DeletedContainer):
        state = f"<Deleted>true</Deleted><Version>{container.version:016X}</Version>"
        retention = retention_elements(container.version, container.expires, now)
    access = f"<PublicAccess>{container.public_access}</PublicAccess>" if container.public_access else ""
    return (
        f"<Container><Name>{escape(container.name)}</Name>{state}<Properties>"
        f"<Last-Modified>{rfc1123(container.etag)}</Last-Modified><Etag>{escape(etags.show(container.etag))}</Etag>"
        f"{lease_elements(container.lease, now)}{access}"
        f"{_container_protection(container)}{retention}</Properties>"
        f"{metadata_element(container.metadata) if metadata else ''}</Container>"
    )


def _container_protection(container: Container) -> str:
    protection, encryption = container.protection, container.encryption
    scope = encryption.scope if encryption is not None else "$account-encryption-key"
    return "".join(
        [
            f"<DefaultEncryptionScope>{escape(scope)}</DefaultEncryptionScope>",
            _flag("DenyEncryptionScopeOverride", encryption is not None and encryption.no_override),
            _flag("HasImmutabilityPolicy", protection is not None and protection.has_policy),
            _flag("HasLegalHold", protection is not None and bool(protection.legal_holds)),
            _flag("ImmutableStorageWithVersioningEnabled", protection is not None and protection.version_level),
        ]
    )


def _flag(name: str, value: bool) -> str:
    return f"<{name}>{'true' if value else 'false'}</{name}>"


def _blob(blob: Blob, page: BlobPage, metadata: bool, tags: bool, state: str = "", *, copy: bool = False) -> str:
    """`state` are the elements that name the snapshot or version; those of the current blob follow from its record."""
    now = page.now
    lease = retention = ""
    if type(blob) is Blob:
        lease = _UNLEASED if blob.lease is None else lease_elements(blob.lease, now)
        if blob.version_id is not None:
            state = f"<VersionId>{iso(blob.version_id)}</VersionId><IsCurrentVersion>true</IsCurrentVersion>"
    elif not state:
        state = _former(blob)
        retention = retention_elements(blob.deleted, blob.expires, now) if isinstance(blob, DeletedBlob) else ""
    md5 = "<Content-MD5 />"
    if blob.content_md5 is not None:
        md5 = f"<Content-MD5>{b2a_base64(blob.content_md5, newline=False).decode()}</Content-MD5>"
    modified = rfc1123(blob.etag)
    created = modified if blob.created == blob.etag else rfc1123(blob.created)
    before, after = _NO_HEADERS
    if blob.content_encoding or blob.content_language or blob.cache_control or blob.content_disposition:
        before = f"{element('Content-Encoding', blob.content_encoding)}{element('Content-Language', blob.content_language)}"
        after = f"{element('Cache-Control', blob.cache_control)}{element('Content-Disposition', blob.content_disposition)}"
    if page.settings.tracks_access:
        after += f"<LastAccessTime>{rfc1123(last_access_of(blob))}</LastAccessTime>"
    plain = blob.blob_type is BlobType.BLOCK and blob.tier is None  # the most frequent case
    kind = _PLAIN if plain else f"{_sequence_number(blob)}<BlobType>{blob.blob_type.value}</BlobType>{_tier(blob, page)}"
    copied = _copy(blob.copy) if copy and blob.copy is not None else ""
    more = f"<TagCount>{len(blob.tags)}</TagCount>" if blob.tags else ""
    sealed = "<Sealed>true</Sealed>" if blob.sealed else ""
    shown_metadata = metadata_element(blob.metadata) if metadata else ""
    if blob.rare is not None:
        retention = _rare(blob.rare, copy=copy) + retention
        sealed += _lasting(blob.rare)
        if metadata and blob.rare.key_sha256 is not None:
            shown_metadata = '<Metadata Encrypted="true" />'
    asked = shown_metadata + (_tags(blob.tags) if tags and blob.tags else "")
    return (
        f"<Blob>{_name(blob.name)}{state}<Properties><Creation-Time>{created}</Creation-Time>"
        f"<Last-Modified>{modified}</Last-Modified><Etag>0x{blob.etag:X}</Etag>"
        f"<Content-Length>{blob.size}</Content-Length><Content-Type>{_escaped(blob.content_type)}</Content-Type>{before}"
        f"<Content-CRC64 />{md5}{after}{kind}{lease}{copied}<ServerEncrypted>true</ServerEncrypted>{retention}{more}"
        f"{sealed}</Properties>{asked}<OrMetadata /></Blob>"
    )


def _rare(rare: RareProperties, *, copy: bool) -> str:
    shown = ""
    if rare.key_sha256 is not None:
        digest = b2a_base64(rare.key_sha256, newline=False).decode()
        shown += f"<CustomerProvidedKeySha256>{digest}</CustomerProvidedKeySha256>"
    if rare.encryption_scope is not None:
        shown += element("EncryptionScope", rare.encryption_scope)
    if rare.incremental is None or not copy:
        return shown
    moment = iso(rare.incremental.snapshot)
    return f"{shown}<IncrementalCopy>true</IncrementalCopy><CopyDestinationSnapshot>{moment}</CopyDestinationSnapshot>"


def _lasting(rare: RareProperties) -> str:
    """Expiry, immutability policy and legal hold. They are shown whether the request includes them or not."""
    shown = f"<Expiry-Time>{rfc1123(rare.expires)}</Expiry-Time>" if rare.expires is not None else ""
    if rare.policy is not None:
        shown += f"<ImmutabilityPolicyUntilDate>{rfc1123(rare.policy.until)}</ImmutabilityPolicyUntilDate>"
        shown += f"<ImmutabilityPolicyMode>{rare.policy.mode}</ImmutabilityPolicyMode>"
    return shown + ("<LegalHold>true</LegalHold>" if rare.legal_hold else "")


def _former(blob: Blob) -> str:
    """The snapshot or version that a record is, when it is not the current blob."""
    deleted = "<Deleted>true</Deleted>" if isinstance(blob, DeletedBlob) else ""
    if isinstance(blob, Snapshot | DeletedSnapshot):
        return f"{deleted}<Snapshot>{iso(blob.snapshot)}</Snapshot>"
    return f"{deleted}<VersionId>{iso(blob.version_id)}</VersionId>" if blob.version_id is not None else deleted


def retention_elements(deleted: int, expires: int, now: int) -> str:
    days = (expires - now) // _DAY
    return f"<DeletedTime>{rfc1123(deleted)}</DeletedTime><RemainingRetentionDays>{days}</RemainingRetentionDays>"


def _uncommitted(staged: StagedBlob) -> str:
    """A blob with only uncommitted blocks has a name, but no Last-Modified and no Etag."""
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


def _tier(blob: Blob, page: BlobPage) -> str:
    if blob.blob_type is BlobType.PAGE:
        return _page_tier(blob, page.settings)
    if blob.tier is None:
        return _INFERRED
    tier = tier_state_of(blob, page.now)
    changed = f"<AccessTierChangeTime>{rfc1123(tier.changed)}</AccessTierChangeTime>" if tier.changed else ""
    pending = ""
    if tier.rehydration is not None:
        priority = tier.rehydration.priority
        pending = f"<ArchiveStatus>{tier.archive_status}</ArchiveStatus><RehydratePriority>{priority}</RehydratePriority>"
    smart = f"<SmartAccessTier>{smart_tier_of(blob, page.now)}</SmartAccessTier>" if tier.tier == SMART else ""
    return f"<AccessTier>{tier.tier}</AccessTier>{pending}{changed}{smart}"


def _page_tier(blob: Blob, settings: BlobSettings) -> str:
    """Only page blobs of premium accounts have a tier."""
    if blob.tier is not None:
        return f"<AccessTier>{blob.tier}</AccessTier>"
    if not settings.premium:
        return ""
    return f"<AccessTier>{inferred_page_tier(blob.size)}</AccessTier><AccessTierInferred>true</AccessTierInferred>"


def _copy(copy: CopyState) -> str:
    completed = rfc1123(copy.completed) if copy.completed is not None else None
    description = status_description(copy)
    return (
        f"<CopyId>{copy.id}</CopyId><CopyStatus>{copy.status.value}</CopyStatus>{element('CopySource', copy.source)}"
        f"<CopyProgress>{copy.copied}/{copy.total}</CopyProgress>"
        f"{element('CopyCompletionTime', completed) if completed else ''}"
        f"{element('CopyStatusDescription', description) if description else ''}"
    )


def lease_elements(lease: Lease | None, now: int) -> str:
    state = state_of(lease, now)
    duration = duration_of(lease, now)
    tail = f"<LeaseDuration>{duration}</LeaseDuration>" if duration else ""
    return f"<LeaseStatus>{lease_status(state)}</LeaseStatus><LeaseState>{state.value}</LeaseState>{tail}"


def metadata_element(metadata: dict[str, str]) -> str:
    if not metadata:
        return "<Metadata />"
    return f"<Metadata>{''.join([element(name, value) for name, value in metadata.items()])}</Metadata>"


def _tags(tags: dict[str, str]) -> str:
    rows = "".join([f"<Tag>{element('Key', key)}{element('Value', value)}</Tag>" for key, value in tags.items()])
    return f"<Tags><TagSet>{rows}</TagSet></Tags>"
