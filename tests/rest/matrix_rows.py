"""The rows of the matrix: how each operation is sent, its initial state, and what the reference says about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Literal

from tests.rest.client import Box, Client, Reply
from tests.rest.copies import copy, signed
from tests.rest.expectations import STATES, Absent, Family, LeaseColumn, Noun, State
from tests.rest.history import ask_admin

HOLDER = "aaaaaaaa-0000-0000-0000-aaaaaaaaaaaa"
OTHER = "bbbbbbbb-0000-0000-0000-bbbbbbbbbbbb"
TAGGED = {"x-ms-tags": "k=v"}
LONG_AHEAD = "Fri, 31 Dec 2100 00:00:00 GMT"
LONG_AGO = "2020-02-02T00:00:00.0000000Z"
PAGE = b"p" * 512
_numbers = count()


class Stage(Box):
    """A container with a blob to copy from, and remote sources that never send their bytes: type of blob → URL."""

    def __init__(self, client: Client, slow: Mapping[str, str]) -> None:
        super().__init__(client)
        self.create()
        self.put("source", PAGE, TAGGED)
        self.slow = slow

    def url(self, text: str) -> str:
        return text.replace("{source}", signed(self))


@dataclass(frozen=True)
class Start:
    """The object of an operation: a blob or a container (`name` None), and the parameters that identify it."""

    box: Box
    name: str | None
    etag: str
    query: dict[str, str] = field(default_factory=dict)

    def look(self) -> Reply:
        if self.name is None:
            return self.box.container("HEAD")
        return self.box.head(self.name, query={key: self.query[key] for key in ("snapshot", "versionid") if key in self.query})


# --- what an operation starts from --------------------------------------------------------------------------------------------


def put_into(state: State, box: Box, name: str | None) -> None:
    """Bring the lease of a blob or container from available to `state`."""
    if state != "available":
        box.acquire(15 if state == "expired" else -1, name, HOLDER)
    if state in ("breaking", "broken"):
        box.lease("break", {"x-ms-lease-break-period": "60" if state == "breaking" else "0"}, name)
    if state == "expired":
        box.server.move_clock(15)


def _created(box: Box, state: State, body: bytes | None = None, **headers: str) -> Start:
    """A blob with a new name and tags."""
    name = f"blob{next(_numbers)}"
    sent = {"x-ms-" + key.replace("_", "-"): value for key, value in headers.items()}
    reply = box.blob("PUT", name, headers=TAGGED | sent, body=body)
    assert reply.status == 201, reply.answer
    put_into(state, box, name)
    return Start(box, name, reply["ETag"])


def block(box: Stage, state: State) -> Start:
    return _created(box, state, b"hello", blob_type="BlockBlob")


def archived(box: Stage, state: State) -> Start:
    return _created(box, state, b"hello", blob_type="BlockBlob", access_tier="Archive")


def immutable(box: Stage, state: State) -> Start:
    """A blob in a container with version level immutability."""
    path = f"/control/accounts/{box.server.account}/containers/{box.name}"
    assert ask_admin(box.server, "PUT", path, {"version_level_immutability": True})[0] == 200
    return block(box, state)


def append(box: Stage, state: State) -> Start:
    return _created(box, state, blob_type="AppendBlob")


def page(box: Stage, state: State) -> Start:
    return _created(box, state, blob_type="PageBlob", blob_content_length="1024")


def _with_snapshot(start: Start) -> tuple[Start, str]:
    assert start.name is not None
    return start, start.box.blob("PUT", start.name, "snapshot")["x-ms-snapshot"]


def page_and_snapshot(box: Stage, state: State) -> Start:
    start, moment = _with_snapshot(page(box, state))
    return Start(box, start.name, start.etag, {"prevsnapshot": moment})


def snapshot(box: Stage, state: State) -> Start:
    """The lease belongs to the blob: a snapshot has none."""
    start, moment = _with_snapshot(block(box, state))
    return Start(box, start.name, start.etag, {"snapshot": moment})


def deleted_snapshot(box: Stage, state: State) -> Start:
    start = snapshot(box, state)
    assert start.name is not None
    assert box.blob("DELETE", start.name, query=start.query).status == 202
    return start


def with_deleted_snapshot(box: Stage, state: State) -> Start:
    start = deleted_snapshot(box, state)
    return Start(box, start.name, start.etag)


def version(box: Stage, state: State) -> Start:
    """A previous version."""
    name = f"blob{next(_numbers)}"
    reply = box.put(name, headers=TAGGED)
    box.put(name, b"newer")
    put_into(state, box, name)
    return Start(box, name, reply["ETag"], {"versionid": reply["x-ms-version-id"]})


def pending_copy(box: Stage, state: State) -> Start:
    start = block(box, state)
    reply = copy_over(box, start, state)
    return Start(box, start.name, reply["ETag"], {"copyid": reply["x-ms-copy-id"]})


def copy_over(box: Stage, start: Start, state: State) -> Reply:
    """Start a copy to the blob that does not finish."""
    assert start.name is not None
    slow = box.slow[box.head(start.name)["x-ms-blob-type"]]
    reply = copy(box, slow, start.name, {"x-ms-lease-id": HOLDER} if state == "leased" else {})
    assert reply["x-ms-copy-status"] == "pending"
    return reply


def container(box: Stage, state: State) -> Start:
    fresh = Box(box.client).create()
    put_into(state, fresh, None)
    return Start(fresh, None, fresh.container("HEAD")["ETag"])


# --- the rows -----------------------------------------------------------------------------------------------------------------

After = Literal["same", "leased", "marked", "written", "gone"]
"""The effect of a success: nothing changed; at most the lease changed; changed with the same ETag; a new ETag; deleted."""


@dataclass(frozen=True)
class Row:
    method: str
    comp: str
    family: Family
    lease: LeaseColumn
    success: int
    after: After
    prepare: Callable[[Stage, State], Start] = block
    absent: Absent = "404"
    etag: bool = True  # the response has one
    headers: dict[str, str] = field(default_factory=dict)
    query: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None
    prefix: str = ""  # prefix of its conditional headers
    settings: dict[str, object] = field(default_factory=dict)
    states: tuple[State, ...] = STATES  # that it can have
    leasable: bool = True  # how the object of the request is leased
    source: Family | None = None  # the conditions of its source

    @property
    def noun(self) -> Noun:
        return "Container" if self.prepare is container else "Blob"

    @property
    def waits(self) -> bool:
        """Refused while a copy to the blob is pending: everything that would change the blob, its tags, tier, lease or snapshots
        (reference 4.8). Abort Copy Blob ends the copy, and Undelete Blob concerns blobs that were deleted before."""
        return self.leasable and self.method in ("PUT", "DELETE") and self.comp not in ("copy", "undelete")

    def under_copy(self) -> "Row":
        """The same with a pending copy to the blob."""
        if self.prepare is pending_copy:
            return self

        def prepare(stage: Stage, state: State) -> Start:
            start = self.prepare(stage, state)
            etag = copy_over(stage, start, state)["ETag"]
            return replace(start, etag=etag) if self.leasable else start

        return replace(self, prepare=prepare)

    def send(self, stage: Stage, start: Start, headers: dict[str, str]) -> Reply:
        sent = {name: stage.url(value) for name, value in self.headers.items()} | headers
        query = self.query | start.query
        if start.name is None:
            return start.box.container(self.method, self.comp, sent, body=self.body, query=query)
        return start.box.blob(self.method, start.name, self.comp, sent, self.body, query=query)


ACQUIRE = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "15", "x-ms-proposed-lease-id": HOLDER}
BREAK = {"x-ms-lease-action": "break"}
QUERY = b"<QueryRequest><QueryType>SQL</QueryType><Expression>SELECT * FROM BlobStorage</Expression></QueryRequest>"
SOURCE = {"x-ms-copy-source": "{source}"}
SYNC, ABORT = {"x-ms-requires-sync": "true"}, {"x-ms-copy-action": "abort"}
BLOCK_BLOB, APPEND_BLOB, PAGE_BLOB = ({"x-ms-blob-type": kind} for kind in ("BlockBlob", "AppendBlob", "PageBlob"))
WRITE, CLEAR = ({"x-ms-page-write": kind, "x-ms-range": "bytes=0-511"} for kind in ("update", "clear"))
SOURCE_PAGE = SOURCE | {"x-ms-source-range": "bytes=0-511"}
ACCOUNT, BLOCK_ID = {"restype": "account"}, {"blockid": "AAAA"}
OLD_SNAPSHOT, OLD_VERSION = {"snapshot": LONG_AGO}, {"versionid": LONG_AGO}
TWO_TAGS = b"<Tags><TagSet><Tag><Key>k</Key><Value>v</Value></Tag><Tag><Key>l</Key><Value>w</Value></Tag></TagSet></Tags>"
VERSIONS: dict[str, object] = {"versioning": True}
SOFT_DELETE: dict[str, object] = {"blob_soft_delete_days": 1, "permanent_delete": True}
PERMANENT = OLD_SNAPSHOT | {"deletetype": "permanent"}

# The first word is the operation, the next one its object. Reference 1.2 to 1.6; contract B3, L5, L6.
# fmt: off
ROWS = {
    "GetContainerProperties":      Row("GET",    "",            "none",      "R", 200, "same",    container),
    "GetContainerMetadata":        Row("GET",    "metadata",    "none",      "R", 200, "same",    container),
    "SetContainerMetadata":        Row("PUT",    "metadata",    "since",     "R", 200, "written", container),
    "GetContainerAcl":             Row("GET",    "acl",         "none",      "R", 200, "same",    container),
    "SetContainerAcl":             Row("PUT",    "acl",         "dates",     "R", 200, "written", container),
    "DeleteContainer":             Row("DELETE", "",            "dates",     "W", 202, "gone",    container, etag=False),
    "LeaseContainer":              Row("PUT",    "lease",       "dates",     "-", 201, "leased",  container, headers=ACQUIRE),
    "BreakContainerLease":         Row("PUT",    "lease",       "dates",     "-", 202, "leased",  container, headers=BREAK),
    "ListBlobs":                   Row("GET",    "list",        "none",      "-", 200, "same",    container, etag=False),
    "FindBlobsByTagsInContainer":  Row("GET",    "blobs",       "none",      "-", 200, "same",
                                       container, etag=False, query={"where": "k='v'"}),
    "GetAccountInformation, container": Row("GET", "properties", "none",     "-", 200, "same",
                                       container, "ignored", etag=False, query=ACCOUNT),

    "GetAccountInformation, blob": Row("GET",    "properties",  "none",      "-", 200, "same",
                                       absent="ignored", etag=False, query=ACCOUNT),
    "GetBlob":                     Row("GET",    "",            "read",      "R", 200, "same"),
    "GetBlob, snapshot":           Row("GET",    "",            "read",      "R", 200, "same",
                                       snapshot, query=OLD_SNAPSHOT, leasable=False),
    "GetBlob, version":            Row("GET",    "",            "read",      "R", 200, "same",
                                       version, query=OLD_VERSION, leasable=False, settings=VERSIONS),
    "QueryBlobContents":           Row("POST",   "query",       "read",      "R", 200, "same",    body=QUERY),
    "GetBlobProperties":           Row("HEAD",   "",            "read",      "R", 200, "same"),
    "GetBlobMetadata":             Row("GET",    "metadata",    "read",      "R", 200, "same"),
    "SetBlobMetadata":             Row("PUT",    "metadata",    "update",    "W", 200, "written"),
    "SetBlobProperties":           Row("PUT",    "properties",  "update",    "W", 200, "written"),
    "SnapshotBlob":                Row("PUT",    "snapshot",    "update",    "R", 201, "same"),
    "DeleteBlob":                  Row("DELETE", "",            "delete",    "W", 202, "gone",    etag=False),
    "DeleteBlob, snapshot":        Row("DELETE", "",            "delete",    "W", 202, "gone",
                                       snapshot, etag=False, query=OLD_SNAPSHOT, leasable=False),
    "DeleteBlobVersion":           Row("DELETE", "",            "delete",    "W", 202, "gone",
                                       version, etag=False, query=OLD_VERSION, leasable=False, settings=VERSIONS),
    "PermanentDeleteBlob":         Row("DELETE", "",            "delete",    "W", 202, "gone",
                                       deleted_snapshot, etag=False, query=PERMANENT, leasable=False, settings=SOFT_DELETE),
    "UndeleteBlob":                Row("PUT",    "undelete",    "none",      "-", 200, "same",
                                       with_deleted_snapshot, etag=False, settings=SOFT_DELETE),
    "LeaseBlob":                   Row("PUT",    "lease",       "update",    "-", 201, "leased",  headers=ACQUIRE),
    "BreakBlobLease":              Row("PUT",    "lease",       "update",    "-", 202, "leased",  headers=BREAK),
    "SetBlobTier":                 Row("PUT",    "tier",        "tags only", "R", 200, "marked",
                                       etag=False, headers={"x-ms-access-tier": "Cool"}),
    "SetBlobTier, archived":       Row("PUT",    "tier",        "tags only", "R", 202, "marked",
                                       archived, etag=False, headers={"x-ms-access-tier": "Hot"}),
    "SetBlobImmutabilityPolicy":   Row("PUT",    "immutabilitypolicies", "until", "-", 200, "marked",
                                       immutable, etag=False, headers={"x-ms-immutability-policy-until-date": LONG_AHEAD}),
    "DeleteBlobImmutabilityPolicy": Row("DELETE", "immutabilitypolicies", "none", "-", 200, "same",
                                       immutable, etag=False),
    "SetBlobLegalHold":            Row("PUT",    "legalhold",   "none",      "-", 200, "marked",
                                       immutable, etag=False, headers={"x-ms-legal-hold": "true"}),
    "SetBlobExpiry":               Row("PUT",    "expiry",      "none",      "W", 200, "written",
                                       headers={"x-ms-expiry-option": "NeverExpire"}, settings={"hierarchical_namespace": True}),
    # 412, never 304, also where tags are only read: measured (reference 2.2).
    "GetBlobTags":                 Row("GET",    "tags",        "update",    "R", 200, "same",
                                       etag=False, prefix="x-ms-blob-"),
    "SetBlobTags":                 Row("PUT",    "tags",        "update",    "W", 204, "marked",
                                       etag=False, prefix="x-ms-blob-", body=TWO_TAGS),

    "CopyBlob":                    Row("PUT",    "",            "copy",      "W", 202, "written",
                                       absent="created", headers=SOURCE, source="source"),
    # It has no x-ms-source-if-tags: neither Azure's page nor its libraries mention one.
    "CopyBlobFromUrl":             Row("PUT",    "",            "copy",      "W", 202, "written",
                                       absent="created", headers=SOURCE | SYNC, source="untagged source"),
    "PutBlobFromUrl":              Row("PUT",    "",            "create",    "W", 201, "written",
                                       absent="created", headers=SOURCE | BLOCK_BLOB, source="blob source"),
    # A copy can start only with an infinite lease, and no lease changes while it is pending.
    "AbortCopyBlob":               Row("PUT",    "copy",        "none",      "W", 204, "written",
                                       pending_copy, etag=False, headers=ABORT, query={"copyid": OTHER},
                                       states=("available", "leased")),

    "PutBlob":                     Row("PUT",    "",            "create",    "W", 201, "written",
                                       absent="created", headers=BLOCK_BLOB, body=b"new"),
    "PutBlock":                    Row("PUT",    "block",       "none",      "W", 201, "same",
                                       absent="created", etag=False, query=BLOCK_ID, body=b"block"),
    "PutBlockFromUrl":             Row("PUT",    "block",       "none",      "W", 201, "same",
                                       absent="created", etag=False, query=BLOCK_ID, headers=SOURCE, source="part source"),
    "PutBlockList":                Row("PUT",    "blocklist",   "create",    "W", 201, "written",
                                       absent="created", body=b"<BlockList />"),
    "GetBlockList":                Row("GET",    "blocklist",   "tags only", "R", 200, "same"),
    "GetBlockList, committed":     Row("GET",    "blocklist",   "tags only", "R", 200, "same",
                                       query={"blocklisttype": "committed"}),
    "GetBlockList, all":           Row("GET",    "blocklist",   "tags only", "R", 200, "same",    query={"blocklisttype": "all"}),

    "PutAppendBlob":               Row("PUT",    "",            "create",    "W", 201, "written",
                                       append, "created", headers=APPEND_BLOB),
    "AppendBlock":                 Row("PUT",    "appendblock", "update",    "W", 201, "written", append, body=b"block"),
    "AppendBlockFromUrl":          Row("PUT",    "appendblock", "update",    "W", 201, "written",
                                       append, headers=SOURCE, source="part source"),
    "SealAppendBlob":              Row("PUT",    "seal",        "untagged",  "W", 200, "written", append),

    "PutPageBlob":                 Row("PUT",    "",            "create",    "W", 201, "written",
                                       page, "created", headers=PAGE_BLOB | {"x-ms-blob-content-length": "512"}),
    "PutPage":                     Row("PUT",    "page",        "update",    "W", 201, "written", page, headers=WRITE, body=PAGE),
    "PutPageFromUrl":              Row("PUT",    "page",        "update",    "W", 201, "written",
                                       page, headers=WRITE | SOURCE_PAGE, source="part source"),
    "ClearPages":                  Row("PUT",    "page",        "update",    "W", 201, "written", page, headers=CLEAR),
    "ResizePageBlob":              Row("PUT",    "properties",  "update",    "W", 200, "written",
                                       page, headers={"x-ms-blob-content-length": "2048"}),
    "UpdateSequenceNumber":        Row("PUT",    "properties",  "update",    "W", 200, "written",
                                       page, headers={"x-ms-sequence-number-action": "increment"}),
    "GetPageRanges":               Row("GET",    "pagelist",    "read",      "R", 200, "same",    page),
    "GetPageRangesDiff":           Row("GET",    "pagelist",    "read",      "R", 200, "same",
                                       page_and_snapshot, query={"prevsnapshot": LONG_AGO}),
}

# Row of the operation table, with its route → why the matrix does not contain it.
EXEMPT = {
    "CreateContainer":      "takes neither conditions nor leases, and meets nothing that could have them",
    "RestoreContainer":     "takes neither conditions nor leases, and meets nothing that could have them",
    "BlobBatchInContainer": "is a list of other operations, each with headers of its own",
    "IncrementalCopyBlob":  "can only change a blob that it has made: see test_incremental_copy.py",
    "UpdateSequenceNumber x-ms-blob-sequence-number": "a number without an action is refused before any record is looked at",
    "GetPageRangesDiff x-ms-previous-snapshot-url": "is for managed disks and refused before any record is looked at",
}
# fmt: on
