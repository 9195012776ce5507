"""`timeout=n`: the time limit of a request."""

import socket

import pytest

from tests.rest.client import Box


def test_an_upload_that_does_not_come_in_time_is_given_up(box: Box) -> None:
    query = f"timeout=1&{box.sas('cw')}"
    head = (
        f"PUT /{box.server.account}{box.path}/late?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\nx-ms-blob-type: BlockBlob\r\n"
        "x-ms-version: 2021-12-02\r\nContent-Length: 5\r\n\r\nhel"
    )
    with socket.create_connection(("127.0.0.1", box.server.port), timeout=10) as connection:
        connection.sendall(head.encode())
        answer = connection.recv(65536)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"x-ms-error-code: OperationTimedOut" in answer
    assert box.head("late").answer == (404, "BlobNotFound")


@pytest.mark.parametrize("timeout", ["0", "-1", "soon", "1.5", "9" * 20])
def test_what_is_no_number_of_seconds_is_refused(box: Box, timeout: str) -> None:
    reply = box.put(query={"timeout": timeout})
    assert reply.answer == (400, "InvalidQueryParameterValue")
    assert reply.detail("QueryParameterName") == "timeout"
    assert box.names() == []


def test_what_is_done_in_time_is_done(box: Box) -> None:
    assert box.put(query={"timeout": "30"}).status == 201
    assert box.get(query={"timeout": "30"}).body == b"hello"
