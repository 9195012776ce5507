"""Fixtures: one browser for the run, one server for each file, a signed-in page for each test, and Azure's clients.

An error in the browser's console, a refused script and an error in the server's log fail the test.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient
from azure.storage.fileshare import ShareServiceClient
from azure.storage.queue import QueueServiceClient
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tests.conftest import watched
from tests.rest.running import ADMIN_TOKEN, PATIENCE_SECONDS, Running

FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
expect.set_options(timeout=PATIENCE_SECONDS * 1000)  # the machine may be busy
PICTURES = Path(__file__).parents[2] / "docs" / "pictures"


class Azure:
    """A client of every service of a server, for what a test prepares and checks."""

    def __init__(self, server: Running) -> None:
        ports = {name: f"{server.app.url(name)}/{server.account}" for name in ("blob", "queue", "table", "file")}
        endpoints = "".join(f"{name.capitalize()}Endpoint={url};" for name, url in ports.items())
        self.string = f"DefaultEndpointsProtocol=http;AccountName={server.account};AccountKey={server.key};{endpoints}"
        self.blobs = BlobServiceClient.from_connection_string(self.string)
        self.queues = QueueServiceClient.from_connection_string(self.string)
        self.tables = TableServiceClient.from_connection_string(self.string)
        self.shares = ShareServiceClient.from_connection_string(self.string)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def server(module_server: Running) -> Iterator[Running]:
    yield from watched(module_server)


@pytest.fixture
def azure(server: Running) -> Azure:
    return Azure(server)


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, accept_downloads=True, color_scheme="light")
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext, server: Running) -> Iterator[Page]:
    problems: list[str] = []
    page = opened(context, server, problems)
    yield page
    assert problems == []


def opened(context: BrowserContext, server: Running, problems: list[str] | None = None) -> Page:
    """A page of the explorer, signed in by the start link."""
    page = context.new_page()

    def keep(message: ConsoleMessage) -> None:
        # A refused request is shown as an error too; what the page does about it is tested.
        is_refusal = re.search(r"the server responded with a status of (4|501)", message.text)
        if problems is not None and message.type == "error" and not is_refusal:
            problems.append(message.text)

    page.on("console", keep)
    if problems is not None:
        page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"http://127.0.0.1:{server.admin_port}/?token={ADMIN_TOKEN}")
    page.get_by_role("heading", name="Overview").wait_for()
    return page


def visit(page: Page, address: str) -> None:
    """`address` is what follows the hash."""
    page.goto(f"{page.url.partition('#')[0]}#/{address}")
