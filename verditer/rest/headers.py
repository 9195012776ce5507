"""The header groups: what operations take from a request and what they answer, as tables.

A field is spelled here once. `Takes` groups fill the structs of the services; `HeaderOut` groups read their results.
"""

import base64
from collections.abc import Callable
from typing import Any

from verditer.core import etag as etags
from verditer.core.dates import iso, rfc1123
from verditer.core.lease import duration_of, state_of
from verditer.core.records.blob import Snapshot
from verditer.rest import values as v
from verditer.rest.operation import HeaderOut, Param, Takes

# --- what requests bring --------------------------------------------------------------------------------------------------

NOTHING = Takes()
METADATA = Takes(metadata=True)
LEASE_ACTION = Takes(lease_request=True)

# fmt: off
VERSION = Takes((
    Param("version",             "x-ms-version",                  v.text),
))
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
RANGE = Takes((
    Param("range",               "range",                         v.byte_range),
    Param("range",               "x-ms-range",                    v.byte_range),
    Param("range_md5",           "x-ms-range-get-content-md5",    v.flag),
    Param("range_crc64",         "x-ms-range-get-content-crc64",  v.flag),
))
PUBLIC_ACCESS = Takes((
    Param("public_access",       "x-ms-blob-public-access",       v.public_access),
))
DELETE_SNAPSHOTS = Takes((
    Param("delete_snapshots",    "x-ms-delete-snapshots",         v.delete_snapshots),
))
SNAPSHOT = Takes((
    Param("snapshot",            "snapshot",                      v.snapshot, query=True),
))
BLOCK_ID = Takes((
    Param("block_id",            "blockid",                       v.block_id, query=True, required=True),
))
BLOCK_LIST_TYPE = Takes((
    Param("block_list_type",     "blocklisttype",                 v.block_list_type, query=True),
))
PAGE = Takes((
    Param("prefix",              "prefix",                        v.text, query=True),
    Param("marker",              "marker",                        v.text, query=True),
    Param("max_results",         "maxresults",                    v.max_results, query=True),
))
CONTAINER_LISTING = PAGE | Takes((
    Param("include",             "include",                       v.container_include, query=True),
))
BLOB_LISTING = PAGE | Takes((
    Param("delimiter",           "delimiter",                     v.text, query=True),
    Param("include",             "include",                       v.list_include, query=True),
    Param("start_from",          "startfrom",                     v.text, query=True),
))
# fmt: on

# --- what answers carry ---------------------------------------------------------------------------------------------------


def _of(path: str, show: Callable[[Any], str] = str) -> Callable[[Any], str | None]:
    """Read an attribute of the result (`blob.size`), shown as text; None stays away."""
    names = path.split(".")

    def value(result: Any) -> str | None:
        for name in names:
            result = getattr(result, name)
        return None if result is None else show(result)

    return value


def base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _true(value: Any) -> str:
    return "true"


def _written(path: str) -> tuple[HeaderOut, ...]:
    return (("ETag", _of(path, etags.show)), ("Last-Modified", _of(path, rfc1123)))


def _lease(noun: str) -> tuple[HeaderOut, ...]:
    return (
        ("x-ms-lease-status", lambda result: state_of(getattr(result, noun).lease, result.now).status),
        ("x-ms-lease-state", lambda result: state_of(getattr(result, noun).lease, result.now).value),
        ("x-ms-lease-duration", lambda result: duration_of(getattr(result, noun).lease, result.now)),
    )


def _content_range(read: Any) -> str:
    return f"bytes {read.start}-{read.start + read.length - 1}/{read.blob.size}"


