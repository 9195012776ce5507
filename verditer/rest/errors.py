"""StorageError → HTTP answer: Azure's XML document, or just the header where there is no body."""

from verditer.core.dates import iso
from verditer.core.errors import Code, StorageError
from verditer.rest.codecs.xml import BOM, DECLARATION, escape
from verditer.rest.message import Response


def error_response(error: StorageError, request_id: str, now: int, method: str) -> Response:
    code = error.code
    headers = [("x-ms-error-code", code.wire), *error.headers.items()]
    if method == "HEAD" or code is Code.NotModified:
        return Response(status=code.status, headers=headers, reason=code.message)
    message = f"{error.message}\nRequestId:{request_id}\nTime:{iso(now)}"
    details = "".join(f"<{name}>{escape(value)}</{name}>" for name, value in error.details.items())
    body = f"<Error><Code>{code.wire}</Code><Message>{escape(message)}</Message>{details}</Error>"
    headers.append(("Content-Type", "application/xml"))
    return Response(status=code.status, headers=headers, body=BOM + DECLARATION + body.encode(), reason=code.message)
