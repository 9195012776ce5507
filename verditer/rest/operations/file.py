"""The File service: one row for each operation of Azure."""

from verditer.core.grant import BEARER_ONLY, KEY_OR_BEARER, account_only, container_sas, sas
from verditer.core.guard import FILE_ABORT_COPY, FILE_READ, FILE_WRITE, NONE, SHARE_READ, SHARE_WRITE
from verditer.core.lease import LeaseAction
from verditer.core.limits import MAX_PERMISSION_JSON, MAX_XML
from verditer.rest.codecs.delegation import parse_key_info, render_delegation_key
from verditer.rest.codecs.file.entries import render_entries, render_file_ranges, render_handles
from verditer.rest.codecs.file.shares import (
    parse_permission_document,
    render_permission,
    render_share_policies,
    render_share_usage,
    render_shares,
)
from verditer.rest.codecs.policies import parse_policies
from verditer.rest.codecs.properties import parse_file_properties, render_file_properties
from verditer.rest.headers import answers as h
from verditer.rest.headers import fields as r
from verditer.rest.headers import file_answers as g
from verditer.rest.headers import file_fields as f
from verditer.rest.operation import EMPTY, STREAM, Answer, Level, Op, StreamedContent, answer, document, route
from verditer.rest.stages import Decoded
from verditer.services import delegation, properties
from verditer.services.blob.answers import LeaseAnswer
from verditer.services.file import (
    directories,
    files,
    leases,
    links,
    listing,
    permissions,
    ranges,
    reading,
    renaming,
    shares,
    snapshots,
)
from verditer.services.file.answers import EntryState, FileRead
from verditer.services.file.copying import copy, from_url, pending
from verditer.services.file.handles import rest as handles

A, S, P = Level.SERVICE, Level.SHARE, Level.PATH
SERVICE, SHARE, DIRECTORY = {"restype": "service"}, {"restype": "share"}, {"restype": "directory"}
SYMBOLIC_LINK, HARD_LINK = {"restype": "symboliclink"}, {"restype": "hardlink"}
POLICIES = document(parse_policies, MAX_XML)
PROPERTIES = document(parse_file_properties, MAX_XML)
KEY_INFO = document(parse_key_info, MAX_XML)
PERMISSION = document(parse_permission_document, MAX_PERMISSION_JSON)

# What a directory asks for: an account SAS for objects, or a service SAS for the share.
LIST, READ, CREATE = container_sas("l"), container_sas("r", resource="o"), container_sas("cw", resource="o")
WRITE, DELETE = container_sas("w", resource="o"), container_sas("d", resource="o")
CREATE_FILE = sas("cw", overwrite="w")
_LEASE_STATUS = {LeaseAction.ACQUIRE: 201, LeaseAction.BREAK: 202}


def _bytes(result: FileRead, decoded: Decoded) -> StreamedContent:
    return StreamedContent(result.body, result.length, 206 if result.ranged else 200)


def _size(result: EntryState, decoded: Decoded) -> StreamedContent:
    """The answer to HEAD says how long the file is."""
    return StreamedContent(b"", result.entry.size, 200)


def _lease_status(result: LeaseAnswer) -> int:
    return _LEASE_STATUS.get(result.action, 200)