def _unless_snapshot(group: tuple[HeaderOut, ...]) -> tuple[HeaderOut, ...]:
    """Snapshots have no lease and no tier inferred from the account."""

    def guarded(value: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
        return lambda result: None if isinstance(result.blob, Snapshot) else value(result)

    return tuple((name, guarded(value)) for name, value in group)


# fmt: off
WRITTEN: tuple[HeaderOut, ...] = _written("etag")
STAMP_CONTAINER = _written("container.etag")
STAMP_BLOB = _written("blob.etag")
ENCRYPTED: tuple[HeaderOut, ...] = (("x-ms-request-server-encrypted", _true),)
RECEIVED: tuple[HeaderOut, ...] = (
    ("Content-MD5",                 _of("content_md5", base64_text)),
    ("x-ms-content-crc64",          _of("content_crc64", base64_text)),
    *ENCRYPTED,
)
SNAPSHOT_TIME: tuple[HeaderOut, ...] = (("x-ms-snapshot", _of("snapshot", iso)),)
DELETED: tuple[HeaderOut, ...] = (("x-ms-delete-type-permanent", _true),)
LEASED: tuple[HeaderOut, ...] = (
    ("x-ms-lease-id",               _of("lease_id")),
    ("x-ms-lease-time",             _of("lease_time")),
)
CONTAINER_ACCESS: tuple[HeaderOut, ...] = (
    ("x-ms-blob-public-access",     _of("container.public_access")),
)
CONTAINER_PROPERTIES: tuple[HeaderOut, ...] = (
    *STAMP_CONTAINER,
    *_lease("container"),
    *CONTAINER_ACCESS,
    ("x-ms-has-immutability-policy",        lambda result: "false"),
    ("x-ms-has-legal-hold",                 lambda result: "false"),
    ("x-ms-default-encryption-scope",       lambda result: "$account-encryption-key"),
    ("x-ms-deny-encryption-scope-override", lambda result: "false"),
    ("x-ms-immutable-storage-with-versioning-enabled", lambda result: "false"),
)
BLOB_PROPERTIES: tuple[HeaderOut, ...] = (
    *STAMP_BLOB,
    ("Accept-Ranges",               lambda result: "bytes"),
    ("Content-Type",                _of("blob.content_type")),
    ("Content-Encoding",            _of("blob.content_encoding")),
    ("Content-Language",            _of("blob.content_language")),
    ("Content-Disposition",         _of("blob.content_disposition")),
    ("Cache-Control",               _of("blob.cache_control")),
    ("x-ms-blob-type",              _of("blob.blob_type.value")),
    ("x-ms-creation-time",          _of("blob.created", rfc1123)),
    ("x-ms-server-encrypted",       _true),
    ("x-ms-tag-count",              lambda result: str(len(result.blob.tags)) if result.blob.tags else None),
    *_unless_snapshot(_lease("blob")),
)
BLOB_TIER: tuple[HeaderOut, ...] = (
    ("Content-MD5",                 _of("blob.content_md5", base64_text)),
    ("x-ms-access-tier",            lambda result: result.blob.tier or "Hot"),
    ("x-ms-access-tier-inferred",   lambda result: None if result.blob.tier else "true"),
    ("x-ms-access-tier-change-time", _of("blob.tier_changed", rfc1123)),
)
BLOB_RANGE: tuple[HeaderOut, ...] = (
    ("Content-Range", lambda read: _content_range(read) if read.ranged else None),
    ("Content-MD5", lambda read: base64_text(md5) if (md5 := read.range_md5 if read.ranged else read.blob.content_md5) else None),
    ("x-ms-blob-content-md5", lambda read: base64_text(read.blob.content_md5) if read.ranged and read.blob.content_md5 else None),
    ("x-ms-content-crc64",          _of("range_crc64", base64_text)),
)
BLOCK_LIST: tuple[HeaderOut, ...] = (
    ("ETag",                        lambda lists: etags.show(lists.blob.etag) if lists.blob is not None else None),
    ("Last-Modified",               lambda lists: rfc1123(lists.blob.etag) if lists.blob is not None else None),
    ("x-ms-blob-content-length",    lambda lists: str(lists.blob.size if lists.blob is not None else 0)),
)
ACCOUNT_INFORMATION: tuple[HeaderOut, ...] = (
    ("x-ms-sku-name",               _of("sku_name")),
    ("x-ms-account-kind",           _of("account_kind")),
    ("x-ms-is-hns-enabled",         lambda result: "true" if result.is_hns_enabled else "false"),
)
# fmt: on
