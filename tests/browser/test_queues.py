"""Queues in the browser: put, peek, get, update, delete, clear, and the messages that a consumer holds."""

import base64

from playwright.sync_api import Page, expect

from tests.browser.conftest import PICTURES, Azure, visit
from tests.browser.example import fill
from tests.rest.running import Running

ACCOUNT = "devstoreaccount1"


def test_a_message_is_put_got_updated_and_deleted(page: Page, azure: Azure) -> None:
    visit(page, f"{ACCOUNT}/queue")
    page.get_by_role("button", name="New queue").first.click()
    page.get_by_label("Name").fill("jobs")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="Put message").click()
    page.get_by_label("Text").fill("<first> & job")
    page.get_by_role("dialog").get_by_role("button", name="Put").click()
    expect(page.locator("#main")).to_contain_text("<first> & job")
    queue = azure.queues.get_queue_client("jobs")
    assert [each.content for each in queue.peek_messages()] == ["<first> & job"]
    page.get_by_role("button", name="Get messages").click()
    page.get_by_role("dialog").get_by_role("button", name="Get").click()
    expect(page.get_by_role("heading", name="Taken here")).to_be_visible()
    expect(page.locator("#main .card")).to_contain_text("in flight, taken 1×")
    page.get_by_role("button", name="Update…").click()
    page.get_by_label("Text").fill("second")
    page.get_by_label("Hidden for further seconds").fill("0")
    page.get_by_role("dialog").get_by_role("button", name="Update").click()
    expect(page.get_by_text("Updated.")).to_be_visible()
    assert [each.content for each in queue.peek_messages()] == ["second"]
    page.get_by_role("row", name="second").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted.")).to_be_visible()
    assert queue.peek_messages() == []


def test_messages_of_other_consumers_are_shown_until_they_reappear(page: Page, azure: Azure, server: Running) -> None:
    fill(azure)
    queue = azure.queues.get_queue_client("mail")
    visit(page, f"{ACCOUNT}/queue/mail")
    expect(page.locator("#main .card")).to_contain_text("Every message can be received now")
    taken = list(queue.receive_messages(max_messages=2, visibility_timeout=45))[:2]
    expect(page.locator("#main .card tbody tr")).to_have_count(len(taken))
    expect(page.locator("#main .card")).to_contain_text(taken[0].id)
    page.screenshot(path=PICTURES / "queue.png")
    server.move_clock(46)
    expect(page.locator("#main .card")).to_contain_text("Every message can be received now")


def test_base64_is_written_as_functions_expect_it_and_kept_by_an_update(page: Page, azure: Azure) -> None:
    queue = azure.queues.create_queue("functions")
    visit(page, f"{ACCOUNT}/queue/functions")
    page.get_by_role("button", name="Put message").click()
    page.get_by_label("Text").fill("grün & blau")
    page.get_by_label("encode as Base64").check()
    page.get_by_role("dialog").get_by_role("button", name="Put").click()
    expect(page.locator("#main")).to_contain_text("decoded from Base64")
    assert [each.content for each in queue.peek_messages()] == [base64.b64encode("grün & blau".encode()).decode()]
    page.get_by_role("button", name="Get messages").click()
    page.get_by_role("dialog").get_by_role("button", name="Get").click()
    page.get_by_role("button", name="Update…").click()
    page.get_by_label("Text, stored as Base64").fill("rot und gelb")
    page.get_by_label("Hidden for further seconds").fill("0")
    page.get_by_role("dialog").get_by_role("button", name="Update").click()
    expect(page.get_by_text("Updated.")).to_be_visible()
    assert [each.content for each in queue.peek_messages()] == [base64.b64encode(b"rot und gelb").decode()]


def test_a_double_click_puts_one_message(page: Page, azure: Azure) -> None:
    queue = azure.queues.create_queue("once")
    visit(page, f"{ACCOUNT}/queue/once")
    page.get_by_role("button", name="Put message").click()
    page.get_by_label("Text").fill("once")
    page.get_by_role("dialog").get_by_role("button", name="Put").dblclick()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#main")).to_contain_text("once")
    assert queue.get_queue_properties().approximate_message_count == 1


def test_base64_is_decoded_and_a_queue_is_cleared(page: Page, azure: Azure) -> None:
    queue = azure.queues.create_queue("encoded")
    queue.send_message(base64.b64encode("grün & blau".encode()).decode())
    visit(page, f"{ACCOUNT}/queue/encoded")
    expect(page.locator("#main")).to_contain_text("grün & blau")
    page.get_by_role("button", name="Clear").click()
    page.get_by_role("dialog").get_by_role("button", name="Clear").click()
    expect(page.locator("#main")).to_contain_text("No message is waiting")
    assert queue.get_queue_properties().approximate_message_count == 0
