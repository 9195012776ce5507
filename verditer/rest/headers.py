"""The header groups: what operations take from a request and what they answer, as tables.

A field is spelled here once. `Takes` groups fill the structs of the services; `HeaderOut` groups read their results.
"""

from binascii import b2a_base64
from collections.abc import Callable
from operator import attrgetter
from typing import Any
from urllib.parse import quote

from verditer.core import etag as etags
from verditer.core.dates import iso, rfc1123
from verditer.core.lease import Lease, duration_of, state_of
from verditer.core.limits import MAX_MESSAGES, MAX_VISIBILITY_SECONDS
from verditer.core.records.blob import Blob, BlobType
from verditer.core.tiers import state_of as tier_state_of
from verditer.rest import values as v
from verditer.rest.codecs import odata
from verditer.rest.operation import HeaderOut, Param, Takes
from verditer.services.queue.current import show_receipt

_URL_CHARACTERS = "%/:?#[]@!$&'()*+,;=~-._"
TIER_READ_SINCE = "2026-10-06"
_VISIBILITY = v.number_from(0, MAX_VISIBILITY_SECONDS)

# --- what requests bring --------------------------------------------------------------------------------------------------

NOTHING = Takes()
METADATA = Takes(metadata=True)
LEASE_ACTION = Takes(lease_request=True)
STRUCTURED = Takes(structured=True)
VERSION = Takes(version=True)


def _not_built(*names: str, query: bool = False) -> Takes:
    """Asking for it is refused, since ignoring it would be a promise."""
    return Takes(tuple(Param("", name, v.not_built, query=query) for name in names))


READ_KEYS = _not_built("x-ms-encryption-key", "x-ms-encryption-scope")
KEYS = READ_KEYS | _not_built("x-ms-source-encryption-key") | _not_built("ses", query=True)  # of a SAS: the scope it writes to
LASTING = _not_built(
    "x-ms-immutability-policy-until-date", "x-ms-immutability-policy-mode", "x-ms-legal-hold", "x-ms-expiry-option"
)
CONTAINER_KEYS = _not_built("x-ms-default-encryption-scope", "x-ms-deny-encryption-scope-override")
LISTING_OPTIONS = _not_built("showonly", "endbefore", query=True)  # of a hierarchical namespace; of the Arrow form

