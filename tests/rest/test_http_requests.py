"""What is taken for a request, what is handed on of it, and what is refused before a handler sees it."""

import pytest

from tests.rest.http_wire import Wire, echo, pace, request, serving
from verditer.rest.http.message import Request, Response
from verditer.rest.http.server import HttpLimits

__all__ = ["pace"]  # a fixture
pytestmark = pytest.mark.usefixtures("pace")


def test_a_request_is_handed_on_as_it_was_sent() -> None:
    with serving(echo) as server:
        target = "/acc/c%2F%c3%A9/a%20b//../x?comp=list&a=%2b+&A='()"
        answer = server.ask(request("PUT", target, "x-ms-meta-MyName: Some Value ", "X-MS-Meta-other:\tb", body=b"hello"))
    assert (answer.status, answer.reason, answer.body) == (200, "OK", b"hello")
    assert answer.header("x-target") == target
    assert answer.header("x-peer") == "127.0.0.1"
    assert ("got-x-ms-meta-MyName", "Some Value") in answer.headers
    assert ("got-X-MS-Meta-other", "b") in answer.headers


def test_header_names_are_found_in_lower_case_and_repeated_lines_are_joined() -> None:
    seen: list[Request] = []

    async def bounded_cache(request: Request) -> Response:
        seen.append(request)
        return Response(status=200, headers=[])

    with serving(bounded_cache) as server:
        server.ask(request("GET", "/", "Accept: a", "ACCEPT: b", "x-ms-meta-Latin: \xe9"))
    assert seen[0].headers == {"host": "localhost", "accept": "a,b", "x-ms-meta-latin": "\xe9"}
    assert seen[0].raw_headers[1:3] == [("Accept", "a"), ("ACCEPT", "b")]
    assert seen[0].secure is False


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "MERGE"])
def test_every_verb_of_azure_storage_is_taken(method: str) -> None:
    with serving(echo) as server:
        assert server.ask(request(method), head_only=method == "HEAD").header("x-method") == method


def test_response_headers_keep_their_case_and_order() -> None:
    headers = [("x-ms-meta-ZZZ", "1"), ("ETag", '"0x8D"'), ("x-ms-meta-aAa", "caf\xe9"), ("Date", "now")]

    async def fixed(_: Request) -> Response:
        return Response(status=201, headers=headers, reason="Made Up")

    with serving(fixed) as server:
        answer = server.ask(request())
    assert answer.headers == [*headers, ("Content-Length", "0")]
    assert answer.reason == "Made Up"


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x", "a\nSet-Cookie: x", "a\rb", "a\r\n\r\n<html>"])
def test_a_response_header_cannot_begin_another_line(value: str) -> None:
    async def careless(_: Request) -> Response:
        return Response(status=200, headers=[("x-value", value)], reason=value)

    with serving(careless) as server:
        answer = server.ask(request())
    assert [name for name, _ in answer.headers] == ["x-value", "Content-Length"]
    assert answer.header("x-value") == value.replace("\r", " ").replace("\n", " ")


