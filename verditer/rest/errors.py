"""StorageError → HTTP answer: Azure's XML document, or just the header where there is no body; Table has forms of its own."""

from msgspec.json import encode

from verditer.core.dates import iso
from verditer.core.errors import Code, StorageError
from verditer.rest.codecs.entities import COMMON
from verditer.rest.codecs.odata import JSON, level_of_error
from verditer.rest.codecs.xml import BOM, DECLARATION, escape
from verditer.rest.exchange import Exchange
from verditer.rest.message import Response


def xml_error(error: StorageError, exchange: Exchange, now: int) -> Response:
    """As Blob, Queue and File tell it."""
    code = error.code
    headers = [("x-ms-error-code", code.wire), *error.headers.items()]
    if exchange.request.method == "HEAD" or code is Code.NotModified:
        return Response(status=error.status, headers=headers, reason=code.message)
    message = error_text(error, exchange, now)
    details = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in error.details.items())
    body = f"<Error><Code>{code.wire}</Code><Message>{escape(message)}</Message>{details}</Error>"
    headers.append(("Content-Type", "application/xml"))
    return Response(status=error.status, headers=headers, body=BOM + DECLARATION + body.encode(), reason=code.message)


def table_error(error: StorageError, exchange: Exchange, now: int) -> Response:
    """JSON to a client that asked for JSON. Authorization and the XML operations (ACL, properties, stats) have a form of their
    own, the only one with the code in a header."""
    about_data = exchange.address is None or "comp" not in exchange.address.query
    if not about_data or error.code.status in (401, 403):
        return _table_xml(error, exchange, now)
    level = level_of_error(exchange)
    if level is None:
        return _odata_xml(error, exchange, now)
    headers = [*COMMON, *error.headers.items(), ("Content-Type", JSON.format(level))]
    return Response(
        status=error.code.status,
        headers=headers,
        body=odata_error(error, error_text(error, exchange, now)),
        reason=error.code.message,
    )


def odata_error(error: StorageError, message: str) -> bytes:
    return encode({"odata.error": {"code": error.code.wire, "message": {"lang": "en-US", "value": message}}})


def _table_xml(error: StorageError, exchange: Exchange, now: int) -> Response:
    headers = [("x-ms-error-code", error.code.wire), *error.headers.items(), ("Content-Type", "application/xml")]
    message = escape(error_text(error, exchange, now))
    body = (
        f'<m:error xmlns:m="{_METADATA}"><m:code>{error.code.wire}</m:code>'
        f'<m:message xml:lang="en-US">{message}</m:message></m:error>'
    )
    return Response(status=error.code.status, headers=headers, body=DECLARATION + body.encode(), reason=error.code.message)


def _odata_xml(error: StorageError, exchange: Exchange, now: int) -> Response:
    headers = [*COMMON, *error.headers.items(), ("Content-Type", "application/xml;charset=utf-8")]
    message = escape(error_text(error, exchange, now))
    body = f'<error xmlns="{_METADATA}"><code>{error.code.wire}</code><message xml:lang="en-US">{message}</message></error>'
    return Response(status=error.code.status, headers=headers, body=DECLARATION + body.encode(), reason=error.code.message)


_METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"


def error_text(error: StorageError, exchange: Exchange, now: int) -> str:
    """The message may repeat what was sent, and JSON may have sent half a character, which cannot be written."""
    message = error.message.encode(errors="replace").decode()
    return f"{message}\nRequestId:{exchange.request_id}\nTime:{iso(now)}"
