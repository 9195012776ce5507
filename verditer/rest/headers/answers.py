"""The headers of responses, as tables: `HeaderOut` groups read the results of services."""

from verditer.core.dates import iso, rfc1123
from verditer.rest.codecs.queue.receipts import show_receipt
from verditer.rest.headers.groups import base64_text, is_hierarchical, is_permanent, stamp, tag_count
from verditer.rest.operation import HeaderOut, header

# fmt: off
COPIED:           tuple[HeaderOut, ...] = (
    header("x-ms-copy-id",                "copy_id"),
    header("x-ms-copy-status",            "copy_status.value"),
)
STAMP:            tuple[HeaderOut, ...] = stamp("etag")
STAMP_CONTAINER:  tuple[HeaderOut, ...] = stamp("container.etag")
STAMP_BLOB:       tuple[HeaderOut, ...] = stamp("blob.etag")
STAMP_QUERIED:    tuple[HeaderOut, ...] = stamp("read.blob.etag")
QUERIED           = (("Accept-Ranges", "bytes"), ("Content-Type", "avro/binary"), ("x-ms-server-encrypted", "true"))
ENCRYPTED         = (("x-ms-request-server-encrypted", "true"),)  # of files
RECEIVED:         tuple[HeaderOut, ...] = (
    header("Content-MD5",                 "content_md5", base64_text),
    header("x-ms-content-crc64",          "content_crc64", base64_text),
)
REMOVED:          tuple[HeaderOut, ...] = (
    HeaderOut("x-ms-delete-type-permanent", is_permanent),
)
NEW_VERSION:      tuple[HeaderOut, ...] = (
    header("x-ms-version-id",             "version_id", iso),
)
SNAPSHOT_TIME:    tuple[HeaderOut, ...] = (
    header("x-ms-snapshot",               "snapshot", iso),
)
LEASED:           tuple[HeaderOut, ...] = (
    header("x-ms-lease-id",               "lease_id"),
    header("x-ms-lease-time",             "lease_time", str),
)
CONTAINER_ACCESS: tuple[HeaderOut, ...] = (
    header("x-ms-blob-public-access",     "container.public_access"),
)
BLOB_FIXED = (
    ("Accept-Ranges",                  "bytes"),
    ("x-ms-server-encrypted",          "true"),
)
BLOB_PROPERTIES:  tuple[HeaderOut, ...] = (
    *STAMP_BLOB,
    header("Content-Type",                "blob.content_type"),
    header("Content-Encoding",            "blob.content_encoding"),
    header("Content-Language",            "blob.content_language"),
    header("Content-Disposition",         "blob.content_disposition"),
    header("Cache-Control",               "blob.cache_control"),
    header("x-ms-blob-type",              "blob.blob_type.value"),
    header("x-ms-creation-time",          "blob.created", rfc1123),
    HeaderOut("x-ms-tag-count",        tag_count),
)
BLOB_MD5:         tuple[HeaderOut, ...] = (
    header("Content-MD5",                 "blob.content_md5", base64_text),
)
SEQUENCE_NUMBER:  tuple[HeaderOut, ...] = (
    header("x-ms-blob-sequence-number",   "sequence_number", str),
)
APPENDED:         tuple[HeaderOut, ...] = (
    header("x-ms-blob-append-offset",     "append_offset", str),
    header("x-ms-blob-committed-block-count", "block_count", str),
)
SEALED            = (("x-ms-blob-sealed", "true"),)
PAGE_LIST:        tuple[HeaderOut, ...] = (
    *STAMP_BLOB,
    header("x-ms-blob-content-length",    "blob.size", str),
)
ACCOUNT_INFORMATION: tuple[HeaderOut, ...] = (
    header("x-ms-sku-name",               "sku_name"),
    header("x-ms-account-kind",           "account_kind"),
    HeaderOut("x-ms-is-hns-enabled",   is_hierarchical),
)
MESSAGES_COUNT:   tuple[HeaderOut, ...] = (
    header("x-ms-approximate-messages-count", "messages_count", str),
)
UPDATED_MESSAGE:  tuple[HeaderOut, ...] = (
    header("x-ms-popreceipt",             "receipt", show_receipt),
    header("x-ms-time-next-visible",      "visible", rfc1123),
)
# fmt: on
