"""Request → the request struct of a service function, by the header groups of the row. This module knows no operation."""

import hashlib
from collections.abc import Coroutine, Mapping
from typing import Any

import msgspec

from verditer.core.errors import Code, Digests, StorageError
from verditer.rest import values as v
from verditer.rest.codecs import structured
from verditer.rest.codecs.conditions import guard_of
from verditer.rest.codecs.leases import parse_lease_request
from verditer.rest.codecs.table.json_format import PLAIN
from verditer.rest.http.message import Request
from verditer.rest.operation import BodyKind, Op
from verditer.rest.stages import Authorized, Decoded
from verditer.rest.wire_errors import invalid_header, invalid_query, missing_header, missing_query
from verditer.services.context import Context

_META = "x-ms-meta-"
_MD5 = "content-md5"
_HISTORY = ("snapshot", "versionid", "sharesnapshot")


class Decoding:
    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def decode(self, authorized: Authorized) -> Coroutine[Any, Any, Decoded]:
        return decode(authorized) if authorized.op.check_target is None else self._decode_for_target(authorized)

    async def _decode_for_target(self, authorized: Authorized) -> Decoded:
        """The error is a missing target rather than a malformed request."""
        try:
            return await decode(authorized)
        except StorageError:
            assert authorized.op.check_target is not None
            await authorized.op.check_target(self._ctx, authorized.target)
            raise


async def decode(authorized: Authorized) -> Decoded:
    """Read conditions, format, parameters and document, in this order: the first that is malformed decides about the error."""
    op, request = authorized.op, authorized.request
    guard = guard_of(op.guard, request.headers, create_only=authorized.create_only)
    format = PLAIN if op.accepts is None else op.accepts(authorized)
    parameters = None
    fields = decode_fields(authorized)
    if fields is not None:
        assert op.request is not None
        if op.body.kind is BodyKind.DOCUMENT:
            await _add_document(fields, request, op)
        parameters = op.request(**fields)
    return Decoded(
        request=request,
        request_id=authorized.request_id,
        batch=authorized.batch,
        address=authorized.address,
        version=authorized.version,
        op=op,
        target=authorized.target,
        grant=authorized.grant,
        create_only=authorized.create_only,
        guard=guard,
        format=format,
        parameters=parameters,
    )


def decode_fields(authorized: Authorized) -> dict[str, object] | None:
    """The fields that are sent in the head. None when the function takes no request struct. For an operation that is not built
    nothing is checked: it answers that."""
    op, request = authorized.op, authorized.request
    if not op.is_built:
        return None
    takes = op.takes
    _check_history(authorized.address.query, op)
    if structured.HEADER in request.headers:
        _unwrap(request, op)
    _check_body(request, op)
    if op.request is None:
        return None
    if takes.mandatory is not None:
        missing = takes.mandatory.missing(request.headers, authorized.version)
        if missing is not None:
            raise missing_header(missing)
    fields = _params(request.headers, authorized.address.query, op)
    if takes.lease_request:
        fields |= msgspec.structs.asdict(parse_lease_request(request.headers))
    if takes.version:
        fields["version"] = authorized.version
    if takes.metadata:
        fields["metadata"] = metadata_of(request, distinct=takes.distinct_metadata)
    return fields


async def _add_document(fields: dict[str, object], request: Request, op: Op) -> None:
    """Add the fields that are sent in the body."""
    assert op.body.parse is not None
    data = await request.body.read_all(op.body.limit)
    if _MD5 in request.headers and "content_md5" not in fields:  # otherwise the operation itself checks it
        check_md5(request, data)
    fields.update(op.body.parse(data))


def _params(headers: Mapping[str, str], query: Mapping[str, str], op: Op) -> dict[str, object]:
    fields: dict[str, object] = {}
    if op.takes.is_left_out(headers, query):
        return fields
    for param in op.takes.params:
        sent = (query if param.query else headers).get(param.wire)
        if sent or (param.blank and sent is not None):
            fields[param.field] = param.parse(param.wire, sent)
        elif param.required:
            if param.query:
                raise missing_query(param.wire)
            raise missing_header(param.wire)
    if "content_md5" in fields and "content_crc64" in fields:
        raise StorageError(Code.BothCrc64AndMd5HeaderPresent)
    return fields


def check_md5(request: Request, data: bytes) -> None:
    """Compare the MD5 of a complete body with the one that the client sent, if it sent one."""
    sent = request.headers.get(_MD5)
    if sent is not None:
        calculated = hashlib.md5(data, usedforsecurity=False).digest()
        if v.md5(_MD5, sent) != calculated:
            raise StorageError(Code.Md5Mismatch, details=Digests(v.md5(_MD5, sent), calculated))


def metadata_of(request: Request, *, distinct: bool = False) -> dict[str, str]:
    """Names keep their case. The values of names that are equal without case are joined, or refused if names are `distinct`."""
    found: dict[str, str] = {}
    spelling: dict[str, str] = {}
    for header, value in request.raw_headers:
        lower = header.lower()
        if lower.startswith(_META):
            if distinct and lower in spelling:
                raise StorageError(Code.InvalidMetadata)
            name = spelling.setdefault(lower, header[len(_META) :])
            found[name] = f"{found[name]},{value.strip()}" if name in found else value.strip()
    return found


def _check_history(query: Mapping[str, str], op: Op) -> None:
    """`snapshot` and `versionid` exclude each other. An operation that does not read history is refused with either."""
    if "snapshot" not in query and "versionid" not in query and "sharesnapshot" not in query:
        return
    if "snapshot" in query and "versionid" in query:
        raise StorageError(Code.MutuallyExclusiveQueryParameters)
    read = {param.wire for param in op.takes.params} | {name for name, _ in op.route.when}
    for name in _HISTORY:
        if name in query and name not in read:
            raise invalid_query(name, query[name])


def _unwrap(request: Request, op: Op) -> None:
    """Services receive content. An operation that takes a plain body must not store the framing of a structured one."""
    if op.takes.structured:
        structured.check_form(request)
    if op.body.kind is BodyKind.STREAM:
        if not op.takes.structured:
            raise invalid_header(structured.HEADER, request.headers[structured.HEADER])
        request.body = structured.plain_body(request)


def _check_body(request: Request, op: Op) -> None:
    """A length that is wrong for the operation is refused before the body is read."""
    length = request.body.length
    if op.body.kind is BodyKind.STREAM:
        if "content-length" not in request.headers and "transfer-encoding" not in request.headers:
            raise StorageError(Code.MissingContentLengthHeader)
        if length == 0 and not op.body.allow_empty:
            raise invalid_header("Content-Length", "0")
    elif op.body.kind is BodyKind.EMPTY and op.writes and length:
        raise invalid_header("Content-Length", str(length))
