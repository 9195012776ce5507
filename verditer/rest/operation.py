"""The row type: everything the pipeline has to know about an operation, side by side.

A row says how a request finds it (`route`), what it reads from headers and query (`takes`) and from the body (`body`), what
guards it, who may call it, which service function runs and what it answers. The struct the function wants is read from its
annotations, so a row names no field twice.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, get_type_hints

from verditer.core.errors import Code, StorageError
from verditer.core.grant import Allow
from verditer.core.guard import GuardRule


class Level(Enum):
    """How deep the path goes: what an operation is about."""

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
    BATCH = "batch"
    SHARE = "share"
    PATH = "path"
    ANY = "any"

    __hash__ = object.__hash__  # with every request; the one of Enum is a function in Python


@dataclass(frozen=True, slots=True)
class Route:
    """`when` are headers (with a hyphen in their name) or query parameters (without one) that have to be there (value None) or
    have to have a value. A parameter never stands for a header: who is let in by one row would then be served as by another."""

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
    """One value from the request: the field it fills, where it stands, and what turns its text into a value."""

    field: str
    wire: str
    parse: Callable[[str, str], Any]  # (wire name, text) → value, or StorageError
    query: bool = False
    required: bool = False
    blank: bool = False  # an empty text is a value too


@dataclass(frozen=True, slots=True)
class Takes:
    """A group of parameters. Groups add up: `CONTENT | METADATA`."""

    params: tuple[Param, ...] = ()
    metadata: bool = False
    lease_request: bool = False
    structured: bool = False  # its bytes, sent or answered, may have the form of `codecs/structured.py`
    version: bool = False  # the version the request is served as
    wires: frozenset[str] = field(init=False)
    required: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "wires", frozenset(param.wire for param in self.params))
        object.__setattr__(self, "required", any(param.required for param in self.params))

    def is_left_out(self, headers: Mapping[str, str], query: Mapping[str, str]) -> bool:
        """Nothing of it was sent and nothing has to be: most of what an operation takes is seldom sent."""
        return not self.required and self.wires.isdisjoint(headers) and self.wires.isdisjoint(query)

    def __or__(self, other: "Takes") -> "Takes":
        return Takes(
            self.params + other.params,
            self.metadata or other.metadata,
            self.lease_request or other.lease_request,
            self.structured or other.structured,
            self.version or other.version,
        )


class BodyKind(Enum):
    EMPTY = "empty"
    STREAM = "stream"
    DOCUMENT = "document"


@dataclass(frozen=True, slots=True)
class BodyRule:
    """A document is read whole, up to `limit`, and `parse` gives fields of the request."""

    kind: BodyKind
    parse: Callable[[bytes], dict[str, Any]] | None = None
    limit: int = 0
    allow_empty: bool = False  # a streamed body of no bytes is an ordinary one


EMPTY = BodyRule(BodyKind.EMPTY)
STREAM = BodyRule(BodyKind.STREAM, allow_empty=True)
STREAM_NOT_EMPTY = BodyRule(BodyKind.STREAM)


def document(parse: Callable[[bytes], dict[str, Any]], limit: int) -> BodyRule:
    return BodyRule(BodyKind.DOCUMENT, parse, limit)


class HeaderOut(NamedTuple):
    """A response header: its name, how its value is read from the result (None: leave it out) and shown as text."""

    name: str
    get: Callable[[Any], Any]
    show: Callable[[Any], str] | None = None


Group = Callable[[Any], Iterable[tuple[str, str]]]
"""Headers that come together: metadata, the lease trio."""


@dataclass(frozen=True, slots=True)
class Answer:
    """`headers` and `groups` are read from the result; `body` renders it (None: no body). `status` may depend on the result."""

    status: int
    headers: tuple[HeaderOut, ...] = ()
    body: Callable[[Any, Any], Any] | None = None  # (result, exchange) → bytes, Content, or a whole Response
    status_of: Callable[[Any], int] | None = None
    content_type: str | None = None
    groups: tuple[Group, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()  # headers that are always the same


NOT_YET = None


@dataclass(frozen=True)
class Op:
    name: str
    route: Route
    takes: Takes
    body: BodyRule
    guard: GuardRule
    allow: Allow
    call: Callable[..., Any] | None
    answer: Answer
    accepts: Callable[[Any], Any] | None = None  # exchange → the form of the answer, or a refusal before anything happens
    source_guard: GuardRule | None = None  # of what x-ms-copy-source names
    opens_own: bool = False  # a source in the same account is read by the right of the request itself
    changes: bool = False  # a GET that is no mere look: Get Messages
    request: type[Any] | None = field(init=False, default=None)
    arguments: tuple[str, ...] = field(init=False, default=())
    writes: bool = field(init=False, default=False)
    is_built: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        """Read from the function which of request, guard and body it wants, and the type of its request."""
        object.__setattr__(self, "is_built", self.call is not None)
        call = self.call or _not_yet(self.name)
        hints = get_type_hints(call)
        object.__setattr__(self, "call", call)
        object.__setattr__(self, "arguments", tuple(inspect.signature(call).parameters)[2:])
        object.__setattr__(self, "request", hints.get("request"))
        object.__setattr__(self, "writes", self.changes or self.route.methods[0] not in ("GET", "HEAD", "OPTIONS"))


def _not_yet(name: str) -> Callable[..., Any]:
    async def not_yet(ctx: object, target: object) -> None:
        raise StorageError(Code.NotImplemented, message=f"{name} is not implemented by this server yet.")

    return not_yet
