"""The Blob service, operation by operation. Every operation Azure has is a row; `NOT_YET` rows answer 501 by name."""

from typing import Any

from verditer.core.grant import ACCOUNT_INFORMATION, ANY, BEARER_ONLY, KEY_OR_BEARER, account_only, container_sas, sas
from verditer.core.guard import (
    ABORT_COPY,
    BLOCK_LIST_READ,
    CONTAINER_DELETE,
    CONTAINER_LEASE,
    CONTAINER_METADATA,
    CONTAINER_READ,
    CONTAINER_WRITE,
    COPY,
    COPY_SOURCE,
    CREATE,
    LEASE,
    LEASE_ONLY,
    NONE,
    PART_SOURCE,
    READ,
    SEAL,
    SET_TIER,
    SNAPSHOT,
    TAGS_READ,
    TAGS_WRITE,
    UPDATE,
)
from verditer.core.limits import MAX_BLOCK_LIST_XML, MAX_XML
from verditer.core.tier_conditions import DELETE
from verditer.rest import batch
from verditer.rest import headers as h
from verditer.rest.codecs.blocks import parse_block_list, render_block_lists
from verditer.rest.codecs.delegation import parse_key_info, render_delegation_key
from verditer.rest.codecs.listings import render_blobs, render_containers
from verditer.rest.codecs.pages import render_page_ranges
from verditer.rest.codecs.policies import parse_policies, render_policies
from verditer.rest.codecs.properties import parse_properties, render_properties, render_stats
from verditer.rest.codecs.tags import parse_tags, render_found, render_tags
from verditer.rest.encode import Content, as_it_is
from verditer.rest.operation import (
    EMPTY,
    NOT_YET,
    STREAM,
    STREAM_NOT_EMPTY,
    Answer,
    HeaderOut,
    Level,
    Op,
    document,
    route,
)
from verditer.services import delegation, properties
from verditer.services.blob import (
    append,
    blobs,
    block,
    blocklist,
    containers,
    copy,
    from_url,
    leases,
    listing,
    page,
    page_ranges,
    pending,
    read,
    tags,
    tiers,
    undelete,
)
from verditer.services.blob.answers import BlobRead, BlobState

S, C, B = Level.SERVICE, Level.CONTAINER, Level.BLOB
SERVICE, CONTAINER = {"restype": "service"}, {"restype": "container"}
POLICIES = document(parse_policies, MAX_XML)
PROPERTIES = document(parse_properties, MAX_XML)
KEY_INFO = document(parse_key_info, MAX_XML)
TAG_SET = document(parse_tags, MAX_XML)
BLOCK_LIST = document(parse_block_list, MAX_BLOCK_LIST_XML)
PUBLIC_BLOB, PUBLIC_CONTAINER = ("blob", "container"), ("container",)
READ_BLOB = sas("r", public=PUBLIC_BLOB)
PUT_BLOB = sas("cw", overwrite="w")
STAGE = sas("w", overwrite="w", create_since="2026-06-06")
READ_CONTAINER = account_only("c", "r", public=PUBLIC_CONTAINER)


def _bytes(result: BlobRead, exchange: Any) -> Content:
    return Content(result.body, result.length, 206 if result.ranged else 200)


def _size_only(result: BlobState, exchange: Any) -> Content:
    """HEAD says how long the blob is and sends nothing."""
    return Content(b"", result.blob.size, 200)


def OK(*headers: HeaderOut, **more: Any) -> Answer:
    return Answer(200, headers, **more)


def CREATED(*headers: HeaderOut, **more: Any) -> Answer:
    return Answer(201, headers, **more)


def ACCEPTED(*headers: HeaderOut, **more: Any) -> Answer:
    return Answer(202, headers, **more)


def _status(result: Any) -> int:
    return int(result.status)


