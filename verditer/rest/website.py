"""The static website of an account: the content of `$web`, served to everyone who asks for it.

The website has a port of its own. The account is the first label of the host name, as in `account.web.core.windows.net`, or the
first segment of the path. Index and error documents are set by Set Blob Service Properties. Microsoft's page: Static website
hosting in Azure Storage.
"""

from collections.abc import Iterator
from html import escape

from verditer.core.dates import iso, rfc1123
from verditer.core.errors import Code, StorageError
from verditer.core.guard import READ, Guard
from verditer.core.names import AccountName, BlobName
from verditer.core.records.account import StaticWebsite
from verditer.rest.address import Address, decoded, parse_address
from verditer.rest.codecs.conditions import guard_of
from verditer.rest.errors import headers_of, status_of
from verditer.rest.headers import answers as h
from verditer.rest.headers import groups as g
from verditer.rest.http.message import Request, Response
from verditer.rest.values import byte_range
from verditer.services.blob.answers import BlobRead
from verditer.services.blob.read import GetBlob, get_blob
from verditer.services.context import Context
from verditer.services.properties import get_service_properties

WEB_CONTAINER = "$web"
_MISSING = (Code.BlobNotFound, Code.ContainerNotFound)


class Website:
    def __init__(self, ctx: Context, *, product_style: bool = True) -> None:
        self._ctx = ctx
        self._product_style = product_style

    async def handle(self, request: Request) -> Response:
        request_id = self._ctx.new_guid()
        try:
            response = await self._answer(request)
        except StorageError as error:
            response = _refused(error, request_id, self._ctx.now())
        response.headers += [("x-ms-request-id", request_id), ("Date", rfc1123(self._ctx.now()))]
        if request.method == "HEAD" and response.length is None:
            response.length, response.body = len(response.body) if isinstance(response.body, bytes) else None, b""
        return response

    async def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise StorageError(Code.UnsupportedHttpVerb)
        host, accounts = request.headers.get("host", ""), self._ctx.accounts
        address = parse_address(request.target, host, accounts=accounts, product_style=self._product_style)
        if address.account not in accounts:
            raise StorageError(Code.WebContentNotFound)
        site = (await get_service_properties(self._ctx, AccountName(address.account, "blob"))).static_website
        if not site.enabled:
            raise StorageError(Code.WebContentNotFound)
        asked = GetBlob(range=byte_range("range", request.headers["range"]) if "range" in request.headers else None)
        guard = guard_of(READ, {name: value for name, value in request.headers.items() if name.startswith("if-")})
        for name in _documents(site, _path_of(address)):
            read = await self._read(address.account, name, asked, guard)
            if read is not None:
                return _shown(read, request, 206 if read.ranged else 200)
        if site.error_document_404_path:
            read = await self._read(address.account, site.error_document_404_path, GetBlob(), Guard(rule=READ))
            if read is not None:
                return _shown(read, request, 404)
        raise StorageError(Code.WebContentNotFound)

    async def _read(self, account: str, name: str, asked: GetBlob, guard: Guard) -> BlobRead | None:
        """None when there is no such blob."""
        try:
            return await get_blob(self._ctx, BlobName(account, WEB_CONTAINER, name), asked, guard)
        except StorageError as error:
            if error.code in _MISSING:
                return None
            raise


def _path_of(address: Address) -> str:
    path = address.path.removeprefix("/")
    return decoded(path.partition("/")[2] if address.path_style else path)


def _documents(site: StaticWebsite, path: str) -> Iterator[str]:
    """The blobs that may be meant, in the order in which they are looked for. A path without a blob is a directory."""
    if path and not path.endswith("/"):
        yield path
    if site.index_document:
        yield f"{path}{'/' if path and not path.endswith('/') else ''}{site.index_document}"
    elif site.default_index_document_path:
        yield site.default_index_document_path


def _shown(read: BlobRead, request: Request, status: int) -> Response:
    headers = [("Accept-Ranges", "bytes")]
    for name, get, show, _ in h.BLOB_PROPERTIES:
        value = get(read)
        if value is not None and name != "x-ms-tag-count":
            headers.append((name, value if show is None else show(value)))
    headers += g.blob_range(read)
    body = b"" if request.method == "HEAD" else read.body
    return Response(status=status, headers=headers, body=body, length=read.length)


def _refused(error: StorageError, request_id: str, now: int) -> Response:
    """A page, because the reader is a person with a browser."""
    code, status = error.code.azure_code, status_of(error)
    headers = [("x-ms-error-code", code), *headers_of(error)]
    if status == 304:
        return Response(status=status, headers=headers)
    facts = {"HttpStatusCode": str(status), "ErrorCode": code, "RequestId": request_id, "TimeStamp": iso(now)}
    rows = "".join([f"<li>{name}: {escape(value)}</li>" for name, value in facts.items()])
    body = f"<body><h1>{escape(error.message)}</h1><ul>{rows}</ul></body>"
    text = f"<!DOCTYPE html><html><head><title>{code}</title></head>{body}</html>"
    return Response(status=status, headers=[*headers, ("Content-Type", "text/html; charset=utf-8")], body=text.encode())
