"""Errors on the wire: the status, the elements and the headers that clients get for what services raise by field."""

import ast
from pathlib import Path

import pytest

from verditer.core import errors
from verditer.core.dates import rfc1123
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
)
from verditer.core.grant import AUTHORIZATION_URI
from verditer.partition.engine import EngineUnavailable
from verditer.rest.errors import NAMES, elements_of, headers_of, status_of, xml_error
from verditer.rest.http.message import Request
from verditer.rest.stages import IncomingRequest
from verditer.rest.statuses import STATUS
from verditer.rest.wire_errors import (
    invalid_header,
    invalid_node,
    invalid_query,
    missing_header,
    missing_query,
    query_out_of_range,
)

VERDITER = Path(errors.__file__).parents[1]
INVALID_HEADER, INVALID_QUERY = Code.InvalidHeaderValue, Code.InvalidQueryParameterValue
MISSING_HEADER, OUT_OF_RANGE = Code.MissingRequiredHeader, Code.OutOfRangeQueryParameterValue


def header(name: str, value: str) -> dict[str, str]:
    return {"HeaderName": name, "HeaderValue": value}


def query(name: str, value: str, reason: str = "") -> dict[str, str]:
    return {"QueryParameterName": name, "QueryParameterValue": value} | ({"Reason": reason} if reason else {})


@pytest.mark.parametrize(
    ("error", "elements"),
    [
        (StorageError(INVALID_HEADER, field="content_length", value=0), header("Content-Length", "0")),
        (StorageError(INVALID_HEADER, field="content_md5", value=""), header("Content-MD5", "")),
        (StorageError(INVALID_HEADER, field="content_crc64", value=""), header("x-ms-content-crc64", "")),
        (StorageError(INVALID_HEADER, field="size", value=3), header("x-ms-blob-content-length", "3")),
        (StorageError(INVALID_HEADER, field="sequence_number", value=7), header("x-ms-blob-sequence-number", "7")),
        (StorageError(INVALID_HEADER, field="tier", value="Warm"), header("x-ms-access-tier", "Warm")),
        (StorageError(INVALID_HEADER, field="range_md5", value="true"), header("x-ms-range-get-content-md5", "true")),
        (StorageError(INVALID_HEADER, field="range_crc64", value="true"), header("x-ms-range-get-content-crc64", "true")),
        (StorageError(INVALID_HEADER, field="deleted_name", value="c"), header("x-ms-deleted-container-name", "c")),
        (StorageError(MISSING_HEADER, field="range"), {"HeaderName": "Range"}),
        (StorageError(MISSING_HEADER, field="page_range"), {"HeaderName": "x-ms-range"}),
        (StorageError(MISSING_HEADER, field="source_range"), {"HeaderName": "x-ms-source-range"}),
        (StorageError(MISSING_HEADER, field="sequence_action"), {"HeaderName": "x-ms-sequence-number-action"}),
        (StorageError(MISSING_HEADER, field="sequence_number"), {"HeaderName": "x-ms-blob-sequence-number"}),
        (StorageError(INVALID_QUERY, field="marker", value="x"), query("marker", "x")),
        (StorageError(INVALID_QUERY, field="where", value="{tags}"), query("where", "{tags}")),
        (StorageError(INVALID_QUERY, field="include", value="snapshots", reason="No."), query("include", "snapshots", "No.")),
        (
            StorageError(INVALID_QUERY, field="delete_type", value="permanent", reason="No."),
            query("deletetype", "permanent", "No."),
        ),
        (
            StorageError(INVALID_QUERY, field="snapshot", value="", reason="{delete_snapshots} does not go with a snapshot."),
            query("snapshot", "", "x-ms-delete-snapshots does not go with a snapshot."),
        ),
        (
            StorageError(
                INVALID_QUERY,
                field="visibility_seconds",
                value=9,
                reason="{ttl_seconds} must be greater than {visibility_seconds}.",
            ),
            query("visibilitytimeout", "9", "messagettl must be greater than visibilitytimeout."),
        ),
        (StorageError(INVALID_QUERY, field="pop_receipt", value="x", reason="No."), query("popreceipt", "x", "No.")),
        (
            StorageError(OUT_OF_RANGE, field="ttl_seconds", value=0, details=Bounds(1, 9)),
            query("messagettl", "0") | {"MinimumAllowed": "1", "MaximumAllowed": "9"},
        ),
        (
            StorageError(Code.InvalidXmlNodeValue, field="permission", value="x"),
            {"XmlNodeName": "Permission", "XmlNodeValue": "x"},
        ),
        (StorageError(Code.InvalidXmlNodeValue, field="start", value="x"), {"XmlNodeName": "Start", "XmlNodeValue": "x"}),
        (StorageError(Code.InvalidXmlNodeValue, field="expiry", value="x"), {"XmlNodeName": "Expiry", "XmlNodeValue": "x"}),
        (StorageError(Code.RequestBodyTooLarge, details=Limit(5)), {"MaxLimit": "5"}),
        (
            StorageError(Code.Md5Mismatch, details=Digests(b"a", b"b")),
            {"UserSpecifiedMd5": "YQ==", "ServerCalculatedMd5": "Yg=="},
        ),
        (
            StorageError(Code.Crc64Mismatch, details=Digests(b"a", b"b")),
            {"UserSpecifiedCrc64": "YQ==", "ServerCalculatedCrc64": "Yg=="},
        ),
        (StorageError(Code.AuthenticationFailed, reason="{why}"), {"AuthenticationErrorDetail": "{why}"}),
        (EngineUnavailable("connection to server at db1 failed"), {}),
        (StorageError(Code.AuthorizationSourceIPMismatch, value="::1"), {"SourceIP": "::1"}),
        (StorageError(Code.BlobNotFound), {}),
        (invalid_header("range", "x"), header("range", "x")),
        (missing_header("x-ms-version"), {"HeaderName": "x-ms-version"}),
        (invalid_query("comp", "x", "No."), query("comp", "x", "No.")),
        (query_out_of_range("maxresults", "0", 1, 9), query("maxresults", "0") | {"MinimumAllowed": "1", "MaximumAllowed": "9"}),
        (missing_query("copyid"), {"QueryParameterName": "copyid"}),
        (invalid_node("Days", "x"), {"XmlNodeName": "Days", "XmlNodeValue": "x"}),
    ],
)
def test_an_error_names_the_field_as_the_client_spelled_it(error: StorageError, elements: dict[str, str]) -> None:
    assert list(elements_of(error).items()) == list(elements.items())


