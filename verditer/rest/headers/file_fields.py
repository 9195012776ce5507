"""The header groups of requests to the File service: the fields that its operations take, as tables."""

from collections.abc import Callable

from verditer.rest import values as v
from verditer.rest.headers import file_values as fv
from verditer.rest.headers.fields import wire_names
from verditer.rest.operation import Mandatory, Param, Takes

METADATA = Takes(metadata=True, distinct_metadata=True)  # Microsoft's page: Setting and retrieving properties and metadata
Parse = Callable[[str, str], object]


# fmt: off
def _entry_properties(attributes: Parse, permission: Parse, time: Parse, change_time: Parse) -> Takes:
    return Takes((
        Param("permission",        "x-ms-file-permission",                permission),
        Param("permission_key",    "x-ms-file-permission-key",            fv.permission_key),
        Param("permission_format", "x-ms-file-permission-format",         fv.permission_format),
        Param("attributes",        "x-ms-file-attributes",                attributes),
        Param("creation_time",     "x-ms-file-creation-time",             time),
        Param("last_write_time",   "x-ms-file-last-write-time",           time),
        Param("change_time",       "x-ms-file-change-time",               change_time),
        Param("mode",              "x-ms-mode",                           fv.file_mode),
        Param("owner",             "x-ms-owner",                          fv.posix_id),
        Param("group",             "x-ms-group",                          fv.posix_id),
    ))


def _new_properties(attributes: Parse) -> Takes:
    return _entry_properties(attributes, fv.new_permission, fv.new_time, fv.new_time) | MANDATORY_PROPERTIES | Takes((
        Param("restores",          "x-ms-file-property-semantics",        fv.restores),
    ))


def _set_properties(attributes: Parse) -> Takes:
    return _entry_properties(attributes, fv.set_permission, fv.set_time, fv.new_time)


