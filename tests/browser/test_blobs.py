"""Containers and blobs in the browser: upload, download, preview, properties, history, copy, delete, lease, signatures."""

import base64
import re
from pathlib import Path

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient, ContentSettings
from playwright.sync_api import Page, Route, expect

from tests.browser.conftest import PICTURES, Azure, visit
from tests.browser.example import fill
from tests.rest.history import settled
from tests.rest.running import Running

ACCOUNT = "devstoreaccount1"
DROPPED = """() => {
  const transfer = new DataTransfer();
  transfer.items.add(new File(["dropped"], "new file.txt", {type: "text/plain"}));
  return transfer;
}"""
PASTE = """() => {
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File(["1"], "one.txt", {type: "text/plain"}));
  clipboardData.items.add(new File(["2"], "two.txt", {type: "text/plain"}));
  document.body.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true}));
}"""
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")


def show(page: Page, container: str, name: str = "", tab: str = "") -> None:
    visit(page, f"{ACCOUNT}/blob/{container}" + (f"?show={name}&tab={tab}" if name else ""))


def test_a_container_is_created_searched_and_deleted(page: Page, azure: Azure) -> None:
    visit(page, f"{ACCOUNT}/blob")
    page.get_by_role("button", name="New container").first.click()
    page.get_by_label("Name").fill("Not Valid")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("alert")).to_contain_text("invalid characters")
    page.get_by_label("Name").fill("made-here")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", name="made-here")).to_be_visible()
    assert azure.blobs.get_container_client("made-here").exists()
    page.get_by_role("button", name="Delete container").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Blob containers")).to_be_visible()
    assert not azure.blobs.get_container_client("made-here").exists()


def test_several_files_and_a_large_one_are_uploaded_with_progress(page: Page, azure: Azure, tmp_path: Path) -> None:
    container = azure.blobs.create_container("uploads")
    files = {"a.txt": b"alpha", "b.json": b"{}", "large.bin": bytes(range(256)) * 80_000}  # 20 MB: three blocks
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    show(page, "uploads")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload").click()
    chooser.value.set_files([tmp_path / name for name in files])
    expect(page.get_by_text("3 files uploaded.")).to_be_visible()
    assert {name: container.download_blob(name).readall() for name in files} == files
    assert len(container.get_blob_client("large.bin").get_block_list()[0]) == 3
    assert container.get_blob_client("b.json").get_blob_properties().content_settings.content_type == "application/json"
    expect(page.locator("tbody tr.row")).to_have_count(3)


