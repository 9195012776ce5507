"""The example worker runs and prints the expected lines."""

import os
import subprocess
import sys
from pathlib import Path

from tests.rest.running import Running

PROGRAM = Path(__file__).parents[2] / "examples" / "idempotent_worker.py"
PROMISES = (
    "Order A-1 was shipped already",
    "Order B-2 is shipped to Bob",
    "Attempt 3 fails (JSONDecodeError)",
    "Given up after 3 attempts",
    "in the poison queue: 'this is no order'",
    "each once: ['A-1', 'B-2']",
)


def test_the_idempotent_worker_keeps_its_promises(account: Running) -> None:
    # contract Q3
    endpoint = f"http://127.0.0.1:{account.app.servers['queue'].port}/{account.account}"
    connection = f"DefaultEndpointsProtocol=http;AccountName={account.account};AccountKey={account.key};QueueEndpoint={endpoint};"
    result = subprocess.run(
        [sys.executable, str(PROGRAM)],
        env={**os.environ, "AZURE_STORAGE_CONNECTION_STRING": connection},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    for promise in PROMISES:
        assert promise in result.stdout
    assert result.stdout.count("is shipped to") == 2
