"""Outbound requests: which URLs are permitted, how a source is read, and how its failures are reported."""

import asyncio
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from tests.rest.copies import Elsewhere, File, elsewhere
from verditer.config import Outbound
from verditer.core.errors import ErrorClass
from verditer.flag_parser import parser
from verditer.flags import config_from
from verditer.rest.outbound.sources import HttpSourceReader
from verditer.rest.outbound.urls import is_allowed, parse_url
from verditer.services.outbound import SourceFailed, SourceProperties, SourceRequest


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("http://host/a/b", True),
        ("https://host:8443/a/b?x=1", True),
        ("http://[::1]:10000/a", True),
        ("HTTP://host/a", True),
        ("ftp://host/a", False),
        ("file:///etc/passwd", False),
        ("//host/a", False),
        ("/a/b", False),
        ("http:///a", False),
        ("http://user:password@host/a", False),
        ("http://host:0/a", False),
        ("http://host:99999/a", False),
        ("http://[::1/a", False),
        ("http://host/a b", False),
        ("http://host/a\r\nX: y", False),
        ("http://host/" + "a" * 2037, False),
    ],
)
def test_only_plain_urls_are_asked(text: str, valid: bool) -> None:
    assert (parse_url(text) is not None) is valid


@pytest.mark.parametrize(
    ("hosts", "url", "allowed"),
    [
        ((), "http://anything/a", True),
        (("store.example",), "http://store.example/a", True),
        (("Store.Example",), "http://STORE.example:81/a", True),
        (("store.example",), "http://other.example/a", False),
        (("store.example",), "http://sub.store.example/a", False),
        (("*.example",), "https://store.example/a", True),
        (("*.example",), "https://example/a", False),
        (("*.example",), "https://badexample/a", False),
        (("store.example:443",), "https://store.example/a", True),
        (("store.example:443",), "http://store.example/a", False),
        (("store.example:81",), "http://store.example:81/a", True),
        (("[::1]:81",), "http://[::1]:81/a", True),
        (("one", "two"), "http://two/a", True),
    ],
)
def test_hosts_are_allowed_by_name(hosts: tuple[str, ...], url: str, allowed: bool) -> None:
    parsed = parse_url(url)
    assert parsed is not None
    assert is_allowed(Outbound(hosts=hosts), parsed) is allowed
    assert not is_allowed(Outbound(allowed=False, hosts=hosts), parsed)


@pytest.mark.parametrize(
    ("flags", "outbound"),
    [
        ([], Outbound()),
        (["--no-outbound"], Outbound(allowed=False)),
        (["--copy-hosts", "a.example, *.b.example:81"], Outbound(hosts=("a.example", "*.b.example:81"))),
    ],
)
def test_the_flags_say_which_hosts(flags: list[str], outbound: Outbound) -> None:
    assert config_from(parser().parse_args(flags)).outbound == outbound


@pytest.mark.parametrize("flags", [["--no-outbound", "--copy-hosts", "a"], ["--copy-hosts", " , "]])
def test_flags_that_contradict_themselves_are_refused(flags: list[str]) -> None:
    with pytest.raises(ValueError, match="--no-outbound"):
        config_from(parser().parse_args(flags))


@pytest.fixture
def source() -> Iterator[Elsewhere]:
    with elsewhere() as source:
        yield source


async def read_all(reader: HttpSourceReader, url: str, *, total_seconds: float = 20) -> bytes:
    source = await reader.open(SourceRequest(url=url, access={}), total_seconds=total_seconds)
    body = b""
    try:
        while chunk := await source.read():
            body += chunk
    finally:
        source.close()
        reader.close()
    return body


def failure(work: Coroutine[Any, Any, bytes]) -> SourceFailed:
    with pytest.raises(SourceFailed) as failed:
        asyncio.run(work)
    return failed.value


def test_a_body_is_read_however_it_is_sent(source: Elsewhere) -> None:
    body = b"x" * 3_000_000
    assert asyncio.run(read_all(HttpSourceReader(), source.add("long", File(body)))) == body
    assert asyncio.run(read_all(HttpSourceReader(), source.add("chunked", File(body, {"Transfer-Encoding": "chunked"})))) == body
    assert asyncio.run(read_all(HttpSourceReader(), source.add("empty", File(b"")))) == b""


def test_a_redirect_is_not_followed(source: Elsewhere) -> None:
    target = File(b"secret")
    elsewhere_url = source.add("target", target)
    failed = failure(read_all(HttpSourceReader(), source.add("file", File(b"", {"Location": elsewhere_url}, status=302))))
    assert (failed.status, failed.transient) == (302, False)
    assert target.asked == []


