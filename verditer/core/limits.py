"""Azure's limits, and limits of this server where Azure has none. The numbers are those of the REST reference unless a comment
gives another source."""

from functools import lru_cache

KIB = 1024
MIB = 1024 * KIB

MAX_METADATA = 8 * KIB
MAX_BLOB_NAME = 1024
MAX_BLOB_SEGMENTS = 254
MAX_PAGE = 5000  # items of a listing page: the default and the ceiling
MAX_BLOCK_ID = 64  # bytes, decoded
MAX_UNCOMMITTED_BLOCKS = 100_000
MAX_COMMITTED_BLOCKS = 50_000
MAX_BLOCK_LIST_XML = 12 * MIB  # 50,000 ids of 88 characters with their elements, and a margin
MAX_QUERY_XML = 1 * MIB  # Query Blob Contents: the expression and the formats
MAX_APPENDED_BLOCKS = 50_000
PAGE_BYTES = 512
MAX_PAGE_BLOB = 8 * 1024 * 1024 * MIB
MAX_PAGE_WRITE = 4 * MIB
MAX_PAGE_RANGES = 10_000  # ranges in one answer of Get Page Ranges
MAX_SEQUENCE_NUMBER = 2**63 - 1
MAX_XML = 4 * MIB  # documents other than block lists
MAX_POLICIES = 5
MAX_POLICY_ID = 64
MAX_CORS_RULES = 5
MAX_CORS_TEXT = 2 * KIB  # of all rules, without their XML tags
MAX_MESSAGE_TEXT = 64 * KIB  # bytes of UTF-8
MAX_MESSAGE_XML = 1 * MIB  # a text of that length in which every character is escaped, and a margin
MAX_MESSAGES = 32  # that one Get or Peek returns
MAX_VISIBILITY_SECONDS = 7 * 86400
MAX_TTL_SECONDS = 7 * 86400  # before 2017-07-29, and the default ever since
MAX_TABLE_PAGE = 1000  # tables or entities in one answer
MAX_QUERY_SECONDS = 5  # after this time a query answers with what it has found and a continuation
MAX_TABLE_BODY = 4 * MIB
MAX_PROPERTIES = 252  # an entity's own
MAX_PROPERTY_NAME = 255
MAX_PROPERTY_BYTES = 64 * KIB
MAX_ENTITY_BYTES = 1 * MIB
MAX_KEY_UNITS = 512  # UTF-16 code units: 1 KiB
MAX_CHANGES = 100  # in one entity group transaction
MAX_SYNC_COPY = 256 * MIB  # Copy Blob From URL
MAX_COPY_DAYS = 14  # an older pending copy has failed
MAX_BATCH_BODY = 4 * MIB
MAX_BATCH = 256  # requests in one batch
MAX_RANGE_DIGEST = 4 * MIB  # the longest range for which a range MD5 or CRC64 is computed
MAX_FILE_BYTES = 4 * 1024 * 1024 * MIB
MAX_LINK_TEXT = 2048  # characters of where a link points to
MAX_HARD_LINKS = 178  # names of one file
MAX_FILE_RANGE = 4 * MIB  # bytes that one Put Range, or Create File with a body, writes
MAX_RANGES_LISTED = 10_000  # ranges in one page of List Ranges
MAX_SHARE_SNAPSHOTS = 200
MAX_HANDLES = 2000  # open handles on one file or directory
MAX_ROOT_HANDLES = 10_000
DEFAULT_QUOTA_GIB = 5120
MAX_QUOTA_GIB = 102_400
MAX_PERMISSION_TEXT = 8 * KIB  # of a permission that comes with other properties; Create Permission takes longer ones
MAX_PERMISSION_JSON = 256 * KIB  # a descriptor of 64 KiB in base64 or as text, and room to spare
LEASE_SECONDS = range(15, 61)
BREAK_SECONDS = range(61)
CLOCK_SKEW_SECONDS = 15 * 60  # Shared Key requests older or newer than this are refused
UNCOMMITTED_DAYS = 7  # uncommitted blocks are discarded after this time

# (first version, bytes): the limit in force is the last whose version is not newer than the request's.
PUT_BLOB_BYTES = (("2009-04-14", 64 * MIB), ("2016-05-31", 256 * MIB), ("2019-12-12", 5000 * MIB))
PUT_BLOCK_BYTES = (("2009-04-14", 4 * MIB), ("2016-05-31", 100 * MIB), ("2019-12-12", 4000 * MIB))
APPEND_BLOCK_BYTES = (("2015-02-21", 4 * MIB), ("2022-11-02", 100 * MIB))


@lru_cache(maxsize=256)  # bounded: a client may send any date as its version
def limit_for(version: str, limits: tuple[tuple[str, int], ...]) -> int:
    return next(size for first, size in reversed(limits) if version >= first or first == limits[0][0])
