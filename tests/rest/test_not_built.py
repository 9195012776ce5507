"""Operations that are not implemented answer 501 with their name to an authenticated caller. For Blob see `test_not_yet.py`."""

import http.client
from collections.abc import Iterator
from email.utils import formatdate
from urllib.parse import urlencode

import pytest

from tests.rest import signing
from tests.rest.client import VERSION
from tests.rest.running import PATIENCE_SECONDS, Running
from verditer.rest.operation import Level, Op
from verditer.rest.services import SERVICES

PATHS = {
    Level.SERVICE: "/",
    Level.QUEUE: "/queue",
    Level.TABLES: "/Tables",
    Level.SHARE: "/share",
    Level.PATH: "/share/folder/file",
}
MISSING = [
    (service.name, op, method)
    for service in SERVICES
    for op in service.operations
    if service.name != "blob" and not op.is_built
    for method in op.route.methods
]


@pytest.mark.parametrize(("service", "op", "method"), MISSING, ids=[f"{name}-{op.name}-{method}" for name, op, method in MISSING])
def test_what_is_not_built_answers_501_by_name(server: Running, service: str, op: Op, method: str) -> None:
    status, code, text = ask(server, service, method, PATHS[op.route.level], query_of(op), dict(headers_of(op)))
    assert (status, code) == (501, "NotImplemented")
    assert method == "HEAD" or f"{op.name} is not implemented" in text


@pytest.mark.parametrize(("method", "query"), [("GET", "restype=directory&comp=list"), ("GET", "comp=listhandles")])
def test_the_root_of_a_share_is_a_directory(server: Running, method: str, query: str) -> None:
    assert ask(server, "file", method, "/share", query, {})[:2] == (404, "ShareNotFound")


def test_the_file_port_tells_nothing_to_strangers(server: Running) -> None:
    assert ask(server, "file", "GET", "/", "comp=list", {}, signed=False)[:2] == (401, "NoAuthenticationInformation")
    wrong = {"Authorization": f"SharedKey {server.account}:d3Jvbmc=", "x-ms-date": formatdate(server.now(), usegmt=True)}
    assert ask(server, "file", "GET", "/", "comp=list", wrong, signed=False)[:2] == (403, "AuthenticationFailed")


def test_a_signature_for_blobs_does_not_open_the_file_port(server: Running) -> None:
    fields = {"sp": "rl", "se": "2999-01-01T00:00:00Z"}
    blobs = signing.account_sas(server.account, server.key, ss="b", **fields)
    files = signing.account_sas(server.account, server.key, ss="f", **fields)
    assert ask(server, "file", "GET", "/", f"comp=list&{blobs}", {}, signed=False)[1] == "AuthorizationServiceMismatch"
    assert ask(server, "file", "GET", "/", f"comp=list&{files}", {}, signed=False)[:2] == (200, None)


def query_of(op: Op) -> str:
    route = op.route
    named = {"restype": route.restype, "comp": route.comp}
    decisive = {name: value or "x" for name, value in route.when if "-" not in name}
    return urlencode({name: value for name, value in named.items() if value} | decisive)


def headers_of(op: Op) -> Iterator[tuple[str, str]]:
    for name, value in op.route.when:
        if "-" in name:
            yield name, value or "x"


def ask(
    server: Running, service: str, method: str, path: str, query: str, headers: dict[str, str], *, signed: bool = True
) -> tuple[int, str | None, str]:
    """(status, error code, body) of a request without a body to the port of a service."""
    path = f"/{server.account}{path}"
    sent = [("x-ms-version", VERSION), *headers.items(), *([] if method in ("GET", "HEAD") else [("Content-Length", "0")])]
    if signed:
        sent.append(("x-ms-date", formatdate(server.now(), usegmt=True)))
        sent.append(("Authorization", authorization(server, service, method, path, query, sent)))
    port = server.app.servers[service].port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    connection.putrequest(method, f"{path}?{query}", skip_accept_encoding=True)
    for name, value in sent:
        connection.putheader(name, value)
    connection.endheaders()
    response = connection.getresponse()
    text = response.read().decode("utf-8-sig")
    connection.close()
    return response.status, response.getheader("x-ms-error-code"), text


def authorization(server: Running, service: str, method: str, path: str, query: str, sent: list[tuple[str, str]]) -> str:
    """The table service signs less than the others."""
    if service != "table":
        return signing.shared_key(server.account, server.key, method, path, query, sent)
    comp = next((f"?{pair}" for pair in query.split("&") if pair.startswith("comp=")), "")
    text = "\n".join([method, "", "", dict(sent)["x-ms-date"], f"/{server.account}{path}{comp}"])
    return f"SharedKey {server.account}:{signing.signature(server.key, text)}"
