"""Request → the struct a service function wants. Driven by the row's groups; knows no operation."""

import hashlib
from typing import Any

from verditer.core import lease
from verditer.core.errors import Code, StorageError, digest_mismatch, invalid_header, invalid_query, missing_header
from verditer.rest import values as v
from verditer.rest.codecs import structured
from verditer.rest.exchange import Exchange
from verditer.rest.message import Request
from verditer.rest.operation import BodyKind, Op

_META = "x-ms-meta-"
_MD5 = "content-md5"
_HISTORY = ("snapshot", "versionid")


async def decode_request(exchange: Exchange, op: Op) -> Any:
    """None when the function wants no request struct. What is not built is told so, whatever it was sent."""
    if not op.is_built:
        return None
    request, takes = exchange.request, op.takes
    _check_history(exchange, op)
    if structured.HEADER in request.headers:
        _unwrap(request, op)
    _check_body(request, op)
    if takes.lease_request:
        return lease.parse_request(request.headers)
    if op.request is None:
        return None
    fields = _params(exchange, op)
    if takes.version:
        fields["version"] = exchange.version
    if takes.metadata:
        fields["metadata"] = metadata_of(request)
    if op.body.kind is BodyKind.DOCUMENT:
        assert op.body.parse is not None
        data = await request.body.read_all(op.body.limit)
        if _MD5 in request.headers and "content_md5" not in fields:  # or the operation itself looks at it
            check_md5(request, data)
        fields.update(op.body.parse(data))
    return op.request(**fields)


def _params(exchange: Exchange, op: Op) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    headers = exchange.request.headers
    assert exchange.address is not None
    query = exchange.address.query
    if op.takes.is_left_out(headers, query):
        return fields
    for param in op.takes.params:
        sent = (query if param.query else headers).get(param.wire)
        if sent or (param.blank and sent is not None):
            fields[param.field] = param.parse(param.wire, sent)
        elif param.required:
            if param.query:
                raise StorageError(Code.MissingRequiredQueryParameter, details={"QueryParameterName": param.wire})
            raise missing_header(param.wire)
    if "content_md5" in fields and "content_crc64" in fields:
        raise StorageError(Code.BothCrc64AndMd5HeaderPresent)
    return fields


def check_md5(request: Request, data: bytes) -> None:
    """Of a body that is here as a whole, where the client says it."""
    sent = request.headers.get(_MD5)
    if sent is not None:
        calculated = hashlib.md5(data, usedforsecurity=False).digest()
        if v.md5(_MD5, sent) != calculated:
            raise digest_mismatch(Code.Md5Mismatch, "Md5", v.md5(_MD5, sent), calculated)


def metadata_of(request: Request) -> dict[str, str]:
    """Names keep their case. The same name twice, whatever its case, has its values joined."""
    found: dict[str, str] = {}
    spelling: dict[str, str] = {}
    for header, value in request.raw_headers:
        lower = header.lower()
        if lower.startswith(_META):
            name = spelling.setdefault(lower, header[len(_META) :])
            found[name] = f"{found[name]},{value.strip()}" if name in found else value.strip()
    return found


def _check_history(exchange: Exchange, op: Op) -> None:
    """`snapshot` and `versionid` name one state each; an operation that does not read history is refused with either."""
    assert exchange.address is not None
    query = exchange.address.query
    if "snapshot" not in query and "versionid" not in query:
        return
    if all(name in query for name in _HISTORY):
        raise StorageError(Code.MutuallyExclusiveQueryParameters)
    read = {param.wire for param in op.takes.params} | {name for name, _ in op.route.when}
    for name in _HISTORY:
        if name in query and name not in read:
            raise invalid_query(name, query[name])


def _unwrap(request: Request, op: Op) -> None:
    """Services see content. An operation that takes a plain body must not store the wrapping of a structured one."""
    if op.takes.structured:
        structured.check_form(request)
    if op.body.kind is BodyKind.STREAM:
        if not op.takes.structured:
            raise invalid_header(structured.HEADER, request.headers[structured.HEADER])
        request.body = structured.plain_body(request)


def _check_body(request: Request, op: Op) -> None:
    """Lengths that are wrong for the operation are refused before a byte is read."""
    length = request.body.length
    if op.body.kind is BodyKind.STREAM:
        if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
            raise StorageError(Code.MissingContentLengthHeader)
        if length == 0 and not op.body.allow_empty:
            raise invalid_header("Content-Length", "0")
    elif op.body.kind is BodyKind.EMPTY and op.writes and length:
        raise invalid_header("Content-Length", str(length))
