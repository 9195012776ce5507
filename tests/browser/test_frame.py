"""The frame of the explorer: signing in, themes, keyboard, deep links, hostile pages, and what the pages look like."""

import contextlib
import json
import re
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from time import monotonic

import pytest
from azure.core.exceptions import ResourceExistsError
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.conftest import PICTURES, Azure, opened, visit
from tests.rest.running import ADMIN_TOKEN, PATIENCE_SECONDS, Running, running
from tests.web.asking import ask
from verditer.config import AdminPort
from verditer.serving.sockets import ListenAddress

ACCOUNT = "devstoreaccount1"


def test_the_start_link_signs_in_and_the_token_leaves_the_address(page: Page, server: Running) -> None:
    assert page.url == f"http://127.0.0.1:{server.admin_port}/"
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_without_the_link_a_page_asks_for_the_token(context: BrowserContext, server: Running) -> None:
    page = context.new_page()
    page.goto(f"http://127.0.0.1:{server.admin_port}/")
    expect(page.get_by_text("Open the link that the server printed")).to_be_visible()
    expect(page.get_by_text("not the token")).to_have_count(0)
    page.get_by_label("Token").fill("the token of yesterday")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("This is not the token of the running server.")).to_be_visible()
    page.get_by_label("Token").fill(ADMIN_TOKEN)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_page_of_another_origin_reads_and_changes_nothing(
    context: BrowserContext, page: Page, server: Running, azure: Azure
) -> None:
    """The other origin is the same machine by another port, to which browsers send the cookie."""
    azure.blobs.create_container("untouched")
    evil = context.new_page()
    evil.goto(f"http://127.0.0.1:{server.port}/{ACCOUNT}")  # any page of the blob port
    base = f"http://127.0.0.1:{server.admin_port}"
    script = """async ([url, method]) => {
      try { return String((await fetch(url, {method, credentials: "include", mode: "cors"})).status) }
      catch (e) { return "failed" }
    }"""
    assert evil.evaluate(script, [f"{base}/api/overview", "GET"]) == "failed"
    assert evil.evaluate(script, [f"{base}/storage/blob/{ACCOUNT}/untouched?restype=container", "DELETE"]) == "failed"
    simple = """(url) =>
      fetch(url, {method: "POST", body: "{}", credentials: "include", mode: "no-cors"}).then(() => 1, () => 0)"""
    evil.evaluate(simple, f"{base}/control/reset")
    assert [each.name for each in azure.blobs.list_containers()] == ["untouched"]
    azure.blobs.delete_container("untouched")


def test_addresses_of_nothing_say_so(page: Page, azure: Azure) -> None:
    visit(page, f"{ACCOUNT}/blob/absent")
    expect(page.locator("#main .more")).to_contain_text("could not be loaded: The specified container does not exist.")
    azure.blobs.create_container("absent")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#main")).to_contain_text("This container is empty")
    azure.blobs.delete_container("absent")
    visit(page, "nobody/blob")
    expect(page.get_by_role("alert")).to_contain_text("There is no such page.")
    visit(page, ACCOUNT)
    expect(page).to_have_url(re.compile(f"#/{ACCOUNT}/blob$"))


def test_the_theme_is_switched_and_remembered(page: Page) -> None:
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Theme").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    page.get_by_role("heading", name="Overview").wait_for()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_the_keyboard_is_enough(page: Page, azure: Azure) -> None:
    for name in ("keys-a", "keys-b", "lock"):
        azure.blobs.create_container(name)
    page.keyboard.press("l")
    expect(page.get_by_role("heading", name="Live requests")).to_be_visible()
    visit(page, f"{ACCOUNT}/blob")
    page.get_by_text("lock", exact=True).wait_for()
    page.keyboard.press("/")
    page.keyboard.type("keys-")
    expect(page.locator("tbody tr.row")).to_have_text([re.compile("keys-a"), re.compile("keys-b")])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="keys-b")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next and previous row")
    expect(page.get_by_role("dialog").get_by_role("button")).to_have_text("Close")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_dialog_that_was_refused_is_left_by_the_keyboard(page: Page) -> None:
    visit(page, f"{ACCOUNT}/blob")
    page.get_by_role("button", name="New container").click()
    page.get_by_label("Name").fill("Not_Valid")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("invalid characters")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_the_keyboard_goes_from_a_row_to_its_details_and_back(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("keys")
    for name in ("a.txt", "b.txt"):
        container.upload_blob(name, b"text")
    visit(page, f"{ACCOUNT}/blob/keys")
    page.locator("tbody tr.row").nth(1).wait_for()
    for key in ("j", "j", "Enter"):
        page.keyboard.press(key)
    expect(page.locator("#detail h1")).to_have_text("b.txt")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Preview")).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Properties")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#detail")).to_be_hidden()
    expect(page.locator("tbody tr.row").nth(1)).to_be_focused()


