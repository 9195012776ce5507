"""The header groups of responses that functions read from a result: headers that come together, or depend on each other."""

from binascii import b2a_base64
from typing import Protocol
from urllib.parse import quote

from verditer.core.dates import iso, rfc1123
from verditer.core.immutability import ImmutabilityPolicy
from verditer.core.lease import Lease, duration_of, state_of
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.container import BlobSettings
from verditer.core.records.copy import CopyState
from verditer.core.tiers import SMART, inferred_page_tier
from verditer.core.tiers import state_of as tier_state_of
from verditer.rest.codecs import etag as etags
from verditer.rest.codecs.copies import status_description
from verditer.rest.codecs.leases import lease_status
from verditer.rest.operation import HeaderOut, header
from verditer.services.blob.answers import BlobRead, BlockLists, ContainerState, Removed, Written
from verditer.services.blob.last_access import last_access_of, smart_tier_of
from verditer.services.blob.protection import HoldSet, PolicySet
from verditer.services.blob.query.service import QueryResult
from verditer.services.properties import AccountInformation
from verditer.services.queue.queues import QueueState

_URL_CHARACTERS = "%/:?#[]@!$&'()*+,;=~-._"
ACCOUNT_KEY = "$account-encryption-key"
TIER_READ_SINCE = "2026-10-06"


class HasBlob(Protocol):
    """A result about a blob."""

    @property
    def blob(self) -> Blob: ...


class BlobAtTime(HasBlob, Protocol):
    """A result about a blob, whose lease and tier depend on the time."""

    @property
    def now(self) -> int: ...

    @property
    def settings(self) -> BlobSettings: ...


def base64_text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def stamp(path: str) -> tuple[HeaderOut, ...]:
    """ETag and Last-Modified are two forms of one number: the tick of the last write."""
    return (header("ETag", path, etags.show), header("Last-Modified", path, rfc1123))


def lease_headers(lease: Lease | None, now: int) -> list[tuple[str, str]]:
    if lease is None:
        return _AVAILABLE
    state, duration = state_of(lease, now), duration_of(lease, now)
    shown = [("x-ms-lease-status", lease_status(state)), ("x-ms-lease-state", state.value)]
    return [*shown, ("x-ms-lease-duration", duration)] if duration else shown


_AVAILABLE = [("x-ms-lease-status", "unlocked"), ("x-ms-lease-state", "available")]


def container_lease(result: ContainerState) -> list[tuple[str, str]]:
    return lease_headers(result.container.lease, result.now)


def blob_lease(result: BlobAtTime) -> list[tuple[str, str]]:
    """Snapshots and versions cannot be leased."""
    return lease_headers(result.blob.lease, result.now) if type(result.blob) is Blob else []


def container_metadata(result: ContainerState) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.container.metadata.items()]


def queue_metadata(result: QueueState) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.queue.metadata.items()]


def blob_metadata(result: HasBlob) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.blob.metadata.items()]


def blob_range(read: BlobRead) -> list[tuple[str, str]]:
    """In the answer to a range request Content-MD5 is the checksum of the range, and that of the blob has another name."""
    blob_md5 = read.blob.content_md5
    if not read.ranged:
        return [("Content-MD5", base64_text(blob_md5))] if blob_md5 is not None else []
    headers = [("Content-Range", f"bytes {read.start}-{read.start + read.length - 1}/{read.blob.size}")]
    if read.range_md5 is not None:
        headers.append(("Content-MD5", base64_text(read.range_md5)))
    if read.range_crc64 is not None:
        headers.append(("x-ms-content-crc64", base64_text(read.range_crc64)))
    if blob_md5 is not None:
        headers.append(("x-ms-blob-content-md5", base64_text(blob_md5)))
    return headers


def blob_kind(result: HasBlob) -> list[tuple[str, str]]:
    """Headers that only page blobs or only append blobs have."""
    blob = result.blob
    if blob.blob_type is BlobType.BLOCK:
        return []
    if blob.blob_type is BlobType.PAGE:
        return [("x-ms-blob-sequence-number", str(blob.sequence_number))]
    sealed = [("x-ms-blob-sealed", "true")] if blob.sealed else []
    return [("x-ms-blob-committed-block-count", str(blob.block_count)), *sealed]


def blob_tier(state: BlobAtTime) -> list[tuple[str, str]]:
    blob = state.blob
    if blob.blob_type is BlobType.PAGE:
        return _page_tier(blob, state.settings)
    if blob.tier is None:
        return [("x-ms-access-tier", "Hot"), ("x-ms-access-tier-inferred", "true")]
    tier = tier_state_of(blob, state.now)
    headers = [("x-ms-access-tier", tier.tier or "")]
    if tier.changed is not None:
        headers.append(("x-ms-access-tier-change-time", rfc1123(tier.changed)))
    if tier.tier == SMART:
        headers.append(("x-ms-smart-access-tier", smart_tier_of(blob, state.now)))
    if tier.rehydration is not None:
        headers += [("x-ms-archive-status", tier.archive_status or ""), ("x-ms-rehydrate-priority", tier.rehydration.priority)]
    return headers


def _page_tier(blob: Blob, settings: BlobSettings) -> list[tuple[str, str]]:
    """Only page blobs of premium accounts have a tier. Azure does not answer when it changed (seen)."""
    if blob.tier is not None:
        return [("x-ms-access-tier", blob.tier)]
    if not settings.premium:
        return []
    return [("x-ms-access-tier", inferred_page_tier(blob.size)), ("x-ms-access-tier-inferred", "true")]


