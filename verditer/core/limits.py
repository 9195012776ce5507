"""Azure's limits, and ours where Azure has none. The number behind each is the REST reference's unless a comment says more."""

KIB = 1024
MIB = 1024 * KIB

MAX_METADATA = 8 * KIB
MAX_BLOB_NAME = 1024
MAX_BLOB_SEGMENTS = 254
MAX_PAGE = 5000  # items of a listing page: the default and the ceiling
MAX_BLOCK_ID = 64  # bytes, decoded
MAX_UNCOMMITTED_BLOCKS = 100_000
MAX_COMMITTED_BLOCKS = 50_000
MAX_BLOCK_LIST_XML = 12 * MIB  # 50,000 ids of 88 characters, with their elements, and room to spare
MAX_XML = 4 * MIB  # documents other than block lists
MAX_POLICIES = 5
MAX_POLICY_ID = 64
MAX_CORS_RULES = 5
MAX_RANGE_DIGEST = 4 * MIB  # the longest range for which a range MD5 or CRC64 is computed
LEASE_SECONDS = range(15, 61)
BREAK_SECONDS = range(61)
CLOCK_SKEW_SECONDS = 15 * 60  # Shared Key requests older or newer than this are refused
UNCOMMITTED_DAYS = 7  # blocks nobody commits are discarded

# (first version, bytes): the limit in force is the last whose version is not newer than the request's.
PUT_BLOB_BYTES = (("2009-04-14", 64 * MIB), ("2016-05-31", 256 * MIB), ("2019-12-12", 5000 * MIB))
PUT_BLOCK_BYTES = (("2009-04-14", 4 * MIB), ("2016-05-31", 100 * MIB), ("2019-12-12", 4000 * MIB))


def limit_for(version: str, limits: tuple[tuple[str, int], ...]) -> int:
    return next(size for first, size in reversed(limits) if version >= first or first == limits[0][0])