def test_files_are_dropped_into_a_folder(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("drops")
    container.upload_blob("deep/er/existing", b"")
    visit(page, f"{ACCOUNT}/blob/drops?prefix=deep/er/")
    page.locator("tbody tr.row").wait_for()
    transfer = page.evaluate_handle(DROPPED)
    page.dispatch_event("#main", "drop", {"dataTransfer": transfer})
    expect(page.locator("tbody tr.row")).to_have_count(2)
    assert container.download_blob("deep/er/new file.txt").readall() == b"dropped"
    page.get_by_role("navigation", name="Breadcrumbs").get_by_role("link", name="deep").click()
    expect(page.locator("tbody tr.row")).to_have_text([re.compile("^er/")])  # the list form waits while the former rows are shown


def test_several_files_are_pasted(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("pasted")
    show(page, "pasted")
    expect(page.locator("#main")).to_contain_text("This container is empty")
    page.evaluate(PASTE)
    expect(page.get_by_text("2 files uploaded.")).to_be_visible()
    expect(page.locator("tbody tr.row")).to_have_text([re.compile("one.txt"), re.compile("two.txt")])
    assert container.download_blob("two.txt").readall() == b"2"


@pytest.mark.parametrize(("answer", "stored"), [("Cancel", b"old"), ("Replace", b"new")])
def test_nothing_is_replaced_without_a_question(page: Page, azure: Azure, tmp_path: Path, answer: str, stored: bytes) -> None:
    container = azure.blobs.create_container(f"replace-{answer.lower()}")
    container.upload_blob("there.txt", b"old")
    for name in ("there.txt", "fresh.txt"):
        (tmp_path / name).write_bytes(b"new")
    show(page, container.container_name)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload").click()
    chooser.value.set_files([tmp_path / "there.txt", tmp_path / "fresh.txt"])
    expect(page.get_by_role("dialog")).to_contain_text("there.txt exists already")
    page.get_by_role("dialog").get_by_role("button", name=answer).click()
    expect(page.get_by_text("uploaded.")).to_be_visible()
    assert container.download_blob("there.txt").readall() == stored
    assert container.download_blob("fresh.txt").readall() == b"new"


def test_an_upload_is_cancelled(page: Page, azure: Azure, tmp_path: Path) -> None:
    container = azure.blobs.create_container("cancelled")
    (tmp_path / "a.txt").write_bytes(b"x")
    show(page, "cancelled")
    page.route("**/storage/blob/**/a.txt", lambda route: route.continue_() if route.request.method == "HEAD" else None)
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload").click()
    chooser.value.set_files(tmp_path / "a.txt")
    page.get_by_role("button", name="Cancel the upload of a.txt").click()
    expect(page.get_by_text("1 of 1 uploads failed.")).to_be_visible()
    expect(page.locator(".uploads")).to_be_empty()
    assert list(container.list_blobs()) == []


def test_a_refused_upload_says_why_until_it_is_dismissed(page: Page, azure: Azure, tmp_path: Path) -> None:
    blob = azure.blobs.create_container("refused").upload_blob("a.txt", b"old")
    blob.acquire_lease(-1)
    (tmp_path / "a.txt").write_bytes(b"new")
    show(page, "refused")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Upload").click()
    chooser.value.set_files(tmp_path / "a.txt")
    page.get_by_role("button", name="Replace").click()
    expect(page.locator(".uploads")).to_contain_text("There is currently a lease on the blob")
    page.get_by_role("button", name="Cancel the upload of a.txt").click()
    expect(page.locator(".uploads")).to_be_empty()


def test_a_blob_is_downloaded(page: Page, azure: Azure) -> None:
    azure.blobs.create_container("downloads").upload_blob("name with ü.txt", b"content")
    show(page, "downloads", "name with ü.txt", "Preview")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    assert download.value.suggested_filename == "name with ü.txt"
    assert Path(download.value.path()).read_bytes() == b"content"


@pytest.mark.parametrize(
    ("name", "content", "kind", "shown"),
    [
        ("a.txt", b"plain text", "text/plain", "plain text"),
        ("a.json", b'{"a":[1,2]}', "application/json", '"a": [\n    1,'),
        ("wrong.json", b'{"a":', "application/json", "Not valid JSON"),
        ("a.csv", b'name,note\n"O""Brien","a, b"\n', "text/csv", 'O"Brien'),
        ("long.csv", b"number\n" + b"7\n" * 501, "text/csv", "The first 500 of 501 rows."),
        ("a.bin", b"\0\1", "application/octet-stream", "There is no preview"),
        ("binary", b"PK\3\4" + b"a" * 5000, "application/octet-stream", "There is no preview"),
        ("latin", "café".encode("latin-1"), "application/octet-stream", "There is no preview"),
        ("untyped", b"words", "application/octet-stream", "words"),
        ("long", "ü".encode() * 5000, "application/octet-stream", "üü"),  # a character crosses the end of what is examined
        ("odd", b"x" + "ü".encode() * 5000, "application/octet-stream", "xüü"),
        ("lines", b'{"a":1}\n{"a":2}\n', "application/x-ndjson", '{"a":1} {"a":2}'),
        ("empty", b"", "text/plain", "It is empty"),
        ("page.html", b"<script>document.title='run'</script>", "text/html", "<script>document.title='run'</script>"),
    ],
)
def test_previews(page: Page, azure: Azure, name: str, content: bytes, kind: str, shown: str) -> None:
    container = azure.blobs.get_container_client("previews")
    if not container.exists():
        container.create_container()
    container.upload_blob(name, content, content_settings=ContentSettings(content_type=kind))
    show(page, "previews", name, "Preview")
    expect(page.locator("#detail")).to_contain_text(shown)
    assert page.title() != "run"


def test_a_tab_that_is_slow_does_not_draw_into_the_next_one(page: Page, azure: Azure) -> None:
    azure.blobs.create_container("slow").upload_blob(
        "a.txt", b"late", content_settings=ContentSettings(content_type="text/plain")
    )
    held: list[Route] = []
    page.route("**/storage/blob/**/a.txt", lambda route: route.continue_() if held else held.append(route))
    show(page, "slow", "a.txt", "Preview")
    page.get_by_role("tab", name="Share").click()
    expect(page.get_by_label("Connection string")).to_be_visible()
    with page.expect_response(lambda response: response.request.method == "GET" and response.url.endswith("a.txt")) as answer:
        held[0].continue_()
    answer.value.finished()
    page.evaluate("new Promise(requestAnimationFrame)")
    expect(page.get_by_role("tabpanel")).not_to_contain_text("late")


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("dot", PNG, "image/png"),
        ("dot.PNG", PNG, None),
        ("dot.svg", b'<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>', None),
    ],
)
def test_an_image_is_shown(page: Page, azure: Azure, name: str, content: bytes, kind: str | None) -> None:
    container = azure.blobs.get_container_client("images")
    if not container.exists():
        container.create_container()
    container.upload_blob(name, content, content_settings=ContentSettings(content_type=kind))
    show(page, "images", name, "Preview")
    expect(page.locator("img.preview")).to_have_js_property("naturalWidth", 1)


