"""Ticks and their forms on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core import dates

MOMENT = 637_587_147_091_234_567  # 2021-06-08T02:05:09.1234567Z
ticks = st.integers(0, dates.MAX_TICKS)


def test_a_moment_has_two_forms() -> None:
    assert dates.iso(MOMENT) == "2021-06-08T02:05:09.1234567Z"
    assert dates.rfc1123(MOMENT) == "Tue, 08 Jun 2021 02:05:09 GMT"


@given(ticks)
def test_iso_comes_back_as_it_was(moment: int) -> None:
    assert dates.parse_iso(dates.iso(moment)) == moment


@given(ticks)
def test_rfc1123_comes_back_without_its_fraction(moment: int) -> None:
    assert dates.parse_rfc1123(dates.rfc1123(moment)) == dates.truncate(moment)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2021-06-08", "2021-06-08T00:00:00.0000000Z"),
        ("2021-06-08T02:05Z", "2021-06-08T02:05:00.0000000Z"),
        ("2021-06-08T02:05:09Z", "2021-06-08T02:05:09.0000000Z"),
        ("2021-06-08T02:05:09.1Z", "2021-06-08T02:05:09.1000000Z"),
        ("2021-06-08T04:05:09+02:00", "2021-06-08T02:05:09.0000000Z"),
        ("2021-06-08T02:05:09.123456789Z", "2021-06-08T02:05:09.1234567Z"),
    ],
)
def test_every_iso_form_of_a_token_is_read(text: str, shown: str) -> None:
    moment = dates.parse_iso(text)
    assert moment is not None
    assert dates.iso(moment) == shown


@pytest.mark.parametrize("text", ["", "yesterday", "2021-13-01", "2021-02-30T00:00:00Z", "2021-06-08 02:05:09Z", "20210608",
                                  "2021-06-08T02:05:09+15:00", "2021-06-08T02:05:09+02:60"])  # fmt: skip
def test_what_is_no_date_is_none(text: str) -> None:
    assert dates.parse_iso(text) is None
    assert dates.parse_rfc1123(text) is None


@pytest.mark.parametrize("text", ["Tue, 08 Xyz 2021 02:05:09 GMT", "Tue, 31 Feb 2021 02:05:09 GMT", "08 Jun 2021 02:05:09 GMT"])
def test_what_is_no_header_date_is_none(text: str) -> None:
    assert dates.parse_rfc1123(text) is None