def test_a_narrow_window_has_a_menu(page: Page, azure: Azure) -> None:
    azure.blobs.create_container("narrow").upload_blob("a.txt", b"text")
    page.set_viewport_size({"width": 480, "height": 800})
    expect(page.locator("#side")).to_be_hidden()
    page.get_by_role("button", name="Menu").click()
    page.locator("#side").get_by_role("link", name="Blob containers").click()
    expect(page.locator("#side")).to_be_hidden()
    page.get_by_text("narrow", exact=True).click()
    page.get_by_text("a.txt", exact=True).click()
    expect(page.locator("#detail h1")).to_have_text("a.txt")
    assert page.evaluate("document.documentElement.scrollWidth") == 480


def test_a_narrow_window_shows_where_the_page_is_and_what_was_asked(page: Page, azure: Azure) -> None:
    azure.blobs.create_container("narrow-" + "x" * 50)
    page.set_viewport_size({"width": 420, "height": 800})
    visit(page, "live")
    expect(page.locator("#main tbody tr").first).to_contain_text("CreateContainer")
    assert page.locator("#main .sheet").evaluate("(sheet) => sheet.scrollWidth <= sheet.clientWidth")
    visit(page, f"{ACCOUNT}/blob/narrow-{'x' * 50}")
    expect(page.locator("#top nav a:visible")).to_have_text(["Blob containers", "narrow-" + "x" * 50])


