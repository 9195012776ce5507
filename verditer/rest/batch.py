"""Blob Batch: many deletes or many changes of tier in one request, at the account or in one container.

Each part is a request of its own with an authorization of its own: it goes through the pipeline as if it came alone, at the
batch's version. What goes wrong in one is told in its part of the answer, which is 202 once the batch was understood.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_BATCH, MAX_BATCH_BODY
from verditer.core.names import AccountName, ContainerName
from verditer.rest.address import parse_query
from verditer.rest.codecs.multipart import InnerRequest, Part, boundary_of, parse_parts, parse_request, render_batch
from verditer.rest.exchange import Exchange
from verditer.rest.message import Request, Response
from verditer.services.context import Context

Submit = Callable[[Request], Awaitable[Response]]

# (verb, comp) → the API. Others are not taken in a batch.
APIS = {("DELETE", ""): "DeleteBlob", ("PUT", "tier"): "SetBlobTier"}


class _Numbered(NamedTuple):
    content_id: str | None
    request: Request


async def submit_batch(ctx: Context, target: AccountName | ContainerName, exchange: Exchange, submit: Submit) -> Response:
    outer = exchange.request
    boundary = boundary_of(outer.headers.get("content-type", ""))
    parts = parse_parts(await outer.body.read_all(MAX_BATCH_BODY), boundary)
    if not parts:
        raise StorageError(Code.InvalidInput, message="A batch has at least one request.")
    if len(parts) > MAX_BATCH:
        raise StorageError(Code.ExceedsMaxBatchRequestCount)
    numbered = [_request(part, parse_request(part), exchange) for part in parts]
    _check_same_api([request for _, request in numbered])
    if isinstance(target, ContainerName):
        _check_container([request for _, request in numbered], exchange)
    answers = await asyncio.gather(*[submit(request) for _, request in numbered])
    shown = [(content_id, answer) for (content_id, _), answer in zip(numbered, answers, strict=True)]
    body, boundary = render_batch(shown, ctx.new_guid())
    return Response(status=202, headers=[("Content-Type", f"multipart/mixed; boundary={boundary}")], body=body)


def _request(part: Part, inner: InnerRequest, exchange: Exchange) -> _Numbered:
    """On the batch's connection. A version of its own is not for a part to have."""
    if "x-ms-version" in inner.headers:
        raise StorageError(Code.InvalidInput, message="A request in a batch has no x-ms-version.")
    outer = exchange.request
    request = Request(
        method=inner.method,
        target=inner.target,
        headers={"host": outer.headers.get("host", ""), **inner.headers},
        raw_headers=list(inner.headers.items()),
        body=_Empty(),
        peer=outer.peer,
        secure=outer.secure,
        outer_version=exchange.version,
    )
    return _Numbered(part.headers.get("content-id"), request)


def _check_same_api(requests: list[Request]) -> None:
    apis = {_api(request) for request in requests}
    if len(apis) > 1:
        raise StorageError(Code.AllBatchSubRequestsShouldBeSameApi)
    if None in apis:
        raise StorageError(Code.InvalidInput, message="A batch takes Delete Blob and Set Blob Tier.")


def _api(request: Request) -> str | None:
    query = parse_query(request.target.partition("?")[2])
    if "restype" in query:
        return None
    return APIS.get((request.method, query.get("comp", "").lower()))


def _check_container(requests: list[Request], exchange: Exchange) -> None:
    """Where the batch went to a container, every request is about a blob there."""
    assert exchange.address is not None
    root = exchange.address.path.rstrip("/") + "/"
    if not all(request.target.startswith(root) for request in requests):
        raise StorageError(Code.InvalidInput, message="Every request of a container's batch is for that container.")


class _Empty:
    """Neither operation has a body."""

    length: int | None = 0
    ended = True

    async def read(self) -> bytes:
        return b""

    async def read_all(self, limit: int) -> bytes:
        return b""
