"""A container with 10^5 blobs, and hostile names: HTML in every field that a client can fill."""

from urllib.parse import quote, urlencode

from playwright.sync_api import Page, expect

from tests.browser.conftest import Azure, visit
from tests.rest.running import ADMIN, Running
from tests.web.asking import ask
from verditer.core.names import BlobName
from verditer.core.records.blob import Blob, BlobType
from verditer.core.records.container import Container
from verditer.partition.engine import Transaction

ACCOUNT = "devstoreaccount1"
COUNT = 100_000
HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"


def store_many(server: Running, container: str) -> None:
    """Records of empty blobs, as Put Blob makes them; 10^5 requests would take minutes."""

    def put(first: int) -> None:
        def commit(tx: Transaction) -> None:
            found = tx.get(Container, ACCOUNT, container)
            assert found is not None
            tick = tx.tick()
            names = [f"item-{number:06}" for number in range(first, first + 1000)]
            tx.put(
                *(
                    Blob(
                        container_id=found.id,
                        name=name,
                        etag=tick,
                        created=tick,
                        blob_type=BlobType.BLOCK,
                        size=0,
                        content_id=tick,
                        inline=True,
                    )
                    for name in names
                )
            )

        async def write() -> None:
            await server.app.ctx.engine.write([BlobName(ACCOUNT, container, "").scope[:3]], commit)

        server.run(write())

    for first in range(0, COUNT, 1000):
        put(first)


def test_a_container_with_many_blobs_opens_at_once_and_is_searched(page: Page, azure: Azure, server: Running) -> None:
    azure.blobs.create_container("many")
    store_many(server, "many")
    listings: list[str] = []
    page.on("request", lambda request: listings.append(request.url) if "comp=list" in request.url else None)
    visit(page, f"{ACCOUNT}/blob/many")
    expect(page.locator("#main .more")).to_contain_text("there are more")
    assert page.locator("tbody tr.row").count() <= 400
    assert len(listings) <= 3  # two pages, and the first one again if the stream of events was opened later
    page.locator("#main").evaluate("(main) => main.scrollTo(0, main.scrollHeight)")
    page.get_by_text("item-000399").wait_for()
    page.get_by_role("searchbox").fill("item-09999")
    expect(page.locator("tbody tr.row")).to_have_count(10)
    page.locator("tbody tr.row").last.click()
    expect(page.locator("#detail")).to_contain_text("item-099999")
    visit(page, "")
    expect(page.locator(".card").filter(has_text=ACCOUNT)).to_contain_text("10,000 or more")


def test_html_in_every_field_stays_text(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("hostile")
    container.upload_blob(HOSTILE, HOSTILE, metadata={"note": HOSTILE}, tags={"a": "b"})
    container.upload_blob(f"{HOSTILE}/inner", b"")
    azure.queues.create_queue("hostile").send_message(HOSTILE)
    azure.tables.create_table("Hostile").create_entity({"PartitionKey": "<b>p<", "RowKey": "\"'><i>", "Text": HOSTILE})
    share = azure.shares.create_share("hostile")
    share.get_file_client("& amp;'name.txt").upload_file(HOSTILE.encode(), metadata={"note": HOSTILE})
    for address, text in (
        (quote(f"{ACCOUNT}/blob/{HOSTILE}"), HOSTILE),
        (quote(f"{ACCOUNT}/blob/hostile?prefix={HOSTILE}/", safe="/?="), "inner"),
        (quote(f"nobody/{HOSTILE}"), "There is no such page."),
        (quote(f"{ACCOUNT}/table/Hostile?filter={HOSTILE}", safe="/?="), "The filter cannot be read."),
        (f"{ACCOUNT}/blob/hostile", HOSTILE),
        (f"{ACCOUNT}/queue/hostile", HOSTILE),
        (f"{ACCOUNT}/table/Hostile", HOSTILE),
        (f"{ACCOUNT}/file/hostile", "& amp;'name.txt"),
    ):
        visit(page, address)
        expect(page.locator("#main")).to_contain_text(text)
    visit(page, f"{ACCOUNT}/blob/hostile")
    page.locator("tbody tr.row").filter(has_text="onerror").last.click()
    for tab in ("Properties", "Concurrency", "Share"):
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        expect(page.locator("#detail [role=tabpanel]")).not_to_be_empty()
    visit(page, f"{ACCOUNT}/table/Hostile")
    page.locator("tbody tr.row").click()
    expect(page.locator("#detail")).to_contain_text(HOSTILE)
    visit(page, "live?own=1")
    expect(page.locator("tbody")).to_contain_text("onerror")
    assert page.locator("#main img, #detail img, b, i:not(.legend i)").count() == 0
    assert page.title() != "hacked"


def test_long_values_leave_every_column_in_sight(page: Page, azure: Azure) -> None:
    table = azure.tables.create_table("Long")
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Text": "x" * 3000, "Words": "word " * 300, "Last": 7})
    azure.blobs.create_container("long").upload_blob("n" * 500, b"")
    for address in (f"{ACCOUNT}/table/Long", f"{ACCOUNT}/blob/long", "live"):
        visit(page, address)
        page.locator("#main tbody tr").first.wait_for()
        assert page.locator("#main .sheet").evaluate("(sheet) => sheet.scrollWidth <= sheet.clientWidth"), address
    visit(page, f"{ACCOUNT}/table/Long")
    page.locator("tbody tr.row").click()
    expect(page.locator("#detail")).to_contain_text("x" * 3000)


def test_names_with_dots_percents_and_controls_are_reached(page: Page, server: Running, azure: Azure) -> None:
    azure.blobs.create_container("odd")
    names = ["a/../b", "./c", "100%", "q?x=1#y", "+ plus", "tab\there", "日本/語", "  spaces", "a\u202egnp.exe"]
    for name in names:
        target = f"/storage/blob/{ACCOUNT}/odd/{quote(name, safe='')}"  # Azure's client resolves dots itself
        assert ask(server, target, "PUT", headers=ADMIN | {"x-ms-blob-type": "BlockBlob"}, body=name.encode()).status == 201
    for name in names:
        visit(page, f"{ACCOUNT}/blob/odd?" + urlencode({"show": name, "tab": "Properties"}))
        expect(page.locator("#detail")).to_contain_text(f"{len(name.encode())} bytes")
    # what cannot be seen, or reorders the rest of a name, is shown by its code
    shown = page.locator("tbody td.name").evaluate_all("(cells) => cells.map((cell) => cell.innerText)")
    assert {"tab‹U+0009›here", "a‹U+202E›gnp.exe", "  spaces"} <= set(shown)
    expect(page.locator("#detail h1")).to_have_text("a‹U+202E›gnp.exe")
