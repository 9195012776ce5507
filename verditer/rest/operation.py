"""The row type of an operation: everything that the pipeline has to know about it, side by side.

A row says how a request finds it (`route`), what it reads from headers and query (`takes`) and from the body (`body`), what
guards it, who may call it, which service function runs and how its result is answered. The struct that the function wants is read
from its annotations, so a row names no field twice. `tests/unit/test_tidy.py` checks that the columns of a row fit its function.
"""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, get_type_hints

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Allow
from verditer.core.guard import GuardRule
from verditer.rest.codecs.table.json_format import JsonFormat
from verditer.rest.http.message import Response

if TYPE_CHECKING:
    from verditer.rest.stages import Accepted


class Level(Enum):
    """How deep the path goes: the kind of resource that an operation acts on."""

    SERVICE = "service"
    CONTAINER = "container"
    BLOB = "blob"
    QUEUE = "queue"
    MESSAGES = "messages"
    MESSAGE = "message"
    TABLES = "tables"
    TABLE = "table"
    ENTITIES = "entities"
    ENTITY = "entity"
    BELOW_TABLE = "below a table"
    BATCH = "batch"
    SHARE = "share"
    PATH = "path"
    ANY = "any"

    __hash__ = object.__hash__  # every request hashes a level, and the hash of Enum is written in Python


@dataclass(frozen=True, slots=True)
class Route:
    """`when` names headers (with a hyphen) or query parameters (without one) that have to be sent (value None) or to have this
    value. A parameter never counts as a header: a caller could then be authorized for one row and be served by another."""

    methods: tuple[str, ...]
    level: Level
    restype: str = ""
    comp: str = ""
    when: tuple[tuple[str, str | None], ...] = ()


def route(method: str, level: Level, *, restype: str = "", comp: str = "", **when: str | None) -> Route:
    """Keyword arguments become header names: `x_ms_blob_type="BlockBlob"`. GET rows whose answer has no body take HEAD too."""
    return Route(
        tuple(method.split("|")), level, restype, comp, tuple((name.replace("_", "-"), value) for name, value in when.items())
    )


@dataclass(frozen=True, slots=True)
class Param:
    """One value of the request: the field that it fills, its name on the wire, and the function that parses its text."""

    field: str
    wire: str
    parse: Callable[[str, str], object]  # (name on the wire, text) → value, or StorageError
    query: bool = False
    required: bool = False
    blank: bool = False  # an empty text is a value too
    letter: str = ""  # the permission that a SAS needs besides those of the operation when the value is sent …
    letter_for: str = ""  # … or, where this is given, when the value is a list that contains it

    def needs_letter(self, sent: str | None) -> bool:
        if sent is None:
            return False
        return not self.letter_for or self.letter_for in [part.strip() for part in sent.lower().split(",")]


@dataclass(frozen=True, slots=True)
class Mandatory:
    """Headers that some versions require, from `since` until before `until`. One of each group has to be sent."""

    since: str
    until: str
    groups: tuple[tuple[str, ...], ...]

    def missing(self, headers: Mapping[str, str], version: str) -> str | None:
        """The first header that is missing."""
        if not self.since <= version < self.until:
            return None
        return next((group[0] for group in self.groups if not any(headers.get(name) for name in group)), None)


