"""Entity group transactions on the wire: a multipart body becomes changes, and what they wrote becomes a multipart answer.

Each part is a request of its own: it is routed, permitted and decoded by the same rows as one that comes alone, and its
row renders its answer. What one part does wrong is told inside the answer, which is 202 even then.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from verditer.core.errors import Code, StorageError
from verditer.core.grant import admit
from verditer.core.limits import MAX_TABLE_BODY
from verditer.core.names import AccountName, EntityName, TableName
from verditer.rest.address import Address, decoded, parse_query
from verditer.rest.codecs.entities import COMMON, READ_VERSION
from verditer.rest.codecs.multipart import (
    InnerRequest,
    Part,
    boundary_of,
    is_multipart,
    parse_parts,
    parse_request,
    render_answer,
    render_changeset,
)
from verditer.rest.codecs.odata import JSON, MINIMAL
from verditer.rest.decode import decode_request
from verditer.rest.encode import encode_response
from verditer.rest.errors import error_text, odata_error
from verditer.rest.exchange import Exchange
from verditer.rest.message import Request, Response
from verditer.rest.operation import Op
from verditer.rest.router import Router
from verditer.rest.tables import locate_table, tunnelled_verb
from verditer.services.context import Context
from verditer.services.table import changes, entities
from verditer.services.table.changes import Change
from verditer.services.table.changeset import ChangeRefused, check_count, submit_changes
from verditer.services.table.entities import Stored

Submit = Callable[[Context, AccountName, Exchange], Awaitable[Response]]

_CHANGES: dict[Any, Callable[[Any, Any], Change]] = {
    entities.insert_entity: changes.insertion,
    entities.replace_entity: changes.replacement,
    entities.merge_entity: changes.merging,
    entities.delete_entity: changes.deletion,
}


def batch_of(rows: Sequence[Op]) -> Submit:
    """The operation that takes a batch of these."""
    router = Router(rows, wrong_verb=Code.InvalidInput)

    async def submit_batch(ctx: Context, target: AccountName, exchange: Exchange) -> Response:
        body = await exchange.request.body.read_all(MAX_TABLE_BODY)
        outer = parse_parts(body, boundary_of(exchange.request.headers.get("content-type", "")))
        if len(outer) != 1:  # two changesets, or a query beside something else
            raise StorageError(Code.InvalidInput)
        if not is_multipart(outer[0]):
            return await _query(ctx, router, outer[0], exchange)
        parts = parse_parts(outer[0].body, boundary_of(outer[0].headers["content-type"]))
        if not parts:
            raise StorageError(Code.InvalidInput)
        try:
            return await _changeset(ctx, router, parts, exchange)
        except ChangeRefused as error:
            return _batch(render_changeset([_refused(error, exchange, ctx.now())], ctx.new_guid()))

    return submit_batch


async def _changeset(ctx: Context, router: Router, parts: Sequence[Part], exchange: Exchange) -> Response:
    check_count(len(parts))
    inner: list[tuple[Exchange, Change]] = []
    for index, part in enumerate(parts):
        try:
            inner.append(await _change(router, parse_request(part), exchange))
        except StorageError as error:
            raise ChangeRefused(index, error) from None
    assert exchange.grant is not None
    written = await submit_changes(ctx, [change for _, change in inner], exchange.grant)
    answers = []
    for (one, change), entity in zip(inner, written, strict=True):
        assert one.op is not None
        stored = None if entity is None else Stored(table=change.name.table, entity=entity)
        answers.append(encode_response(one, one.op, stored))
    return _batch(render_changeset(answers, ctx.new_guid()))


async def _change(router: Router, request: InnerRequest, exchange: Exchange) -> tuple[Exchange, Change]:
    one, op, target = _routed(router, request, exchange)
    change_of = _CHANGES.get(op.call)
    if change_of is None:
        raise StorageError(Code.InvalidInput)
    return one, change_of(target, await decode_request(one, op))


async def _query(ctx: Context, router: Router, part: Part, exchange: Exchange) -> Response:
    """A batch may hold one query, alone."""
    one, op, target = _routed(router, parse_request(part), exchange)
    if op.writes:
        raise StorageError(Code.InvalidInput)
    given = {"request": await decode_request(one, op), "grant": exchange.grant}
    assert op.call is not None
    result = await op.call(ctx, target, *[given[name] for name in op.arguments])
    return _batch(render_answer(encode_response(one, op, result), ctx.new_guid()))


def _routed(router: Router, inner: InnerRequest, exchange: Exchange) -> tuple[Exchange, Op, TableName | EntityName]:
    """A part as an exchange of its own, on the outer one's connection and by its grant."""
    assert exchange.address is not None
    assert exchange.grant is not None
    outer, address = exchange.request, _address(inner.target, exchange.address)
    headers = {"host": outer.headers.get("host", ""), "accept": outer.headers.get("accept", ""), "content-length": ""}
    headers.update(inner.headers)
    request = Request(
        method=inner.method,
        target=inner.target,
        headers=headers,
        raw_headers=[],
        body=_Whole(inner.body),
        peer=outer.peer,
        secure=outer.secure,
    )
    one = Exchange(
        request=request,
        request_id=exchange.request_id,
        started=exchange.started,
        address=address,
        grant=exchange.grant,
        version=exchange.version,
    )
    level, target = locate_table(address)
    op = one.op = router.find(request, address, level, tunnelled_verb(request))
    admit(op.allow, exchange.grant)
    if op.accepts is not None:
        one.form = op.accepts(one)
    assert isinstance(target, TableName | EntityName)
    return one, op, target


def _address(target: str, outer: Address) -> Address:
    """Absolute, with or without the account in its path, or relative: whatever host it names, it is this account's."""
    path, _, query = target.partition("?")
    if "://" in path:
        path = path.partition("://")[2].partition("/")[2]
    path = path.removeprefix("/").removeprefix(f"{outer.account}/")
    return Address(
        account=outer.account,
        secondary=outer.secondary,
        path_style=outer.path_style,
        path=path,
        segments=(decoded(path),),
        query=parse_query(query) if query else {},
    )


class _Whole:
    """The body of a part: it is all there already."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.length: int | None = len(body)
        self.ended = True

    async def read(self) -> bytes:
        body, self._body = self._body, b""
        return body

    async def read_all(self, limit: int) -> bytes:
        return self._body


def _refused(error: ChangeRefused, exchange: Exchange, now: int) -> Response:
    headers = [*COMMON, READ_VERSION, ("Content-Type", JSON.format(MINIMAL))]
    body = odata_error(error, error_text(error, exchange, now))
    return Response(status=error.code.status, headers=headers, body=body)


def _batch(body: bytes) -> Response:
    boundary = body[2 : body.index(b"\r\n")].decode()
    headers = [*COMMON, ("Content-Type", f"multipart/mixed; boundary={boundary}")]
    return Response(status=202, headers=headers, body=body)


def render_batch(result: Response, exchange: Exchange) -> Response:
    return result
