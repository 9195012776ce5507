"""Errors that `rest` itself finds in a request. They name the header, query parameter or XML element as the client spelled it.

Services raise plain `StorageError`s by field; `rest/errors.py` renders both.
"""

from verditer.core.errors import Code, StorageError


class RestError(StorageError):
    """`elements` are the extra elements of the error document, by their wire names."""

    def __init__(self, code: Code, elements: dict[str, str], *, message: str = "") -> None:
        super().__init__(code, message=message)
        self.elements = elements


class UnknownVersion(RestError):
    """The request names a version of the far future. The answer names none (seen on Azure)."""

    def __init__(self, version: str) -> None:
        super().__init__(Code.InvalidHeaderValue, {"HeaderName": "x-ms-version", "HeaderValue": version})


def invalid_header(name: str, value: str) -> StorageError:
    return RestError(Code.InvalidHeaderValue, {"HeaderName": name, "HeaderValue": value})


def unsupported_header(name: str, value: str) -> StorageError:
    return RestError(Code.UnsupportedHeader, {"HeaderName": name, "HeaderValue": value})


def missing_header(name: str) -> StorageError:
    return RestError(Code.MissingRequiredHeader, {"HeaderName": name})


def invalid_query(name: str, value: str, reason: str = "") -> StorageError:
    elements = {"QueryParameterName": name, "QueryParameterValue": value}
    return RestError(Code.InvalidQueryParameterValue, elements | ({"Reason": reason} if reason else {}))


def query_out_of_range(name: str, value: str, minimum: int, maximum: int) -> StorageError:
    elements = {"QueryParameterName": name, "QueryParameterValue": value}
    return RestError(
        Code.OutOfRangeQueryParameterValue, elements | {"MinimumAllowed": str(minimum), "MaximumAllowed": str(maximum)}
    )


def missing_query(name: str) -> StorageError:
    return RestError(Code.MissingRequiredQueryParameter, {"QueryParameterName": name})


def invalid_node(name: str, text: str) -> StorageError:
    return RestError(Code.InvalidXmlNodeValue, {"XmlNodeName": name, "XmlNodeValue": text})


def missing_node(name: str) -> StorageError:
    return RestError(Code.MissingRequiredXmlNode, {"XmlNodeName": name})