@dataclass(frozen=True, slots=True)
class Takes:
    """A group of parameters. Groups add up: `CONTENT | METADATA`."""

    params: tuple[Param, ...] = ()
    metadata: bool = False
    lease_request: bool = False
    structured: bool = False  # the body, sent or answered, may be a structured message (`codecs/structured.py`)
    version: bool = False  # the version by which the request is served
    distinct_metadata: bool = False  # a name of metadata is sent once; otherwise the values of equal names are joined
    mandatory: Mandatory | None = None
    wires: frozenset[str] = field(init=False)
    required: bool = field(init=False)
    lettered: tuple[Param, ...] = field(init=False)  # those that need a permission of their own

    def __post_init__(self) -> None:
        object.__setattr__(self, "wires", frozenset(param.wire for param in self.params))
        object.__setattr__(self, "lettered", tuple(param for param in self.params if param.letter))
        object.__setattr__(self, "required", any(param.required for param in self.params))

    def is_left_out(self, headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
        """Nothing of the group was sent and nothing is required. Most requests send few of the parameters."""
        return not self.required and self.wires.isdisjoint(headers) and self.wires.isdisjoint(query)

    def __or__(self, other: "Takes") -> "Takes":
        return Takes(
            self.params + other.params,
            self.metadata or other.metadata,
            self.lease_request or other.lease_request,
            self.structured or other.structured,
            self.version or other.version,
            self.distinct_metadata or other.distinct_metadata,
            self.mandatory or other.mandatory,
        )


class BodyKind(Enum):
    EMPTY = "empty"
    STREAM = "stream"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class BodyRule:
    """A document is read whole, up to `limit` bytes, and `parse` returns fields of the request."""

    kind: BodyKind
    parse: Callable[[bytes], Mapping[str, object]] | None = None
    limit: int = 0
    allow_empty: bool = False  # a streamed body may have no bytes


EMPTY = BodyRule(BodyKind.EMPTY)
STREAM = BodyRule(BodyKind.STREAM, allow_empty=True)
STREAM_NOT_EMPTY = BodyRule(BodyKind.STREAM)


def document(parse: Callable[[bytes], Mapping[str, object]], limit: int) -> BodyRule:
    return BodyRule(BodyKind.DOCUMENT, parse, limit)


class HeaderOut(NamedTuple):
    """A response header: its name, how its value is read from the result (None: no header) and shown as text."""

    name: str
    get: Callable[..., str | None]  # text; whatever `show` takes where there is one
    show: Callable[..., str] | None = None
    path: str = ""  # the attribute of the result that `get` reads


def header(name: str, path: str, show: Callable[..., str] | None = None) -> HeaderOut:
    """A header read from an attribute of the result, such as `blob.size`."""
    return HeaderOut(name, attrgetter(path), show, path)


class StreamedContent:
    """A body that is streamed: its bytes or pieces, its length if it is known, and the status of the answer."""

    __slots__ = ("body", "length", "status")

    def __init__(self, body: bytes | AsyncIterator[bytes], length: int | None, status: int) -> None:
        self.body = body
        self.length = length
        self.status = status


Group = Callable[..., Iterable[tuple[str, str]]]
"""(result) → headers that come together: metadata, the lease trio."""

Renderer = Callable[..., bytes | StreamedContent | Response]
"""(result, stage `Decoded`) → the body of the answer, or the whole answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`headers` and `groups` are read from the result, and `status_of` its status. `body` renders it (None: no body)."""

    status: int
    headers: tuple[HeaderOut, ...] = ()
    body: Renderer | None = None
    status_of: Callable[..., int] | None = None
    content_type: str | None = None
    groups: tuple[Group, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()  # headers with a fixed value


def answer(
    status: int,
    *headers: HeaderOut,
    body: Renderer | None = None,
    status_of: Callable[..., int] | None = None,
    groups: tuple[Group, ...] = (),
    constants: tuple[tuple[str, str], ...] = (),
) -> Answer:
    return Answer(status, headers, body=body, status_of=status_of, groups=groups, constants=constants)


NOT_YET = None
ServiceFunction = Callable[..., Awaitable[object]]


@dataclass(frozen=True)
class Op:
    name: str
    route: Route
    takes: Takes
    body: BodyRule
    guard: GuardRule
    allow: Allow
    function: ServiceFunction | None  # None: not built
    answer: Answer
    accepts: "Callable[[Accepted], JsonFormat] | None" = None  # chooses the format of the answer, or refuses the request
    source_guard: GuardRule | None = None  # of the copy source that x-ms-copy-source names
    reads_own_account: bool = False  # a source in the same account is read with the permission of the request itself
    changes: bool = False  # a GET that writes: Get Messages
    renames: str | None = None  # "file" or "directory": the operation takes the source that x-ms-file-rename-source names
    check_target: ServiceFunction | None = None  # called before a malformed request is refused: a missing target goes first
    needs_intent: bool = True  # with a bearer token, where the service asks for an intent
    call: ServiceFunction = field(init=False)
    request: Callable[..., msgspec.Struct] | None = field(init=False, default=None)
    arguments: tuple[str, ...] = field(init=False, default=())
    writes: bool = field(init=False, default=False)
    is_built: bool = field(init=False, default=False)
    takes_source: bool = field(init=False, default=False)  # a second resource, which is copied or renamed

    def __post_init__(self) -> None:
        """Read from the function which arguments it takes, and the type of its request."""
        call = self.function or _not_yet(self.name)
        object.__setattr__(self, "is_built", self.function is not None)
        object.__setattr__(self, "takes_source", self.source_guard is not None or self.renames is not None)
        object.__setattr__(self, "call", call)
        object.__setattr__(self, "arguments", tuple(inspect.signature(call).parameters)[2:])
        object.__setattr__(self, "request", get_type_hints(call).get("request"))
        object.__setattr__(self, "writes", self.changes or self.route.methods[0] not in ("GET", "HEAD", "OPTIONS"))


def _not_yet(name: str) -> ServiceFunction:
    async def not_yet(ctx: object, target: object) -> None:
        raise StorageError(Code.NotImplemented, message=f"{name} is not implemented by this server yet.")

    return not_yet
