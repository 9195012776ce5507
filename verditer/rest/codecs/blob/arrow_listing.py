"""The page of List Blobs as an Apache Arrow stream, which newer clients ask for. Needs the extra `arrow`.

A column is named like the element of the XML form. Times are seconds, metadata and tags are maps; the marker of the next page and
the number of records are metadata of the schema (seen on Azure).
"""

import importlib.util
from binascii import b2a_base64
from functools import cache
from typing import Any

from verditer.core.dates import TICKS_PER_SECOND, UNIX_EPOCH, iso, seconds
from verditer.core.lease import duration_of, state_of
from verditer.core.records.blob import Blob, BlobType, DeletedBlob, DeletedSnapshot, RareProperties, Snapshot, StagedBlob
from verditer.core.tiers import SMART, inferred_page_tier
from verditer.core.tiers import state_of as tier_state_of
from verditer.rest.codecs.copies import status_description
from verditer.rest.codecs.leases import lease_status
from verditer.rest.http.message import Response
from verditer.services.blob.answers import BlobPage, ListedItem, Prefix, VersionsOnly
from verditer.services.blob.last_access import last_access_of, smart_tier_of

MEDIA_TYPE = "application/vnd.apache.arrow.stream"
SINCE = "2026-10-06"
_DAY = seconds(86400)
_TEXTS = """
    Name Snapshot VersionId Etag Content-Type Content-Encoding Content-Language Content-MD5 Cache-Control Content-Disposition
    BlobType AccessTier ArchiveStatus RehydratePriority SmartAccessTier LeaseStatus LeaseState LeaseDuration CopyId CopySource
    CopyStatus CopyProgress CopyStatusDescription CopyDestinationSnapshot CustomerProvidedKeySha256 EncryptionScope
    ImmutabilityPolicyMode ResourceType
"""
_FLAGS = "Deleted IsCurrentVersion HasVersionsOnly AccessTierInferred ServerEncrypted IncrementalCopy Sealed LegalHold"
_TIMES = """
    Creation-Time Last-Modified LastAccessTime AccessTierChangeTime CopyCompletionTime DeletedTime Expiry-Time
    ImmutabilityPolicyUntilDate
"""
_NUMBERS = "Content-Length x-ms-blob-sequence-number RemainingRetentionDays TagCount"


def is_served(version: str) -> bool:
    return version >= SINCE and _is_installed()


@cache
def _is_installed() -> bool:
    return importlib.util.find_spec("pyarrow") is not None


def render_arrow(page: BlobPage, *, metadata: bool, tags: bool, copy: bool) -> Response:
    import pyarrow as pa  # an extra, and importing it takes time

    rows = [_row(item, page, metadata=metadata, tags=tags, copy=copy) for item in page.items]
    used = {name for row in rows for name in row} | {"Name", "ResourceType"}
    fields = [(name, kind) for name, kind in _columns() if name in used]
    about = {"NumberOfRecords": str(len(rows)), "NextMarker": page.next_marker}
    schema = pa.schema(fields, metadata=about)
    columns = [pa.array([row.get(name) for row in rows], kind) for name, kind in fields]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema))
    return Response(status=200, headers=[("Content-Type", MEDIA_TYPE)], body=sink.getvalue().to_pybytes())


@cache
def _columns() -> tuple[tuple[str, Any], ...]:
    import pyarrow as pa

    pairs = pa.map_(pa.string(), pa.string())
    kinds = {_TEXTS: pa.string(), _FLAGS: pa.bool_(), _TIMES: pa.timestamp("s"), _NUMBERS: pa.int64(), "Metadata Tags": pairs}
    return tuple((name, kind) for names, kind in kinds.items() for name in names.split())


def _row(item: ListedItem, page: BlobPage, *, metadata: bool, tags: bool, copy: bool) -> dict[str, Any]:
    if isinstance(item, Prefix):
        return {"Name": item.name, "ResourceType": "blobprefix"}
    if isinstance(item, StagedBlob):
        return {"Name": item.name, "ResourceType": "blob", "BlobType": "BlockBlob", "Content-Length": 0, "ServerEncrypted": True}
    blob = item.latest if isinstance(item, VersionsOnly) else item
    row = {"ResourceType": "blob"} | _properties(blob, page) | _tier(blob, page) | _state(item, blob, page.now)
    if blob.rare is not None:
        row |= _rare(blob.rare)
    if copy:
        row |= _copy(blob)
    if metadata and not (blob.rare is not None and blob.rare.key_sha256 is not None):
        row["Metadata"] = list(blob.metadata.items())
    if tags and blob.tags:
        row["Tags"] = list(blob.tags.items())
    return {name: value for name, value in row.items() if value is not None}


