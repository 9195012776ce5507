"""The example programs run and print the expected lines."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rest.running import Running

EXAMPLES = Path(__file__).parents[2] / "examples"
PROMISES = {
    "blob_lease_guards_table.py": ("is refused with 409 LeaseAlreadyPresent", "Alice has 80, Bob 20"),
    "optimistic_blob.py": ("is refused with 412 ConditionNotMet", "with the new ETag: '8 apples'"),
    "pessimistic_blob.py": ("is refused with 412 LeaseIdMissing", "needs no lease: 'balance 90'", "write again: 'balance 80'"),
}


@pytest.mark.parametrize("program", PROMISES)
def test_an_example_keeps_its_promises(steady: Running, program: str) -> None:
    # contract G1, T5
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / program)],
        env={**os.environ, "AZURE_STORAGE_CONNECTION_STRING": steady.connection_string},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    for promise in PROMISES[program]:
        assert promise in result.stdout
