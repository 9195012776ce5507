"""The example programs run and print the expected lines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rest.running import Running

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES = {
    "blob_lease_guards_table.py": ("is refused with 409 LeaseAlreadyPresent", "Alice has 80, Bob 20"),
    "optimistic_blob.py": ("is refused with 412 ConditionNotMet", "with the new ETag: '8 apples'"),
    "pessimistic_blob.py": ("is refused with 412 LeaseIdMissing", "needs no lease: 'balance 90'", "write again: 'balance 80'"),
}
LINES_OF_THE_WORKER = (
    "Order A-1 was shipped already",
    "Order B-2 is shipped to Bob",
    "Attempt 3 fails (JSONDecodeError)",
    "Given up after 3 attempts",
    "in the poison queue: 'this is no order'",
    "each once: ['A-1', 'B-2']",
)
LINES_WITH_SMB = (
    "REST reads what it wrote so far: 'written over SMB'.",
    "REST writes: refused with 409 SharingViolation",
    "The handle that is in the way: report.txt, opened from 127.0.0.1.",
    "REST writes: done",
    "SMB reads: 'written over REST'.",
)


def output_of(program: str, connection_string: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / program)],
        env={**os.environ, "AZURE_STORAGE_CONNECTION_STRING": connection_string, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


def connection_to(server: Running, service: str) -> str:
    endpoint = f"{service.capitalize()}Endpoint=http://127.0.0.1:{server.app.servers[service].port}/{server.account}"
    return f"DefaultEndpointsProtocol=http;AccountName={server.account};AccountKey={server.key};{endpoint};"


@pytest.mark.parametrize("program", LINES)
def test_an_example_keeps_its_promises(steady: Running, program: str) -> None:
    # contract G1, T5
    output = output_of(program, steady.connection_string)
    assert [line for line in LINES[program] if line not in output] == []


def test_the_idempotent_worker_keeps_its_promises(account: Running) -> None:
    # contract Q3
    output = output_of("idempotent_worker.py", connection_to(account, "queue"))
    assert [line for line in LINES_OF_THE_WORKER if line not in output] == []
    assert output.count("is shipped to") == 2


def test_an_sdk_client_learns_that_an_smb_client_holds_a_file(steady: Running) -> None:
    # contract F2, F5
    shares = f"127.0.0.1:{steady.app.servers['smb'].port}"
    output = output_of("smb_holds_a_file.py", connection_to(steady, "file"), SMB_SERVER=shares)
    assert [line for line in LINES_WITH_SMB if line not in output] == []
