"""List Handles and Force Close Handles without an SMB client: empty lists, and nothing to close."""

import pytest

from tests.rest.client import BOM
from tests.rest.files import ShareBox

EMPTY = BOM + b'<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Entries /><NextMarker /></EnumerationResults>'


@pytest.fixture
def tree(share: ShareBox) -> ShareBox:
    share.make("d")
    share.put("d/file")
    return share


@pytest.mark.parametrize("name", ["", "d", "d/file"])
def test_nothing_is_open(tree: ShareBox, name: str) -> None:
    reply = tree.file("GET", name, "listhandles")
    assert (reply.status, reply.body, reply["Content-Type"]) == (200, EMPTY, "application/xml")
    assert tree.file("GET", name, "listhandles", query={"maxresults": "1"}).status == 200
    assert tree.file("GET", name, "listhandles", query={"sharesnapshot": tree.snapshot()}).body == EMPTY


@pytest.mark.parametrize("name", ["", "d", "d/file"])
@pytest.mark.parametrize("handle", ["*", "123456789"])
def test_nothing_is_closed(tree: ShareBox, name: str, handle: str) -> None:
    reply = tree.file("PUT", name, "forceclosehandles", {"x-ms-handle-id": handle})
    assert reply.status == 200
    assert (reply["x-ms-number-of-handles-closed"], reply["x-ms-number-of-handles-failed"]) == ("0", "0")
    assert "x-ms-marker" not in reply


def test_a_directory_may_be_asked_for_all_below_it(tree: ShareBox) -> None:
    assert tree.file("GET", "d", "listhandles", {"x-ms-recursive": "true"}).body == EMPTY
    sent = {"x-ms-handle-id": "*", "x-ms-recursive": "true"}
    assert tree.file("PUT", "d", "forceclosehandles", sent)["x-ms-number-of-handles-closed"] == "0"
    assert tree.file("PUT", "d/file", "forceclosehandles", sent).answer == (400, "InvalidHeaderValue")


def test_what_makes_no_sense_is_refused(tree: ShareBox) -> None:
    assert tree.file("PUT", "d", "forceclosehandles").answer == (400, "MissingRequiredHeader")
    assert tree.file("PUT", "d", "forceclosehandles", {"x-ms-handle-id": "one"}).answer == (400, "InvalidHeaderValue")
    assert tree.file("GET", "no", "listhandles").answer == (404, "ResourceNotFound")
    assert tree.file("GET", "no/no", "listhandles").answer == (404, "ParentNotFound")
    assert tree.file("GET", "d", "listhandles", query={"maxresults": "0"}).answer == (400, "OutOfRangeQueryParameterValue")
    assert tree.file("GET", "d", "listhandles", query={"marker": "here"}).answer == (400, "InvalidQueryParameterValue")