def blob_rare(state: BlobAtTime) -> list[tuple[str, str]]:
    """Headers that few blobs have."""
    headers = [("x-ms-last-access-time", rfc1123(last_access_of(state.blob)))] if state.settings.tracks_access else []
    rare = state.blob.rare
    if rare is None:
        return headers
    headers += _encryption_headers(rare.key_sha256, rare.encryption_scope)
    if rare.policy is not None:
        headers += policy_headers(rare.policy)
    if rare.legal_hold:
        headers.append(("x-ms-legal-hold", "true"))
    if rare.expires is not None:
        headers.append(("x-ms-expiry-time", rfc1123(rare.expires)))
    if rare.incremental is not None:
        headers += [("x-ms-incremental-copy", "true"), ("x-ms-copy-destination-snapshot", iso(rare.incremental.snapshot))]
    return headers


def encrypted(written: Written) -> list[tuple[str, str]]:
    """Everything is stored encrypted as far as clients can tell. A key or a scope is named."""
    shown = written.encryption
    return _ENCRYPTED if shown is None else [*_ENCRYPTED, *_encryption_headers(shown.key_sha256, shown.scope)]


def copied_under(written: Written) -> list[tuple[str, str]]:
    """Copy Blob From URL answers only the scope."""
    return [] if written.encryption is None else _encryption_headers(None, written.encryption.scope)


_ENCRYPTED = [("x-ms-request-server-encrypted", "true")]


def _encryption_headers(key_sha256: bytes | None, scope: str | None) -> list[tuple[str, str]]:
    headers = [("x-ms-encryption-key-sha256", base64_text(key_sha256))] if key_sha256 is not None else []
    return [*headers, ("x-ms-encryption-scope", scope)] if scope is not None else headers


def policy_headers(policy: ImmutabilityPolicy) -> list[tuple[str, str]]:
    return [
        ("x-ms-immutability-policy-until-date", rfc1123(policy.until)),
        ("x-ms-immutability-policy-mode", policy.mode),
    ]


def policy_set(result: PolicySet) -> list[tuple[str, str]]:
    return policy_headers(result.policy)


def hold_set(result: HoldSet) -> list[tuple[str, str]]:
    return [("x-ms-legal-hold", "true" if result.legal_hold else "false")]


def container_protection(result: ContainerState) -> list[tuple[str, str]]:
    protection, encryption = result.container.protection, result.container.encryption
    if protection is None and encryption is None:
        return _UNPROTECTED
    held, policy = protection is not None and protection.legal_holds, protection is not None and protection.has_policy
    return [
        ("x-ms-has-immutability-policy", _flag(policy)),
        ("x-ms-has-legal-hold", _flag(held)),
        ("x-ms-default-encryption-scope", encryption.scope if encryption is not None else ACCOUNT_KEY),
        ("x-ms-deny-encryption-scope-override", _flag(encryption is not None and encryption.no_override)),
        ("x-ms-immutable-storage-with-versioning-enabled", _flag(protection is not None and protection.version_level)),
    ]


def _flag(value: object) -> str:
    return "true" if value else "false"


_UNPROTECTED = [
    ("x-ms-has-immutability-policy", "false"),
    ("x-ms-has-legal-hold", "false"),
    ("x-ms-default-encryption-scope", ACCOUNT_KEY),
    ("x-ms-deny-encryption-scope-override", "false"),
    ("x-ms-immutable-storage-with-versioning-enabled", "false"),
]


def read_tier(read: BlobRead) -> list[tuple[str, str]]:
    """Get Blob shows the tier only from a recent version on."""
    return blob_tier(read) if read.version >= TIER_READ_SINCE else []


def blob_copy(result: HasBlob) -> list[tuple[str, str]]:
    return copy_headers(result.blob.copy)


def copy_headers(copy: CopyState | None) -> list[tuple[str, str]]:
    if copy is None:
        return []
    headers = [
        ("x-ms-copy-id", copy.id),
        ("x-ms-copy-source", _ascii(copy.source)),
        ("x-ms-copy-status", copy.status.value),
        ("x-ms-copy-progress", f"{copy.copied}/{copy.total}"),
    ]
    if copy.completed is not None:
        headers.append(("x-ms-copy-completion-time", rfc1123(copy.completed)))
    description = status_description(copy)
    if description is not None:
        headers.append(("x-ms-copy-status-description", description))
    return headers


def _ascii(url: str) -> str:
    return url if url.isascii() else quote(url, safe=_URL_CHARACTERS)


def blob_version(result: HasBlob) -> list[tuple[str, str]]:
    blob = result.blob
    if blob.version_id is None:
        return []
    current = [("x-ms-is-current-version", "true")] if type(blob) is Blob else []
    return [("x-ms-version-id", iso(blob.version_id)), *current]


def tag_count(result: HasBlob) -> str | None:
    tags = result.blob.tags
    return str(len(tags)) if tags else None


def queried(result: QueryResult) -> list[tuple[str, str]]:
    """What the answer to a query says about the blob."""
    read = result.read
    kind = [("x-ms-blob-type", read.blob.blob_type.value), ("x-ms-creation-time", rfc1123(read.blob.created))]
    return [*kind, *blob_lease(read), *blob_version(read), *blob_rare(read), *blob_metadata(read)]


def is_permanent(result: Removed) -> str:
    return "true" if result.permanent else "false"


def is_hierarchical(result: AccountInformation) -> str:
    return "true" if result.is_hns_enabled else "false"


def block_list_blob(lists: BlockLists) -> list[tuple[str, str]]:
    """A blob that has only uncommitted blocks has neither ETag nor Last-Modified, and its length is 0."""
    if lists.blob is None:
        return [("x-ms-blob-content-length", "0")]
    etag = lists.blob.etag
    return [("ETag", etags.show(etag)), ("Last-Modified", rfc1123(etag)), ("x-ms-blob-content-length", str(lists.blob.size))]
