"""What the batches of reads and of writes get from the engine that owns them."""

from typing import Protocol

from verditer.partition.postgres.batches.fetched import RecordCache
from verditer.partition.postgres.batches.pending import PendingBody
from verditer.partition.postgres.locking.locks import Locking


class BatchServices(Protocol):
    cache: RecordCache
    locking: Locking
    deadline_seconds: float  # of every round trip, and of everything that waits for a connection

    def now(self) -> int:
        """The time of the database, as far as it is known without asking."""

    def adjust_clock(self, database_ticks: int) -> int:
        """The time of a transaction to which the database gave this time."""

    def issued_tick(self, after: int) -> int:
        """A tick of those that are reserved. Raises TicksUsedUp."""

    async def reserve_ticks(self, now: int) -> None: ...

    def run_in_thread(self, pending: PendingBody) -> None:
        """Run a body that is too long for the event loop."""

    def drop_connections(self) -> None:
        """The server does not answer, or is not the primary any more."""
