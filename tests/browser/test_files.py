"""Shares and files in the browser: tree, upload, download, rename, properties, handles and locks."""

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.conftest import PICTURES, Azure, visit
from tests.browser.example import fill
from tests.rest.running import Running
from tests.web.test_api import store_handle

ACCOUNT = "devstoreaccount1"


def test_files_are_uploaded_downloaded_renamed_and_deleted(page: Page, azure: Azure, tmp_path: Path) -> None:
    visit(page, f"{ACCOUNT}/file")
    page.get_by_role("button", name="New share").first.click()
    page.get_by_label("Name").fill("work")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="New directory").click()
    page.get_by_label("Name").fill("plans")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("link", name="plans/").click()
    content = bytes(range(256)) * 20_000  # 5 MB: two ranges
    (tmp_path / "large file.bin").write_bytes(content)
    expect(page.locator("#main")).to_contain_text("This directory is empty")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload").click()
    chooser.value.set_files(tmp_path / "large file.bin")
    page.locator("tbody tr.row").click()
    share = azure.shares.get_share_client("work")
    assert share.get_file_client("plans/large file.bin").download_file().readall() == content
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    assert Path(download.value.path()).read_bytes() == content
    page.get_by_role("tab", name="Properties").click()
    page.get_by_role("button", name="Rename…").click()
    page.get_by_label("New path in this share").fill("plans/renamed ü.bin")
    page.get_by_role("button", name="Rename", exact=True).click()
    expect(page.locator("#detail h1")).to_have_text("renamed ü.bin")
    assert [each.name for each in share.list_directories_and_files("plans")] == ["renamed ü.bin"]
    for name, value in (("Owner", "me"), ("team", "ours")):
        page.locator("#detail").get_by_role("button", name="Edit metadata").click()
        page.get_by_role("dialog").get_by_role("button", name="Add").click()
        page.get_by_role("dialog").get_by_label("name").last.fill(name)
        page.get_by_role("dialog").get_by_label("value").last.fill(value)
        page.get_by_role("button", name="Save").click()
        expect(page.locator("#detail")).to_contain_text(value)
    found = share.get_file_client("plans/renamed ü.bin").get_file_properties()
    assert found.metadata == {"Owner": "me", "team": "ours"}
    page.locator("#detail").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#main")).to_contain_text("This directory is empty")


def test_handles_are_shown_with_access_share_mode_and_locks_and_can_be_closed(page: Page, azure: Azure, server: Running) -> None:
    fill(azure)
    store_handle(server, "team", "plans/roadmap.md")
    visit(page, f"{ACCOUNT}/file/team?prefix=plans/&show=roadmap.md&tab=Concurrency")
    row = page.locator("#detail tbody tr").filter(has_text="10.0.0.1")
    expect(row).to_contain_text("read, write")
    expect(row).to_contain_text("lets others read")
    expect(row).to_contain_text("exclusive 0–3")
    page.screenshot(path=PICTURES / "file.png")
    row.get_by_role("button", name="Close").click()
    expect(page.locator("#detail")).to_contain_text("No SMB client has it open")
