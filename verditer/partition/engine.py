"""The engine contract: transactions over records. An engine stores and orders bytes; it holds no rule of Azure's.

A transaction body is a plain function of `tx`. It awaits nothing, so nothing lands between its checks and its writes
(invariant 3), and an engine is free to run it again after a conflict: it depends only on `tx` and its arguments.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

from verditer.core.errors import Code, StorageError
from verditer.core.records.record import Part, Record, Span

R = TypeVar("R", bound=Record)
Q = TypeVar("Q", bound=Record)
T = TypeVar("T")

Scope = tuple[str, ...]
"""A path such as (account, "blob", container, blob). A write excludes other writes on its scope, on every scope below it and on
every scope above it; writes beside each other run side by side where the engine can."""


class Mark(NamedTuple):
    """Bytes that a wanted record contains in its first field as it is stored, which is text without NULs, of a length that is no
    multiple of 256. What follows them where they stand first is a number within the bounds, if there are any, or begins with one
    of `values`, if there are any; these are of one length, some hundred bytes at most."""

    text: bytes
    bounds: tuple[float, float] | None = None
    values: tuple[bytes, ...] = ()


class Transaction(Protocol):
    """One committed state, and in `write` the changes to it. Everything read in one transaction belongs together."""

    @property
    def now(self) -> int:
        """The time of this transaction, in ticks, by the one clock all processes of a store share."""

    def tick(self, after: int = 0) -> int:
        """A tick that no other write ever gets, later than `after`: what ETags and ids are made of."""

    def get(self, kind: type[R], *key: Part) -> R | None: ...

    def get_both(self, one: type[R], other: type[Q], *key: Part) -> tuple[R | None, Q | None]:
        """Two records of different kinds with the same key, at once."""

    def hold(self, kind: type[R], *key: Part) -> R | None:
        """The same in a write, and nobody else claims, holds or changes the record until this transaction ends. Whoever does
        so already is waited for."""

    def scan(
        self, kind: type[R], span: Span, *, limit: int | None = None, reverse: bool = False, sieve: Sequence[Mark] = ()
    ) -> Iterator[R]:
        """The records in a span of keys, in key order. Of kinds that are `SIFTED`, an engine may leave out records that lack one
        of the marks, and need not: whoever sifts looks at each record again. A body keeps no iterator beyond its own end, not
        even in the exception it raises: an engine may not be able to end the transaction meanwhile."""

    def get_many(self, kind: type[R], keys: Sequence[bytes]) -> dict[bytes, R]:
        """Those of up to a thousand keys, each as its record says it, that are there."""

    def put(self, record: Record) -> None: ...

    def insert(self, record: Record) -> bool:
        """Put a record where none is. False, and nothing is changed, where there is one."""

    def put_many(self, records: Sequence[Record]) -> None:
        """Up to a thousand records of one kind, none twice."""

    def delete(self, kind: type[Record], *key: Part) -> None:
        """Remove a record; one that is absent is fine."""

    def delete_span(self, kind: type[Record], span: Span, limit: int) -> tuple[int, Span | None]:
        """Remove the first records of a span of keys: how many there were, and what is left of the span, None at its end."""

    def claim(self, kind: type[R], span: Span, limit: int) -> list[R]:
        """The first records of a span of ranks that no other transaction is claiming, held until this one ends."""

    def ranked(self, kind: type[R], span: Span, limit: int) -> list[R]:
        """The first records of a span of ranks, for looking only."""

    def add(self, amount: int, *counter: Part) -> None:
        """Add to a counter, which begins at zero. Writes beside each other do not wait for each other because of it, provided
        it is the last thing they do."""

    def total(self, *counter: Part) -> int: ...

    def drop(self, *counter: Part) -> None:
        """Remove a counter that nobody adds to any more."""


class TooLong(BaseException):
    """What would keep the event loop for too long. From `read`, when a sieve passes over more than can be looked at in passing:
    the body belongs into `scan`. Otherwise engines keep it to themselves; it is no business of the bodies it passes through."""


class Engine(Protocol):
    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def read(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        """Run a body that looks at a few records. It sees one committed state and neither waits for writes nor delays them."""

    async def scan(self, scope: Scope, body: Callable[[Transaction], T]) -> T:
        """The same for a body that may look at many records: it runs beside the event loop."""

    def write(self, scope: Scope, body: Callable[[Transaction], T]) -> Awaitable[T]:
        """Run a body and make its changes durable before answering. If it raises, nothing happened. It may have begun before it
        is awaited."""

    def now(self) -> int:
        """The time for what needs no transaction: signatures, logs, tokens."""

    async def move_clock(self, ticks: int) -> None:
        """Move time for every process of this store: tests wait for nothing."""


class EngineUnavailable(StorageError):
    """The store cannot be reached for now. Nothing is known to have happened; the caller may try again."""

    def __init__(self, reason: str) -> None:
        super().__init__(Code.ServerBusy)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason
