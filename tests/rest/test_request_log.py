"""The request log: one line per request, with the error code of every service."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.rest.client import Client
from tests.rest.running import Running, running
from tests.rest.tables import TableClient

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