def _properties(blob: Blob, page: BlobPage) -> dict[str, Any]:
    return {
        "Name": blob.name,
        "Creation-Time": _unix(blob.created),
        "Last-Modified": _unix(blob.etag),
        "Etag": f"0x{blob.etag:X}",
        "Content-Length": blob.size,
        "Content-Type": blob.content_type,
        "Content-Encoding": blob.content_encoding,
        "Content-Language": blob.content_language,
        "Content-MD5": b2a_base64(blob.content_md5, newline=False).decode() if blob.content_md5 is not None else None,
        "Cache-Control": blob.cache_control,
        "Content-Disposition": blob.content_disposition,
        "LastAccessTime": _unix(last_access_of(blob)) if page.settings.tracks_access else None,
        "x-ms-blob-sequence-number": blob.sequence_number,
        "BlobType": blob.blob_type.value,
        "ServerEncrypted": True,
        "TagCount": len(blob.tags) if blob.tags else None,
        "Sealed": True if blob.sealed else None,
    }


def _tier(blob: Blob, page: BlobPage) -> dict[str, Any]:
    if blob.blob_type is BlobType.PAGE:
        if blob.tier is None and page.settings.premium:
            return {"AccessTier": inferred_page_tier(blob.size), "AccessTierInferred": True}
        return {"AccessTier": blob.tier}
    if blob.tier is None:
        return {"AccessTier": "Hot", "AccessTierInferred": True}
    tier = tier_state_of(blob, page.now)
    return {
        "AccessTier": tier.tier,
        "AccessTierChangeTime": _unix(tier.changed),
        "ArchiveStatus": tier.archive_status,
        "RehydratePriority": tier.rehydration.priority if tier.rehydration is not None else None,
        "SmartAccessTier": smart_tier_of(blob, page.now) if tier.tier == SMART else None,
    }


def _state(item: Blob | VersionsOnly, blob: Blob, now: int) -> dict[str, Any]:
    """What the record is: the blob with its lease, a snapshot, a version, a deleted one."""
    if isinstance(item, VersionsOnly):
        return {"HasVersionsOnly": True}
    version = iso(blob.version_id) if blob.version_id is not None else None
    if type(blob) is Blob:
        state = state_of(blob.lease, now)
        lease = {"LeaseStatus": lease_status(state), "LeaseState": state.value, "LeaseDuration": duration_of(blob.lease, now)}
        return lease | ({"VersionId": version, "IsCurrentVersion": True} if version is not None else {})
    row: dict[str, Any] = {}
    if isinstance(blob, DeletedBlob):
        days = (blob.expires - now) // _DAY
        row = {"Deleted": True, "DeletedTime": _unix(blob.deleted), "RemainingRetentionDays": days}
    if isinstance(blob, Snapshot | DeletedSnapshot):
        return row | {"Snapshot": iso(blob.snapshot)}
    return row | {"VersionId": version}


def _rare(rare: RareProperties) -> dict[str, Any]:
    digest = rare.key_sha256
    return {
        "CustomerProvidedKeySha256": b2a_base64(digest, newline=False).decode() if digest is not None else None,
        "EncryptionScope": rare.encryption_scope,
        "Expiry-Time": _unix(rare.expires),
        "ImmutabilityPolicyUntilDate": _unix(rare.policy.until) if rare.policy is not None else None,
        "ImmutabilityPolicyMode": rare.policy.mode if rare.policy is not None else None,
        "LegalHold": True if rare.legal_hold else None,
    }


def _copy(blob: Blob) -> dict[str, Any]:
    copy = blob.copy
    if copy is None:
        return {}
    incremental = blob.rare.incremental if blob.rare is not None else None
    return {
        "CopyId": copy.id,
        "CopySource": copy.source,
        "CopyStatus": copy.status.value,
        "CopyProgress": f"{copy.copied}/{copy.total}",
        "CopyCompletionTime": _unix(copy.completed),
        "CopyStatusDescription": status_description(copy),
        "IncrementalCopy": True if incremental is not None else None,
        "CopyDestinationSnapshot": iso(incremental.snapshot) if incremental is not None else None,
    }


def _unix(ticks: int | None) -> int | None:
    return (ticks - UNIX_EPOCH) // TICKS_PER_SECOND if ticks is not None else None