LEASED = OK(*h.STAMP, *h.LEASED, status_of=_status)
STORED = CREATED(*h.STAMP, *h.RECEIVED, *h.NEW_VERSION, constants=h.ENCRYPTED)
REMOVED = ACCEPTED(*h.REMOVED)
ACCOUNT = OK(*h.ACCOUNT_INFORMATION)
CONTAINER_STATE = OK(
    *h.STAMP_CONTAINER, *h.CONTAINER_ACCESS, groups=(h.container_lease, h.container_metadata), constants=h.CONTAINER_FIXED
)
BLOB_STATE = OK(
    *h.BLOB_PROPERTIES,
    *h.BLOB_MD5,
    groups=(h.blob_kind, h.blob_copy, h.blob_lease, h.blob_tier, h.blob_version, h.blob_metadata),
    constants=h.BLOB_FIXED,
    body=_size_only,
)
BLOB_BYTES = OK(
    *h.BLOB_PROPERTIES,
    groups=(h.blob_range, h.blob_kind, h.blob_copy, h.blob_lease, h.read_tier, h.blob_version, h.blob_metadata),
    constants=h.BLOB_FIXED,
    body=_bytes,
)
PAGES_WRITTEN = CREATED(*h.STAMP, *h.RECEIVED, *h.SEQUENCE_NUMBER, constants=h.ENCRYPTED)
PAGE_BLOB_SET = OK(*h.STAMP, *h.SEQUENCE_NUMBER)
COPY_STARTED = ACCEPTED(*h.STAMP, *h.NEW_VERSION, *h.COPIED)
COPIED_NOW = ACCEPTED(*h.STAMP, *h.NEW_VERSION, *h.COPIED, *h.RECEIVED)
BATCH = ACCEPTED(body=as_it_is)
PAGE_LIST = OK(*h.PAGE_LIST, body=render_page_ranges)

