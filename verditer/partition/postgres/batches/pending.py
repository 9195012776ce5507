"""A transaction body that waits to run on the event loop, and the future of its caller."""

import asyncio
from collections.abc import Callable
from typing import Any

from verditer.partition.engine import Transaction
from verditer.partition.postgres.batches.fetched import Wants
from verditer.partition.postgres.batches.loop_transaction import LoopTransaction

MAX_WANTS = 256  # rows and spans that one body may ask for on the event loop
MAX_RUNS = 8  # of one body, each time with more rows than before; then it runs in a thread


class PendingBody:
    __slots__ = ("alone", "attempts", "body", "error", "expires", "future", "locks", "result", "runs", "wants")

    def __init__(
        self,
        body: Callable[[Transaction], Any],
        future: "asyncio.Future[Any]",
        expires: float,
        locks: tuple[tuple[int, bool], ...] = (),
    ) -> None:
        self.body = body
        self.future = future
        self.expires = expires  # by the clock of the event loop
        self.locks = locks
        self.wants: Wants | None = None  # None before its first run
        self.runs = 0
        self.attempts = 0  # at a transaction that failed through no fault of the body
        self.alone = False  # it shares its transaction with no other body
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self, tx: LoopTransaction) -> bool:
        """Whether the body had all it asked for. Its result or error is then valid. Raises TooLong."""
        if self.wants is None:
            self.wants = Wants()
        self.runs += 1
        tx.begin_body(self.wants)
        self.error = None
        try:
            self.result = self.body(tx)
        except Exception as error:
            self.error = error
        except BaseException:
            tx.undo_changes()
            raise
        if tx.missed or self.error is not None:
            tx.undo_changes()
        else:
            tx.keep_changes()
        return not tx.missed

    @property
    def is_too_long(self) -> bool:
        return self.runs > MAX_RUNS or (self.wants is not None and self.wants.count > MAX_WANTS)

    def answer(self) -> None:
        future, error, result = self.future, self.error, self.result
        del self.future, self.error, self.result  # the traceback of the error refers to this object: a reference cycle
        if future.done():
            return
        if isinstance(error, StopIteration):
            future.set_exception(RuntimeError("a transaction body raised StopIteration"))
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.future.done():
            self.future.set_exception(error)
