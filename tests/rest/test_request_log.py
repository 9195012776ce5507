"""The request log: one line per request, with the error code of every service."""

import asyncio
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.rest.client import Client
from tests.rest.running import Running, running
from tests.rest.tables import TableClient
from verditer.serving.request_log import FLUSH_SECONDS, SINGLE_WRITES, RequestLog
from verditer.serving.request_summary import RequestSummary

MISSING = [
    (Client, "GET", "/none/blob", "GetBlob", "404 ContainerNotFound"),
    (Client, "HEAD", "/none/blob", "GetBlobProperties", "404 ContainerNotFound"),
    (TableClient, "GET", "/none(PartitionKey='p',RowKey='r')", "GetEntity", "404 TableNotFound"),
]


@pytest.mark.parametrize(("client_of", "method", "path", "operation", "refusal"), MISSING)
def test_a_line_has_the_error_code_of_a_refusal(
    client_of: Callable[[Running], Client],
    method: str,
    path: str,
    operation: str,
    refusal: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with running(tmp_path, in_memory=True, silent=False) as server:
        client = client_of(server)
        reply = client.send(method, path)
        client.close()
    (line,) = capsys.readouterr().out.splitlines()
    assert f"Z {operation} {refusal} /{server.account}{path} in=0 " in line
    assert line.endswith(reply["x-ms-request-id"])


def test_json_has_the_same_fields_by_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path, in_memory=True, silent=False, log_format="json") as server:
        client = TableClient(server)
        client.send("GET", "/none(PartitionKey='p',RowKey='r')", {"$select": "secret"})
        client.close()
    (line,) = capsys.readouterr().out.splitlines()
    fields = json.loads(line)
    assert (fields["operation"], fields["status"], fields["error"]) == ("GetEntity", 404, "TableNotFound")
    assert fields["client"] == "127.0.0.1"
    assert "secret" not in line


def test_bytes_out_are_those_of_the_body_that_was_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with running(tmp_path, in_memory=True, silent=False) as server:
        client = Client(server)
        client.send("PUT", "/box", {"restype": "container"})
        client.send("PUT", "/box/blob", headers={"x-ms-blob-type": "BlockBlob"}, body=b"12345")
        assert client.send("HEAD", "/box/blob")["Content-Length"] == "5"
        client.send("GET", "/box/blob")
        client.close()
    *_, head, get = capsys.readouterr().out.splitlines()
    assert " GetBlobProperties 200 " in head
    assert " out=0 " in head
    assert " GetBlob 200 " in get
    assert " out=5 " in get


class Output(io.StringIO):
    """Counts the writes."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        return super().write(text)


def summary_of(number: int) -> RequestSummary:
    fields: dict[str, Any] = {"error_code": None, "bytes_in": 0, "bytes_out": 0, "seconds": 0.0, "request_id": "", "client": ""}
    return RequestSummary(time=0, service="blob", operation="GetBlob", method="GET", path=f"/{number}", status=200, **fields)


def test_single_lines_are_written_at_once_and_many_are_collected() -> None:
    output = Output()

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.time = lambda: 1000.0  # type: ignore[method-assign]  # no time passes, so nothing that waits is written
        log = RequestLog("plain", output)
        for number in range(SINGLE_WRITES):
            log.record(summary_of(number))
            assert f" /{number} " in output.getvalue()
        for number in range(SINGLE_WRITES):
            log.record(summary_of(1000 + number))
        await asyncio.sleep(0)
        assert output.writes == SINGLE_WRITES
        loop.time = lambda: 1000.0 + FLUSH_SECONDS  # type: ignore[method-assign]
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.new_event_loop().run_until_complete(work())
    assert output.writes < SINGLE_WRITES + 10  # in blocks that a pipe takes at once
    assert output.getvalue().count("\n") == 2 * SINGLE_WRITES
