"""StorageError → HTTP answer: Azure's XML document, or just the header where there is no body; Table has forms of its own.

The tables here are the only place that knows the status number of an error class and the wire name of a request field.
"""

from base64 import b64encode

from msgspec.json import encode

from verditer.core.dates import iso, rfc1123
from verditer.core.errors import (
    Bounds,
    Code,
    CurrentVersion,
    Digests,
    ErrorClass,
    Limit,
    ResourceSize,
    SourceRefusal,
    StorageError,
    TokenIssuer,
)
from verditer.rest.codecs.etag import show
from verditer.rest.codecs.table.entities import COMMON
from verditer.rest.codecs.table.odata import JSON, level_of_error
from verditer.rest.codecs.xml import BOM, DECLARATION, escape
from verditer.rest.headers import file_fields
from verditer.rest.headers.fields import HEADER_OF_FIELD, QUERY_OF_FIELD
from verditer.rest.http.message import Response
from verditer.rest.stages import Accepted, AddressedRequest, IncomingRequest
from verditer.rest.statuses import STATUS
from verditer.rest.wire_errors import RestError

# fmt: off
# Fields that no header group has, and standard headers, which errors name in their usual spelling.
_HEADERS = file_fields.HEADER_OF_FIELD | HEADER_OF_FIELD | {
    "lease_action":   "x-ms-lease-action",
    "lease_duration": "x-ms-lease-duration",
    "lease_break_period": "x-ms-lease-break-period",
    "file_size":      "x-ms-content-length",
    "rename_source":  "x-ms-file-rename-source",
    "deleted_share_name": "x-ms-deleted-share-name",
    "content_length": "Content-Length",
    "content_md5":    "Content-MD5",
    "range":          "Range",
    "page_range":     "x-ms-range",
}
_QUERY = file_fields.QUERY_OF_FIELD | QUERY_OF_FIELD | {
    "delete_type":    "deletetype",
}
_NODES = {
    "start":          "Start",
    "expiry":         "Expiry",
    "permission":     "Permission",
}
NAMES = _NODES | _QUERY | _HEADERS

# code → the names of its field, and the elements that hold the field, its value and the reason.
_ELEMENTS: dict[Code, tuple[dict[str, str], str, str, str]] = {
    Code.InvalidHeaderValue:            (_HEADERS, "HeaderName", "HeaderValue", "Reason"),
    Code.MissingRequiredHeader:         (_HEADERS, "HeaderName", "HeaderValue", "Reason"),
    Code.InvalidQueryParameterValue:    (_QUERY, "QueryParameterName", "QueryParameterValue", "Reason"),
    Code.OutOfRangeQueryParameterValue: (_QUERY, "QueryParameterName", "QueryParameterValue", "Reason"),
    Code.InvalidXmlNodeValue:           (_NODES, "XmlNodeName", "XmlNodeValue", "Reason"),
    Code.AuthenticationFailed:          ({}, "", "", "AuthenticationErrorDetail"),
    Code.InvalidToken:                  ({}, "", "", "AuthenticationErrorDetail"),
    Code.AuthorizationSourceIPMismatch: ({}, "", "SourceIP", ""),
}
# fmt: on

Headers = list[tuple[str, str]]
SOURCE_TOLD_SINCE = "2024-08-04"
RETRY_SECONDS = "1"  # a failover takes some seconds, a full pool less; clients add pauses of their own


def xml_error(error: StorageError, stage: IncomingRequest, now: int) -> Response:
    """The form of Blob, Queue and File."""
    code = error.code
    tells_details = not isinstance(error.details, SourceRefusal) or _tells_source(stage)
    headers = [("x-ms-error-code", code.azure_code), *(headers_of(error) if tells_details else ())]
    phrase = _message(code)
    status = status_of(error)
    if stage.request.method == "HEAD" or status == 304:
        return Response(status=status, headers=headers, reason=phrase)
    message = error_text(error, stage, now)
    elements = elements_of(error) if tells_details else {}
    details = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in elements.items())
    body = f"<Error><Code>{code.azure_code}</Code><Message>{escape(message)}</Message>{details}</Error>"
    headers.append(("Content-Type", "application/xml"))
    return Response(status=status, headers=headers, body=BOM + DECLARATION + body.encode(), reason=phrase)


def _tells_source(stage: IncomingRequest) -> bool:
    """Earlier versions do not say what the source of a copy answered (seen on Azure)."""
    return not isinstance(stage, Accepted) or stage.version >= SOURCE_TOLD_SINCE


def table_error(error: StorageError, stage: IncomingRequest, now: int) -> Response:
    """JSON to a client that asked for JSON. Authorization and the XML operations (ACL, properties, stats) have a form of their
    own, the only one with the code in a header and with the message as the reason phrase (seen on Azure)."""
    about_data = not isinstance(stage, AddressedRequest) or "comp" not in stage.address.query
    is_authorization = error.code.error_class in (ErrorClass.UNAUTHENTICATED, ErrorClass.FORBIDDEN)
    if not about_data or (is_authorization and error.code is not Code.InsufficientAccountPermissions):
        return _table_xml(error, stage, now)
    level = level_of_error(stage)
    if level is None:
        return _odata_xml(error, stage, now)
    headers = [*COMMON, *headers_of(error), ("Content-Type", JSON.format(level))]
    body = odata_error(error, table_error_text(error, stage, now))
    return Response(status=status_of(error), headers=headers, body=body)