def test_a_json_preview_changes_nothing_but_the_layout(page: Page, azure: Azure) -> None:
    stored = r'{"n":9007199254740993,"x":1.10,"n":[],"o":{"t":"a, \"b\": {}"},"l":[{},null,-1e400]}'
    azure.blobs.create_container("layout").upload_blob("a.json", stored)
    show(page, "layout", "a.json", "Preview")
    text = page.locator("pre.preview").inner_text()
    assert text.splitlines()[:4] == ["{", '  "n": 9007199254740993,', '  "x": 1.10,', '  "n": [],']
    assert re.sub(r"\n *|(?<=\":) ", "", text).replace('\\"b\\":{}', '\\"b\\": {}') == stored


def test_metadata_tags_properties_and_tier_are_edited(page: Page, azure: Azure) -> None:
    blob = azure.blobs.create_container("edits").upload_blob("a.txt", b"x", metadata={"OldName": "1"})
    show(page, "edits", "a.txt", "Properties")
    sections = page.locator("#detail section.part")
    sections.filter(has_text="Metadata").get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_label("value").fill("2")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Metadata saved.")).to_be_visible()
    sections.filter(has_text="Tags").get_by_role("button", name="Edit").click()
    page.get_by_role("dialog").get_by_role("button", name="Add").click()
    page.get_by_role("dialog").get_by_label("name").fill("stage")
    page.get_by_role("dialog").get_by_label("value").fill("a+b=c")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Tags saved.")).to_be_visible()
    page.get_by_role("button", name="Edit properties").click()
    page.get_by_label("Content-Type").fill("text/markdown")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Properties saved.")).to_be_visible()
    page.get_by_label("Access tier").select_option("Cool")
    page.get_by_role("button", name="Set tier").click()
    expect(page.get_by_text("Tier set.")).to_be_visible()
    found = blob.get_blob_properties()
    assert (found.metadata, found.content_settings.content_type, found.blob_tier) == ({"OldName": "2"}, "text/markdown", "Cool")
    assert blob.get_blob_tags() == {"stage": "a+b=c"}
    assert found.content_settings.cache_control is None


def test_the_stored_cache_control_is_shown_and_kept(page: Page, azure: Azure) -> None:
    """The answers of the admin port have a Cache-Control of their own, which is not the blob's."""
    settings = ContentSettings(cache_control="max-age=60", content_type="text/plain")
    blob = azure.blobs.create_container("cached").upload_blob("a.txt", b"x", content_settings=settings)
    show(page, "cached", "a.txt", "Properties")
    page.get_by_role("button", name="Edit properties").click()
    expect(page.get_by_label("Cache-Control")).to_have_value("max-age=60")
    page.get_by_label("Content-Type").fill("text/markdown")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Properties saved.")).to_be_visible()
    found = blob.get_blob_properties().content_settings
    assert (found.cache_control, found.content_type) == ("max-age=60", "text/markdown")


def test_a_change_by_another_client_is_not_overwritten(page: Page, azure: Azure) -> None:
    blob = azure.blobs.create_container("others").upload_blob("a.txt", b"x", metadata={"who": "first"})
    show(page, "others", "a.txt", "Properties")
    page.locator("#detail section.part").filter(has_text="Metadata").get_by_role("button", name="Edit").click()
    blob.set_blob_metadata({"who": "other"})
    page.get_by_role("dialog").get_by_label("value").fill("mine")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("condition")
    assert blob.get_blob_properties().metadata == {"who": "other"}


def test_a_blob_that_another_client_deletes_is_said_to_be_gone(page: Page, azure: Azure) -> None:
    blob = azure.blobs.create_container("gone").upload_blob("a.txt", b"x")
    show(page, "gone", "a.txt", "Concurrency")
    expect(page.locator("#detail")).to_contain_text("available")
    blob.delete_blob()
    expect(page.locator("#detail")).to_contain_text("There is no blob of this name any more.")
    page.get_by_role("tab", name="Preview").click()
    expect(page.locator("#detail")).to_contain_text("The specified blob does not exist.")


def test_snapshots_are_taken_shown_restored_and_deleted(page: Page, azure: Azure) -> None:
    blob = azure.blobs.create_container("snaps").upload_blob("a.txt", b"first")
    show(page, "snaps", "a.txt", "Properties")
    page.get_by_role("button", name="Take snapshot").click()
    expect(page.get_by_text("Snapshot taken.")).to_be_visible()
    blob.upload_blob(b"second", overwrite=True)
    page.get_by_role("tab", name="Concurrency").click()
    line = page.locator(".timeline li").filter(has_text="snapshot")
    line.get_by_role("button", name="Make current").click()
    expect(page.get_by_text("Made current.")).to_be_visible()
    assert blob.download_blob().readall() == b"first"
    line.get_by_role("button", name="Delete").click()
    expect(page.locator(".timeline")).to_contain_text("no snapshots or versions")


