"""The Blob service: one row for each operation of Azure. A row with `NOT_YET` answers 501 with the name of the operation."""

from functools import partial

from verditer.core.grant import ACCOUNT_INFORMATION, ANY, BEARER_ONLY, KEY_OR_BEARER, account_only, container_sas, sas
from verditer.core.guard import (
    ABORT_COPY,
    BLOB_SOURCE,
    BLOCK_LIST_READ,
    CONTAINER_DELETE,
    CONTAINER_LEASE,
    CONTAINER_METADATA,
    CONTAINER_READ,
    CONTAINER_WRITE,
    COPY,
    COPY_SOURCE,
    CREATE,
    DELETE,
    IMMUTABILITY,
    INCREMENTAL_COPY,
    LEASE,
    LEASE_ONLY,
    NONE,
    PART_SOURCE,
    READ,
    SEAL,
    SET_TIER,
    SNAPSHOT,
    SYNC_COPY_SOURCE,
    TAGS_READ,
    TAGS_WRITE,
    UNGUARDED_CHANGE,
    UPDATE,
)
from verditer.core.lease import LeaseAction
from verditer.core.limits import MAX_BLOCK_LIST_XML, MAX_QUERY_XML, MAX_XML
from verditer.rest.batches import blob_batch
from verditer.rest.codecs.blob.block_lists import parse_block_list, render_block_lists
from verditer.rest.codecs.blob.page_ranges import render_page_ranges
from verditer.rest.codecs.blob.query import parse_query_request, render_query
from verditer.rest.codecs.blob.tags import parse_tags, render_found, render_tags
from verditer.rest.codecs.delegation import parse_key_info, render_delegation_key
from verditer.rest.codecs.listings import render_blobs, render_containers
from verditer.rest.codecs.policies import parse_policies, render_policies
from verditer.rest.codecs.properties import parse_properties, render_blob_properties, render_stats
from verditer.rest.headers import answers as h
from verditer.rest.headers import fields as f
from verditer.rest.headers import groups as g
from verditer.rest.operation import (
    EMPTY,
    STREAM,
    STREAM_NOT_EMPTY,
    Answer,
    Level,
    Op,
    StreamedContent,
    answer,
    document,
    route,
)
from verditer.rest.stages import Decoded
from verditer.rest.steps.encode import passthrough
from verditer.services import delegation, properties
from verditer.services.blob import blobs, containers, expiry, leases, listing, protection, read, tags, tiers, undelete
from verditer.services.blob.answers import BlobRead, BlobState, LeaseAnswer, TierSet
from verditer.services.blob.copying import copy, from_url, incremental, pending
from verditer.services.blob.kinds import append, block, blocklist, page, page_ranges
from verditer.services.blob.query import service as query

S, C, B = Level.SERVICE, Level.CONTAINER, Level.BLOB
SERVICE, CONTAINER = {"restype": "service"}, {"restype": "container"}
POLICIES = document(parse_policies, MAX_XML)
PROPERTIES = document(parse_properties, MAX_XML)
QUERY = document(parse_query_request, MAX_QUERY_XML)
KEY_INFO = document(parse_key_info, MAX_XML)
TAG_SET = document(parse_tags, MAX_XML)
BLOCK_LIST = document(parse_block_list, MAX_BLOCK_LIST_XML)
PUBLIC_BLOB, PUBLIC_CONTAINER = ("blob", "container"), ("container",)
READ_BLOB = sas("r", public=PUBLIC_BLOB)
PUT_BLOB = sas("cw", overwrite="w")
STAGE = sas("w", overwrite="w", create_since="2026-06-06")
READ_CONTAINER = account_only("c", "r", public=PUBLIC_CONTAINER)


def _bytes(result: BlobRead, decoded: Decoded) -> StreamedContent:
    return StreamedContent(result.body, result.length, 206 if result.ranged else 200)


def _size_only(result: BlobState, decoded: Decoded) -> StreamedContent:
    """The answer to HEAD has the length of the blob and no body."""
    return StreamedContent(b"", result.blob.size, 200)


def _lease_status(result: LeaseAnswer) -> int:
    return _LEASE_STATUS.get(result.action, 200)


def _tier_status(result: TierSet) -> int:
    return 202 if result.rehydrating else 200


