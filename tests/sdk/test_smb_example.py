"""The example in which an SMB client holds a file runs and prints the expected lines."""

import os
import subprocess
import sys
from pathlib import Path

from tests.rest.running import Running

PROGRAM = Path(__file__).parents[2] / "examples" / "smb_holds_a_file.py"
PROMISES = (
    "REST reads what it wrote so far: 'written over SMB'.",
    "REST writes: refused with 409 SharingViolation",
    "The handle that is in the way: report.txt, opened from 127.0.0.1.",
    "REST writes: done",
    "SMB reads: 'written over REST'.",
)


def test_an_sdk_client_learns_that_an_smb_client_holds_a_file(steady: Running) -> None:
    # contract F2, F5
    endpoint = f"http://127.0.0.1:{steady.app.servers['file'].port}/{steady.account}"
    connection = f"DefaultEndpointsProtocol=http;AccountName={steady.account};AccountKey={steady.key};FileEndpoint={endpoint};"
    shares = f"127.0.0.1:{steady.app.servers['smb'].port}"
    result = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "AZURE_STORAGE_CONNECTION_STRING": connection, "SMB_SERVER": shares},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    for promise in PROMISES:
        assert promise in result.stdout
