"""The control API on the admin port: a body that is malformed is answered with 400 and a reason."""

import http.client
import json
from collections.abc import Iterator

import pytest

from tests.conftest import watched
from tests.rest.running import ADMIN, PATIENCE_SECONDS, Running, running
from verditer.config import OAuth
from verditer.services.account import DEVELOPMENT_ACCOUNT
from verditer.web.answers import MAX_DOCUMENT

PAGES = [
    ("POST", "/control/clock"),
    ("POST", "/control/reset"),
    ("PUT", f"/control/accounts/{DEVELOPMENT_ACCOUNT}/settings"),
    ("POST", "/control/token"),
]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("admin"), oauth=OAuth(mode="development")) as server:
        yield server


@pytest.fixture
def server(alone: Running) -> Iterator[Running]:
    yield from watched(alone)


def ask(server: Running, method: str, path: str, body: bytes) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.admin_port, timeout=PATIENCE_SECONDS)
    try:
        connection.request(method, path, body, ADMIN)
        response = connection.getresponse()
        answer: dict[str, object] = json.loads(response.read())
        return response.status, answer
    finally:
        connection.close()


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1000,
        b'{"account":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"seconds":' + b'{"a":' * 1000 + b"1" + b"}" * 1001,
        b"{",
        b"nonsense",
        b'{"seconds": 1,}',
        b'"\xff"',
        b'{"\xff": 1}',
        b"[]",
        b"null",
        b"1",
        b'"text"',
        b"NaN",
        b'{"seconds": "1", "account": 1, "versioning": "yes", "oid": 1}',
        b'{"seconds": null, "account": null, "versioning": 1, "oid": null}',
        b'{"seconds": true, "account": true, "versioning": "true", "oid": true}',
        b'{"seconds": 1e999, "account": [], "versioning": {}, "oid": {}}',
        b'{"seconds": 1e300, "account": {}, "versioning": [], "oid": []}',
        b" " * (MAX_DOCUMENT + 1),
    ],
    ids=lambda body: repr(body[:24]),
)
@pytest.mark.parametrize(("method", "path"), PAGES)
def test_a_malformed_body_is_refused_with_a_reason(server: Running, method: str, path: str, body: bytes) -> None:
    status, answer = ask(server, method, path, body)
    assert status == 400
    assert isinstance(answer["error"], str)
    assert answer["error"]


def test_a_body_is_needed_where_it_names_something(server: Running) -> None:
    for body in (b"", b"{}"):
        assert ask(server, "POST", "/control/clock", body)[0] == 400
        assert ask(server, "POST", "/control/reset", body)[0] == 400


@pytest.mark.parametrize("seconds", [b"-1", b"4000000000000"])
def test_the_clock_moves_forward_and_not_without_end(server: Running, seconds: bytes) -> None:
    assert ask(server, "POST", "/control/clock", b'{"seconds": %b}' % seconds)[0] == 400


def test_an_account_that_does_not_exist_cannot_be_emptied(server: Running) -> None:
    assert ask(server, "POST", "/control/reset", b'{"account": "nobody"}')[0] == 404