ENTRY = (g.entry_properties,)
SHARE_STATE = answer(200, *g.SHARE_STATE, groups=(g.share_lease, g.share_figures, g.share_metadata))
SHARE_SET = answer(200, *g.STAMP_SHARE, *g.SHARE_QUOTA, groups=(g.share_figures,))
SHARE_CREATED = answer(201, *g.STAMP_SHARE, *g.SHARE_QUOTA, groups=(g.share_figures,))
LEASED = answer(200, *h.STAMP, *h.LEASED, status_of=_lease_status)
DIRECTORY_STATE = answer(200, *g.STAMP_ENTRY, groups=(*ENTRY, g.entry_metadata), constants=g.ENCRYPTED_ENTRY)
ENTRY_CREATED = answer(201, *g.STAMP_ENTRY, groups=ENTRY, constants=h.ENCRYPTED)
ENTRY_SET = answer(200, *g.STAMP_ENTRY, groups=ENTRY, constants=h.ENCRYPTED)
METADATA_SET = answer(200, *g.STAMP_ENTRY, constants=h.ENCRYPTED)
FILE_STATE = answer(
    200,
    *g.FILE_STATE,
    *g.FILE_MD5,
    groups=(*ENTRY, g.file_copy, g.file_lease, g.entry_metadata),
    constants=g.FILE_FIXED,
    body=_size,
)
FILE_BYTES = answer(
    200,
    *g.FILE_STATE,
    groups=(g.file_range, *ENTRY, g.file_copy, g.file_lease, g.entry_metadata),
    constants=g.FILE_READ_FIXED,
    body=_bytes,
)
FILE_CREATED = answer(201, *g.STAMP_ENTRY, *h.RECEIVED, groups=ENTRY, constants=h.ENCRYPTED)
RANGE_WRITTEN = answer(201, *g.STAMP_ENTRY, *h.RECEIVED, *g.LAST_WRITE, constants=h.ENCRYPTED)
RANGE_CLEARED = answer(201, *g.STAMP_ENTRY, *g.LAST_WRITE)
METADATA = answer(200, *g.STAMP_ENTRY, groups=(g.entry_metadata,))
RANGES = answer(200, *g.LISTED_FILE, body=render_file_ranges)
PERMISSION_TEXT = Answer(200, body=render_permission, content_type="application/json")

