"""`--debug FILE`: the heads of requests and responses, why a request was refused, and no secrets."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rest.client import ANONYMOUS, Client
from tests.rest.running import Running, running
from verditer.serving import logs


@pytest.fixture
def debug_file(tmp_path: Path) -> Iterator[Path]:
    ours, path = logging.getLogger("verditer"), tmp_path / "debug.txt"
    handler, level = logs._debug_handler(path), ours.level
    ours.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    yield path
    ours.removeHandler(handler)
    ours.setLevel(level)
    handler.close()


@pytest.fixture
def server(tmp_path: Path, debug_file: Path) -> Iterator[Running]:
    with running(tmp_path / "data", debug=debug_file) as server:
        yield server


def test_the_debug_log_shows_requests_responses_and_decisions(server: Running, debug_file: Path) -> None:
    client = Client(server)
    assert client.send("PUT", "/box", {"restype": "container"}, {"x-ms-meta-Colour": "blue"}).status == 201
    assert client.send("GET", "/box/missing").status == 404
    client.close()
    log = debug_file.read_text()
    assert "listening: blob " in log
    assert "the store in " in log
    assert "from 127.0.0.1 over http: PUT /devstoreaccount1/box?restype=container\n" in log
    assert "    x-ms-meta-Colour: blue\n" in log
    assert "blob request 1: response 201\n" in log
    assert "operation='CreateContainer'" in log
    assert "is refused: BlobNotFound" in log
    assert "Traceback (most recent call last):" in log


def test_a_wrong_signature_is_logged_with_the_string_to_sign_and_without_secrets(server: Running, debug_file: Path) -> None:
    client = Client(server)
    query = {"sv": "2021-12-02", "ss": "b", "srt": "sco", "sp": "r", "se": "2030-01-01T00:00:00Z", "sig": "SECRET"}
    headers = {"x-ms-copy-source-authorization": "Bearer SECRET", "x-ms-encryption-key": "SECRET"}
    assert client.send("GET", "/box/b", query, headers, auth=ANONYMOUS).status == 403
    client.close()
    log = debug_file.read_text()
    assert "is refused: AuthenticationFailed Signature did not match. String to sign used was devstoreaccount1" in log
    assert "SECRET" not in log
    assert server.key not in log
