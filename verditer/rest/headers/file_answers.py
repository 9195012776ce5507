"""The headers of responses of the File service: groups that functions read from a result, and tables."""

from typing import Protocol

from verditer.core.dates import iso, rfc1123
from verditer.core.records.file import FileEntry
from verditer.rest.codecs.file.attributes import format_attributes
from verditer.rest.headers.groups import base64_text, copy_headers, lease_headers, stamp
from verditer.rest.operation import HeaderOut, header
from verditer.services.file.answers import FileRead, HandlesClosed, ShareState


class HasEntry(Protocol):
    """A result about a file or directory."""

    @property
    def entry(self) -> FileEntry: ...


class EntryAtTime(HasEntry, Protocol):
    """A result about a file whose lease depends on the time."""

    @property
    def now(self) -> int: ...


def share_lease(result: ShareState) -> list[tuple[str, str]]:
    return lease_headers(result.share.lease, result.now)


def share_metadata(result: ShareState) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.share.metadata.items()]


def share_figures(result: ShareState) -> list[tuple[str, str]]:
    """The provisioned figures of a share, as they were set."""
    figures = result.share.provisioning
    shown = (
        ("x-ms-share-provisioned-iops", figures.iops),
        ("x-ms-share-provisioned-bandwidth-mibps", figures.bandwidth_mibps),
        ("x-ms-share-paid-bursting-enabled", figures.paid_bursting),
        ("x-ms-share-paid-bursting-max-iops", figures.paid_bursting_iops),
        ("x-ms-share-paid-bursting-max-bandwidth-mibps", figures.paid_bursting_bandwidth_mibps),
        ("x-ms-enable-snapshot-virtual-directory-access", result.share.snapshot_directory),
        ("x-ms-enable-smb-directory-lease", result.share.directory_lease),
    )
    return [(name, str(value).lower()) for name, value in shown if value is not None]


def entry_properties(result: HasEntry) -> list[tuple[str, str]]:
    """Times and ids of every entry, and what its kind of share has besides: Windows attributes or a POSIX mode."""
    entry = result.entry
    headers = [
        ("x-ms-file-creation-time", iso(entry.created)),
        ("x-ms-file-last-write-time", iso(entry.written)),
        ("x-ms-file-change-time", iso(entry.changed)),
        ("x-ms-file-id", str(entry.node_id)),
        ("x-ms-file-parent-id", str(entry.parent_id)),
    ]
    if entry.posix is not None:
        kind = "SymLink" if entry.link_text is not None else "Directory" if entry.is_directory else "Regular"
        posix = entry.posix
        return [
            *headers,
            ("x-ms-mode", posix.mode),
            ("x-ms-owner", posix.owner),
            ("x-ms-group", posix.group),
            ("x-ms-file-file-type", kind),
            *link_count(result),
        ]
    headers.append(("x-ms-file-attributes", format_attributes(entry.attributes)))
    if entry.permission_key is not None:
        headers.append(("x-ms-file-permission-key", entry.permission_key))
    return headers


def link_count(result: HasEntry) -> list[tuple[str, str]]:
    """How many names a file of an NFS share has."""
    return [("x-ms-link-count", str(result.entry.link_count))] if result.entry.posix is not None else []


def entry_metadata(result: HasEntry) -> list[tuple[str, str]]:
    return [(f"x-ms-meta-{name}", value) for name, value in result.entry.metadata.items()]


def file_lease(result: EntryAtTime) -> list[tuple[str, str]]:
    return lease_headers(result.entry.lease, result.now)


def file_copy(result: HasEntry) -> list[tuple[str, str]]:
    return copy_headers(result.entry.copy)


def file_range(read: FileRead) -> list[tuple[str, str]]:
    """A range says which one it is. Content-MD5 is then the range's, and the file's own has another name."""
    file_md5 = read.entry.content_md5
    if not read.ranged:
        return [("Content-MD5", base64_text(file_md5))] if file_md5 is not None else []
    headers = [("Content-Range", f"bytes {read.start}-{read.start + read.length - 1}/{read.entry.size}")]
    if read.range_md5 is not None:
        headers.append(("Content-MD5", base64_text(read.range_md5)))
    if file_md5 is not None:
        headers.append(("x-ms-content-md5", base64_text(file_md5)))
    return headers


def marker_of(result: HandlesClosed) -> str | None:
    return result.next_marker or None


# fmt: off
STAMP_SHARE: tuple[HeaderOut, ...] = stamp("share.etag")
STAMP_ENTRY: tuple[HeaderOut, ...] = stamp("entry.etag")
SHARE_QUOTA: tuple[HeaderOut, ...] = (
    header("x-ms-share-quota",             "share.quota_gib", str),
)
DELETED_USAGE: tuple[HeaderOut, ...] = (
    header("x-ms-file-share-usage-bytes",  "usage_bytes", str),
)
SHARE_STATE: tuple[HeaderOut, ...] = (
    *STAMP_SHARE, *SHARE_QUOTA,
    header("x-ms-access-tier",             "share.access_tier"),
    header("x-ms-access-tier-change-time", "share.access_tier_changed", rfc1123),
    header("x-ms-enabled-protocols",       "share.protocols"),
    header("x-ms-root-squash",             "share.root_squash"),
)
FILE_STATE: tuple[HeaderOut, ...] = (
    *STAMP_ENTRY,
    header("Content-Type",                 "entry.content_type"),
    header("Content-Encoding",             "entry.content_encoding"),
    header("Content-Language",             "entry.content_language"),
    header("Content-Disposition",          "entry.content_disposition"),
    header("Cache-Control",                "entry.cache_control"),
)
FILE_MD5: tuple[HeaderOut, ...] = (
    header("Content-MD5",                  "entry.content_md5", base64_text),
)
LAST_WRITE: tuple[HeaderOut, ...] = (
    header("x-ms-file-last-write-time",    "entry.written", iso),
)
LINK_TEXT: tuple[HeaderOut, ...] = (
    header("x-ms-link-text",               "entry.link_text"),
)
LISTED_FILE: tuple[HeaderOut, ...] = (
    *STAMP_ENTRY,
    header("x-ms-content-length",          "entry.size", str),
)
NEW_PERMISSION: tuple[HeaderOut, ...] = (
    header("x-ms-file-permission-key",     "key_text"),
)
HANDLES_CLOSED: tuple[HeaderOut, ...] = (
    header("x-ms-number-of-handles-closed", "closed", str),
    header("x-ms-number-of-handles-failed", "failed", str),
    HeaderOut("x-ms-marker",               marker_of),
)
FILE_FIXED = (
    ("x-ms-server-encrypted",              "true"),
    ("x-ms-type",                          "File"),
)
FILE_READ_FIXED = (("Accept-Ranges", "bytes"), *FILE_FIXED)
ENCRYPTED_ENTRY = (("x-ms-server-encrypted", "true"),)
# fmt: on