HOST = "Host: a\r\n"
REFUSED = {
    "two lengths": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
    "different lengths": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
    "a list of lengths": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3, 3\r\n\r\nabc",
    "a signed length": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: +3\r\n\r\nabc",
    "a negative length": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: -3\r\n\r\nabc",
    "a hexadecimal length": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 0x3\r\n\r\nabc",
    "an empty length": f"PUT / HTTP/1.1\r\n{HOST}Content-Length:\r\n\r\nabc",
    "an endless length": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 99999999999999999999\r\n\r\nabc",
    "length, then chunked": f"PUT / HTTP/1.1\r\n{HOST}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunked, then length": f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
    "another encoding": f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: gzip\r\n\r\n",
    "two encodings": f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "two chunked": f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "nearly chunked": f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "identity": f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding: identity\r\n\r\n",
    "no encoding": f"PUT / HTTP/1.1\r\n{HOST}Transfer-Encoding:\r\n\r\n",
    "chunked in HTTP/1.0": f"PUT / HTTP/1.0\r\n{HOST}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a blank before the colon": f"PUT / HTTP/1.1\r\n{HOST}Content-Length : 3\r\n\r\nabc",
    "a blank in the name": f"GET / HTTP/1.1\r\n{HOST}x ms: 3\r\n\r\n",
    "no name": f"GET / HTTP/1.1\r\n{HOST}: 3\r\n\r\n",
    "no colon": f"GET / HTTP/1.1\r\n{HOST}abc\r\n\r\n",
    "a folded line": f"GET / HTTP/1.1\r\n{HOST}x-a: 1\r\n 2\r\n\r\n",
    "a folded first line": f"GET / HTTP/1.1\r\n x-a: 1\r\n{HOST}\r\n",
    "no host": "GET / HTTP/1.1\r\n\r\n",
    "two hosts": f"GET / HTTP/1.1\r\n{HOST}{HOST}\r\n",
    "bare line feeds": "GET / HTTP/1.1\nHost: a\n\n",
    "one bare line feed": "GET / HTTP/1.1\r\nHost: a\nx-a: b\r\n\r\n",
    "a bare carriage return": "GET / HTTP/1.1\r\nHost: a\rx-a: b\r\n\r\n",
    "a zero byte": f"GET / HTTP/1.1\r\n{HOST}x-a: \0\r\n\r\n",
    "a control character": f"GET / HTTP/1.1\r\n{HOST}x-a: \x01\r\n\r\n",
    "an unknown verb": f"FROB / HTTP/1.1\r\n{HOST}\r\n",
    "a verb in small letters": f"get / HTTP/1.1\r\n{HOST}\r\n",
    "HTTP/0.9": f"GET / HTTP/0.9\r\n{HOST}\r\n",
    "HTTP/2": f"GET / HTTP/2.0\r\n{HOST}\r\n",
    "HTTP/1.2": f"GET / HTTP/1.2\r\n{HOST}\r\n",
    "the preface of HTTP/2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a TLS greeting": "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


async def _never(request: Request) -> Response:
    raise AssertionError(f"{request} was not refused")


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("piecewise", [False, True])
def test_an_ambiguous_request_is_refused_and_the_connection_closed(name: str, piecewise: bool) -> None:
    data = REFUSED[name].encode("latin-1")
    with serving(_never) as server, server.connect() as wire:
        for piece in [data[i : i + 1] for i in range(len(data))] if piecewise else [data]:
            try:
                wire.send(piece)
            except OSError:  # already refused
                break
        answer = wire.answer()
        assert (answer.status, answer.header("x-ms-error-code")) == (400, "InvalidInput")
        assert answer.header("Connection") == "close"
        assert answer.body.startswith(b'<?xml version="1.0" encoding="utf-8"?><Error><Code>InvalidInput</Code><Message>')
        assert wire.ended()


def test_a_tunnel_is_refused() -> None:
    with serving(_never) as server:
        answer = server.ask(b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n")
    assert (answer.status, answer.header("x-ms-error-code")) == (405, "UnsupportedHttpVerb")


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(request("GET", "/" + "a" * 2000), 414, id="target"),
        pytest.param(b"GET /" + b"a" * 2000, 414, id="unfinished target"),
        pytest.param(request("GET", "/", *[f"x-{i}: 1" for i in range(20)]), 431, id="count"),
        pytest.param(request("GET", "/", "x-a: " + "a" * 3000), 431, id="size"),
        pytest.param(request("GET", "/", *["x-a: " + "a" * 400] * 8), 431, id="total size"),
    ],
)
def test_a_head_past_the_limits_is_refused(data: bytes, status: int) -> None:
    limits = HttpLimits(max_headers=20, max_header_bytes=2048, max_target_bytes=1024)
    with serving(_never, limits=limits) as server, server.connect() as wire:
        assert wire.send(data).answer().status == status
        assert wire.ended()


def test_a_head_at_the_limits_is_taken() -> None:
    limits = HttpLimits(max_headers=20, max_header_bytes=2048, max_target_bytes=1024)
    with serving(echo, limits=limits) as server:
        assert server.ask(request("GET", "/" + "a" * 1023, *[f"x-{i}: {'a' * 80}" for i in range(19)])).status == 200


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\nx-a: ", b"GET / HTTP/1.1\r\nx-"], ids=["value", "name"])
def test_a_head_without_an_end_is_refused_before_it_fills_the_memory(start: bytes) -> None:
    with serving(_never, limits=HttpLimits(max_header_bytes=2048, max_target_bytes=1024)) as server, server.connect() as wire:
        wire.send(start)
        assert _sent_until_answered(wire, b"a" * 1000) < 10
        assert wire.answer().status == 431


def test_trailers_without_an_end_are_refused_before_they_fill_the_memory() -> None:
    async def reads(request: Request) -> Response:
        await request.body.read_all(100)
        raise AssertionError("the body has no end")

    limits = HttpLimits(max_header_bytes=2048, max_target_bytes=1024)
    with serving(reads, limits=limits) as server, server.connect() as wire:
        wire.send(request("PUT", "/", "Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\nx-trailer: ")
        assert _sent_until_answered(wire, b"a" * 1000) < 10
        assert wire.answer().status == 431


def _sent_until_answered(wire: Wire, piece: bytes) -> int:
    for count in range(100):
        wire.send(piece)
        if not wire.silent(0.02):
            return count
    raise AssertionError("there was no answer")


@pytest.mark.parametrize("chunked", [False, True])
def test_an_offer_to_upgrade_is_ignored_and_the_body_still_read(chunked: bool) -> None:
    """The HTTP client of the JDK offers h2c with its first request, body and all."""
    offer = ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB"]
    with serving(echo) as server, server.connect() as wire:
        if chunked:
            wire.send(request("PUT", "/", *offer, "Transfer-Encoding: chunked") + b"3\r\nabc\r\n0\r\n\r\n")
            assert wire.answer().body == b"abc"
            assert wire.ended()
        else:
            wire.send(request("PUT", "/1", *offer, body=b"abc") + request("GET", "/2", *offer) + request("GET", "/3"))
            assert [(answer.header("x-target"), answer.body) for answer in (wire.answer(), wire.answer(), wire.answer())] == [
                ("/1", b"abc"),
                ("/2", b""),
                ("/3", b""),
            ]


def test_an_unexpected_failure_is_logged_once_and_answered_as_internal_error() -> None:
    async def fails(request: Request) -> Response:
        raise RuntimeError("surprise")

    with serving(fails, errors=True) as server, server.connect() as wire:
        answer = wire.send(request("GET", "/a?sig=secret")).answer()
        assert wire.ended()
    assert (answer.status, answer.header("x-ms-error-code")) == (500, "InternalError")
    assert [record.getMessage() for record in server.errors] == ["GET /a failed"]
