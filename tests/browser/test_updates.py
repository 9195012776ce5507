"""Lists follow what other clients do, and leave the user's place alone: focus, selection, and pages that were loaded."""

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import Azure, visit

ACCOUNT = "devstoreaccount1"
ROWS = "#main tbody tr.row"


def test_a_list_of_blobs_follows_other_clients_and_keeps_focus_and_selection(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("followed")
    visit(page, f"{ACCOUNT}/blob/followed")
    expect(page.locator("#main")).to_contain_text("This container is empty")
    container.upload_blob("b.txt", b"1")
    page.locator(ROWS).click()
    expect(page.locator("#detail h1")).to_have_text("b.txt")
    page.locator(ROWS).focus()
    container.upload_blob("a.txt", b"1")
    expect(page.locator(ROWS)).to_have_text([re.compile("a.txt"), re.compile("b.txt")])
    expect(page.locator(ROWS).last).to_be_focused()
    expect(page.locator(ROWS).last).to_have_attribute("aria-selected", "true")
    container.get_blob_client("b.txt").acquire_lease(-1)
    expect(page.locator(ROWS).last).to_contain_text("leased")
    expect(page.locator(ROWS).last).to_be_focused()
    container.delete_blob("a.txt")
    expect(page.locator(ROWS)).to_have_count(1)


def test_a_list_of_which_more_was_loaded_waits_until_it_is_asked_for(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("long-list")
    for number in range(201):
        container.upload_blob(f"item-{number:03}", b"")
    visit(page, f"{ACCOUNT}/blob/long-list")
    expect(page.locator(ROWS)).to_have_count(200)
    page.locator("#main").evaluate("(main) => main.scrollTo(0, main.scrollHeight)")
    expect(page.locator(ROWS)).to_have_count(201)
    container.upload_blob("first", b"")
    expect(page.get_by_text("The list has changed.")).to_be_visible()
    expect(page.locator(ROWS)).to_have_count(201)
    page.get_by_role("button", name="Show it from the beginning").click()
    expect(page.locator(ROWS).first).to_contain_text("first")
    expect(page.get_by_text("The list has changed.")).to_be_hidden()


def test_lists_of_containers_queues_tables_and_shares_follow_other_clients(page: Page, azure: Azure) -> None:
    for service, create in (
        ("blob", azure.blobs.create_container),
        ("queue", azure.queues.create_queue),
        ("table", azure.tables.create_table),
        ("file", azure.shares.create_share),
    ):
        visit(page, f"{ACCOUNT}/{service}")
        page.locator("#main .sheet:not([aria-busy])").wait_for()
        create("appears")
        expect(page.locator(ROWS).filter(has_text="appears")).to_be_visible()


def test_a_queue_a_table_and_a_share_follow_other_clients(page: Page, azure: Azure) -> None:
    queue = azure.queues.create_queue("follows")
    visit(page, f"{ACCOUNT}/queue/follows")
    expect(page.locator("#main")).to_contain_text("No message is waiting")
    queue.send_message("a new job")
    expect(page.locator("#main")).to_contain_text("a new job")
    list(queue.receive_messages())
    expect(page.locator("#main")).to_contain_text("No message is waiting")
    table = azure.tables.create_table("Follows")
    visit(page, f"{ACCOUNT}/table/Follows")
    expect(page.locator("#main")).to_contain_text("This table is empty")
    table.create_entity({"PartitionKey": "p", "RowKey": "r", "Text": "a new entity"})
    expect(page.locator(ROWS)).to_contain_text("p")
    share = azure.shares.create_share("follows")
    visit(page, f"{ACCOUNT}/file/follows")
    expect(page.locator("#main")).to_contain_text("This directory is empty")
    share.get_file_client("new.txt").upload_file(b"1")
    expect(page.locator(ROWS)).to_contain_text("new.txt")