def test_a_deleted_blob_is_found_and_undeleted(page: Page, azure: Azure, server: Running) -> None:
    with settled(server, blob_soft_delete_days=3):
        container = azure.blobs.create_container("undelete")
        container.upload_blob("gone.txt", b"content")
        container.delete_blob("gone.txt")
        show(page, "undelete")
        expect(page.locator("#main")).to_contain_text("This container is empty")
        page.get_by_label("show deleted").check()
        page.locator("tr.deleted").click()
        page.get_by_role("tab", name="Properties").click()
        page.get_by_role("button", name="Undelete").click()
        expect(page.get_by_text("Restored.")).to_be_visible()
        assert container.download_blob("gone.txt").readall() == b"content"


def test_a_version_is_made_current_again(page: Page, azure: Azure, server: Running) -> None:
    with settled(server, versioning=True):
        blob = azure.blobs.create_container("versions").upload_blob("a.txt", b"one")
        blob.upload_blob(b"two", overwrite=True)
        show(page, "versions", "a.txt", "Concurrency")
        page.locator(".timeline li").filter(has_text="version").get_by_role("button", name="Make current").click()
        expect(page.get_by_text("Made current.")).to_be_visible()
        assert blob.download_blob().readall() == b"one"


def test_a_blob_is_copied_and_deleted(page: Page, azure: Azure) -> None:
    container = azure.blobs.create_container("copies")
    container.upload_blob("a b.txt", b"content")
    show(page, "copies", "a b.txt", "Properties")
    page.get_by_role("button", name="Copy to…").click()
    page.get_by_label("Container and name of the copy").fill("copies/deep/ü copy.txt")
    page.get_by_role("button", name="Copy", exact=True).click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert container.download_blob("deep/ü copy.txt").readall() == b"content"
    page.locator("#detail").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleted.").first).to_be_visible()
    assert [each.name for each in container.list_blobs()] == ["deep/ü copy.txt"]


def test_a_lease_is_taken_counts_down_and_expires_when_the_clock_is_moved(page: Page, azure: Azure, server: Running) -> None:
    fill(azure)
    blob = azure.blobs.get_blob_client("reports", "settings.json")
    blob.create_snapshot()
    blob.create_snapshot()
    show(page, "reports", "settings.json", "Concurrency")
    page.get_by_role("button", name="Acquire…").click()
    page.get_by_label("Duration").select_option("60")
    page.get_by_role("button", name="Acquire", exact=True).click()
    expect(page.locator("[data-lease=leased]")).to_be_visible()
    expect(page.get_by_role("timer")).to_have_text(re.compile(r"^\d+ (s|min)"))
    with pytest.raises(HttpResponseError):
        blob.upload_blob(b"refused", overwrite=True)
    page.screenshot(path=PICTURES / "concurrency.png")
    server.move_clock(61)
    expect(page.locator("[data-lease=expired]")).to_be_visible()
    expect(page.get_by_role("timer")).to_have_count(0)
    page.get_by_role("button", name="Renew").click()
    page.locator("[data-lease=leased]").wait_for()
    page.get_by_role("button", name="Break").click()
    expect(page.locator("[data-lease=breaking]")).to_be_visible()


def test_the_etag_on_screen_follows_every_write(page: Page, azure: Azure) -> None:
    blob = azure.blobs.create_container("etags").upload_blob("a", b"1")
    show(page, "etags", "a", "Concurrency")
    for text in (b"2", b"3"):
        blob.upload_blob(text, overwrite=True)
        expect(page.locator("#detail dl")).to_contain_text(blob.get_blob_properties().etag)
    blob.delete_blob()
    expect(page.locator("#detail")).to_contain_text("There is no blob of this name any more.")


def test_a_signature_is_made_and_copied_with_one_click(page: Page, azure: Azure) -> None:
    azure.blobs.create_container("signed").upload_blob("a b/ü.txt", b"secret")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    show(page, "signed", "a b/ü.txt", "Share")
    page.get_by_role("button", name="Make and copy").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    url = page.evaluate("navigator.clipboard.readText()")
    assert BlobClient.from_blob_url(url).download_blob().readall() == b"secret"
    string = page.get_by_label("Connection string").input_value()
    assert string == azure.string


def test_a_picture_of_a_container(page: Page, azure: Azure) -> None:
    fill(azure)
    show(page, "reports", "2026/03/orders.csv", "Preview")
    expect(page.locator("#detail table")).to_contain_text("Grace")
    page.screenshot(path=PICTURES / "container.png")