def odata_error(error: StorageError, message: str) -> bytes:
    return encode({"odata.error": {"code": error.code.azure_code, "message": {"lang": "en-US", "value": message}}})


def _table_xml(error: StorageError, stage: IncomingRequest, now: int) -> Response:
    code = error.code
    headers = [("x-ms-error-code", code.azure_code), *headers_of(error), ("Content-Type", "application/xml")]
    message = escape(table_error_text(error, stage, now))
    body = (
        f'<m:error xmlns:m="{_METADATA}"><m:code>{code.azure_code}</m:code>'
        f'<m:message xml:lang="en-US">{message}</m:message></m:error>'
    )
    return Response(status=status_of(error), headers=headers, body=DECLARATION + body.encode(), reason=_message(code))


def _odata_xml(error: StorageError, stage: IncomingRequest, now: int) -> Response:
    code = error.code
    headers = [*COMMON, *headers_of(error), ("Content-Type", "application/xml;charset=utf-8")]
    message = escape(table_error_text(error, stage, now))
    body = f'<error xmlns="{_METADATA}"><code>{code.azure_code}</code><message xml:lang="en-US">{message}</message></error>'
    return Response(status=status_of(error), headers=headers, body=DECLARATION + body.encode())


_TABLE_MESSAGES = {  # where Table has words of its own (seen on Azure, spelling included)
    Code.InsufficientAccountPermissions: "Write operations are not allowed.",
    Code.InvalidResourceName: "The specifed resource name contains invalid characters.",
}
_METADATA = "http://schemas.microsoft.com/ado/2007/08/dataservices/metadata"


def error_text(error: StorageError, stage: IncomingRequest, now: int) -> str:
    """A message may repeat what the client sent, and JSON may contain half of a surrogate pair, which cannot be encoded."""
    message = _message(error.code) if error.message is error.code.message else error.message
    message = message.encode(errors="replace").decode()
    return f"{message}\nRequestId:{stage.request_id}\nTime:{iso(now)}"


def table_error_text(error: StorageError, stage: IncomingRequest, now: int) -> str:
    own = _TABLE_MESSAGES.get(error.code)
    return error_text(error if own is None else StorageError(error.code, message=own), stage, now)


def _message(code: Code) -> str:
    return code.message.format_map(NAMES) if "{" in code.message else code.message


def status_of(error: StorageError) -> int:
    """The refusal of a copy source is answered with the status of the source. A redirect becomes a conflict: redirects are not
    followed, and a client cannot act on one."""
    if isinstance(error.details, SourceRefusal):
        status = _source_status(error.details)
        return status if status >= 400 or error.details.status is ErrorClass.NOT_MODIFIED else 409
    return STATUS[error.code.error_class]


def elements_of(error: StorageError) -> dict[str, str]:
    """The elements of the error document behind code and message."""
    if isinstance(error, RestError):
        return error.elements
    elements: dict[str, str] = {}
    names, field, value, reason = _ELEMENTS.get(error.code, _NO_ELEMENTS)
    if error.field:
        elements[field] = names[error.field]
    if error.value is not None:
        elements[value] = str(error.value)
    if error.reason and reason:  # that of other errors is for the log: why a store cannot be reached is not for clients
        elements[reason] = error.reason.format_map(NAMES) if error.field else error.reason
    return elements | _details(error)


_NO_ELEMENTS: tuple[dict[str, str], str, str, str] = ({}, "", "", "")


def _details(error: StorageError) -> dict[str, str]:
    match error.details:
        case Limit(maximum):
            return {"MaxLimit": str(maximum)}
        case Bounds(minimum, maximum):
            return {"MinimumAllowed": str(minimum), "MaximumAllowed": str(maximum)}
        case Digests(specified, calculated):
            digest = "Md5" if error.code is Code.Md5Mismatch else "Crc64"
            return {f"UserSpecified{digest}": _base64(specified), f"ServerCalculated{digest}": _base64(calculated)}
        case SourceRefusal(_, code, message) as refusal:
            status = str(_source_status(refusal))
            return {"CopySourceStatusCode": status, "CopySourceErrorCode": code, "CopySourceErrorMessage": message}
        case _:
            return {}


def headers_of(error: StorageError) -> Headers:
    """The response headers that the details of an error become."""
    match error.details:
        case CurrentVersion(etag):
            return [("ETag", show(etag)), ("Last-Modified", rfc1123(etag))]
        case ResourceSize(size_bytes):
            return [("Content-Range", f"bytes */{size_bytes}")]
        case TokenIssuer(authorization_uri):
            return [("WWW-Authenticate", challenge(authorization_uri))]
        case SourceRefusal(_, code, _) as refusal:
            status = str(_source_status(refusal))
            return [("x-ms-copy-source-status-code", status), ("x-ms-copy-source-error-code", code)]
        case _:
            return [("Retry-After", RETRY_SECONDS)] if error.code.error_class is ErrorClass.UNAVAILABLE else []


def challenge(authorization_uri: str) -> str:
    """Clients read two things from it: the tenant, first in the path of the URI, and for which resource to ask."""
    return f"Bearer authorization_uri={authorization_uri} resource_id=https://storage.azure.com"


def _source_status(refusal: SourceRefusal) -> int:
    return refusal.status if isinstance(refusal.status, int) else STATUS[refusal.status]


def _base64(digest: bytes) -> str:
    return b64encode(digest).decode()
