"""The header groups of requests: the fields that operations take, as tables. A field is spelled here once.

`Takes` groups fill the structs of the services. The fields of files are in `file_fields.py`.
"""

from verditer.core.limits import MAX_MESSAGES, MAX_VISIBILITY_SECONDS
from verditer.rest import values as v
from verditer.rest.codecs.queue.receipts import parse_receipt
from verditer.rest.codecs.table import odata
from verditer.rest.headers import blob_values as b
from verditer.rest.operation import Param, Takes

_VISIBILITY = v.number_from(0, MAX_VISIBILITY_SECONDS)


NOTHING = Takes()
METADATA = Takes(metadata=True)
LEASE_ACTION = Takes(lease_request=True)
STRUCTURED = Takes(structured=True)
VERSION = Takes(version=True)


def _not_built(*names: str, query: bool = False) -> Takes:
    """Options that are not built are refused: a client that sends one relies on its effect."""
    return Takes(tuple(Param("", name, v.not_built, query=query) for name in names))


LISTING_OPTIONS = _not_built("showonly", query=True)  # for a hierarchical namespace

# fmt: off
KEY = Takes((
    Param("encryption_key",      "x-ms-encryption-key",           b.encryption_key),
    Param("encryption_key_sha256", "x-ms-encryption-key-sha256",  b.encryption_key),
    Param("encryption_algorithm", "x-ms-encryption-algorithm",    b.encryption_algorithm),
))
SCOPE = Takes((
    Param("encryption_scope",    "x-ms-encryption-scope",         v.text),
    Param("sas_scope",           "ses",                           v.text, query=True),
))
KEYS = KEY | SCOPE
CONTAINER_SCOPE = Takes((
    Param("default_scope",       "x-ms-default-encryption-scope", v.text),
    Param("no_scope_override",   "x-ms-deny-encryption-scope-override", v.flag),
))
IMMUTABLE_MODE = Takes((
    Param("immutable_mode",      "x-ms-immutability-policy-mode", b.immutability_mode, letter="i"),
))
EXPIRY_TIME = Takes((  # milliseconds or a date, as the option says
    Param("expiry_milliseconds", "x-ms-expiry-time",              b.milliseconds),
    Param("expiry_date",         "x-ms-expiry-time",              b.expiry_date),
))
LASTING = IMMUTABLE_MODE | EXPIRY_TIME | Takes((
    Param("immutable_until",     "x-ms-immutability-policy-until-date", v.date, letter="i"),
    Param("legal_hold",          "x-ms-legal-hold",               v.flag, letter="i"),
    Param("expiry_option",       "x-ms-expiry-option",            b.expiry_option),
))
POLICY = IMMUTABLE_MODE | Takes((
    Param("immutable_until",     "x-ms-immutability-policy-until-date", v.date, required=True),
))
HOLD = Takes((
    Param("legal_hold",          "x-ms-legal-hold",               v.flag, required=True),
))
EXPIRY = EXPIRY_TIME | Takes((
    Param("expiry_option",       "x-ms-expiry-option",            b.expiry_option, required=True),
))
BLOB_HEADERS = Takes((  # the plain form first: a prefixed header replaces it
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
NEW_HEADERS = Takes((
    *(param for param in PREFIXED_HEADERS.params if param.field != "blob_content_md5"),
    Param("blob_content_md5",    "x-ms-blob-content-md5",         b.any_md5),
))
CHECKSUMS = Takes((
    Param("content_md5",         "content-md5",                   v.md5),
    Param("content_crc64",       "x-ms-content-crc64",            v.crc64),
))
TAGS = Takes((
    Param("tags",                "x-ms-tags",                     b.tag_set, letter="t"),
))
TIER = Takes((
    Param("tier",                "x-ms-access-tier",              b.access_tier),
))
NO_TIER = Takes((  # append blobs have no tier
    Param("",                    "x-ms-access-tier",              b.no_tier),
))
RANGE = Takes((
    Param("range",               "range",                         v.byte_range),
    Param("range",               "x-ms-range",                    v.byte_range),
    Param("range_md5",           "x-ms-range-get-content-md5",    v.flag),
    Param("range_crc64",         "x-ms-range-get-content-crc64",  v.flag),
))
PUBLIC_ACCESS = Takes((
    Param("public_access",       "x-ms-blob-public-access",       b.public_access),
))
DELETE_TYPE = Takes((
    Param("",                    "deletetype",                    v.no_such, query=True),
))
DELETE_SNAPSHOTS = DELETE_TYPE | Takes((
    Param("delete_snapshots",    "x-ms-delete-snapshots",         b.delete_snapshots),
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
    Param("tier",                "x-ms-access-tier",              b.any_tier, required=True),
    Param("rehydrate_priority",  "x-ms-rehydrate-priority",       b.rehydrate_priority),
))
COPY = METADATA | TAGS | LASTING | Takes((
    Param("tier",                "x-ms-access-tier",              b.any_tier),
    Param("rehydrate_priority",  "x-ms-rehydrate-priority",       b.rehydrate_priority),
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
    Param("copy_tags",           "x-ms-copy-source-tag-option",   b.copies_tags),
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
    Param("deleted_version",     "x-ms-deleted-container-version", b.container_version, required=True),
))
BLOCK_ID = Takes((
    Param("block_id",            "blockid",                       b.block_id, query=True, required=True),
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
    Param("tier",                "x-ms-access-tier",              b.page_tier),
))
PAGE_PROPERTIES = NEW_HEADERS | Takes((
    Param("size",                "x-ms-blob-content-length",      v.number),
    Param("sequence_action",     "x-ms-sequence-number-action",   b.sequence_action),
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
    Param("page_write",          "x-ms-page-write",               b.page_write, required=True),
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
PREVIOUS_SNAPSHOT_URL = Takes((  # for managed disks, which do not exist here
    Param("prev_snapshot",       "x-ms-previous-snapshot-url",    v.unsupported, required=True),
))
BLOCK_LIST_TYPE = Takes((
    Param("block_list_type",     "blocklisttype",                 b.block_list_type, query=True),
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
    Param("include",             "include",                       b.find_include, query=True),
))
CONTAINER_LISTING = PAGE | Takes((
    Param("include",             "include",                       b.container_include, query=True),
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
    Param("pop_receipt",         "popreceipt",                    parse_receipt, query=True, required=True),
))
NEW_VISIBILITY = Takes((
    Param("visibility_seconds",  "visibilitytimeout",             _VISIBILITY, query=True, required=True),
))
BLOB_LISTING = PAGE | LISTING_OPTIONS | Takes((
    Param("delimiter",           "delimiter",                     v.text, query=True),
    Param("include",             "include",                       b.list_include, query=True, letter="t", letter_for="tags"),
    Param("start_from",          "startfrom",                     v.text, query=True),
    Param("end_before",          "endbefore",                     v.text, query=True),
))
MATCH = Takes((
    Param("if_match",            "if-match",                      odata.entity_tag),
    Param("if_match",            "if-none-match",                 odata.refused),
))
NO_MATCH = Takes((
    Param("if_match",            "if-none-match",                 odata.refused),
))
UPSERT = NO_MATCH | Takes((
    Param("if_match",            "if-match",                      odata.entity_tag, blank=True),  # with a value: an update
))
OTHER_OPTIONS = Takes(tuple(  # options of OData that Table does not have
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

# --- the names of fields --------------------------------------------------------------------------------------------------


def wire_names(module: dict[str, object], *, query: bool) -> dict[str, str]:
    """How the fields of the groups of a module are spelled: in headers, or in the query. Of several the first one counts."""
    groups = [value for value in module.values() if isinstance(value, Takes)]
    spelled = [(param.field, param.wire) for group in groups for param in group.params if param.query == query and param.field]
    return dict(reversed(spelled))


HEADER_OF_FIELD = wire_names(globals(), query=False)
QUERY_OF_FIELD = wire_names(globals(), query=True)
