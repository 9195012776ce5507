"""Call: the service function of the row, with the arguments that its parameters name."""

from collections.abc import Awaitable, Callable, Sequence
from operator import attrgetter

from verditer.rest.http.message import Request, Response
from verditer.rest.operation import Op
from verditer.rest.stages import BatchScope, Called, Decoded
from verditer.services.context import Context

Submit = Callable[[Request, BatchScope], Awaitable[Response]]
"""Answers a request that is part of a batch."""

_ARGUMENTS: dict[str, Callable[[Decoded], object]] = {
    "request": attrgetter("parameters"),
    "guard": attrgetter("guard"),
    "body": attrgetter("request.body"),
    "grant": attrgetter("grant"),
    "source": attrgetter("source"),
    "batch": lambda decoded: decoded,  # a batch answers for the requests in it
}


class Calling:
    def __init__(self, ctx: Context, operations: Sequence[Op], submit: Submit) -> None:
        self._ctx = ctx
        read = _ARGUMENTS | {"submit": lambda decoded: submit}
        self._arguments = {op.call: tuple(read[name] for name in op.arguments) for op in operations}

    async def call(self, decoded: Decoded) -> Called:
        function = decoded.op.call
        arguments = [read(decoded) for read in self._arguments[function]]
        return Called(decoded, await function(self._ctx, decoded.target, *arguments))