MOVED = SourceRefusal(301, "Moved", "Elsewhere.")


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (StorageError(Code.BlobNotFound), 404, []),
        (
            StorageError(Code.NotModified, details=CurrentVersion(0x8DC1A2B3C4D5E6F)),
            304,
            [("ETag", '"0x8DC1A2B3C4D5E6F"'), ("Last-Modified", rfc1123(0x8DC1A2B3C4D5E6F))],
        ),
        (StorageError(Code.InvalidRange, details=ResourceSize(12)), 416, [("Content-Range", "bytes */12")]),
        (
            StorageError(Code.NoAuthenticationInformation, details=errors.TokenIssuer(AUTHORIZATION_URI)),
            401,
            [("WWW-Authenticate", f"Bearer authorization_uri={AUTHORIZATION_URI} resource_id=https://storage.azure.com")],
        ),
        (
            StorageError(Code.CannotVerifyCopySource, details=SourceRefusal(ErrorClass.FORBIDDEN, "AuthenticationFailed", "No.")),
            403,
            [("x-ms-copy-source-status-code", "403"), ("x-ms-copy-source-error-code", "AuthenticationFailed")],
        ),
        (
            StorageError(Code.CannotVerifyCopySource, details=MOVED),
            409,
            [("x-ms-copy-source-status-code", "301"), ("x-ms-copy-source-error-code", "Moved")],
        ),
        (StorageError(Code.CopySourceNotBlockBlob), 409, []),
    ],
)
def test_details_become_headers_and_decide_the_status(error: StorageError, status: int, headers: list[tuple[str, str]]) -> None:
    assert (status_of(error), headers_of(error)) == (status, headers)


def test_the_refusal_of_a_source_is_in_the_document_too() -> None:
    assert elements_of(StorageError(Code.CannotVerifyCopySource, details=MOVED)) == {
        "CopySourceStatusCode": "301",
        "CopySourceErrorCode": "Moved",
        "CopySourceErrorMessage": "Elsewhere.",
    }


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (Code.BothCrc64AndMd5HeaderPresent, "Both x-ms-content-crc64 header and Content-MD5 header are present."),
        (
            Code.BothUserTagsAndSourceTagsCopyPresentException,
            "x-ms-tags header and copying the source's tags are mutually exclusive.",
        ),
    ],
)
def test_a_message_names_headers_as_the_client_spelled_them(code: Code, message: str) -> None:
    response = answered(StorageError(code))
    assert response == message
    assert answered(StorageError(code, message="as {it} is")) == "as {it} is"


def answered(error: StorageError) -> str:
    request = Request(method="PUT", target="/", headers={}, raw_headers=[], body=None, peer="", secure=False)  # type: ignore[arg-type]
    response = xml_error(error, IncomingRequest(request=request, request_id="id"), 0)
    assert isinstance(response.body, bytes)
    return response.body.decode().partition("<Message>")[2].partition("\nRequestId:")[0].replace("&apos;", "'")


def test_every_error_class_has_a_status() -> None:
    assert set(STATUS) == set(ErrorClass)


def test_every_field_that_a_service_names_has_a_name_on_the_wire() -> None:
    """In `field="…"` and in the braces of reasons; the names that are computed are those of kinds/page.py and read.py above."""
    named = set[str]()
    for path in [*VERDITER.glob("core/**/*.py"), *VERDITER.glob("services/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "field" and isinstance(node.value, ast.Constant):
                named.add(str(node.value.value))
    assert {"content_length", "marker", "pop_receipt"} <= named
    assert named - NAMES.keys() == set()
