"""Tables in the browser: queries with explained errors, entities of every type, and two tabs that race on one entity."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from azure.data.tables import EdmType, EntityProperty
from playwright.sync_api import BrowserContext, Page, expect

from tests.browser.conftest import PICTURES, Azure, opened, visit
from tests.browser.example import fill
from tests.rest.running import Running

ACCOUNT = "devstoreaccount1"


def test_a_query_shows_what_matches(page: Page, azure: Azure) -> None:
    fill(azure)
    visit(page, f"{ACCOUNT}/table/Orders")
    expect(page.locator("tbody tr.row")).to_have_count(30)
    page.get_by_label("Filter").fill("PartitionKey eq 'north' and Total gt 100")
    page.get_by_label("Filter").press("Enter")
    expect(page.locator("tbody tr.row")).to_have_count(8)
    assert "filter=" in page.url
    page.reload()
    expect(page.locator("tbody tr.row")).to_have_count(8)
    page.locator("tbody tr.row").first.click()
    expect(page.locator("#detail")).to_contain_text("Customer")
    page.screenshot(path=PICTURES / "table.png")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Total = 5", "Write eq instead of ="),
        ("Total > 5", "Write gt or ge"),
        ('Customer eq "Ada"', "single quotes"),
        ("Customer eq 'Ada", "A single quote is missing"),
        ("Paid eq true && Total lt 5", "Write and, or"),
        ("startswith(Customer,'A')", "For a prefix"),
    ],
)
def test_a_wrong_filter_is_explained(page: Page, azure: Azure, text: str, hint: str) -> None:
    fill(azure)
    visit(page, f"{ACCOUNT}/table/Orders")
    page.get_by_label("Filter").fill(text)
    page.get_by_role("button", name="Query").click()
    expect(page.get_by_role("alert")).to_contain_text("The filter cannot be read")
    expect(page.get_by_role("alert")).to_contain_text(hint)


def test_an_entity_keeps_its_types_when_one_property_is_edited(page: Page, azure: Azure) -> None:
    table = azure.tables.create_table("Types")
    entity = {
        "PartitionKey": "it's",
        "RowKey": "r & r",
        "Text": "a",
        "Small": 7,
        "Large": EntityProperty(2**60 + 1, EdmType.INT64),
        "Real": 1.5,
        "Whole": 1.0,  # on the wire only the point tells it from an Int32
        "Huge": -2e300,
        "Lines": "one\r\ntwo\nthree",
        "Json": '{"x": 1.0, "y\\"": 2.0}',
        "Flag": False,
        "When": datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC),
        "Id": UUID("12345678-1234-5678-1234-567812345678"),
        "Bytes": b"\x00\xff",
    }
    table.create_entity(entity)
    visit(page, f"{ACCOUNT}/table/Types")
    page.locator("tbody tr.row").click()
    page.locator("#detail").get_by_role("button", name="Edit").click()
    page.get_by_label("Value of Text").fill("changed")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    found = dict(table.get_entity("it's", "r & r"))
    assert found == entity | {"Text": "changed"}
    assert isinstance(found["Whole"], float)
    page.locator("#detail").get_by_role("button", name="Edit").click()
    page.get_by_label("Value of Lines").fill("one\nfour")
    page.get_by_label("Value of Flag").fill("yes")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert").filter(has_text="Flag: a Boolean is true or false.")).to_be_visible()
    page.get_by_label("Value of Flag").fill("true")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#detail")).to_contain_text("four")
    assert dict(table.get_entity("it's", "r & r")) == entity | {"Text": "changed", "Lines": "one\r\nfour", "Flag": True}


def test_an_entity_is_created_and_deleted(page: Page, azure: Azure) -> None:
    visit(page, f"{ACCOUNT}/table")
    page.get_by_role("button", name="New table").first.click()
    page.get_by_label("Name").fill("Made")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("button", name="New entity").click()
    page.get_by_label("PartitionKey").fill("p")
    page.get_by_label("RowKey").fill("r")
    page.get_by_label("Property").fill("Count")
    page.get_by_label("Type of").select_option("Int32")
    page.get_by_label("Value of").fill("many")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("is not a whole number")
    page.get_by_label("Value of").fill("12")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#detail")).to_contain_text("Int32")
    table = azure.tables.get_table_client("Made")
    assert table.get_entity("p", "r")["Count"] == 12
    page.locator("#detail").get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator("#main")).to_contain_text("This table is empty")


def test_two_tabs_race_on_one_entity_and_the_second_sees_both_versions(
    context: BrowserContext, page: Page, server: Running, azure: Azure
) -> None:
    # contract T1
    fill(azure)
    table = azure.tables.get_table_client("Orders")
    other = opened(context, server)
    for tab in (page, other):
        visit(tab, f"{ACCOUNT}/table/Orders?filter=RowKey eq '1004'")
        tab.locator("tbody tr.row").click()
        tab.locator("#detail").get_by_role("button", name="Edit").click()
    page.get_by_label("Value of Customer").fill("from the first tab")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    other.get_by_label("Value of Customer").fill("from the second tab")
    other.get_by_role("button", name="Save").click()
    conflict = other.get_by_role("dialog")
    expect(conflict).to_contain_text("Nothing was overwritten")
    expect(conflict.locator(".differs")).to_contain_text(["from the first tab", "from the second tab"])
    other.screenshot(path=PICTURES / "conflict.png")
    assert table.get_entity("north", "1004")["Customer"] == "from the first tab"
    conflict.get_by_role("button", name="Overwrite with mine").click()
    expect(other.get_by_text("Overwritten.", exact=True)).to_be_visible()
    assert table.get_entity("north", "1004")["Customer"] == "from the second tab"


def test_a_conflict_may_be_left_and_then_nothing_changes(page: Page, azure: Azure) -> None:
    fill(azure)
    table = azure.tables.get_table_client("Orders")
    visit(page, f"{ACCOUNT}/table/Orders?filter=RowKey eq '1006'")
    page.locator("tbody tr.row").click()
    page.locator("#detail").get_by_role("button", name="Edit").click()
    table.update_entity({"PartitionKey": "north", "RowKey": "1006", "Customer": "another client"})
    page.get_by_label("Value of Customer").fill("mine")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("The stored version was kept.")).to_be_visible()
    assert table.get_entity("north", "1006")["Customer"] == "another client"
    expect(page.locator("#detail")).to_contain_text("another client")
