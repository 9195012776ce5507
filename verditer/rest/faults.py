"""Faults that tests ask for: the next requests are refused, wait, or lose their connection. Only with `--test-control`.

A fault applies before its request is looked at, except `cut-answer`: there the request is carried out and its answer is lost.
"""

import asyncio
from typing import Annotated, Literal

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.rest.http.message import ClientGone, Request, Response

FaultKind = Literal["refuse", "wait", "cut", "cut-answer"]


class Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What happens to the next `count` requests that match. An empty field matches every request."""

    kind: FaultKind
    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    seconds: Annotated[float, msgspec.Meta(ge=0, le=600)] = 1.0  # of a wait
    service: str = ""
    method: str = ""
    path: str = ""  # the path of the request contains this text


class Faults:
    def __init__(self) -> None:
        self._left: list[Fault] = []

    @property
    def left(self) -> tuple[Fault, ...]:
        return tuple(self._left)

    def add(self, fault: Fault) -> None:
        self._left.append(fault)

    def clear(self) -> None:
        self._left.clear()

    async def before(self, service: str, request: Request) -> None:
        """Called for every request of a storage port."""
        if not self._left:
            return
        fault = self._take(service, request, answered=False)
        if fault is None:
            return
        if fault.kind == "refuse":
            raise StorageError(Code.ServerBusy)
        if fault.kind == "cut":
            raise ClientGone
        await asyncio.sleep(fault.seconds)

    def after(self, service: str, request: Request, response: Response) -> None:
        if self._left and self._take(service, request, answered=True) is not None:
            raise ClientGone

    def _take(self, service: str, request: Request, *, answered: bool) -> Fault | None:
        for number, fault in enumerate(self._left):
            if (fault.kind == "cut-answer") == answered and _matches(fault, service, request):
                if fault.count > 1:
                    self._left[number] = msgspec.structs.replace(fault, count=fault.count - 1)
                else:
                    del self._left[number]
                return fault
        return None


def _matches(fault: Fault, service: str, request: Request) -> bool:
    path = request.target.partition("?")[0]
    return fault.service in ("", service) and fault.method in ("", request.method) and fault.path in path