# fmt: off
OPERATIONS = (
    #  name                          route                                                       takes                body        guard            allow                    function                              answer
    Op("GetFileServiceProperties",   route("GET", A, comp="properties", **SERVICE),              r.NOTHING,           EMPTY,      NONE,            account_only("s", "r"),  properties.get_service_properties,    answer(200, body=render_file_properties)),
    Op("SetFileServiceProperties",   route("PUT", A, comp="properties", **SERVICE),              r.NOTHING,           PROPERTIES, NONE,            account_only("s", "w"),  properties.set_service_properties,    answer(202)),
    Op("ListShares",                 route("GET", A, comp="list"),                               f.SHARE_LISTING,     EMPTY,      NONE,            account_only("s", "l"),  shares.list_shares,                   answer(200, body=render_shares)),
    Op("GetUserDelegationKey",       route("POST", A, comp="userdelegationkey", **SERVICE),      r.VERSION,           KEY_INFO,   NONE,            BEARER_ONLY,             delegation.get_user_delegation_key,   answer(200, body=render_delegation_key), needs_intent=False),

    Op("CreateShare",                route("PUT", S, **SHARE),                                   f.NEW_SHARE,         EMPTY,      NONE,            account_only("c", "cw"), shares.create_share,                  SHARE_CREATED),
    Op("GetShareProperties",         route("GET|HEAD", S, **SHARE),                              f.SHARE_SNAPSHOT,    EMPTY,      SHARE_READ,      account_only("c", "r"),  shares.get_share,                     SHARE_STATE),
    Op("DeleteShare",                route("DELETE", S, **SHARE),                                f.DELETE_SHARE,      EMPTY,      SHARE_WRITE,     account_only("c", "d"),  shares.delete_share,                  answer(202, *g.DELETED_USAGE)),
    Op("SetShareProperties",         route("PUT", S, comp="properties", **SHARE),                f.SHARE_PROPERTIES,  EMPTY,      SHARE_WRITE,     account_only("c", "w"),  shares.set_share_properties,          SHARE_SET),
    Op("GetShareMetadata",           route("GET|HEAD", S, comp="metadata", **SHARE),             f.SHARE_SNAPSHOT,    EMPTY,      SHARE_READ,      account_only("c", "r"),  shares.get_share,                     answer(200, *g.STAMP_SHARE, groups=(g.share_metadata,))),
    Op("SetShareMetadata",           route("PUT", S, comp="metadata", **SHARE),                  f.METADATA,          EMPTY,      SHARE_WRITE,     account_only("c", "w"),  shares.set_share_metadata,            answer(200, *g.STAMP_SHARE)),
    Op("GetShareAcl",                route("GET|HEAD", S, comp="acl", **SHARE),                  r.NOTHING,           EMPTY,      SHARE_READ,      KEY_OR_BEARER,           shares.get_share_acl,                 answer(200, *g.STAMP_SHARE, body=render_share_policies)),
    Op("SetShareAcl",                route("PUT", S, comp="acl", **SHARE),                       r.NOTHING,           POLICIES,   SHARE_WRITE,     KEY_OR_BEARER,           shares.set_share_acl,                 answer(200, *g.STAMP_SHARE)),
    Op("GetShareStats",              route("GET", S, comp="stats", **SHARE),                     r.NOTHING,           EMPTY,      SHARE_READ,      account_only("c", "r"),  shares.get_share_statistics,          answer(200, *g.STAMP_SHARE, body=render_share_usage)),
    Op("SnapshotShare",              route("PUT", S, comp="snapshot", **SHARE),                  f.METADATA,          EMPTY,      NONE,            account_only("c", "cw"), snapshots.snapshot_share,             answer(201, *h.STAMP, *h.SNAPSHOT_TIME)),
    Op("LeaseShare",                 route("PUT", S, comp="lease", **SHARE),                     f.LEASE_SHARE,       EMPTY,      NONE,            KEY_OR_BEARER,           leases.lease_share,                   LEASED),
    Op("RestoreShare",               route("PUT", S, comp="undelete", **SHARE),                  f.DELETED_SHARE,     EMPTY,      NONE,            account_only("c", "w"),  shares.restore_share,                 SHARE_CREATED),
    Op("CreatePermission",           route("PUT", S, comp="filepermission", **SHARE),            r.NOTHING,           PERMISSION, NONE,            WRITE,                   permissions.create_permission,        answer(201, *g.NEW_PERMISSION)),
    Op("GetPermission",              route("GET", S, comp="filepermission", **SHARE),            f.PERMISSION_KEY,    EMPTY,      NONE,            READ,                    permissions.get_permission,           PERMISSION_TEXT),

    Op("CreateDirectory",            route("PUT", P, **DIRECTORY),                               f.NEW_DIRECTORY,     EMPTY,      NONE,            CREATE,                  directories.create_directory,         ENTRY_CREATED),
    Op("GetDirectoryProperties",     route("GET|HEAD", P, **DIRECTORY),                          f.SHARE_SNAPSHOT,    EMPTY,      NONE,            READ,                    directories.get_directory,            DIRECTORY_STATE),
    Op("DeleteDirectory",            route("DELETE", P, **DIRECTORY),                            r.NOTHING,           EMPTY,      NONE,            DELETE,                  directories.delete_directory,         answer(202)),
    Op("SetDirectoryProperties",     route("PUT", P, comp="properties", **DIRECTORY),            f.DIRECTORY_PROPERTIES, EMPTY,    NONE,            WRITE,                   directories.set_directory_properties, ENTRY_SET),
    Op("GetDirectoryMetadata",       route("GET|HEAD", P, comp="metadata", **DIRECTORY),         f.SHARE_SNAPSHOT,    EMPTY,      NONE,            READ,                    directories.get_directory,            METADATA),
    Op("SetDirectoryMetadata",       route("PUT", P, comp="metadata", **DIRECTORY),              f.METADATA,          EMPTY,      NONE,            WRITE,                   directories.set_directory_metadata,   METADATA_SET),
    Op("RenameDirectory",            route("PUT", P, comp="rename", **DIRECTORY),                f.RENAME_DIRECTORY,  EMPTY,      NONE,            WRITE,                   renaming.rename_directory,            ENTRY_SET, renames="directory"),
    Op("ListDirectoriesAndFiles",    route("GET", P, comp="list", **DIRECTORY),                  f.ENTRY_LISTING,     EMPTY,      NONE,            LIST,                    listing.list_entries,                 answer(200, body=render_entries)),

    Op("GetFile",                    route("GET", P),                                            f.FILE_RANGE,        EMPTY,      FILE_READ,       sas("r"),                reading.get_file,                     FILE_BYTES),
    Op("GetFileProperties",          route("HEAD", P),                                           f.SHARE_SNAPSHOT,    EMPTY,      FILE_READ,       sas("r"),                files.get_file_properties,            FILE_STATE),
    Op("DeleteFile",                 route("DELETE", P),                                         r.NOTHING,           EMPTY,      FILE_WRITE,      sas("d"),                files.delete_file,                    answer(202, groups=(g.link_count,))),
    Op("SetFileProperties",          route("PUT", P, comp="properties"),                         f.FILE_PROPERTIES,   EMPTY,      FILE_WRITE,      sas("w"),                files.set_file_properties,            ENTRY_SET),
    Op("GetFileMetadata",            route("GET|HEAD", P, comp="metadata"),                      f.SHARE_SNAPSHOT,    EMPTY,      FILE_READ,       sas("r"),                files.get_file_properties,            METADATA),
    Op("SetFileMetadata",            route("PUT", P, comp="metadata"),                           f.METADATA,          EMPTY,      FILE_WRITE,      sas("w"),                files.set_file_metadata,              METADATA_SET),
    Op("RenameFile",                 route("PUT", P, comp="rename"),                             f.RENAME_FILE,       EMPTY,      NONE,            sas("w"),                renaming.rename_file,                 ENTRY_SET, renames="file"),
    Op("LeaseFile",                  route("PUT", P, comp="lease"),                              r.LEASE_ACTION,      EMPTY,      NONE,            sas("w"),                leases.lease_file,                    LEASED),
    Op("CopyFile",                   route("PUT", P, x_ms_copy_source=None),                     f.COPY,              EMPTY,      FILE_WRITE,      CREATE_FILE,             copy.copy_file,                       answer(202, *h.STAMP, *h.COPIED), source_guard=NONE, reads_own_account=True),
    Op("AbortCopyFile",              route("PUT", P, comp="copy"),                               r.ABORT,             EMPTY,      FILE_ABORT_COPY, sas("w"),                pending.abort_copy,                   answer(204)),
    Op("CreateFile",                 route("PUT", P, x_ms_type="file"),                          f.NEW_FILE,          STREAM,     FILE_WRITE,      CREATE_FILE,             files.create_file,                    FILE_CREATED),

    Op("PutRangeFromUrl",            route("PUT", P, comp="range", x_ms_copy_source=None),       f.RANGE_FROM_URL,    EMPTY,      FILE_WRITE,      sas("w"),                from_url.put_range_from_url,          RANGE_WRITTEN, source_guard=NONE),
    Op("ClearRange",                 route("PUT", P, comp="range", x_ms_write="clear"),          f.CLEARED_RANGE,     EMPTY,      FILE_WRITE,      sas("w"),                ranges.clear_file_range,              RANGE_CLEARED),
    Op("PutRange",                   route("PUT", P, comp="range"),                              f.UPDATED_RANGE,     STREAM,     FILE_WRITE,      sas("w"),                ranges.put_range,                     RANGE_WRITTEN),
    Op("ListRangesDiff",             route("GET", P, comp="rangelist", prevsharesnapshot=None),  f.RANGE_DIFF,        EMPTY,      FILE_READ,       sas("r"),                ranges.list_ranges_diff,              RANGES),
    Op("ListRanges",                 route("GET", P, comp="rangelist"),                          f.RANGE_LIST,        EMPTY,      FILE_READ,       sas("r"),                ranges.list_ranges,                   RANGES),
    Op("ListHandles",                route("GET", P, comp="listhandles"),                        f.HANDLES,           EMPTY,      NONE,            KEY_OR_BEARER,           handles.list_handles,                 answer(200, body=render_handles)),
    Op("ForceCloseHandles",          route("PUT", P, comp="forceclosehandles"),                  f.CLOSE_HANDLES,     EMPTY,      NONE,            KEY_OR_BEARER,           handles.force_close_handles,          answer(200, *g.HANDLES_CLOSED)),

    Op("CreateSymbolicLink",         route("PUT", P, **SYMBOLIC_LINK),                           f.NEW_SYMBOLIC_LINK, EMPTY,      FILE_WRITE,      sas("cw"),               links.create_symbolic_link,           ENTRY_CREATED),
    Op("GetSymbolicLink",            route("GET", P, **SYMBOLIC_LINK),                           f.SHARE_SNAPSHOT,    EMPTY,      NONE,            sas("r"),                links.get_symbolic_link,              answer(200, *g.STAMP_ENTRY, *g.LINK_TEXT)),
    Op("CreateHardLink",             route("PUT", P, **HARD_LINK),                               f.NEW_HARD_LINK,     EMPTY,      FILE_WRITE,      sas("cw"),               links.create_hard_link,               ENTRY_CREATED),
)
# fmt: on
