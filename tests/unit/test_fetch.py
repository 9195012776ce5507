"""Outbound fetches: which URLs are asked at all, how a source is read, and what its failures are called."""

import asyncio
import socket
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest

from tests.rest.copies import Elsewhere, File, elsewhere
from verditer import cli
from verditer.services.fetch import Fetcher, FetchFailed, Outbound, parse_url


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
    assert Outbound(hosts=hosts).allows(parsed) is allowed
    assert not Outbound(allowed=False, hosts=hosts).allows(parsed)


@pytest.mark.parametrize(
    ("flags", "outbound"),
    [
        ([], Outbound()),
        (["--no-outbound"], Outbound(allowed=False)),
        (["--copy-hosts", "a.example, *.b.example:81"], Outbound(hosts=("a.example", "*.b.example:81"))),
    ],
)
def test_the_flags_say_which_hosts(flags: list[str], outbound: Outbound) -> None:
    assert cli._config(cli._parser().parse_args(flags)).outbound == outbound


@pytest.mark.parametrize("flags", [["--no-outbound", "--copy-hosts", "a"], ["--copy-hosts", " , "]])
def test_flags_that_contradict_themselves_are_refused(flags: list[str]) -> None:
    with pytest.raises(ValueError, match="--no-outbound"):
        cli._config(cli._parser().parse_args(flags))


@pytest.fixture
def source() -> Iterator[Elsewhere]:
    with elsewhere() as source:
        yield source


async def read_all(fetcher: Fetcher, url: str, *, total_seconds: float = 20) -> bytes:
    fetched = await fetcher.open(url, {}, total_seconds=total_seconds)
    body = b""
    try:
        while piece := await fetched.read():
            body += piece
    finally:
        fetched.close()
    return body


def failure(work: Coroutine[Any, Any, bytes]) -> FetchFailed:
    with pytest.raises(FetchFailed) as failed:
        asyncio.run(work)
    return failed.value


def test_a_body_is_read_however_it_is_sent(source: Elsewhere) -> None:
    body = b"x" * 3_000_000
    assert asyncio.run(read_all(Fetcher(), source.add("long", File(body)))) == body
    assert asyncio.run(read_all(Fetcher(), source.add("chunked", File(body, {"Transfer-Encoding": "chunked"})))) == body
    assert asyncio.run(read_all(Fetcher(), source.add("empty", File(b"")))) == b""


def test_a_redirect_is_not_followed(source: Elsewhere) -> None:
    target = File(b"secret")
    elsewhere_url = source.add("target", target)
    failed = failure(read_all(Fetcher(), source.add("file", File(b"", {"Location": elsewhere_url}, status=302))))
    assert (failed.status, failed.passing) == (302, False)
    assert target.asked == []


def test_a_body_that_stops_early_is_a_passing_failure(source: Elsewhere) -> None:
    failed = failure(read_all(Fetcher(), source.add("file", File(b"x" * 100_000, breaks={0: 10_000}))))
    assert failed.passing


def test_a_source_that_says_nothing_is_given_up(source: Elsewhere) -> None:
    silent = source.add("file", File(b"x" * 100, gate=threading.Event(), before_gate=10))
    failed = failure(read_all(Fetcher(), silent, total_seconds=0.2))
    assert (failed.status, failed.code, failed.passing) == (500, "OperationTimedOut", True)


def test_nobody_there_is_a_passing_failure() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        failed = failure(read_all(Fetcher(), f"http://127.0.0.1:{unused.getsockname()[1]}/a"))
    assert failed.passing
    assert "ConnectionRefusedError" in failed.reason


def test_what_a_source_says_is_cleaned_before_it_is_repeated(source: Elsewhere) -> None:
    body = "<Error><Code>Strange</Code><Message>n\u00e9 \x07\nsecond line</Message></Error>".encode()
    failed = failure(read_all(Fetcher(), source.add("file", File(body, status=404))))
    assert (failed.code, failed.reason) == ("Strange", "n? ?")
    assert not failed.passing


def test_a_header_is_one_line_however_it_was_sent(source: Elsewhere) -> None:
    folded = source.add("file", File(b"", {"Content-Type": "text/plain\r\n X-Smuggled: yes"}))

    async def headers() -> dict[str, str]:
        fetched = await Fetcher().open(folded, {})
        fetched.close()
        return fetched.headers

    assert asyncio.run(headers())["content-type"] == "text/plain  X-Smuggled: yes"


def test_a_host_that_is_not_allowed_is_not_asked(source: Elsewhere) -> None:
    file = File()
    failed = failure(read_all(Fetcher(Outbound(allowed=False)), source.add("file", file)))
    assert failed.status == 403
    assert file.asked == []
