"""The engine contract: transactions over records. An engine stores and orders bytes; it holds no rule of Azure's.

A transaction body is a plain function of `tx` and awaits nothing, so no other write takes effect between its checks and its
writes (invariant 3). An engine may run a body again, after a conflict or when it takes too long, so a body depends only on `tx`
and its arguments.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

from verditer.core.errors import Code, StorageError
from verditer.core.records.record import KeyPart, Record, Span

R = TypeVar("R", bound=Record)
T = TypeVar("T")

Scope = tuple[str, ...]
"""A path such as (account, "blob", container, blob). A write excludes other writes on its scope, on every scope below it and on
every scope above it. Writes whose scopes are neither above nor below each other run concurrently where the engine can."""


class MemberEquals(NamedTuple):
    """The record's JSON document has a member with this name and this value. Equal values have one spelling."""

    name: str
    value: str | bool


class MemberBetween(NamedTuple):
    """The record's JSON document has a member with this name: a number, or text that spells a number, within the bounds."""

    name: str
    low: float
    high: float


Condition = MemberEquals | MemberBetween
"""What a scan may know about the records that its caller wants (`Transaction.scan`)."""


class Order(Enum):
    """The order in which a scan gives its records, and whether its span is one of keys or of ranks."""

    KEY = "key"
    KEY_DESCENDING = "key descending"
    RANK = "rank"

    __hash__ = object.__hash__  # every scan hashes an order, and the hash of Enum is written in Python


class Transaction(Protocol):
    """One committed state and, in `write`, the changes to it. Everything that is read in one transaction belongs together."""

    @property
    def now(self) -> int:
        """The time of this transaction, in ticks, by the one clock that all processes of a store share."""

    def tick(self, after: int = 0) -> int:
        """A tick later than `after` that no other write ever gets. ETags and ids are ticks."""

    def get(self, kind: type[R], *key: KeyPart, for_update: bool = False) -> R | None:
        """The record with this key. With `for_update`, in a write, no other transaction claims or changes the record until this
        one ends; a transaction that already does so is waited for. In a read, `for_update` changes nothing."""

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        """The records that exist among up to a thousand keys, each key encoded as `Record.key` encodes it."""

    def scan(
        self,
        kind: type[R],
        span: Span,
        *,
        limit: int | None = None,
        order: Order = Order.KEY,
        conditions: Sequence[Condition] = (),
    ) -> Iterator[R]:
        """The records of a span. An engine may leave out records that fail one of the `conditions`, and need not: the caller
        checks each record again. Only records whose class names a `DOCUMENT` have conditions. A body keeps no iterator beyond its
        own end, not even in the exception it raises: an engine may be unable to end the transaction meanwhile."""

    def put(self, *records: Record) -> None:
        """Insert or replace up to a thousand records, none of them twice."""

    def delete(self, kind: type[Record], *key: KeyPart) -> None:
        """Remove a record. Removing an absent record does nothing."""

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        """Remove the first records of a span of keys. Returns how many were removed and the rest of the span, None at its end."""

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        """The first records of a span of ranks that no other transaction has claimed, claimed until this transaction ends."""


class Engine(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def read(self, scope: Scope, body: Callable[[Transaction], T], *, long: bool = False) -> T:
        """Run a body on one committed state. It neither waits for writes nor delays them. A caller that expects its body to look
        at many records says so with `long`: the body then runs neither on the event loop nor in front of short reads."""

    def write(self, scopes: Sequence[Scope], body: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run a body while it excludes other writes from all of `scopes`, and make its changes durable before answering. If the
        body raises, nothing happened. The body may begin before the result is awaited. Engines lock scopes in one global order,
        so that two writes never wait for each other."""

    def now(self) -> int:
        """The time for what needs no transaction: signatures, logs, tokens."""

    async def move_clock(self, ticks: int) -> None:
        """Move the time of every process of this store forward. Tests use it instead of waiting."""


class EngineUnavailable(StorageError):
    """The store cannot be reached for now. It is unknown whether anything happened; the caller may try again."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.ServerBusy)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason
