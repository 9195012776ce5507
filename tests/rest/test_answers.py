"""Properties of every response: common headers, error documents, and no body where HTTP forbids one."""

import re

import pytest

from tests.rest.client import BOM, Box

GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def test_every_answer_carries_the_common_headers(box: Box) -> None:
    box.put()
    for reply in (box.get(), box.head(), box.page(), box.get("absent"), box.blob("PUT", comp="metadata"), box.blob("DELETE")):
        assert GUID.fullmatch(reply["x-ms-request-id"])
        assert reply["x-ms-version"] == "2026-02-06"
        assert reply["Date"].endswith(" GMT")
        assert reply["Server"].startswith("Verditer-Blob/")
        assert "x-ms-client-request-id" not in reply


def test_each_request_has_an_id_of_its_own(box: Box) -> None:
    assert len({box.head()["x-ms-request-id"] for _ in range(10)}) == 10


@pytest.mark.parametrize(("sent", "echoed"), [("mine", True), ("x" * 1024, True), ("x" * 1025, False)])
def test_the_id_a_client_gives_is_said_again(box: Box, sent: str, echoed: bool) -> None:
    assert box.head(headers={"x-ms-client-request-id": sent}).header("x-ms-client-request-id") == (sent if echoed else None)


def test_an_error_is_a_document_that_says_what_when_and_which(box: Box) -> None:
    reply = box.get("absent")
    assert reply.answer == (404, "BlobNotFound")
    assert reply.reason == "The specified blob does not exist."
    assert reply["Content-Type"] == "application/xml"
    assert reply.body.startswith(BOM + b'<?xml version="1.0" encoding="utf-8"?><Error><Code>BlobNotFound</Code><Message>')
    message, request_id, time = (reply.detail("Message") or "").split("\n")
    assert message == "The specified blob does not exist."
    assert request_id == f"RequestId:{reply['x-ms-request-id']}"
    assert re.fullmatch(r"Time:\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", time)


@pytest.mark.parametrize(
    ("name", "headers", "answer"),
    [
        ("absent", {}, (404, "BlobNotFound")),
        ("blob", {"If-Match": '"0x1"'}, (412, "ConditionNotMet")),
        ("blob", {"x-ms-lease-id": "11111111-1111-1111-1111-111111111111"}, (412, "LeaseNotPresentWithBlobOperation")),
    ],
)
def test_head_never_has_a_body(box: Box, name: str, headers: dict[str, str], answer: tuple[int, str]) -> None:
    box.put()
    reply = box.head(name, headers)
    assert (reply.answer, reply.body) == (answer, b"")
    assert box.head().status == 200  # no bytes were left on the connection


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_not_modified_has_no_body_and_says_what_is_current(box: Box, method: str) -> None:
    # contract B2
    written = box.put(body=b"x" * 100_000)
    reply = box.blob(method, headers={"If-None-Match": written["ETag"]})
    assert reply.answer == (304, "ConditionNotMet")
    assert reply.body == b""
    assert (reply["ETag"], reply["Last-Modified"]) == (written["ETag"], written["Last-Modified"])
    assert box.get().status == 200


def test_text_of_a_client_is_escaped_in_the_document(box: Box) -> None:
    reply = box.page({"include": "<script>&\"'"})
    assert reply.answer == (400, "InvalidQueryParameterValue")
    assert reply.detail("QueryParameterValue") == "<script>&\"'"
