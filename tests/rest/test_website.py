"""The static website of an account: index and error documents, host names, conditions, ranges."""

import http.client
from collections.abc import Iterator

import pytest

from tests.rest.client import Box, Client, Reply
from tests.rest.history_fixtures import server  # noqa: F401
from tests.rest.running import PATIENCE_SECONDS


def configure(client: Client, website: str) -> None:
    document = f"<StorageServiceProperties><StaticWebsite>{website}</StaticWebsite></StorageServiceProperties>"
    reply = client.send("PUT", "", {"restype": "service", "comp": "properties"}, body=document.encode())
    assert reply.status == 202, reply.body


@pytest.fixture
def site(client: Client) -> Iterator[Box]:
    """`$web` with pages, switched on."""
    box = Box(client, "$web")
    assert box.container("PUT").status in (201, 409)
    html = {"x-ms-blob-content-type": "text/html"}
    for name in ("index.html", "docs/index.html", "404.html", "page.html"):
        box.put(name, f"this is {name}".encode(), html)
    configure(
        client,
        "<Enabled>true</Enabled><IndexDocument>index.html</IndexDocument><ErrorDocument404Path>404.html</ErrorDocument404Path>",
    )
    yield box
    configure(client, "<Enabled>false</Enabled>")


def ask(box: Box, path: str, headers: dict[str, str] | None = None, method: str = "GET", host: str | None = None) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", box.server.app.servers["website"].port, timeout=PATIENCE_SECONDS)
    target = path if host is not None else f"/{box.server.account}{path}"
    connection.request(method, target, headers={"Host": host or "127.0.0.1", **(headers or {})})
    response = connection.getresponse()
    reply = Reply(response.status, response.reason, response.getheaders(), response.read())
    connection.close()
    return reply


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", "index.html"),
        ("/", "index.html"),
        ("/page.html", "page.html"),
        ("/docs/", "docs/index.html"),
        ("/docs", "docs/index.html"),
        ("/page.html?query=ignored", "page.html"),
    ],
)
def test_a_path_shows_its_blob_or_the_index_of_its_directory(site: Box, path: str, shown: str) -> None:
    reply = ask(site, path)
    assert (reply.status, reply.body, reply["Content-Type"]) == (200, f"this is {shown}".encode(), "text/html")
    by_host = ask(site, path or "/", host=f"{site.server.account}.z1.web.core.windows.net")
    assert (by_host.status, by_host.body) == (200, reply.body)
    by_path = ask(site, f"/{site.server.account}{path}", host="storage.default.svc")
    assert (by_path.status, by_path.body) == (200, reply.body)
    head = ask(site, path, method="HEAD")
    assert (head.status, head.body, head["Content-Length"]) == (200, b"", str(len(reply.body)))


def test_a_path_without_a_page_shows_the_error_document(site: Box) -> None:
    reply = ask(site, "/absent")
    assert (reply.status, reply.body) == (404, b"this is 404.html")
    site.blob("DELETE", "404.html")
    reply = ask(site, "/<absent>")
    assert (reply.answer, reply["Content-Type"]) == ((404, "WebContentNotFound"), "text/html; charset=utf-8")
    assert b"The requested content does not exist." in reply.body


def test_a_default_document_is_shown_for_every_directory(site: Box) -> None:
    configure(site.client, "<Enabled>true</Enabled><DefaultIndexDocumentPath>page.html</DefaultIndexDocumentPath>")
    assert [ask(site, path).body for path in ("/", "/docs/", "/nothing/here")] == [b"this is page.html"] * 3
    assert ask(site, "/docs/index.html").body == b"this is docs/index.html"


def test_a_browser_gets_ranges_and_conditional_answers(site: Box) -> None:
    etag = ask(site, "/page.html")["ETag"]
    assert ask(site, "/page.html", {"If-None-Match": etag}).status == 304
    part = ask(site, "/page.html", {"Range": "bytes=0-3"})
    assert (part.status, part.body, part["Content-Range"]) == (206, b"this", "bytes 0-3/17")
    assert ask(site, "/page.html", {"Range": "bytes=99-"}).answer == (416, "InvalidRange")


def test_nothing_can_be_written_and_nothing_else_is_shown(site: Box, box: Box) -> None:
    box.put()
    for method in ("PUT", "POST", "DELETE", "OPTIONS"):
        assert ask(site, "/page.html", method=method).answer == (405, "UnsupportedHttpVerb")
    for path in (f"/../{box.name}/blob", f"/%2e%2e/{box.name}/blob", f"/{box.name}/blob"):
        assert ask(site, path).status == 404
    assert ask(site, "/", host="nobody.web.core.windows.net").answer == (404, "WebContentNotFound")


def test_a_website_that_is_switched_off_shows_nothing(site: Box) -> None:
    configure(site.client, "<Enabled>false</Enabled>")
    assert ask(site, "/page.html").answer == (404, "WebContentNotFound")
