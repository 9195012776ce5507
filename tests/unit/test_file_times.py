"""Times of files: words and dates of the headers, the effects of every operation, FILETIME."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core.dates import MAX_TICKS, iso
from verditer.core.errors import Code
from verditer.core.files.times import (
    FILETIME_EPOCH,
    Effect,
    FileTimes,
    GivenTime,
    GivenTimes,
    TimeOperation,
    from_filetime,
    resolve_times,
    to_filetime,
)
from verditer.rest.headers.file_values import copied_time, file_time, new_time, set_time
from verditer.rest.wire_errors import RestError

HEADER = "x-ms-file-creation-time"
NOW = FILETIME_EPOCH + 1000
BEFORE = FileTimes(creation=FILETIME_EPOCH + 1, last_write=FILETIME_EPOCH + 2, change=FILETIME_EPOCH + 3)
SOURCE = FileTimes(creation=FILETIME_EPOCH + 4, last_write=FILETIME_EPOCH + 5, change=FILETIME_EPOCH + 6)
C, W, X = BEFORE.creation, BEFORE.last_write, BEFORE.change


@pytest.mark.parametrize(
    ("operation", "times"),
    [
        (TimeOperation.CREATE, (NOW, NOW, NOW)),
        (TimeOperation.SET_PROPERTIES, (C, W, NOW)),
        (TimeOperation.RENAME, (C, W, NOW)),
        (TimeOperation.COPY, (NOW, NOW, NOW)),
        (TimeOperation.WRITE, (C, NOW, NOW)),
        (TimeOperation.SET_METADATA, (C, W, NOW)),
        (TimeOperation.SET_ATTRIBUTES, (C, W, NOW)),
    ],
)
def test_every_operation_has_its_effect_on_the_times(operation: TimeOperation, times: tuple[int, int, int]) -> None:
    creation, last_write, change = times
    expected = FileTimes(creation=creation, last_write=last_write, change=change)
    assert resolve_times(operation, GivenTimes(), NOW, previous=BEFORE, source=SOURCE) == expected


@pytest.mark.parametrize(
    ("operation", "field", "asked", "time"),
    [
        (TimeOperation.CREATE, "creation", Effect.NOW, NOW),
        (TimeOperation.CREATE, "change", 947_970_432_000_000_000, 947_970_432_000_000_000),
        (TimeOperation.SET_PROPERTIES, "last_write", Effect.KEEP, W),
        (TimeOperation.SET_PROPERTIES, "last_write", Effect.NOW, NOW),
        (TimeOperation.RENAME, "last_write", FILETIME_EPOCH + 10, FILETIME_EPOCH + 10),
        (TimeOperation.COPY, "creation", Effect.SOURCE, SOURCE.creation),
        (TimeOperation.COPY, "change", Effect.SOURCE, SOURCE.change),
        (TimeOperation.WRITE, "last_write", Effect.KEEP, W),
    ],
)
def test_a_request_asks_for_a_time(operation: TimeOperation, field: str, asked: GivenTime, time: int) -> None:
    times = resolve_times(operation, GivenTimes(**{field: asked}), NOW, previous=BEFORE, source=SOURCE)
    assert getattr(times, field) == time


@pytest.mark.parametrize(
    ("parse", "text", "asked"),
    [
        (new_time, "Now", Effect.NOW),
        (new_time, "3005-01-01T00:00:00Z", 947_970_432_000_000_000),
        (set_time, "Preserve", Effect.KEEP),
        (set_time, "now", Effect.NOW),
        (set_time, "1601-01-01T00:00:00.0000009Z", FILETIME_EPOCH + 9),
        (set_time, "1601-01-01T00:00:00.000001Z", FILETIME_EPOCH + 10),
        (copied_time, "SOURCE", Effect.SOURCE),
        (copied_time, "1601-01-01T00:00:00Z", FILETIME_EPOCH),
    ],
)
def test_a_header_is_a_word_or_a_time(parse: Callable[[str, str], object], text: str, asked: GivenTime) -> None:
    assert parse(HEADER, text) == asked


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (new_time, "preserve"),
        (new_time, "source"),
        (new_time, "yesterday"),
        (new_time, ""),
        (set_time, "source"),
        (set_time, "inherit"),
        (copied_time, "Preserve"),
        (copied_time, "now"),
    ],
)
def test_a_value_that_the_operation_does_not_accept_is_refused(parse: Callable[[str, str], object], text: str) -> None:
    with pytest.raises(RestError) as raised:
        parse(HEADER, text)
    assert raised.value.code is Code.InvalidHeaderValue
    assert raised.value.elements == {"HeaderName": HEADER, "HeaderValue": text}


@pytest.mark.parametrize("asked", [None, Effect.KEEP])
def test_a_new_size_moves_the_last_write_time(asked: Effect | None) -> None:
    given_times = GivenTimes(last_write=asked)
    times = resolve_times(TimeOperation.SET_PROPERTIES, given_times, NOW, previous=BEFORE, is_resized=True)
    assert times == FileTimes(creation=C, last_write=NOW, change=NOW)


def test_a_new_size_leaves_a_last_write_time_that_is_given() -> None:
    given_times = GivenTimes(last_write=FILETIME_EPOCH)
    times = resolve_times(TimeOperation.SET_PROPERTIES, given_times, NOW, previous=BEFORE, is_resized=True)
    assert times.last_write == FILETIME_EPOCH


@pytest.mark.parametrize("digits", range(8))
def test_a_fraction_has_up_to_seven_digits(digits: int) -> None:
    fraction = "1234567"[:digits]
    text = f"2021-06-08T02:05:09{'.' * bool(digits)}{fraction}Z"
    assert iso(file_time(HEADER, text)) == f"2021-06-08T02:05:09.{fraction:0<7}Z"


@pytest.mark.parametrize(
    "text", ["2021-06-08", "2021-06-08T02:05Z", "2021-06-08T02:05:09.12345678Z", "1600-12-31T23:59:59Z", "2021-02-30T00:00:00Z"]
)
def test_other_texts_are_no_times(text: str) -> None:
    with pytest.raises(RestError):
        file_time(HEADER, text)


@given(st.integers(FILETIME_EPOCH, MAX_TICKS))
def test_ticks_come_back_from_filetime(ticks: int) -> None:
    assert from_filetime(to_filetime(ticks)) == ticks
    assert file_time(HEADER, iso(ticks)) == ticks


def test_filetime_counts_from_1601() -> None:
    assert iso(from_filetime(0)) == "1601-01-01T00:00:00.0000000Z"
    assert iso(from_filetime(116_444_736_000_000_000)) == "1970-01-01T00:00:00.0000000Z"
    for outside in (-1, to_filetime(MAX_TICKS) + 1):
        with pytest.raises(ValueError, match="FILETIME"):
            from_filetime(outside)
