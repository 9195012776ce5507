"""Blob Batch: many deletes or many changes of tier in one request, at the account or in one container.

Each part is a request with an authorization of its own. It runs through the pipeline like any other request, in the version of
the batch. The error of a part is in its part of the answer; the status of the answer is 202 once the batch could be parsed.

Where the account is in the path of the batch, the path of a part names it too, or begins with the container. Microsoft's library
for Python sends the latter to every host but localhost (azure-sdk-for-python#36629), and that for Java does where it is given
the names of container and blob (elasticsearch#116985).
"""

import asyncio

from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_BATCH, MAX_BATCH_BODY
from verditer.core.names import AccountName, ContainerName
from verditer.rest.address import parse_query
from verditer.rest.batches.whole_body import WholeBody
from verditer.rest.codecs.multipart import InnerRequest, boundary_of, parse_parts, parse_request, render_batch
from verditer.rest.http.message import Request, Response
from verditer.rest.stages import BatchScope, Decoded
from verditer.rest.steps.call import Submit
from verditer.services.context import Context

# (verb, comp) → the API. No other is allowed in a batch.
APIS = {("DELETE", ""): "DeleteBlob", ("PUT", "tier"): "SetBlobTier"}


async def submit_batch(ctx: Context, target: AccountName | ContainerName, batch: Decoded, submit: Submit) -> Response:
    outer = batch.request
    boundary = boundary_of(outer.headers.get("content-type", ""))
    parts = parse_parts(await outer.body.read_all(MAX_BATCH_BODY), boundary)
    if not parts:
        raise StorageError(Code.InvalidInput, message="A batch has at least one request.")
    if len(parts) > MAX_BATCH:
        raise StorageError(Code.ExceedsMaxBatchRequestCount)
    requests = [_request(parse_request(part), batch) for part in parts]
    _check_same_api(requests)
    if isinstance(target, ContainerName):
        _check_container(requests, batch.address.path, relative=None if target.container in ctx.accounts else target)
    scope = BatchScope(account=batch.address.account, version=batch.version)
    answers = await asyncio.gather(*[submit(request, scope) for request in requests])
    content_ids = [part.headers.get("content-id") for part in parts]
    body, boundary = render_batch(list(zip(content_ids, answers, strict=True)), ctx.new_guid())
    return Response(status=202, headers=[("Content-Type", f"multipart/mixed; boundary={boundary}")], body=body)


def _request(inner: InnerRequest, batch: Decoded) -> Request:
    """A part as a request on the batch's connection. The version of the batch counts, even if the part names another.

    Blob Batch says that the version of the batch is used for all subrequests. The object_store crate sends x-ms-version with
    every part, and the header is part of what a Shared Key signs, so it stays among the headers."""
    outer = batch.request
    return Request(
        method=inner.method,
        target=inner.target if inner.target.startswith("/") or "://" in inner.target else f"/{inner.target}",
        headers={"host": outer.headers.get("host", ""), **inner.headers},
        raw_headers=list(inner.headers.items()),
        body=WholeBody(b""),
        peer=outer.peer,
        secure=outer.secure,
        outer_version=batch.version,
    )


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


def _check_container(requests: list[Request], path: str, relative: ContainerName | None) -> None:
    """Every request in a batch for a container is about a blob of that container. `relative`: its path may lack the account."""
    roots = (path.rstrip("/") + "/", *([f"/{relative.container}/"] if relative is not None else []))
    if not all(request.target.startswith(roots) for request in requests):
        raise StorageError(Code.InvalidInput, message="Every request of a container's batch is for that container.")
