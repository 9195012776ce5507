"""Result → response, by the row's answer: status, headers from the groups, metadata, body."""

from collections.abc import Mapping

import msgspec

from verditer.rest.codecs import structured
from verditer.rest.http.message import Response
from verditer.rest.operation import StreamedContent
from verditer.rest.stages import Called, Decoded

XML = "application/xml"


def encode(called: Called) -> Response:
    return encode_response(*called)


def encode_response(decoded: Decoded, result: object) -> Response:
    op = decoded.op
    answer = op.answer
    headers = [
        *answer.constants,
        *[
            (name, value if show is None else show(value))
            for name, get, show, _ in answer.headers
            if (value := get(result)) is not None
        ],
    ]
    for group in answer.groups:
        headers += group(result)
    if decoded.grant.overrides and decoded.request.method in ("GET", "HEAD"):
        headers = _overridden(headers, decoded.grant.overrides)
    form = decoded.request.headers.get(structured.HEADER) if op.takes.structured else None
    if form is not None:
        headers.append((structured.HEADER, form))  # clients compare it with what they sent
    status = answer.status if answer.status_of is None else answer.status_of(result)
    if answer.body is None:
        return Response(status=status, headers=headers)
    body = answer.body(result, decoded)
    if isinstance(body, Response):
        return msgspec.structs.replace(body, headers=headers + body.headers) if headers else body
    if isinstance(body, StreamedContent):
        if form is not None and body.length is not None:
            headers.append((structured.LENGTH_HEADER, str(body.length)))
            body = StreamedContent(*structured.encode(body.body, body.length), body.status)
        return Response(status=body.status, headers=headers, body=body.body, length=body.length)
    headers.append(("Content-Type", answer.content_type or XML))
    return Response(status=status, headers=headers, body=body)


def passthrough(result: Response, decoded: Decoded) -> Response:
    """For a batch, whose function makes the whole answer."""
    return result


def _overridden(headers: list[tuple[str, str]], overrides: Mapping[str, str]) -> list[tuple[str, str]]:
    """A SAS may replace headers of a blob or file (rscc, rscd, rsce, rscl, rsct) when it is read. Other answers, such as
    listings, have documents of the service itself, and a client could not decode them under another type or encoding."""
    if not any(name == "Content-Type" for name, _ in headers):
        return headers
    replaced = {_PROPERTY_HEADERS[name]: value for name, value in overrides.items()}
    return [(name, value) for name, value in headers if name not in replaced] + list(replaced.items())


_PROPERTY_HEADERS = {
    "cache_control": "Cache-Control",
    "content_disposition": "Content-Disposition",
    "content_encoding": "Content-Encoding",
    "content_language": "Content-Language",
    "content_type": "Content-Type",
}