# fmt: off
BLOB_HEADERS = Takes((  # the plain form first: the prefixed one, when sent, replaces it
    Param("content_type",        "content-type",                  v.text),
    Param("content_encoding",    "content-encoding",              v.text),
    Param("content_language",    "content-language",              v.text),
    Param("cache_control",       "cache-control",                 v.text),
    Param("content_type",        "x-ms-blob-content-type",        v.text),
    Param("content_encoding",    "x-ms-blob-content-encoding",    v.text),
    Param("content_language",    "x-ms-blob-content-language",    v.text),
    Param("cache_control",       "x-ms-blob-cache-control",       v.text),
    Param("content_disposition", "x-ms-blob-content-disposition", v.text),
    Param("blob_content_md5",    "x-ms-blob-content-md5",         v.md5),
))
PREFIXED_HEADERS = Takes(tuple(param for param in BLOB_HEADERS.params if param.wire.startswith("x-ms-")))
CHECKSUMS = Takes((
    Param("content_md5",         "content-md5",                   v.md5),
    Param("content_crc64",       "x-ms-content-crc64",            v.crc64),
))
TAGS = Takes((
    Param("tags",                "x-ms-tags",                     v.tag_set),
))
TIER = Takes((
    Param("tier",                "x-ms-access-tier",              v.access_tier),
))
NO_TIER = Takes((  # append blobs have none
    Param("",                    "x-ms-access-tier",              v.no_tier),
))
RANGE = Takes((
    Param("range",               "range",                         v.byte_range),
    Param("range",               "x-ms-range",                    v.byte_range),
    Param("range_md5",           "x-ms-range-get-content-md5",    v.flag),
    Param("range_crc64",         "x-ms-range-get-content-crc64",  v.flag),
))
PUBLIC_ACCESS = Takes((
    Param("public_access",       "x-ms-blob-public-access",       v.public_access),
))
DELETE_TYPE = Takes((
    Param("",                    "deletetype",                    v.no_such, query=True),
))
DELETE_SNAPSHOTS = DELETE_TYPE | Takes((
    Param("delete_snapshots",    "x-ms-delete-snapshots",         v.delete_snapshots),
))
SNAPSHOT = Takes((
    Param("snapshot",            "snapshot",                      v.snapshot, query=True),
))
VERSION_ID = Takes((
    Param("version_id",          "versionid",                     v.snapshot, query=True),
))
OLD_VERSION = DELETE_TYPE | Takes((
    Param("version_id",          "versionid",                     v.snapshot, query=True, required=True),
))
HISTORY = SNAPSHOT | VERSION_ID
NEW_TIER = Takes((
    Param("tier",                "x-ms-access-tier",              v.any_tier, required=True),
    Param("rehydrate_priority",  "x-ms-rehydrate-priority",       v.rehydrate_priority),
))
COPY = METADATA | TAGS | LASTING | Takes((
    Param("tier",                "x-ms-access-tier",              v.any_tier),
    Param("rehydrate_priority",  "x-ms-rehydrate-priority",       v.rehydrate_priority),
    Param("seal",                "x-ms-seal-blob",                v.flag),
))
SOURCE_MD5 = Takes((
    Param("content_md5",         "x-ms-source-content-md5",       v.md5),
))
SOURCE_CHECKSUMS = SOURCE_MD5 | Takes((
    Param("content_crc64",       "x-ms-source-content-crc64",     v.crc64),
))
SOURCE_RANGE = SOURCE_CHECKSUMS | Takes((
    Param("source_range",        "x-ms-source-range",             v.byte_range),
))
SOURCE_TAGS = Takes((
    Param("copy_tags",           "x-ms-copy-source-tag-option",   v.copies_tags),
))
SOURCE_PROPERTIES = Takes((
    Param("copy_properties",     "x-ms-copy-source-blob-properties", v.flag),
))
ABORT = Takes((
    Param("copy_id",             "copyid",                        v.guid, query=True, required=True),
    Param("action",              "x-ms-copy-action",              v.copy_action, required=True),
))
DELETED_CONTAINER = Takes((
    Param("deleted_name",        "x-ms-deleted-container-name",   v.text, required=True),
    Param("deleted_version",     "x-ms-deleted-container-version", v.container_version, required=True),
))
BLOCK_ID = Takes((
    Param("block_id",            "blockid",                       v.block_id, query=True, required=True),
))
APPEND_POSITION = Takes((
    Param("append_position",     "x-ms-blob-condition-appendpos", v.number),
))
APPEND_CONDITIONS = APPEND_POSITION | Takes((
    Param("max_size",            "x-ms-blob-condition-maxsize",   v.number),
))
NEW_PAGE_BLOB = Takes((
    Param("size",                "x-ms-blob-content-length",      v.number, required=True),
    Param("sequence_number",     "x-ms-blob-sequence-number",     v.number),
    Param("tier",                "x-ms-access-tier",              v.page_tier),
))
PAGE_PROPERTIES = PREFIXED_HEADERS | Takes((
    Param("size",                "x-ms-blob-content-length",      v.number),
    Param("sequence_action",     "x-ms-sequence-number-action",   v.sequence_action),
    Param("sequence_number",     "x-ms-blob-sequence-number",     v.number),
))
PAGES = VERSION | Takes((
    Param("range",               "range",                         v.page_range),
    Param("range",               "x-ms-range",                    v.page_range),
    Param("sequence_at_most",    "x-ms-if-sequence-number-le",    v.number),
    Param("sequence_below",      "x-ms-if-sequence-number-lt",    v.number),
    Param("sequence_equal",      "x-ms-if-sequence-number-eq",    v.number),
))
PAGE_WRITE = Takes((
    Param("page_write",          "x-ms-page-write",               v.page_write, required=True),
))
PAGE_RANGES = VERSION | HISTORY | Takes((
    Param("range",               "range",                         v.byte_range),
    Param("range",               "x-ms-range",                    v.byte_range),
    Param("marker",              "marker",                        v.text, query=True),
    Param("max_results",         "maxresults",                    v.max_page_ranges, query=True),
))
PREVIOUS_SNAPSHOT = Takes((
    Param("prev_snapshot",       "prevsnapshot",                  v.snapshot, query=True, required=True),
))
PREVIOUS_SNAPSHOT_URL = Takes((  # of managed disks, which there are none of
    Param("prev_snapshot",       "x-ms-previous-snapshot-url",    v.unsupported, required=True),
))
BLOCK_LIST_TYPE = Takes((
    Param("block_list_type",     "blocklisttype",                 v.block_list_type, query=True),
))
PAGE = Takes((
    Param("prefix",              "prefix",                        v.text, query=True),
    Param("marker",              "marker",                        v.text, query=True),
    Param("max_results",         "maxresults",                    v.max_results, query=True),
))
FIND = Takes((
    Param("where",               "where",                         v.text, query=True, required=True),
    Param("marker",              "marker",                        v.text, query=True),
    Param("max_results",         "maxresults",                    v.max_results, query=True),
    Param("include",             "include",                       v.find_include, query=True),
))
CONTAINER_LISTING = PAGE | Takes((
    Param("include",             "include",                       v.container_include, query=True),
))
QUEUE_LISTING = PAGE | Takes((
    Param("include",             "include",                       v.queue_include, query=True),
))
NEW_MESSAGE = VERSION | Takes((
    Param("visibility_seconds",  "visibilitytimeout",             _VISIBILITY, query=True),
    Param("ttl_seconds",         "messagettl",                    v.whole_number, query=True),
))
MESSAGE_COUNT = Takes((
    Param("count",               "numofmessages",                 v.number_from(1, MAX_MESSAGES), query=True),
))
RETRIEVAL = MESSAGE_COUNT | Takes((
    Param("visibility_seconds",  "visibilitytimeout",             v.number_from(1, MAX_VISIBILITY_SECONDS), query=True),
    Param("peek_only",           "peekonly",                      v.peek_only, query=True),
))
POP_RECEIPT = Takes((
    Param("pop_receipt",         "popreceipt",                    v.text, query=True, required=True),
))
NEW_VISIBILITY = Takes((
    Param("visibility_seconds",  "visibilitytimeout",             _VISIBILITY, query=True, required=True),
))
BLOB_LISTING = PAGE | LISTING_OPTIONS | Takes((
    Param("delimiter",           "delimiter",                     v.text, query=True),
    Param("include",             "include",                       v.list_include, query=True),
    Param("start_from",          "startfrom",                     v.text, query=True),
))
MATCH = Takes((
    Param("if_match",            "if-match",                      odata.entity_tag),
    Param("if_match",            "if-none-match",                 odata.refused),
))
NO_MATCH = Takes((
    Param("if_match",            "if-none-match",                 odata.refused),
))
UPSERT = NO_MATCH | Takes((
    Param("if_match",            "if-match",                      odata.entity_tag, blank=True),  # one with a value is an update
))
OTHER_OPTIONS = Takes(tuple(  # of OData, which Table does not have
    Param("top",                 option,                          odata.not_implemented, query=True)
    for option in ("$orderby", "$skip", "$expand", "$inlinecount", "$count")
))
TABLE_PAGE = OTHER_OPTIONS | Takes((
    Param("filter",              "$filter",                       odata.filter_text, query=True),
    Param("top",                 "$top",                          odata.page_size, query=True),
    Param("next_table",          "nexttablename",                 odata.parse_token, query=True, blank=True),
))
ENTITY_PAGE = OTHER_OPTIONS | Takes((
    Param("filter",              "$filter",                       odata.filter_text, query=True),
    Param("top",                 "$top",                          odata.page_size, query=True),
    Param("select_bytes",        "$select",                       odata.length, query=True),
    Param("next_partition",      "nextpartitionkey",              odata.parse_token, query=True, blank=True),
    Param("next_row",            "nextrowkey",                    odata.parse_token, query=True, blank=True),
))
# fmt: on

