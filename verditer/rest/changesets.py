"""Entity group transactions on the wire: a multipart body becomes changes, and what they wrote becomes a multipart answer.

Each part is a request of its own: it is routed, permitted and decoded by the same rows as one that comes alone, and its
row renders its answer. What one part does wrong is told inside the answer, which is 202 even then.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from verditer.core.errors import Code, StorageError
from verditer.core.grant import admit
from verditer.core.limits import MAX_TABLE_BODY
from verditer.core.names import AccountName
from verditer.core.records.table import Entity
from verditer.rest.address import Address, decoded, parse_query
from verditer.rest.codecs.entities import COMMON, READ_VERSION, brief_answer
from verditer.rest.codecs.multipart import (
    InnerRequest,
    Part,
    boundary_of,
    cut,
    is_multipart,
    parse_parts,
    parse_request,
    render_answer,
    render_changeset,
    split_parts,
)
from verditer.rest.codecs.odata import JSON, MINIMAL
from verditer.rest.decode import check_md5, decode_request
from verditer.rest.encode import encode_response
from verditer.rest.errors import error_text, odata_error
from verditer.rest.exchange import Exchange
from verditer.rest.message import Request, Response
from verditer.rest.operation import BodyKind, Level, Op
from verditer.rest.router import Router
from verditer.rest.tables import Target, locate_path, tunnelled_verb
from verditer.services.context import Context
from verditer.services.table import changes, entities
from verditer.services.table.changes import Change
from verditer.services.table.changeset import ChangeRefused, check_count, submit_changes
from verditer.services.table.entities import Stored

_CONTENT_ID = "content-id"
_LENGTH = re.compile(rb"^content-length:[^\n]*\n?", re.IGNORECASE | re.MULTILINE)  # of a part: its boundaries say it

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
        check_md5(exchange.request, body)
        outer = parse_parts(body, boundary_of(exchange.request.headers.get("content-type", "")))
        if len(outer) != 1:  # two changesets, or a query beside something else
            raise StorageError(Code.InvalidInput)
        if not is_multipart(outer[0]):
            return await _query(ctx, router, outer[0], exchange)
        parts = split_parts(outer[0].body, boundary_of(outer[0].headers["content-type"]))
        if not parts:
            raise StorageError(Code.InvalidInput)
        try:
            return await _changeset(ctx, router, parts, exchange)
        except ChangeRefused as error:
            return _batch(render_changeset([_refused(error, exchange, ctx.now())], ctx.new_guid()))

    return submit_batch


async def _changeset(ctx: Context, router: Router, parts: Sequence[bytes], exchange: Exchange) -> Response:
    assert exchange.address is not None
    if exchange.address.secondary:  # which is for reading
        raise StorageError(Code.InsufficientAccountPermissions)
    check_count(len(parts))
    reader = _Reader(router, exchange)
    inner: list[tuple[_Form, Change]] = []
    for index, part in enumerate(parts):
        try:
            inner.append(await reader.read(part))
        except StorageError as error:
            raise ChangeRefused(index, error) from None
    assert exchange.grant is not None
    written = await submit_changes(ctx, [change for _, change in inner], exchange.grant)
    answers = [form.answer(change, entity) for (form, change), entity in zip(inner, written, strict=True)]
    return _batch(render_changeset(answers, ctx.new_guid()))


class _Form(NamedTuple):
    """What parts have in common that differ in their keys and bodies only: how they are decoded and answered."""

    exchange: Exchange
    op: Op
    request: Any
    make: Callable[[Any, Any], Change]
    brief: Callable[[Stored], bytes] | None

    def change(self, target: Target, body: bytes) -> Change:
        check_md5(self.exchange.request, body)
        parse = self.op.body.parse
        return self.make(target, self.request if parse is None else msgspec.structs.replace(self.request, **parse(body)))

    def answer(self, change: Change, entity: Entity | None) -> Response | bytes:
        stored = None if entity is None else Stored(table=change.name.table, entity=entity)
        if self.brief is not None and stored is not None:
            return self.brief(stored)
        assert self.op.answer.body is not None
        return _numbered(self.op.answer.body(stored, self.exchange), self.exchange)


class _Reader:
    """Reads the parts of one batch. Most are of one form, which is routed, permitted and decoded once."""

    def __init__(self, router: Router, exchange: Exchange) -> None:
        self._router = router
        self._exchange = exchange
        self._heads: dict[tuple[bytes, bool], tuple[_Form, Target]] = {}
        self._forms: dict[tuple[object, ...], _Form] = {}

    async def read(self, part: bytes) -> tuple[_Form, Change]:
        head, body = cut(cut(part)[1].lstrip())
        known = self._heads.get((head, bool(body)))  # inserts into one table
        if known is None:
            known = self._heads[head, bool(body)] = await self._located(InnerRequest.of(head, body))
        form, target = known
        return form, form.change(target, body)

    async def _located(self, inner: InnerRequest) -> tuple[_Form, Target]:
        assert self._exchange.address is not None
        path, query = _path_and_query(inner.target, self._exchange.address.account)
        level, target = locate_path(self._exchange.address.account, decoded(path))
        key = (inner.method, level, query, _LENGTH.sub(b"", inner.fields), bool(inner.body))
        form = self._forms.get(key)
        if form is None:
            one, op = _routed(self._router, inner, level, self._exchange)
            make = _CHANGES.get(op.call)
            if make is None:
                raise StorageError(Code.InvalidInput)
            assert op.answer.body is not None
            brief = None if _CONTENT_ID in inner.headers else brief_answer(op.answer.body, one)
            form = self._forms[key] = _Form(one, op, await decode_request(one, op), make, brief)
        return form, target


async def _query(ctx: Context, router: Router, part: Part, exchange: Exchange) -> Response:
    """A batch may hold one query, alone. What it does not find is told inside the answer too."""
    assert exchange.address is not None
    inner = parse_request(part)
    level, target = locate_path(exchange.address.account, decoded(_path_and_query(inner.target, exchange.address.account)[0]))
    one, op = _routed(router, inner, level, exchange)
    if op.writes:
        raise StorageError(Code.InvalidInput)
    assert op.call is not None
    try:
        given = {"request": await decode_request(one, op), "grant": exchange.grant}
        answer = encode_response(one, op, await op.call(ctx, target, *[given[name] for name in op.arguments]))
    except StorageError as error:
        answer = _refused(error, exchange, ctx.now())
    return _batch(render_answer(_numbered(answer, one), ctx.new_guid()))


def _numbered(response: Response, exchange: Exchange) -> Response:
    """A part that was given a number among its own headers is answered with it."""
    number = exchange.request.headers.get(_CONTENT_ID)
    if number is not None:
        response.headers.append(("Content-ID", number))
    return response


def _routed(router: Router, inner: InnerRequest, level: Level, exchange: Exchange) -> tuple[Exchange, Op]:
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
    op = one.op = router.find(request, address, level, tunnelled_verb(request))
    if op.body.kind is BodyKind.EMPTY:  # some clients send a word behind a deletion, which is overlooked
        request.body = _Whole(b"")
    admit(op.allow, exchange.grant)
    if op.accepts is not None:
        one.form = op.accepts(one)
    return one, op


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
    """Absolute, with or without the account in its path, or relative: whatever host it names, it is this account's."""
    path, _, query = target.partition("?")
    if "://" in path:
        path = path.partition("://")[2].partition("/")[2]
    return path.removeprefix("/").removeprefix(f"{account}/").removeprefix(f"{account}-secondary/"), query


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


def _refused(error: StorageError, exchange: Exchange, now: int) -> Response:
    headers = [*COMMON, READ_VERSION, ("Content-Type", JSON.format(MINIMAL))]
    body = odata_error(error, error_text(error, exchange, now))
    return Response(status=error.code.status, headers=headers, body=body)


def _batch(body: bytes) -> Response:
    boundary = body[2 : body.index(b"\r\n")].decode()
    headers = [*COMMON, ("Content-Type", f"multipart/mixed; boundary={boundary}")]
    return Response(status=202, headers=headers, body=body)
