"""Azure's error code in an exception of the client library, as plain text."""

from azure.core.exceptions import HttpResponseError


def code_of(error: HttpResponseError) -> str:
    code = getattr(error, "error_code", None)
    return str(getattr(code, "value", code))
