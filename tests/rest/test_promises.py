"""A request whose option cannot be kept is refused: a client that sends it relies on its effect."""

import pytest

from tests.rest.client import Box


@pytest.mark.parametrize("query", [{"showonly": "deleted"}, {"showonly": "files"}])
def test_a_listing_shows_all_or_says_that_it_cannot_show_less(box: Box, query: dict[str, str]) -> None:
    assert box.page(query).answer == (501, "NotImplemented")
