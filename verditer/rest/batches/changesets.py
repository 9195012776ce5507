"""Entity group transactions on the wire: a multipart body becomes changes, and the written entities become a multipart answer.

Each part is a request that the rows of single requests route, authorize, decode and answer. The error of a part is inside the
answer, whose status is 202 even then.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.limits import MAX_TABLE_BODY
from verditer.core.names import AccountName
from verditer.core.records.table import Entity
from verditer.rest.address import Address, decoded, parse_query
from verditer.rest.batches.whole_body import WholeBody
from verditer.rest.codecs.multipart import (
    InnerRequest,
    MultipartPart,
    boundary_of,
    cut,
    is_multipart,
    parse_parts,
    parse_request,
    render_answer,
    render_changeset,
    split_parts,
)
from verditer.rest.codecs.table.entities import COMMON, READ_VERSION, brief_answer
from verditer.rest.codecs.table.json_format import MINIMAL
from verditer.rest.codecs.table.odata import JSON
from verditer.rest.codecs.table.table_paths import TableResource, locate_path, tunnelled_verb
from verditer.rest.errors import odata_error, table_error_text
from verditer.rest.http.message import Request, Response
from verditer.rest.operation import BodyKind, Level, Op, Renderer
from verditer.rest.router import Router
from verditer.rest.stages import Authenticated, Authorized, Decoded
from verditer.rest.statuses import STATUS
from verditer.rest.steps.authorize import authorize
from verditer.rest.steps.decode import check_md5, decode
from verditer.rest.steps.encode import encode_response
from verditer.services.context import Context
from verditer.services.table import changes, entities
from verditer.services.table.changes import Change
from verditer.services.table.changeset import ChangeRefused, check_count, submit_changes
from verditer.services.table.entities import StoredEntity

_CONTENT_ID = "content-id"
_LENGTH = re.compile(rb"^content-length:[^\n]*\n?", re.IGNORECASE | re.MULTILINE)  # a part ends at its boundary, whatever it says

BatchOperation = Callable[[Context, AccountName, Decoded], Awaitable[Response]]
MakeChange = Callable[..., Change]  # (target, request struct)

_CHANGES: dict[Callable[..., object], MakeChange] = {
    entities.insert_entity: changes.insertion,
    entities.replace_entity: changes.replacement,
    entities.merge_entity: changes.merging,
    entities.delete_entity: changes.deletion,
}


def batch_of(rows: Sequence[Op]) -> BatchOperation:
    """The operation that takes a batch of these rows."""
    router = Router(rows, wrong_verb=Code.InvalidInput)

    async def submit_batch(ctx: Context, target: AccountName, batch: Decoded) -> Response:
        body = await batch.request.body.read_all(MAX_TABLE_BODY)
        check_md5(batch.request, body)
        outer = parse_parts(body, boundary_of(batch.request.headers.get("content-type", "")))
        if len(outer) != 1:  # two changesets, or a query beside something else
            raise StorageError(Code.InvalidInput)
        if not is_multipart(outer[0]):
            return await _query(ctx, router, outer[0], batch)
        parts = split_parts(outer[0].body, boundary_of(outer[0].headers["content-type"]))
        if not parts:
            raise StorageError(Code.InvalidInput)
        try:
            return await _changeset(ctx, router, parts, batch)
        except ChangeRefused as error:
            return _batch(render_changeset([_refused(error, batch, ctx.now())], ctx.new_guid()))

    return submit_batch


async def _changeset(ctx: Context, router: Router, parts: Sequence[bytes], batch: Decoded) -> Response:
    if batch.address.secondary:  # the secondary endpoint is read only
        raise StorageError(Code.InsufficientAccountPermissions)
    check_count(len(parts))
    parser = PartParser(router, batch)
    parsed: list[tuple[PartTemplate, Change]] = []
    for index, part in enumerate(parts):
        try:
            parsed.append(await parser.parse(part))
        except StorageError as error:
            raise ChangeRefused(index, error) from None
    written = await submit_changes(ctx, [change for _, change in parsed], batch.grant)
    answers = [template.answer(change, entity) for (template, change), entity in zip(parsed, written, strict=True)]
    return _batch(render_changeset(answers, ctx.new_guid()))


class PartTemplate(NamedTuple):
    """A decoded part, which serves for every part that differs from it only in keys and body."""

    decoded: Decoded
    make: MakeChange
    render: Renderer
    brief: Callable[[StoredEntity], bytes] | None  # renders an answer without content

    def change(self, target: TableResource, body: bytes) -> Change:
        check_md5(self.decoded.request, body)
        parameters, parse = self.decoded.parameters, self.decoded.op.body.parse
        if parse is not None and parameters is not None:
            parameters = msgspec.structs.replace(parameters, **parse(body))
        return self.make(target, parameters)

    def answer(self, change: Change, entity: Entity | None) -> Response | bytes:
        stored = None if entity is None else StoredEntity(table=change.name.table, entity=entity)
        if self.brief is not None and stored is not None:
            return self.brief(stored)
        response = self.render(stored, self.decoded)
        assert isinstance(response, Response)  # the rows of entities render whole answers
        return _with_content_id(response, self.decoded.request)


class PartParser:
    """Parses the parts of one changeset. Parts that differ only in keys and body are routed, authorized and decoded once."""

    def __init__(self, router: Router, batch: Decoded) -> None:
        self._router = router
        self._batch = batch
        self._by_head: dict[tuple[bytes, bool], tuple[PartTemplate, TableResource]] = {}
        self._templates: dict[tuple[object, ...], PartTemplate] = {}

    async def parse(self, part: bytes) -> tuple[PartTemplate, Change]:
        head, body = cut(cut(part)[1].lstrip())
        known = self._by_head.get((head, bool(body)))  # inserts into one table have the same head
        if known is None:
            known = self._by_head[head, bool(body)] = await self._located(InnerRequest.of(head, body))
        template, target = known
        return template, template.change(target, body)

    async def _located(self, inner: InnerRequest) -> tuple[PartTemplate, TableResource]:
        account = self._batch.address.account
        path, query = _path_and_query(inner.target, account)
        level, target = locate_path(account, decoded(path))
        key = (inner.method, level, query, _LENGTH.sub(b"", inner.fields), bool(inner.body))
        template = self._templates.get(key)
        if template is None:
            template = self._templates[key] = await self._template(inner, level, target)
        return template, target

    async def _template(self, inner: InnerRequest, level: Level, target: TableResource) -> PartTemplate:
        part = await _authorized(self._router, inner, level, target, self._batch)
        make, render = _CHANGES.get(part.op.call), part.op.answer.body
        if make is None or render is None:
            raise StorageError(Code.InvalidInput)
        ready = await decode(part)
        brief = None if _CONTENT_ID in inner.headers else brief_answer(render, ready)
        return PartTemplate(ready, make, render, brief)


async def _query(ctx: Context, router: Router, part: MultipartPart, batch: Decoded) -> Response:
    """A batch may consist of one query. Its error is inside the answer too."""
    inner = parse_request(part)
    account = batch.address.account
    level, target = locate_path(account, decoded(_path_and_query(inner.target, account)[0]))
    one = await _authorized(router, inner, level, target, batch)
    if one.op.writes:
        raise StorageError(Code.InvalidInput)
    if one.op.accepts is not None:
        one.op.accepts(one)  # a client that does not want JSON is refused as a whole
    try:
        ready = await decode(one)
        given = {"request": ready.parameters, "grant": ready.grant}
        answer = encode_response(ready, await one.op.call(ctx, target, *[given[name] for name in one.op.arguments]))
    except StorageError as error:
        answer = _refused(error, batch, ctx.now())
    return _batch(render_answer(_with_content_id(answer, one.request), ctx.new_guid()))


def _with_content_id(response: Response, request: Request) -> Response:
    """A part with a Content-ID among the headers of its request is answered with it."""
    number = request.headers.get(_CONTENT_ID)
    if number is not None:
        response.headers.append(("Content-ID", number))
    return response


async def _authorized(router: Router, inner: InnerRequest, level: Level, target: TableResource, batch: Decoded) -> Authorized:
    """A part as a request on the batch's connection, with the grant of the batch."""
    outer, address = batch.request, _address(inner.target, batch.address)
    headers = {"host": outer.headers.get("host", ""), "accept": outer.headers.get("accept", ""), "content-length": ""}
    headers.update(inner.headers)
    request = Request(
        method=inner.method,
        target=inner.target,
        headers=headers,
        raw_headers=[],
        body=WholeBody(inner.body),
        peer=outer.peer,
        secure=outer.secure,
    )
    op = router.find(request, address, level, tunnelled_verb(request))
    if op.body.kind is BodyKind.EMPTY:  # some clients send a body with a deletion, which is ignored
        request.body = WholeBody(b"")
    return authorize(
        Authenticated(
            request=request,
            request_id=batch.request_id,
            address=address,
            version=batch.version,
            op=op,
            target=target,
            grant=batch.grant,
        )
    )


def _address(target: str, outer: Address) -> Address:
    path, query = _path_and_query(target, outer.account)
    return Address(
        account=outer.account,
        secondary=outer.secondary,
        path_style=outer.path_style,
        path=path,
        segments=(decoded(path),),
        query=parse_query(query) if query else {},
    )


def _path_and_query(target: str, account: str) -> tuple[str, str]:
    """Of an absolute target, with or without the account in its path, or of a relative one. The host is ignored."""
    path, _, query = target.partition("?")
    if "://" in path:
        path = path.partition("://")[2].partition("/")[2]
    return path.removeprefix("/").removeprefix(f"{account}/").removeprefix(f"{account}-secondary/"), query


def _refused(error: StorageError, batch: Decoded, now: int) -> Response:
    headers = [*COMMON, READ_VERSION, ("Content-Type", JSON.format(MINIMAL))]
    body = odata_error(error, table_error_text(error, batch, now))
    return Response(status=STATUS[error.code.error_class], headers=headers, body=body)


def _batch(body: bytes) -> Response:
    boundary = body[2 : body.index(b"\r\n")].decode()
    headers = [*COMMON, ("Content-Type", f"multipart/mixed; boundary={boundary}")]
    return Response(status=202, headers=headers, body=body)