# --- what answers carry ---------------------------------------------------------------------------------------------------


def _of(name: str, path: str, show: Callable[[Any], str] | None = None) -> HeaderOut:
    """A header read from an attribute of the result (`blob.size`)."""
    return HeaderOut(name, attrgetter(path), show)


def base64_text(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode()


def _stamp(path: str) -> tuple[HeaderOut, ...]:
    """One number is both: the tick of the last write."""
    return (_of("ETag", path, etags.show), _of("Last-Modified", path, rfc1123))


def _lease(lease: Lease | None, now: int) -> list[tuple[str, str]]:
    if lease is None:
        return _AVAILABLE
    state, duration = state_of(lease, now), duration_of(lease, now)
    shown = [("x-ms-lease-status", state.status), ("x-ms-lease-state", state.value)]
    return [*shown, ("x-ms-lease-duration", duration)] if duration else shown


_AVAILABLE = [("x-ms-lease-status", "unlocked"), ("x-ms-lease-state", "available")]


def container_lease(result: Any) -> list[tuple[str, str]]:
    return _lease(result.container.lease, result.now)


def blob_lease(result: Any) -> list[tuple[str, str]]:
    """Snapshots and versions cannot be leased."""
    return _lease(result.blob.lease, result.now) if type(result.blob) is Blob else []


def container_metadata(result: Any) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.container.metadata.items()]


