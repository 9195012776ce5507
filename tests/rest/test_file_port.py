"""The port of the File service, before any share exists: its root, and callers without a valid signature for it."""

import http.client
from email.utils import formatdate

import pytest

from tests.rest import signing
from tests.rest.client import VERSION
from tests.rest.running import PATIENCE_SECONDS, Running


@pytest.mark.parametrize(("method", "query"), [("GET", "restype=directory&comp=list"), ("GET", "comp=listhandles")])
def test_the_root_of_a_share_is_a_directory(server: Running, method: str, query: str) -> None:
    assert ask(server, method, "/share", query) == (404, "ShareNotFound")


def test_the_file_port_tells_nothing_to_strangers(server: Running) -> None:
    assert ask(server, "GET", "/", "comp=list", signed=False) == (401, "NoAuthenticationInformation")
    wrong = {"Authorization": f"SharedKey {server.account}:d3Jvbmc=", "x-ms-date": formatdate(server.now(), usegmt=True)}
    assert ask(server, "GET", "/", "comp=list", wrong, signed=False) == (403, "AuthenticationFailed")


def test_a_signature_for_blobs_does_not_open_the_file_port(server: Running) -> None:
    fields = {"sp": "rl", "se": "2999-01-01T00:00:00Z"}
    blobs = signing.account_sas(server.account, server.key, ss="b", **fields)
    files = signing.account_sas(server.account, server.key, ss="f", **fields)
    assert ask(server, "GET", "/", f"comp=list&{blobs}", signed=False)[1] == "AuthorizationServiceMismatch"
    assert ask(server, "GET", "/", f"comp=list&{files}", signed=False) == (200, None)


def ask(
    server: Running, method: str, path: str, query: str, headers: dict[str, str] | None = None, *, signed: bool = True
) -> tuple[int, str | None]:
    """(status, error code) of a request without a body."""
    path = f"/{server.account}{path}"
    sent = [("x-ms-version", VERSION), *(headers or {}).items()]
    if signed:
        sent.append(("x-ms-date", formatdate(server.now(), usegmt=True)))
        sent.append(("Authorization", signing.shared_key(server.account, server.key, method, path, query, sent)))
    connection = http.client.HTTPConnection("127.0.0.1", server.app.servers["file"].port, timeout=PATIENCE_SECONDS)
    connection.putrequest(method, f"{path}?{query}", skip_accept_encoding=True)
    for name, value in sent:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    connection.close()
    return response.status, response.getheader("x-ms-error-code")