_LEASE_STATUS = {LeaseAction.ACQUIRE: 201, LeaseAction.BREAK: 202}
OK, CREATED, ACCEPTED = partial(answer, 200), partial(answer, 201), partial(answer, 202)
LEASED = OK(*h.STAMP, *h.LEASED, status_of=_lease_status)
STORED = CREATED(*h.STAMP, *h.RECEIVED, *h.NEW_VERSION, groups=(g.encrypted,))
REMOVED = ACCEPTED(*h.REMOVED)
ACCOUNT = OK(*h.ACCOUNT_INFORMATION)
CONTAINER_STATE = OK(
    *h.STAMP_CONTAINER, *h.CONTAINER_ACCESS, groups=(g.container_lease, g.container_protection, g.container_metadata)
)
BLOB_STATE = OK(
    *h.BLOB_PROPERTIES,
    *h.BLOB_MD5,
    groups=(g.blob_kind, g.blob_copy, g.blob_lease, g.blob_tier, g.blob_version, g.blob_rare, g.blob_metadata),
    constants=h.BLOB_FIXED,
    body=_size_only,
)
BLOB_BYTES = OK(
    *h.BLOB_PROPERTIES,
    groups=(g.blob_range, g.blob_kind, g.blob_copy, g.blob_lease, g.read_tier, g.blob_version, g.blob_rare, g.blob_metadata),
    constants=h.BLOB_FIXED,
    body=_bytes,
)
PAGES_WRITTEN = CREATED(*h.STAMP, *h.RECEIVED, *h.SEQUENCE_NUMBER, groups=(g.encrypted,))
PAGE_BLOB_SET = OK(*h.STAMP, *h.SEQUENCE_NUMBER)
COPY_STARTED = ACCEPTED(*h.STAMP, *h.NEW_VERSION, *h.COPIED)
COPIED_NOW = ACCEPTED(*h.STAMP, *h.NEW_VERSION, *h.COPIED, *h.RECEIVED, groups=(g.copied_under,))
BATCH = ACCEPTED(body=passthrough)
QUERIED = OK(*h.STAMP_QUERIED, groups=(g.queried,), constants=h.QUERIED, body=render_query)
BLOCK_LISTS = OK(groups=(g.block_list_blob,), body=render_block_lists)
PAGE_LIST = OK(*h.PAGE_LIST, body=render_page_ranges)