def queue_metadata(result: Any) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.queue.metadata.items()]


def blob_metadata(result: Any) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.blob.metadata.items()]


def blob_range(read: Any) -> list[tuple[str, str]]:
    """A range says which one it is; then Content-MD5 is the range's, and the blob's has a name of its own."""
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


def blob_kind(result: Any) -> list[tuple[str, str]]:
    """What only page blobs or only append blobs have."""
    blob = result.blob
    if blob.blob_type is BlobType.BLOCK:
        return []
    if blob.blob_type is BlobType.PAGE:
        return [("x-ms-blob-sequence-number", str(blob.sequence_number))]
    sealed = [("x-ms-blob-sealed", "true")] if blob.sealed else []
    return [("x-ms-blob-committed-block-count", str(blob.block_count)), *sealed]


def blob_tier(state: Any) -> list[tuple[str, str]]:
    blob = state.blob
    if blob.tier is None and blob.blob_type is BlobType.PAGE:
        return []  # only those of premium accounts have one
    if blob.tier is None:
        return [("x-ms-access-tier", "Hot"), ("x-ms-access-tier-inferred", "true")]
    tier = tier_state_of(blob, state.now)
    headers = [("x-ms-access-tier", tier.tier or "")]
    if tier.changed is not None:
        headers.append(("x-ms-access-tier-change-time", rfc1123(tier.changed)))
    if tier.rehydration is not None:
        headers += [("x-ms-archive-status", tier.archive_status or ""), ("x-ms-rehydrate-priority", tier.rehydration.priority)]
    return headers


def read_tier(read: Any) -> list[tuple[str, str]]:
    """Get Blob tells the tier as well, since a version that few clients speak yet."""
    return blob_tier(read) if read.version >= TIER_READ_SINCE else []


def blob_copy(result: Any) -> list[tuple[str, str]]:
    copy = result.blob.copy
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
    if copy.description is not None:
        headers.append(("x-ms-copy-status-description", copy.description))
    return headers


def _ascii(url: str) -> str:
    return url if url.isascii() else quote(url, safe=_URL_CHARACTERS)


def blob_version(result: Any) -> list[tuple[str, str]]:
    blob = result.blob
    if blob.version_id is None:
        return []
    current = [("x-ms-is-current-version", "true")] if type(blob) is Blob else []
    return [("x-ms-version-id", iso(blob.version_id)), *current]


def _count(tags: dict[str, str] | None) -> str | None:
    return str(len(tags)) if tags else None


