"""`verditer.testing`: a fresh server for each test, with a clock to move, data to reset and faults to cause."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ServiceResponseError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient

from verditer.testing import StorageServer


@pytest.fixture
def blobs(verditer_server: StorageServer) -> BlobServiceClient:
    return BlobServiceClient.from_connection_string(verditer_server.connection_string, retry_total=0)


def test_the_connection_string_serves_every_sdk(verditer_server: StorageServer) -> None:
    text = verditer_server.connection_string
    BlobServiceClient.from_connection_string(text).create_container("box")
    QueueServiceClient.from_connection_string(text).create_queue("jobs")
    TableServiceClient.from_connection_string(text).create_table("Rows")
    ShareServiceClient.from_connection_string(text).create_share("files")


@pytest.mark.parametrize("round", [1, 2])
def test_every_test_begins_with_an_empty_server(blobs: BlobServiceClient, round: int) -> None:
    assert list(blobs.list_containers()) == []
    blobs.create_container("box")


def test_the_clock_is_moved(verditer_server: StorageServer, blobs: BlobServiceClient) -> None:
    blob = blobs.create_container("box").upload_blob("a", b"1")
    blob.acquire_lease(60)
    with pytest.raises(HttpResponseError):
        blob.upload_blob(b"2", overwrite=True)
    verditer_server.move_clock(61)
    blob.upload_blob(b"2", overwrite=True)


def test_a_reset_removes_data_and_faults(verditer_server: StorageServer, blobs: BlobServiceClient) -> None:
    blobs.create_container("box").acquire_lease(-1)
    verditer_server.refuse_next(5)
    verditer_server.reset()
    assert verditer_server.faults == ()
    assert list(blobs.list_containers()) == []


def test_the_next_requests_are_refused(verditer_server: StorageServer, blobs: BlobServiceClient) -> None:
    verditer_server.refuse_next(2, service="blob", method="PUT", path="/box")
    assert list(blobs.list_containers()) == []
    for _ in range(2):
        with pytest.raises(HttpResponseError) as refused:
            blobs.create_container("box")
        assert refused.value.status_code == 503
        assert "ServerBusy" in str(refused.value)
    blobs.create_container("box")


def test_a_client_that_retries_does_not_notice(verditer_server: StorageServer) -> None:
    retrying = BlobServiceClient.from_connection_string(verditer_server.connection_string, retry_total=3, initial_backoff=0.01)
    verditer_server.refuse_next(1)
    retrying.create_container("box")
    assert verditer_server.faults == ()


def test_the_next_request_waits(verditer_server: StorageServer, blobs: BlobServiceClient) -> None:
    verditer_server.delay_next(1, 0.3)
    started = time.monotonic()
    blobs.create_container("box")
    assert time.monotonic() - started >= 0.3


def test_the_next_connection_is_cut_before_the_request_is_carried_out(
    verditer_server: StorageServer, blobs: BlobServiceClient
) -> None:
    verditer_server.cut_next()
    with pytest.raises(ServiceResponseError):
        blobs.create_container("box")
    assert list(blobs.list_containers()) == []


def test_the_next_answer_is_lost_after_the_request_was_carried_out(
    verditer_server: StorageServer, blobs: BlobServiceClient
) -> None:
    verditer_server.lose_next_answers()
    with pytest.raises(ServiceResponseError):
        blobs.create_container("box")
    with pytest.raises(ResourceExistsError):
        blobs.create_container("box")


def test_a_server_with_an_account_of_its_own() -> None:
    with StorageServer(account="mine", key="c2VjcmV0") as server:
        assert "AccountName=mine;AccountKey=c2VjcmV0;" in server.connection_string
        BlobServiceClient.from_connection_string(server.connection_string).create_container("box")


def test_a_server_that_does_not_run_says_so() -> None:
    server = StorageServer()
    with pytest.raises(RuntimeError, match=r"call start\(\)"):
        _ = server.connection_string
    server.start().stop()
    server.stop()


def test_another_server_is_ready_at_once() -> None:
    """The first start of a process also imports the server. The processor time counts: the machine may be busy."""
    StorageServer().start().stop()
    started = time.process_time()
    StorageServer().start().stop()
    assert time.process_time() - started < 0.5


FIRST = """
import time
from verditer.testing import StorageServer
server = StorageServer().start()
print(time.process_time())
server.stop()
"""


def test_the_first_server_of_a_process_is_ready_in_half_a_second() -> None:
    """With Python's own start and all imports, once the byte code is there. The processor time counts."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(3):
        ended = subprocess.run([sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True)
        times.append(float(ended.stdout))
    assert min(times) < 0.5


def test_pytest_finds_the_fixture_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "def test_it(verditer_server):\n    assert verditer_server.url('blob').startswith('http://')\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 passed" in ended.stdout, ended.stdout + ended.stderr
