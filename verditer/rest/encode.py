"""Result → response, by the row's answer: status, headers from the groups, metadata, body."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from verditer.rest.codecs import structured
from verditer.rest.exchange import Exchange
from verditer.rest.message import Response
from verditer.rest.operation import Op

XML = "application/xml"


class Content:
    """A body that is not rendered but streamed: its bytes or pieces, and how long it is."""

    __slots__ = ("body", "length", "status")

    def __init__(self, body: bytes | AsyncIterator[bytes], length: int, status: int) -> None:
        self.body = body
        self.length = length
        self.status = status


def encode_response(exchange: Exchange, op: Op, result: Any) -> Response:
    answer = op.answer
    headers: list[tuple[str, str]] = [*answer.constants]
    for name, get, show in answer.headers:
        value = get(result)
        if value is not None:
            headers.append((name, value if show is None else show(value)))
    for group in answer.groups:
        headers += group(result)
    assert exchange.grant is not None
    if exchange.grant.overrides:
        headers = _overridden(headers, exchange)
    form = exchange.request.headers.get(structured.HEADER) if op.takes.structured else None
    if form is not None:
        headers.append((structured.HEADER, form))  # clients compare it with what they sent
    status = answer.status if answer.status_of is None else answer.status_of(result)
    if answer.body is None:
        return Response(status=status, headers=headers)
    body = answer.body(result, exchange)
    if isinstance(body, Response):
        return msgspec.structs.replace(body, headers=headers + body.headers) if headers else body
    if isinstance(body, Content):
        if form is not None:
            headers.append((structured.LENGTH_HEADER, str(body.length)))
            body = Content(*structured.encode(body.body, body.length), body.status)
        return Response(status=body.status, headers=headers, body=body.body, length=body.length)
    headers.append(("Content-Type", answer.content_type or XML))
    return Response(status=status, headers=headers, body=body)


def as_it_is(result: Response, exchange: Exchange) -> Response:
    """For a batch, whose answers are answers already."""
    return result


def _overridden(headers: list[tuple[str, str]], exchange: Exchange) -> list[tuple[str, str]]:
    """A SAS may replace what the blob says about itself (rscc, rscd, rsce, rscl, rsct) when the blob is read."""
    assert exchange.grant is not None
    if exchange.request.method not in ("GET", "HEAD"):
        return headers
    replaced = {name.lower() for name in exchange.grant.overrides}
    kept = [(name, value) for name, value in headers if name.lower() not in replaced]
    return kept + list(exchange.grant.overrides.items())