# Tables are the place where we align by hand.
# fmt: off
OPERATIONS = (
    #  name                        route                                                    takes                                    body              guard               allow                      call                                    answer
    Op("ListContainers",           route("GET", S, comp="list"),                            h.CONTAINER_LISTING,                     EMPTY,            NONE,               account_only("s", "l"),    listing.list_containers,                OK(body=render_containers)),
    Op("SetBlobServiceProperties", route("PUT", S, comp="properties", **SERVICE),           h.NOTHING,                               PROPERTIES,       NONE,               account_only("s", "w"),    properties.set_service_properties,      ACCEPTED()),
    Op("GetBlobServiceProperties", route("GET", S, comp="properties", **SERVICE),           h.NOTHING,                               EMPTY,            NONE,               account_only("s", "r"),    properties.get_service_properties,      OK(body=render_properties)),
    Op("GetBlobServiceStats",      route("GET", S, comp="stats", **SERVICE),                h.NOTHING,                               EMPTY,            NONE,               account_only("s", "r"),    properties.get_service_stats,           OK(body=render_stats)),
    Op("GetAccountInformation",    route("GET|HEAD", S, comp="properties", restype="account"), h.NOTHING,                            EMPTY,            NONE,               ACCOUNT_INFORMATION,       properties.get_account_information,     ACCOUNT),
    Op("GetAccountInformation",    route("GET|HEAD", C, comp="properties", restype="account"), h.NOTHING,                            EMPTY,            NONE,               ACCOUNT_INFORMATION,       properties.get_account_information,     ACCOUNT),
    Op("GetAccountInformation",    route("GET|HEAD", B, comp="properties", restype="account"), h.NOTHING,                            EMPTY,            NONE,               ACCOUNT_INFORMATION,       properties.get_account_information,     ACCOUNT),
    Op("GetUserDelegationKey",     route("POST", S, comp="userdelegationkey", **SERVICE),   h.VERSION,                               KEY_INFO,         NONE,               BEARER_ONLY,               delegation.get_user_delegation_key,     OK(body=render_delegation_key)),
    Op("FindBlobsByTags",          route("GET", S, comp="blobs"),                           h.FIND,                                  EMPTY,            NONE,               account_only("o", "f"),    tags.find_blobs,                        OK(body=render_found)),
    Op("BlobBatch",                route("POST", S, comp="batch"),                          h.NOTHING,                               STREAM,           NONE,               ANY,                       batch.submit_batch,                     BATCH),
    Op("BlobBatch",                route("POST", S, comp="batch", **CONTAINER),             h.NOTHING,                               STREAM,           NONE,               ANY,                       batch.submit_batch,                     BATCH),  # the JavaScript library, where the account is in the path

    Op("CreateContainer",          route("PUT", C, **CONTAINER),                            h.METADATA | h.PUBLIC_ACCESS | h.CONTAINER_KEYS, EMPTY,            NONE,               account_only("c", "cw"),   containers.create_container,            CREATED(*h.STAMP)),
    Op("GetContainerProperties",   route("GET|HEAD", C, **CONTAINER),                       h.NOTHING,                               EMPTY,            CONTAINER_READ,     READ_CONTAINER,            containers.get_container,               CONTAINER_STATE),
    Op("GetContainerMetadata",     route("GET|HEAD", C, comp="metadata", **CONTAINER),      h.NOTHING,                               EMPTY,            CONTAINER_READ,     READ_CONTAINER,            containers.get_container,               OK(*h.STAMP_CONTAINER, groups=(h.container_metadata,))),
    Op("SetContainerMetadata",     route("PUT", C, comp="metadata", **CONTAINER),           h.METADATA,                              EMPTY,            CONTAINER_METADATA, account_only("c", "w"),    containers.set_container_metadata,      OK(*h.STAMP)),
    Op("GetContainerAcl",          route("GET|HEAD", C, comp="acl", **CONTAINER),           h.NOTHING,                               EMPTY,            CONTAINER_READ,     KEY_OR_BEARER,             containers.get_container,               OK(*h.STAMP_CONTAINER, *h.CONTAINER_ACCESS, body=render_policies)),
    Op("SetContainerAcl",          route("PUT", C, comp="acl", **CONTAINER),                h.PUBLIC_ACCESS,                         POLICIES,         CONTAINER_WRITE,    KEY_OR_BEARER,             containers.set_container_acl,           OK(*h.STAMP)),
    Op("DeleteContainer",          route("DELETE", C, **CONTAINER),                         h.NOTHING,                               EMPTY,            CONTAINER_DELETE,   account_only("c", "d"),    containers.delete_container,            ACCEPTED()),
    Op("RestoreContainer",         route("PUT", C, comp="undelete", **CONTAINER),           h.DELETED_CONTAINER,                     EMPTY,            NONE,               account_only("c", "w"),    undelete.restore_container,             CREATED()),
    Op("RenameContainer",          route("PUT", C, comp="rename", **CONTAINER),             h.NOTHING,                               EMPTY,            NONE,               account_only("c", "w"),    NOT_YET,                                OK()),
    Op("BreakContainerLease",      route("PUT", C, comp="lease", **CONTAINER, x_ms_lease_action="break"), h.LEASE_ACTION,            EMPTY,            CONTAINER_LEASE,    account_only("c", "wd"),   leases.lease_container,                 LEASED),
    Op("LeaseContainer",           route("PUT", C, comp="lease", **CONTAINER),              h.LEASE_ACTION,                          EMPTY,            CONTAINER_LEASE,    account_only("c", "w"),    leases.lease_container,                 LEASED),
    Op("ListBlobs",                route("GET", C, comp="list", **CONTAINER),               h.BLOB_LISTING,                          EMPTY,            NONE,               container_sas("l", public=PUBLIC_CONTAINER), listing.list_blobs,    OK(body=render_blobs)),
    Op("FindBlobsByTagsInContainer", route("GET", C, comp="blobs", **CONTAINER),            h.FIND,                                  EMPTY,            NONE,               container_sas("f"),        tags.find_blobs_in_container,           OK(body=render_found)),
    Op("BlobBatchInContainer",     route("POST", C, comp="batch", **CONTAINER),             h.NOTHING,                               STREAM,           NONE,               ANY,                       batch.submit_batch,                     BATCH),

    Op("GetBlob",                  route("GET", B),                                         h.VERSION | h.STRUCTURED | h.RANGE | h.HISTORY | h.READ_KEYS, EMPTY,     READ,               READ_BLOB,                 read.get_blob,                          BLOB_BYTES),
    Op("GetBlobProperties",        route("HEAD", B),                                        h.HISTORY | h.READ_KEYS,                      EMPTY,            READ,               READ_BLOB,                 blobs.get_properties,                   BLOB_STATE),
    Op("GetBlobMetadata",          route("GET|HEAD", B, comp="metadata"),                   h.HISTORY | h.READ_KEYS,                      EMPTY,            READ,               READ_BLOB,                 blobs.get_properties,                   OK(*h.STAMP_BLOB, groups=(h.blob_metadata,))),
    Op("SetBlobMetadata",          route("PUT", B, comp="metadata"),                        h.METADATA | h.KEYS,                     EMPTY,            UPDATE,             sas("w"),                  blobs.set_metadata,                     OK(*h.STAMP, *h.NEW_VERSION, constants=h.ENCRYPTED)),
    Op("ResizePageBlob",           route("PUT", B, comp="properties", x_ms_blob_content_length=None), h.PAGE_PROPERTIES | h.KEYS,    EMPTY,            UPDATE,             sas("w"),                  page.set_page_properties,               PAGE_BLOB_SET),
    Op("UpdateSequenceNumber",     route("PUT", B, comp="properties", x_ms_sequence_number_action=None), h.PAGE_PROPERTIES,          EMPTY,            UPDATE,             sas("w"),                  page.set_page_properties,               PAGE_BLOB_SET),
    Op("UpdateSequenceNumber",     route("PUT", B, comp="properties", x_ms_blob_sequence_number=None), h.PAGE_PROPERTIES,            EMPTY,            UPDATE,             sas("w"),                  page.set_page_properties,               PAGE_BLOB_SET),
    Op("SetBlobProperties",        route("PUT", B, comp="properties"),                      h.PREFIXED_HEADERS,                      EMPTY,            UPDATE,             sas("w"),                  blobs.set_properties,                   PAGE_BLOB_SET),
    Op("PermanentDeleteBlob",      route("DELETE", B, deletetype="permanent"),              h.HISTORY,                               EMPTY,            DELETE,             sas("y"),                  undelete.permanent_delete,              REMOVED),
    Op("DeleteBlobVersion",        route("DELETE", B, versionid=None),                      h.OLD_VERSION,                           EMPTY,            DELETE,             sas("x"),                  blobs.delete_version,                   REMOVED),
    Op("DeleteBlob",               route("DELETE", B),                                      h.SNAPSHOT | h.DELETE_SNAPSHOTS,         EMPTY,            DELETE,             sas("d"),                  blobs.delete_blob,                      REMOVED),
    Op("UndeleteBlob",             route("PUT", B, comp="undelete"),                        h.NOTHING,                               EMPTY,            NONE,               sas("w"),                  undelete.undelete_blob,                 OK()),
    Op("BreakBlobLease",           route("PUT", B, comp="lease", x_ms_lease_action="break"), h.LEASE_ACTION,                         EMPTY,            LEASE,              sas("wd"),                 leases.lease_blob,                      LEASED),
    Op("LeaseBlob",                route("PUT", B, comp="lease"),                           h.LEASE_ACTION,                          EMPTY,            LEASE,              sas("w"),                  leases.lease_blob,                      LEASED),
    Op("SnapshotBlob",             route("PUT", B, comp="snapshot"),                        h.METADATA | h.KEYS,                     EMPTY,            SNAPSHOT,           sas("cw"),                 blobs.snapshot_blob,                    CREATED(*h.STAMP, *h.SNAPSHOT_TIME, *h.NEW_VERSION, constants=h.ENCRYPTED)),
    Op("CopyBlobFromUrl",          route("PUT", B, x_ms_copy_source=None, x_ms_requires_sync="true"), h.COPY | h.SOURCE_MD5 | h.SOURCE_TAGS | h.KEYS,           EMPTY,            COPY,               PUT_BLOB,                  copy.copy_blob_from_url,                COPIED_NOW, source_guard=PART_SOURCE),
    Op("PutBlobFromUrl",           route("PUT", B, x_ms_copy_source=None, x_ms_blob_type="BlockBlob"), h.VERSION | h.PREFIXED_HEADERS | h.METADATA | h.TAGS | h.TIER | h.SOURCE_MD5 | h.SOURCE_TAGS | h.SOURCE_PROPERTIES | h.KEYS | h.LASTING, EMPTY,            COPY,               PUT_BLOB,                  from_url.put_blob_from_url,             STORED, source_guard=COPY_SOURCE),
    Op("CopyBlob",                 route("PUT", B, x_ms_copy_source=None),                  h.COPY,                                  EMPTY,            COPY,               PUT_BLOB,                  copy.copy_blob,                         COPY_STARTED, source_guard=COPY_SOURCE, opens_own=True),
    Op("AbortCopyBlob",            route("PUT", B, comp="copy"),                            h.ABORT,                                 EMPTY,            ABORT_COPY,         sas("w"),                  pending.abort_copy,                     Answer(204)),
    Op("SetBlobTier",              route("PUT", B, comp="tier"),                            h.NEW_TIER | h.HISTORY,                  EMPTY,            SET_TIER,           sas("w"),                  tiers.set_tier,                         OK(status_of=_status)),
    Op("GetBlobTags",              route("GET", B, comp="tags"),                            h.HISTORY,                               EMPTY,            TAGS_READ,          sas("t"),                  tags.get_tags,                          OK(body=render_tags)),
    Op("SetBlobTags",              route("PUT", B, comp="tags"),                            h.CHECKSUMS | h.VERSION_ID,                TAG_SET,          TAGS_WRITE,         sas("t"),                  tags.set_tags,                          Answer(204)),
    Op("QueryBlobContents",        route("POST", B, comp="query"),                          h.NOTHING,                               STREAM,           READ,               sas("r"),                  NOT_YET,                                OK()),
    Op("SetBlobExpiry",            route("PUT", B, comp="expiry"),                          h.NOTHING,                               EMPTY,            NONE,               sas("w"),                  NOT_YET,                                OK()),
    Op("SetBlobImmutabilityPolicy", route("PUT", B, comp="immutabilitypolicies"),           h.NOTHING,                               EMPTY,            NONE,               sas("i"),                  NOT_YET,                                OK()),
    Op("DeleteBlobImmutabilityPolicy", route("DELETE", B, comp="immutabilitypolicies"),     h.NOTHING,                               EMPTY,            NONE,               sas("i"),                  NOT_YET,                                OK()),
    Op("SetBlobLegalHold",         route("PUT", B, comp="legalhold"),                       h.NOTHING,                               EMPTY,            NONE,               sas("i"),                  NOT_YET,                                OK()),

    Op("PutBlob",                  route("PUT", B, x_ms_blob_type="BlockBlob"),             h.VERSION | h.STRUCTURED | h.BLOB_HEADERS | h.CHECKSUMS | h.METADATA | h.TAGS | h.TIER | h.KEYS | h.LASTING, STREAM, CREATE, PUT_BLOB,          block.put_blob,                         STORED),
    Op("PutBlockFromUrl",          route("PUT", B, comp="block", x_ms_copy_source=None),    h.VERSION | h.BLOCK_ID | h.SOURCE_RANGE | h.KEYS,                     EMPTY,            LEASE_ONLY,         STAGE,                     from_url.put_block_from_url,            CREATED(*h.RECEIVED, constants=h.ENCRYPTED), source_guard=PART_SOURCE),
    Op("PutBlock",                 route("PUT", B, comp="block"),                           h.VERSION | h.STRUCTURED | h.BLOCK_ID | h.CHECKSUMS | h.KEYS, STREAM_NOT_EMPTY, LEASE_ONLY,         STAGE,                     block.put_block,                        CREATED(*h.RECEIVED, constants=h.ENCRYPTED)),
    Op("PutBlockList",             route("PUT", B, comp="blocklist"),                       h.VERSION | h.PREFIXED_HEADERS | h.CHECKSUMS | h.METADATA | h.TAGS | h.TIER | h.KEYS | h.LASTING, BLOCK_LIST, CREATE,    STAGE,                 blocklist.put_block_list,               STORED),
    Op("GetBlockList",             route("GET", B, comp="blocklist", blocklisttype="committed"), h.HISTORY | h.BLOCK_LIST_TYPE,          EMPTY,            BLOCK_LIST_READ,    READ_BLOB,                 blocklist.get_block_list,               OK(*h.BLOCK_LIST, body=render_block_lists)),
    Op("GetBlockList",             route("GET", B, comp="blocklist", blocklisttype=None), h.HISTORY | h.BLOCK_LIST_TYPE,          EMPTY,            BLOCK_LIST_READ,    sas("r"),                  blocklist.get_block_list,               OK(*h.BLOCK_LIST, body=render_block_lists)),
    Op("GetBlockList",             route("GET", B, comp="blocklist"),                       h.HISTORY | h.BLOCK_LIST_TYPE,          EMPTY,            BLOCK_LIST_READ,    READ_BLOB,                 blocklist.get_block_list,               OK(*h.BLOCK_LIST, body=render_block_lists)),

    Op("PutAppendBlob",            route("PUT", B, x_ms_blob_type="AppendBlob"),            h.BLOB_HEADERS | h.METADATA | h.TAGS | h.NO_TIER | h.KEYS | h.LASTING, EMPTY,            CREATE,             PUT_BLOB,                  append.create_append_blob,              STORED),
    Op("AppendBlockFromUrl",       route("PUT", B, comp="appendblock", x_ms_copy_source=None), h.VERSION | h.SOURCE_RANGE | h.APPEND_CONDITIONS | h.KEYS,                  EMPTY,            UPDATE,             sas("aw"),                 from_url.append_block_from_url,         CREATED(*h.STAMP, *h.RECEIVED, *h.APPENDED, constants=h.ENCRYPTED), source_guard=PART_SOURCE),
    Op("AppendBlock",              route("PUT", B, comp="appendblock"),                     h.VERSION | h.STRUCTURED | h.CHECKSUMS | h.APPEND_CONDITIONS | h.KEYS, STREAM_NOT_EMPTY, UPDATE,       sas("aw"),                 append.append_block,                    CREATED(*h.STAMP, *h.RECEIVED, *h.APPENDED, constants=h.ENCRYPTED)),
    Op("SealAppendBlob",           route("PUT", B, comp="seal"),                            h.APPEND_POSITION,                       EMPTY,            SEAL,               sas("aw"),                 append.seal_blob,                       OK(*h.STAMP, constants=h.SEALED)),

    Op("PutPageBlob",              route("PUT", B, x_ms_blob_type="PageBlob"),              h.BLOB_HEADERS | h.METADATA | h.TAGS | h.NEW_PAGE_BLOB | h.KEYS | h.LASTING, EMPTY, CREATE,         PUT_BLOB,                  page.create_page_blob,                  STORED),
    Op("PutPageFromUrl",           route("PUT", B, comp="page", x_ms_copy_source=None),     h.PAGE_WRITE | h.PAGES | h.SOURCE_RANGE | h.KEYS,                     EMPTY,            UPDATE,             sas("w"),                  from_url.put_pages_from_url,            PAGES_WRITTEN, source_guard=PART_SOURCE),
    Op("ClearPages",               route("PUT", B, comp="page", x_ms_page_write="clear"),   h.PAGES | h.CHECKSUMS | h.KEYS,          EMPTY,            UPDATE,             sas("w"),                  page.clear_pages,                       PAGES_WRITTEN),
    Op("PutPage",                  route("PUT", B, comp="page"),                            h.STRUCTURED | h.PAGE_WRITE | h.PAGES | h.CHECKSUMS | h.KEYS, STREAM,           UPDATE,             sas("w"),                  page.put_pages,                         PAGES_WRITTEN),
    Op("GetPageRangesDiff",        route("GET", B, comp="pagelist", prevsnapshot=None),     h.PAGE_RANGES | h.PREVIOUS_SNAPSHOT,     EMPTY,            READ,               READ_BLOB,                 page_ranges.get_page_ranges_diff,       PAGE_LIST),
    Op("GetPageRangesDiff",        route("GET", B, comp="pagelist", x_ms_previous_snapshot_url=None), h.PREVIOUS_SNAPSHOT_URL, EMPTY,      READ,               READ_BLOB,                 page_ranges.get_page_ranges_diff,       PAGE_LIST),
    Op("GetPageRanges",            route("GET", B, comp="pagelist"),                        h.PAGE_RANGES,                           EMPTY,            READ,               READ_BLOB,                 page_ranges.get_page_ranges,            PAGE_LIST),
    Op("IncrementalCopyBlob",      route("PUT", B, comp="incrementalcopy"),                 h.NOTHING,                               EMPTY,            CREATE,             PUT_BLOB,                  NOT_YET,                                ACCEPTED()),
)
# fmt: on