# The tables are aligned by hand.
# fmt: off
OPERATIONS = (
    #  name                        route                                                    takes                                    body              guard               allow                      call                                    answer
    Op("ListContainers",           route("GET", S, comp="list"),                            f.CONTAINER_LISTING,                     EMPTY,            NONE,               account_only("s", "l"),    listing.list_containers,                OK(body=render_containers)),
    Op("SetBlobServiceProperties", route("PUT", S, comp="properties", **SERVICE),           f.NOTHING,                               PROPERTIES,       NONE,               account_only("s", "w"),    properties.set_blob_service_properties, ACCEPTED()),
    Op("GetBlobServiceProperties", route("GET", S, comp="properties", **SERVICE),           f.NOTHING,                               EMPTY,            NONE,               account_only("s", "r"),    properties.get_blob_service_properties, OK(body=render_blob_properties)),
    Op("GetBlobServiceStats",      route("GET", S, comp="stats", **SERVICE),                f.NOTHING,                               EMPTY,            NONE,               account_only("s", "r"),    properties.get_service_stats,           OK(body=render_stats)),
    Op("GetAccountInformation",    route("GET|HEAD", S, comp="properties", restype="account"), f.NOTHING,                            EMPTY,            NONE,               ACCOUNT_INFORMATION,       properties.get_account_information,     ACCOUNT),
    Op("GetAccountInformation",    route("GET|HEAD", C, comp="properties", restype="account"), f.NOTHING,                            EMPTY,            NONE,               ACCOUNT_INFORMATION,       properties.get_account_information,     ACCOUNT),
    Op("GetAccountInformation",    route("GET|HEAD", B, comp="properties", restype="account"), f.NOTHING,                            EMPTY,            NONE,               ACCOUNT_INFORMATION,       properties.get_account_information,     ACCOUNT),
    Op("GetUserDelegationKey",     route("POST", S, comp="userdelegationkey", **SERVICE),   f.VERSION,                               KEY_INFO,         NONE,               BEARER_ONLY,               delegation.get_user_delegation_key,     OK(body=render_delegation_key)),
    Op("FindBlobsByTags",          route("GET", S, comp="blobs"),                           f.FIND,                                  EMPTY,            NONE,               account_only("o", "f"),    tags.find_blobs,                        OK(body=render_found)),
    Op("BlobBatch",                route("POST", S, comp="batch"),                          f.NOTHING,                               STREAM,           NONE,               ANY,                       blob_batch.submit_batch,                BATCH),
    Op("BlobBatch",                route("POST", S, comp="batch", **CONTAINER),             f.NOTHING,                               STREAM,           NONE,               ANY,                       blob_batch.submit_batch,                BATCH),  # the JavaScript library, where the account is in the path

    Op("CreateContainer",          route("PUT", C, **CONTAINER),                            f.METADATA | f.PUBLIC_ACCESS | f.CONTAINER_SCOPE, EMPTY,            NONE,               account_only("c", "cw"),   containers.create_container,            CREATED(*h.STAMP)),
    Op("GetContainerProperties",   route("GET|HEAD", C, **CONTAINER),                       f.NOTHING,                               EMPTY,            CONTAINER_READ,     READ_CONTAINER,            containers.get_container,               CONTAINER_STATE),
    Op("GetContainerMetadata",     route("GET|HEAD", C, comp="metadata", **CONTAINER),      f.NOTHING,                               EMPTY,            CONTAINER_READ,     READ_CONTAINER,            containers.get_container,               OK(*h.STAMP_CONTAINER, groups=(g.container_metadata,))),
    Op("SetContainerMetadata",     route("PUT", C, comp="metadata", **CONTAINER),           f.METADATA,                              EMPTY,            CONTAINER_METADATA, account_only("c", "w"),    containers.set_container_metadata,      OK(*h.STAMP)),
    Op("GetContainerAcl",          route("GET|HEAD", C, comp="acl", **CONTAINER),           f.NOTHING,                               EMPTY,            CONTAINER_READ,     KEY_OR_BEARER,             containers.get_container,               OK(*h.STAMP_CONTAINER, *h.CONTAINER_ACCESS, body=render_policies)),
    Op("SetContainerAcl",          route("PUT", C, comp="acl", **CONTAINER),                f.PUBLIC_ACCESS,                         POLICIES,         CONTAINER_WRITE,    KEY_OR_BEARER,             containers.set_container_acl,           OK(*h.STAMP)),
    Op("DeleteContainer",          route("DELETE", C, **CONTAINER),                         f.NOTHING,                               EMPTY,            CONTAINER_DELETE,   account_only("c", "d"),    containers.delete_container,            ACCEPTED()),
    Op("RestoreContainer",         route("PUT", C, comp="undelete", **CONTAINER),           f.DELETED_CONTAINER,                     EMPTY,            NONE,               account_only("c", "w"),    undelete.restore_container,             CREATED()),
    Op("BreakContainerLease",      route("PUT", C, comp="lease", **CONTAINER, x_ms_lease_action="break"), f.LEASE_ACTION,            EMPTY,            CONTAINER_LEASE,    account_only("c", "wd"),   leases.lease_container,                 LEASED),
    Op("LeaseContainer",           route("PUT", C, comp="lease", **CONTAINER),              f.LEASE_ACTION,                          EMPTY,            CONTAINER_LEASE,    account_only("c", "w"),    leases.lease_container,                 LEASED),
    Op("ListBlobs",                route("GET", C, comp="list", **CONTAINER),               f.BLOB_LISTING,                          EMPTY,            NONE,               container_sas("l", public=PUBLIC_CONTAINER), listing.list_blobs,    OK(body=render_blobs)),
    Op("FindBlobsByTagsInContainer", route("GET", C, comp="blobs", **CONTAINER),            f.FIND,                                  EMPTY,            NONE,               container_sas("f"),        tags.find_blobs_in_container,           OK(body=render_found)),
    Op("BlobBatchInContainer",     route("POST", C, comp="batch", **CONTAINER),             f.NOTHING,                               STREAM,           NONE,               ANY,                       blob_batch.submit_batch,                BATCH),

    Op("GetBlob",                  route("GET", B),                                         f.VERSION | f.STRUCTURED | f.RANGE | f.HISTORY | f.KEY, EMPTY,     READ,               READ_BLOB,                 read.get_blob,                          BLOB_BYTES),
    Op("GetBlobProperties",        route("HEAD", B),                                        f.HISTORY | f.KEY,                      EMPTY,            READ,               READ_BLOB,                 blobs.get_properties,                   BLOB_STATE),
    Op("GetBlobMetadata",          route("GET|HEAD", B, comp="metadata"),                   f.HISTORY | f.KEY,                      EMPTY,            READ,               READ_BLOB,                 blobs.get_properties,                   OK(*h.STAMP_BLOB, groups=(g.blob_metadata,))),
    Op("SetBlobMetadata",          route("PUT", B, comp="metadata"),                        f.METADATA | f.KEYS,                     EMPTY,            UPDATE,             sas("w"),                  blobs.set_metadata,                     OK(*h.STAMP, *h.NEW_VERSION, groups=(g.encrypted,))),
    Op("ResizePageBlob",           route("PUT", B, comp="properties", x_ms_blob_content_length=None), f.PAGE_PROPERTIES | f.KEYS,    EMPTY,            UPDATE,             sas("w"),                  page.set_page_properties,               PAGE_BLOB_SET),
    Op("UpdateSequenceNumber",     route("PUT", B, comp="properties", x_ms_sequence_number_action=None), f.PAGE_PROPERTIES,          EMPTY,            UPDATE,             sas("w"),                  page.set_page_properties,               PAGE_BLOB_SET),
    Op("UpdateSequenceNumber",     route("PUT", B, comp="properties", x_ms_blob_sequence_number=None), f.PAGE_PROPERTIES,            EMPTY,            UPDATE,             sas("w"),                  page.set_page_properties,               PAGE_BLOB_SET),
    Op("SetBlobProperties",        route("PUT", B, comp="properties"),                      f.NEW_HEADERS,                           EMPTY,            UPDATE,             sas("w"),                  blobs.set_properties,                   PAGE_BLOB_SET),
    Op("PermanentDeleteBlob",      route("DELETE", B, deletetype="permanent"),              f.HISTORY,                               EMPTY,            DELETE,             sas("y"),                  undelete.permanent_delete,              REMOVED),
    Op("DeleteBlobVersion",        route("DELETE", B, versionid=None),                      f.OLD_VERSION,                           EMPTY,            DELETE,             sas("x"),                  blobs.delete_version,                   REMOVED),
    Op("DeleteBlob",               route("DELETE", B),                                      f.SNAPSHOT | f.DELETE_SNAPSHOTS,         EMPTY,            DELETE,             sas("d"),                  blobs.delete_blob,                      REMOVED),
    Op("UndeleteBlob",             route("PUT", B, comp="undelete"),                        f.NOTHING,                               EMPTY,            NONE,               sas("w"),                  undelete.undelete_blob,                 OK()),
    Op("BreakBlobLease",           route("PUT", B, comp="lease", x_ms_lease_action="break"), f.LEASE_ACTION,                         EMPTY,            LEASE,              sas("wd"),                 leases.lease_blob,                      LEASED),
    Op("LeaseBlob",                route("PUT", B, comp="lease"),                           f.LEASE_ACTION,                          EMPTY,            LEASE,              sas("w"),                  leases.lease_blob,                      LEASED),
    Op("SnapshotBlob",             route("PUT", B, comp="snapshot"),                        f.METADATA | f.KEYS,                     EMPTY,            SNAPSHOT,           sas("cw"),                 blobs.snapshot_blob,                    CREATED(*h.STAMP, *h.SNAPSHOT_TIME, *h.NEW_VERSION, groups=(g.encrypted,))),
    Op("CopyBlobFromUrl",          route("PUT", B, x_ms_copy_source=None, x_ms_requires_sync="true"), f.COPY | f.SOURCE_MD5 | f.SOURCE_TAGS | f.SCOPE,           EMPTY,            COPY,               PUT_BLOB,                  copy.copy_blob_from_url,                COPIED_NOW, source_guard=SYNC_COPY_SOURCE),
    Op("PutBlobFromUrl",           route("PUT", B, x_ms_copy_source=None, x_ms_blob_type="BlockBlob"), f.VERSION | f.PREFIXED_HEADERS | f.METADATA | f.TAGS | f.TIER | f.SOURCE_MD5 | f.SOURCE_TAGS | f.SOURCE_PROPERTIES | f.KEYS | f.LASTING, EMPTY,            CREATE,             PUT_BLOB,                  from_url.put_blob_from_url,             STORED, source_guard=BLOB_SOURCE),
    Op("CopyBlob",                 route("PUT", B, x_ms_copy_source=None),                  f.COPY,                                  EMPTY,            COPY,               PUT_BLOB,                  copy.copy_blob,                         COPY_STARTED, source_guard=COPY_SOURCE, reads_own_account=True),
    Op("AbortCopyBlob",            route("PUT", B, comp="copy"),                            f.ABORT,                                 EMPTY,            ABORT_COPY,         sas("w"),                  pending.abort_copy,                     Answer(204)),
    Op("SetBlobTier",              route("PUT", B, comp="tier"),                            f.NEW_TIER | f.HISTORY,                  EMPTY,            SET_TIER,           sas("w"),                  tiers.set_tier,                         OK(status_of=_tier_status)),
    Op("GetBlobTags",              route("GET", B, comp="tags"),                            f.HISTORY,                               EMPTY,            TAGS_READ,          sas("t"),                  tags.get_tags,                          OK(body=render_tags)),
    Op("SetBlobTags",              route("PUT", B, comp="tags"),                            f.CHECKSUMS | f.VERSION_ID,                TAG_SET,          TAGS_WRITE,         sas("t"),                  tags.set_tags,                          Answer(204)),
    Op("QueryBlobContents",        route("POST", B, comp="query"),                          f.VERSION | f.HISTORY | f.KEY,           QUERY,            READ,               sas("r"),                  query.query_blob,                       QUERIED),
    Op("SetBlobExpiry",            route("PUT", B, comp="expiry"),                          f.EXPIRY,                                EMPTY,            LEASE_ONLY,         sas("w"),                  expiry.set_expiry,                      OK(*h.STAMP)),
    Op("SetBlobImmutabilityPolicy", route("PUT", B, comp="immutabilitypolicies"),           f.POLICY | f.HISTORY,                    EMPTY,            IMMUTABILITY,       sas("i"),                  protection.set_policy,                  OK(groups=(g.policy_set,))),
    Op("DeleteBlobImmutabilityPolicy", route("DELETE", B, comp="immutabilitypolicies"),     f.HISTORY,                               EMPTY,            UNGUARDED_CHANGE,   sas("i"),                  protection.delete_policy,               OK()),
    Op("SetBlobLegalHold",         route("PUT", B, comp="legalhold"),                       f.HOLD | f.HISTORY,                      EMPTY,            UNGUARDED_CHANGE,   sas("i"),                  protection.set_legal_hold,              OK(groups=(g.hold_set,))),

    Op("PutBlob",                  route("PUT", B, x_ms_blob_type="BlockBlob"),             f.VERSION | f.STRUCTURED | f.BLOB_HEADERS | f.CHECKSUMS | f.METADATA | f.TAGS | f.TIER | f.KEYS | f.LASTING, STREAM, CREATE, PUT_BLOB,          block.put_blob,                         STORED),
    Op("PutBlockFromUrl",          route("PUT", B, comp="block", x_ms_copy_source=None),    f.VERSION | f.BLOCK_ID | f.SOURCE_RANGE | f.KEYS,                     EMPTY,            LEASE_ONLY,         STAGE,                     from_url.put_block_from_url,            CREATED(*h.RECEIVED, groups=(g.encrypted,)), source_guard=PART_SOURCE),
    Op("PutBlock",                 route("PUT", B, comp="block"),                           f.VERSION | f.STRUCTURED | f.BLOCK_ID | f.CHECKSUMS | f.KEYS, STREAM_NOT_EMPTY, LEASE_ONLY,         STAGE,                     block.put_block,                        CREATED(*h.RECEIVED, groups=(g.encrypted,))),
    Op("PutBlockList",             route("PUT", B, comp="blocklist"),                       f.VERSION | f.PREFIXED_HEADERS | f.CHECKSUMS | f.METADATA | f.TAGS | f.TIER | f.KEYS | f.LASTING, BLOCK_LIST, CREATE,    STAGE,                 blocklist.put_block_list,               STORED),
    Op("GetBlockList",             route("GET", B, comp="blocklist", blocklisttype="committed"), f.HISTORY | f.BLOCK_LIST_TYPE,          EMPTY,            BLOCK_LIST_READ,    READ_BLOB,                 blocklist.get_block_list,               BLOCK_LISTS),
    Op("GetBlockList",             route("GET", B, comp="blocklist", blocklisttype=None), f.HISTORY | f.BLOCK_LIST_TYPE,          EMPTY,            BLOCK_LIST_READ,    sas("r"),                  blocklist.get_block_list,               BLOCK_LISTS),
    Op("GetBlockList",             route("GET", B, comp="blocklist"),                       f.HISTORY | f.BLOCK_LIST_TYPE,          EMPTY,            BLOCK_LIST_READ,    READ_BLOB,                 blocklist.get_block_list,               BLOCK_LISTS),

    Op("PutAppendBlob",            route("PUT", B, x_ms_blob_type="AppendBlob"),            f.BLOB_HEADERS | f.METADATA | f.TAGS | f.NO_TIER | f.KEYS | f.LASTING, EMPTY,            CREATE,             PUT_BLOB,                  append.create_append_blob,              STORED),
    Op("AppendBlockFromUrl",       route("PUT", B, comp="appendblock", x_ms_copy_source=None), f.VERSION | f.SOURCE_RANGE | f.APPEND_CONDITIONS | f.KEYS,                  EMPTY,            UPDATE,             sas("aw"),                 from_url.append_block_from_url,         CREATED(*h.STAMP, *h.RECEIVED, *h.APPENDED, groups=(g.encrypted,)), source_guard=PART_SOURCE),
    Op("AppendBlock",              route("PUT", B, comp="appendblock"),                     f.VERSION | f.STRUCTURED | f.CHECKSUMS | f.APPEND_CONDITIONS | f.KEYS, STREAM_NOT_EMPTY, UPDATE,       sas("aw"),                 append.append_block,                    CREATED(*h.STAMP, *h.RECEIVED, *h.APPENDED, groups=(g.encrypted,))),
    Op("SealAppendBlob",           route("PUT", B, comp="seal"),                            f.APPEND_POSITION,                       EMPTY,            SEAL,               sas("aw"),                 append.seal_blob,                       OK(*h.STAMP, constants=h.SEALED)),

    Op("PutPageBlob",              route("PUT", B, x_ms_blob_type="PageBlob"),              f.BLOB_HEADERS | f.METADATA | f.TAGS | f.NEW_PAGE_BLOB | f.KEYS | f.LASTING, EMPTY, CREATE,         PUT_BLOB,                  page.create_page_blob,                  STORED),
    Op("PutPageFromUrl",           route("PUT", B, comp="page", x_ms_copy_source=None),     f.PAGE_WRITE | f.PAGES | f.SOURCE_RANGE | f.KEYS,                     EMPTY,            UPDATE,             sas("w"),                  from_url.put_pages_from_url,            PAGES_WRITTEN, source_guard=PART_SOURCE),
    Op("ClearPages",               route("PUT", B, comp="page", x_ms_page_write="clear"),   f.PAGES | f.CHECKSUMS | f.KEYS,          EMPTY,            UPDATE,             sas("w"),                  page.clear_pages,                       PAGES_WRITTEN),
    Op("PutPage",                  route("PUT", B, comp="page"),                            f.STRUCTURED | f.PAGE_WRITE | f.PAGES | f.CHECKSUMS | f.KEYS, STREAM,           UPDATE,             sas("w"),                  page.put_pages,                         PAGES_WRITTEN),
    Op("GetPageRangesDiff",        route("GET", B, comp="pagelist", prevsnapshot=None),     f.PAGE_RANGES | f.PREVIOUS_SNAPSHOT,     EMPTY,            READ,               READ_BLOB,                 page_ranges.get_page_ranges_diff,       PAGE_LIST),
    Op("GetPageRangesDiff",        route("GET", B, comp="pagelist", x_ms_previous_snapshot_url=None), f.PREVIOUS_SNAPSHOT_URL, EMPTY,      READ,               READ_BLOB,                 page_ranges.get_page_ranges_diff,       PAGE_LIST),
    Op("GetPageRanges",            route("GET", B, comp="pagelist"),                        f.PAGE_RANGES,                           EMPTY,            READ,               READ_BLOB,                 page_ranges.get_page_ranges,            PAGE_LIST),
    Op("IncrementalCopyBlob",      route("PUT", B, comp="incrementalcopy"),                 f.NOTHING,                               EMPTY,            INCREMENTAL_COPY,   PUT_BLOB,                  incremental.copy_incrementally,         COPY_STARTED, source_guard=SYNC_COPY_SOURCE, reads_own_account=True),
)
# fmt: on