MANDATORY_PROPERTIES = Takes(mandatory=Mandatory("2019-02-02", "2021-06-08", (
    ("x-ms-file-permission", "x-ms-file-permission-key"),
    ("x-ms-file-attributes",),
    ("x-ms-file-creation-time",),
    ("x-ms-file-last-write-time",),
)))
SET_FILE = _set_properties(fv.set_file_attributes)
SET_DIRECTORY = _set_properties(fv.set_directory_attributes)
NEW_DIRECTORY = _new_properties(fv.directory_attributes) | METADATA
DIRECTORY_PROPERTIES = SET_DIRECTORY | MANDATORY_PROPERTIES
SHARE_SNAPSHOT = Takes((
    Param("snapshot",            "sharesnapshot",                         v.snapshot, query=True),
))
SHARE_PROPERTIES = Takes((
    Param("quota_gib",           "x-ms-share-quota",                      v.number),
    Param("access_tier",         "x-ms-access-tier",                      fv.share_tier),
    Param("root_squash",         "x-ms-root-squash",                      fv.root_squash),
    Param("snapshot_directory",  "x-ms-enable-snapshot-virtual-directory-access", v.flag),
    Param("directory_lease",     "x-ms-enable-smb-directory-lease",       v.flag),
    Param("provisioned_iops",    "x-ms-share-provisioned-iops",           v.number),
    Param("provisioned_bandwidth_mibps", "x-ms-share-provisioned-bandwidth-mibps", v.number),
    Param("paid_bursting",       "x-ms-share-paid-bursting-enabled",      v.flag),
    Param("paid_bursting_iops",  "x-ms-share-paid-bursting-max-iops",     v.number),
    Param("paid_bursting_bandwidth_mibps", "x-ms-share-paid-bursting-max-bandwidth-mibps", v.number),
))
NEW_SHARE = SHARE_PROPERTIES | METADATA | Takes((
    Param("protocols",           "x-ms-enabled-protocols",                fv.protocols),
))
DELETE_SHARE = SHARE_SNAPSHOT | Takes((
    Param("delete_snapshots",    "x-ms-delete-snapshots",                 fv.delete_share_snapshots),
))
DELETED_SHARE = Takes((
    Param("deleted_name",        "x-ms-deleted-share-name",               v.text, required=True),
    Param("deleted_version",     "x-ms-deleted-share-version",            fv.share_version, required=True),
))
SHARE_LISTING = Takes((
    Param("prefix",              "prefix",                                v.text, query=True),
    Param("marker",              "marker",                                v.text, query=True),
    Param("max_results",         "maxresults",                            v.max_results, query=True),
    Param("include",             "include",                               fv.share_include, query=True),
))
LEASE_SHARE = SHARE_SNAPSHOT | Takes(lease_request=True)
PERMISSION_KEY = Takes((
    Param("permission_key",      "x-ms-file-permission-key",              v.text, required=True),
    Param("permission_format",   "x-ms-file-permission-format",           fv.permission_format),
))
HTTP_PROPERTIES = Takes((
    Param("content_type",        "x-ms-content-type",                     v.text),
    Param("content_encoding",    "x-ms-content-encoding",                 v.text),
    Param("content_language",    "x-ms-content-language",                 v.text),
    Param("content_disposition", "x-ms-content-disposition",              v.text),
    Param("cache_control",       "x-ms-cache-control",                    v.text),
    Param("file_md5",            "x-ms-content-md5",                      v.md5),
))
NEW_FILE = _new_properties(fv.file_attributes) | HTTP_PROPERTIES | METADATA | Takes((
    Param("size",                "x-ms-content-length",                   v.number, required=True),
    Param("file_type",           "x-ms-file-file-type",                   fv.file_type),
    Param("content_md5",         "content-md5",                           v.md5),
    Param("content_crc64",       "x-ms-content-crc64",                    v.crc64),
), structured=True)
FILE_PROPERTIES = SET_FILE | MANDATORY_PROPERTIES | HTTP_PROPERTIES | Takes((
    Param("size",                "x-ms-content-length",                   v.number),
))
NEW_SYMBOLIC_LINK = METADATA | Takes((
    Param("link_text",           "x-ms-link-text",                        v.text, required=True),
    Param("creation_time",       "x-ms-file-creation-time",               fv.new_time),
    Param("last_write_time",     "x-ms-file-last-write-time",             fv.new_time),
    Param("owner",               "x-ms-owner",                            fv.posix_id),
    Param("group",               "x-ms-group",                            fv.posix_id),
))
NEW_HARD_LINK = Takes((
    Param("target_file",         "x-ms-file-target-file",                 fv.path_text, required=True),
))
FILE_RANGE = SHARE_SNAPSHOT | Takes((
    Param("range",               "range",                                 v.byte_range),
    Param("range",               "x-ms-range",                            v.byte_range),
    Param("range_md5",           "x-ms-range-get-content-md5",            v.flag),
), structured=True)
WRITTEN_RANGE = Takes((
    Param("range",               "range",                                 v.page_range),
    Param("range",               "x-ms-range",                            v.page_range),
    Param("keeps_last_write",    "x-ms-file-last-write-time",             fv.keeps_last_write),
))
UPDATED_RANGE = WRITTEN_RANGE | Takes((
    Param("write",               "x-ms-write",                            fv.range_write, required=True),
    Param("content_md5",         "content-md5",                           v.md5),
    Param("content_crc64",       "x-ms-content-crc64",                    v.crc64),
), structured=True)
RANGE_FROM_URL = WRITTEN_RANGE | Takes((
    Param("write",               "x-ms-write",                            fv.range_write, required=True),
    Param("source_range",        "x-ms-source-range",                     v.page_range, required=True),
    Param("content_crc64",       "x-ms-source-content-crc64",             v.crc64),
    Param("if_match_crc64",      "x-ms-source-if-match-crc64",            v.crc64),
    Param("if_none_match_crc64", "x-ms-source-if-none-match-crc64",       v.crc64),
))
CLEARED_RANGE = WRITTEN_RANGE | Takes((
    Param("",                    "content-md5",                           fv.refused),
))
RANGE_LIST = SHARE_SNAPSHOT | Takes((
    Param("range",               "range",                                 v.byte_range),
    Param("range",               "x-ms-range",                            v.byte_range),
    Param("marker",              "marker",                                v.text, query=True),
    Param("max_results",         "maxresults",                            v.max_page_ranges, query=True),
))
RANGE_DIFF = RANGE_LIST | Takes((
    Param("previous_snapshot",   "prevsharesnapshot",                     v.snapshot, query=True, required=True),
    Param("follows_renames",     "x-ms-file-support-rename",              v.flag),
))
ENTRY_LISTING = SHARE_SNAPSHOT | Takes((
    Param("prefix",              "prefix",                                v.text, query=True),
    Param("marker",              "marker",                                v.text, query=True),
    Param("max_results",         "maxresults",                            v.max_results, query=True),
    Param("include",             "include",                               fv.entry_include, query=True),
    Param("extended_info",       "x-ms-file-extended-info",               v.flag),
))
RENAME = METADATA | Takes((
    Param("content_type",        "x-ms-content-type",                     v.text),
    Param("replace_existing",    "x-ms-file-rename-replace-if-exists",    v.flag),
    Param("ignore_readonly",     "x-ms-file-rename-ignore-readonly",      v.flag),
    Param("source_lease_id",     "x-ms-source-lease-id",                  fv.lease_id),
    Param("destination_lease_id", "x-ms-destination-lease-id",            fv.lease_id),
))
RENAME_FILE = SET_FILE | RENAME
RENAME_DIRECTORY = SET_DIRECTORY | RENAME
COPY = _entry_properties(fv.copied_attributes, fv.new_permission, fv.copied_time, fv.copied_time) | METADATA | Takes((
    Param("permission_copy_mode", "x-ms-file-permission-copy-mode",       fv.copy_mode),
    Param("mode_copy_mode",      "x-ms-file-mode-copy-mode",              fv.copy_mode),
    Param("owner_copy_mode",     "x-ms-file-owner-copy-mode",             fv.copy_mode),
    Param("set_archive",         "x-ms-file-copy-set-archive",            v.flag),
    Param("ignore_readonly",     "x-ms-file-copy-ignore-read-only",       v.flag),  # as the page Copy File spells it
    Param("ignore_readonly",     "x-ms-file-copy-ignore-readonly",        v.flag),
))
HANDLES = SHARE_SNAPSHOT | Takes((
    Param("marker",              "marker",                                v.text, query=True),
    Param("max_results",         "maxresults",                            v.max_results, query=True),
    Param("recursive",           "x-ms-recursive",                        v.flag),
))
CLOSE_HANDLES = SHARE_SNAPSHOT | Takes((
    Param("handle_id",           "x-ms-handle-id",                        v.text, required=True),
    Param("marker",              "marker",                                v.text, query=True),
    Param("recursive",           "x-ms-recursive",                        v.flag),
))
# fmt: on

HEADER_OF_FIELD = wire_names(globals(), query=False)
QUERY_OF_FIELD = wire_names(globals(), query=True)