def test_a_sorted_column_shows_its_direction(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("sorted")
    for name in ("a", "b"):
        container.upload_blob(name, name * 9 if name == "a" else b"")
    visit(page, f"{ACCOUNT}/blob/sorted")
    header = page.get_by_role("columnheader", name="Name")
    arrow = """(header) => {
      const style = getComputedStyle(header.querySelector("button"), "::after");
      return style.visibility === "visible" ? style.content : "";
    }"""
    seen = [header.evaluate(arrow)]
    for _ in range(2):
        header.get_by_role("button").click()
        seen.append(header.evaluate(arrow).strip('" '))
    assert seen == ["", "▲", "▼"]
    expect(page.locator("tbody tr.row")).to_have_text([re.compile("^b"), re.compile("^a")])


def test_times_are_those_of_the_browser_and_filters_say_that_nothing_matches(
    browser: Browser, server: Running, azure: Azure
) -> None:
    context = browser.new_context(timezone_id="Asia/Kolkata")
    page = opened(context, server)
    azure.blobs.create_container("zones")
    visit(page, "live?text=zones")
    expect(page.locator("#main tbody")).to_contain_text("/zones")  # until then a row says that nothing matches
    shown = page.locator("#main tbody td").first.inner_text()
    now = (datetime.now(UTC) + timedelta(hours=5, minutes=30)).replace(tzinfo=None)
    age = now - datetime.combine(now.date(), time.fromisoformat(shown))
    assert age % timedelta(days=1) < timedelta(minutes=5)
    page.get_by_label("Status").select_option("5")
    expect(page.locator("#main tbody")).to_contain_text("No request matches")
    context.close()


def test_the_large_numbers_of_the_overview_count_everything(page: Page, server: Running, azure: Azure) -> None:
    """The first series of a chart may be zero: refusals of a kind that is not in it, or answers without a body of the client."""
    blob = azure.blobs.create_container("totals").upload_blob("a", bytes(200_000))
    numbers = [
        page.locator(".card").filter(has_text=title).locator(".big") for title in ("Errors per second", "Bytes per second")
    ]
    end = monotonic() + PATIENCE_SECONDS
    while {number.inner_text() for number in numbers} & {"–", "0.0", "0 B"}:
        assert monotonic() < end
        with contextlib.suppress(ResourceExistsError):
            azure.blobs.create_container("totals")
        blob.download_blob().readall()


@pytest.mark.parametrize("token", [ADMIN_TOKEN, "another-token-of-the-tests"])
def test_a_page_says_that_the_server_is_gone_until_it_is_back(context: BrowserContext, tmp_path: Path, token: str) -> None:
    with running(tmp_path, in_memory=True) as server:
        page = opened(context, server)
        ports = {"admin": ListenAddress(port=server.admin_port), "blob": ListenAddress(port=0), "table": ListenAddress(port=0)}
    expect(page.get_by_text("The server does not answer.")).to_be_visible()
    with running(tmp_path, in_memory=True, ports=ports, admin=AdminPort(token=token)):
        if token == ADMIN_TOKEN:
            expect(page.locator("#lost")).to_be_hidden()
        else:
            expect(page.locator("#lost")).to_contain_text("The session has ended. Open the link")


def test_every_control_has_a_name_for_screen_readers(page: Page, azure: Azure) -> None:
    azure.blobs.create_container("named").upload_blob("a.txt", b"text")
    for address in ("", "live", f"{ACCOUNT}/blob", f"{ACCOUNT}/blob/named?show=a.txt&tab=Share"):
        visit(page, address)
        page.locator("#main .bar").first.wait_for()
        nameless = page.evaluate(
            """[...document.querySelectorAll("button, a, input, select, textarea")].filter((e) =>
               !(e.textContent.trim() || e.getAttribute("aria-label") || e.closest("label"))).map((e) => e.outerHTML)"""
        )
        assert nameless == []


def test_a_read_only_server_offers_no_changes(context: BrowserContext, tmp_path: Path) -> None:
    admin = AdminPort(token=ADMIN_TOKEN, read_only=True)
    with running(tmp_path, in_memory=True, admin=admin) as server:
        Azure(server).blobs.create_container("box").upload_blob("a.txt", b"text")
        page = opened(context, server)
        expect(page.locator("#side")).to_contain_text("read-only")
        visit(page, f"{ACCOUNT}/blob/box?show=a.txt&tab=Properties")
        expect(page.locator("#detail")).to_contain_text("4 bytes")
        texts = page.locator("button").all_inner_texts()
        assert [text for text in texts if re.match("Delete|Upload|Edit|Copy to|Set tier|Take", text)] == []


def test_a_server_of_one_service_offers_no_other(context: BrowserContext, tmp_path: Path) -> None:
    ports = {name: ListenAddress(port=0) for name in ("blob", "admin")}
    with running(tmp_path, in_memory=True, ports=ports) as server:
        page = opened(context, server)
        expect(page.locator("#side a.item")).to_have_text(["Overview", "Live requests", "Blob containers"])
        expect(page.locator(".tiles a")).to_have_count(1)
        visit(page, ACCOUNT)
        expect(page.get_by_role("heading", name="Blob containers")).to_be_visible()
        visit(page, f"{ACCOUNT}/queue")
        expect(page.get_by_role("alert")).to_contain_text("This server does not serve the queue service")
        wanted = {"service": "queue", "account": ACCOUNT, "path": "", "permissions": "r", "seconds": 60}
        assert ask(server, "/api/sas", "POST", body=json.dumps(wanted).encode()).status == 400


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pictures_of_the_overview_and_of_live_requests(
    context: BrowserContext, server: Running, azure: Azure, theme: str
) -> None:
    from tests.browser.example import fill, load, write_too_late

    fill(azure)
    page = opened(context, server)
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    load(azure, seconds=8)
    expect(page.locator("svg.chart path").first).to_have_attribute("d", re.compile("L"))
    page.screenshot(path=PICTURES / f"overview-{theme}.png")
    visit(page, "live")
    load(azure, seconds=1)
    write_too_late(azure, '"0x8D0000000000000"')
    page.locator("#main tbody tr.refused:first-child").wait_for()
    page.screenshot(path=PICTURES / f"live-{theme}.png")
    expect(page.locator("tr.refused").first).to_contain_text("was changed after the client had read it")