def test_a_body_that_stops_early_is_a_passing_failure(source: Elsewhere) -> None:
    failed = failure(read_all(HttpSourceReader(), source.add("file", File(b"x" * 100_000, breaks={0: 10_000}))))
    assert failed.transient


def test_a_source_that_says_nothing_is_given_up(source: Elsewhere) -> None:
    silent = source.add("file", File(b"x" * 100, gate=threading.Event(), before_gate=10))
    failed = failure(read_all(HttpSourceReader(), silent, total_seconds=0.2))
    assert (failed.status, failed.code, failed.transient) == (ErrorClass.INTERNAL, "OperationTimedOut", True)


def test_nobody_there_is_a_passing_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        failed = failure(read_all(HttpSourceReader(), f"http://127.0.0.1:{unused.getsockname()[1]}/a"))
    assert failed.transient
    assert "ConnectionRefusedError" in failed.message


def test_what_a_source_says_is_cleaned_before_it_is_repeated(source: Elsewhere) -> None:
    body = "<Error><Code>Strange</Code><Message>n\u00e9 \x07\nsecond line</Message></Error>".encode()
    failed = failure(read_all(HttpSourceReader(), source.add("file", File(body, status=404))))
    assert (failed.code, failed.message) == ("Strange", "n? ?")
    assert not failed.transient


def test_a_header_is_one_line_however_it_was_sent(source: Elsewhere) -> None:
    folded = source.add("file", File(b"", {"Content-Type": "text/plain\r\n X-Smuggled: yes"}))

    assert asyncio.run(properties_of(folded)).content_type == "text/plain X-Smuggled: yes"


async def properties_of(url: str, **request: Any) -> SourceProperties:
    reader = HttpSourceReader()
    source = await reader.open(SourceRequest(url=url, access={}, **request))
    source.close()
    reader.close()
    return source.properties


def test_the_request_target_is_sent_as_it_was_written() -> None:
    """A signature may depend on the spelling, so nothing is normalized: neither case nor dots nor slashes."""
    target = "/a%2fb/./c/../d//e%7e?sig=a%2Fb%2f&x=%zz"
    lines: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                lines.extend(connection.recv(65536).split(b"\r\n"))
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        asyncio.run(properties_of(f"http://127.0.0.1:{port}{target}"))
        thread.join()
    assert lines[0] == f"GET {target} HTTP/1.1".encode()
    assert sorted(line.partition(b":")[0] for line in lines[1:] if line) == [b"Accept-Encoding", b"Connection", b"Host"]


def test_a_weak_etag_is_not_sent_as_a_condition(source: Elsewhere) -> None:
    file = File(b"x", heeds_conditions=False)
    url = source.add("file", file)
    asyncio.run(properties_of(url, etag='W/"1"'))
    asyncio.run(properties_of(url, etag='"1"'))
    assert [asked.get("if-match") for asked in file.asked] == [None, '"1"']


def test_a_range_that_is_answered_in_full_is_not_taken_for_the_range(source: Elsewhere) -> None:
    url = source.add("file", File(b"0123456789", ranges=True))
    served = asyncio.run(properties_of(url, range=(2, 4)))
    assert (served.is_range, served.length) == (True, 3)
    url = source.add("file", File(b"0123456789", ranges=False))
    ignored = asyncio.run(properties_of(url, range=(2, 4)))
    assert (ignored.is_range, ignored.length) == (False, 10)


def test_malformed_headers_put_no_signature_into_the_log(source: Elsewhere, caplog: pytest.LogCaptureFixture) -> None:
    """urllib3 warns about headers that it cannot parse, and its warning contains the URL."""
    broken = source.add("file", File(b"", {"A": "b\r\nno colon here"}))
    with caplog.at_level(logging.DEBUG):
        asyncio.run(read_all(HttpSourceReader(), f"{broken}?sig=secret"))
    assert "secret" not in caplog.text


def test_too_many_headers_are_a_transient_failure(source: Elsewhere) -> None:
    failed = failure(read_all(HttpSourceReader(), source.add("file", File(b"", {f"X-{n}": "y" for n in range(200)}))))
    assert failed.transient


def test_importing_the_client_does_not_import_the_library() -> None:
    code = "import sys, verditer.app; sys.exit('urllib3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_host_that_is_not_allowed_is_not_asked(source: Elsewhere) -> None:
    file = File()
    failed = failure(read_all(HttpSourceReader(Outbound(allowed=False)), source.add("file", file)))
    assert failed.status is ErrorClass.FORBIDDEN
    assert file.asked == []