# fmt: off
COPIED:           tuple[HeaderOut, ...] = (
    _of("x-ms-copy-id",                "copy_id"),
    _of("x-ms-copy-status",            "copy_status.value"),
)
STAMP:            tuple[HeaderOut, ...] = _stamp("etag")
STAMP_CONTAINER:  tuple[HeaderOut, ...] = _stamp("container.etag")
STAMP_BLOB:       tuple[HeaderOut, ...] = _stamp("blob.etag")
ENCRYPTED         = (("x-ms-request-server-encrypted", "true"),)
RECEIVED:         tuple[HeaderOut, ...] = (
    _of("Content-MD5",                 "content_md5", base64_text),
    _of("x-ms-content-crc64",          "content_crc64", base64_text),
)
REMOVED:          tuple[HeaderOut, ...] = (
    HeaderOut("x-ms-delete-type-permanent", lambda result: "true" if result.permanent else "false"),
)
NEW_VERSION:      tuple[HeaderOut, ...] = (
    _of("x-ms-version-id",             "version_id", iso),
)
SNAPSHOT_TIME:    tuple[HeaderOut, ...] = (
    _of("x-ms-snapshot",               "snapshot", iso),
)
LEASED:           tuple[HeaderOut, ...] = (
    _of("x-ms-lease-id",               "lease_id"),
    _of("x-ms-lease-time",             "lease_time", str),
)
CONTAINER_ACCESS: tuple[HeaderOut, ...] = (
    _of("x-ms-blob-public-access",     "container.public_access"),
)
CONTAINER_FIXED = (
    ("x-ms-has-immutability-policy",        "false"),
    ("x-ms-has-legal-hold",                 "false"),
    ("x-ms-default-encryption-scope",       "$account-encryption-key"),
    ("x-ms-deny-encryption-scope-override", "false"),
    ("x-ms-immutable-storage-with-versioning-enabled", "false"),
)
BLOB_FIXED = (
    ("Accept-Ranges",                  "bytes"),
    ("x-ms-server-encrypted",          "true"),
)
BLOB_PROPERTIES:  tuple[HeaderOut, ...] = (
    *STAMP_BLOB,
    _of("Content-Type",                "blob.content_type"),
    _of("Content-Encoding",            "blob.content_encoding"),
    _of("Content-Language",            "blob.content_language"),
    _of("Content-Disposition",         "blob.content_disposition"),
    _of("Cache-Control",               "blob.cache_control"),
    _of("x-ms-blob-type",              "blob.blob_type.value"),
    _of("x-ms-creation-time",          "blob.created", rfc1123),
    HeaderOut("x-ms-tag-count",        lambda result: _count(result.blob.tags)),
)
BLOB_MD5:         tuple[HeaderOut, ...] = (
    _of("Content-MD5",                 "blob.content_md5", base64_text),
)
BLOCK_LIST:       tuple[HeaderOut, ...] = (
    HeaderOut("ETag",                  lambda lists: lists.blob and lists.blob.etag, etags.show),
    HeaderOut("Last-Modified",         lambda lists: lists.blob and lists.blob.etag, rfc1123),
    HeaderOut("x-ms-blob-content-length", lambda lists: str(lists.blob.size if lists.blob is not None else 0)),
)
SEQUENCE_NUMBER:  tuple[HeaderOut, ...] = (
    _of("x-ms-blob-sequence-number",   "sequence_number", str),
)
APPENDED:         tuple[HeaderOut, ...] = (
    _of("x-ms-blob-append-offset",     "append_offset", str),
    _of("x-ms-blob-committed-block-count", "block_count", str),
)
SEALED            = (("x-ms-blob-sealed", "true"),)
PAGE_LIST:        tuple[HeaderOut, ...] = (
    *STAMP_BLOB,
    _of("x-ms-blob-content-length",    "blob.size", str),
)
ACCOUNT_INFORMATION: tuple[HeaderOut, ...] = (
    _of("x-ms-sku-name",               "sku_name"),
    _of("x-ms-account-kind",           "account_kind"),
    HeaderOut("x-ms-is-hns-enabled",   lambda result: "true" if result.is_hns_enabled else "false"),
)
MESSAGES_COUNT:   tuple[HeaderOut, ...] = (
    _of("x-ms-approximate-messages-count", "messages_count", str),
)
UPDATED_MESSAGE:  tuple[HeaderOut, ...] = (
    _of("x-ms-popreceipt",             "receipt", show_receipt),
    _of("x-ms-time-next-visible",      "visible", rfc1123),
)
# fmt: on
