"""Attributes of files: the REST header and the bits of Win32."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core.errors import Code
from verditer.core.files.attributes import FileAttributes, attributes_of, attributes_of_new, from_win32, to_win32
from verditer.rest.codecs.file.attributes import format_attributes, parse_attributes
from verditer.rest.wire_errors import RestError

HEADER = "x-ms-file-attributes"
ALL_OF_FILES = "ReadOnly | Hidden | System | Archive | Temporary | Offline | NotContentIndexed | NoScrubData"


@pytest.mark.parametrize(
    ("text", "is_directory", "shown"),
    [
        ("ReadOnly|Archive", False, "ReadOnly | Archive"),
        (" archive | READONLY ", False, "ReadOnly | Archive"),
        ("None", False, "None"),
        ("none", True, "None"),
        ("ReadOnly", True, "ReadOnly"),
        ("Offline|Directory|Hidden", True, "Hidden | Directory | Offline"),
        ("None|Hidden", False, "Hidden"),
        (ALL_OF_FILES, False, ALL_OF_FILES),
    ],
)
def test_a_list_comes_back_in_the_order_of_its_bits(text: str, is_directory: bool, shown: str) -> None:
    assert format_attributes(parse_attributes(HEADER, text, is_directory=is_directory)) == shown


@pytest.mark.parametrize(
    ("text", "is_directory", "value"),
    [("Compressed", False, "Compressed"), ("", False, ""), ("ReadOnly|", True, ""), ("Hidden, System", False, "Hidden, System"),
     ("Archive|Directory", False, "Directory"), ("Temporary", True, "Temporary"), ("0x20", False, "0x20")],
)  # fmt: skip
def test_what_is_no_attribute_of_its_kind_is_named(text: str, is_directory: bool, value: str) -> None:
    with pytest.raises(RestError) as raised:
        parse_attributes(HEADER, text, is_directory=is_directory)
    assert raised.value.code is Code.InvalidHeaderValue
    assert raised.value.elements == {"HeaderName": HEADER, "HeaderValue": value}


def test_a_directory_always_has_the_attribute_directory() -> None:
    assert attributes_of(FileAttributes.HIDDEN, is_directory=True) == FileAttributes.HIDDEN | FileAttributes.DIRECTORY
    assert attributes_of(FileAttributes.NONE, is_directory=False) == FileAttributes.NONE


def test_a_new_file_without_attributes_is_archive() -> None:
    assert attributes_of_new(FileAttributes.NONE, is_directory=False) == FileAttributes.ARCHIVE
    assert attributes_of_new(FileAttributes.HIDDEN, is_directory=False) == FileAttributes.HIDDEN
    assert attributes_of_new(FileAttributes.NONE, is_directory=True) == FileAttributes.DIRECTORY


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_win32_bits_come_back_without_those_that_cannot_be_set(value: int, is_directory: bool) -> None:
    attributes = from_win32(value, is_directory=is_directory)
    assert parse_attributes(HEADER, format_attributes(attributes), is_directory=is_directory) == attributes
    assert from_win32(to_win32(attributes), is_directory=is_directory) == attributes
    assert bool(attributes & FileAttributes.DIRECTORY) == is_directory


def test_a_file_without_attributes_is_normal_in_win32() -> None:
    assert to_win32(FileAttributes.NONE) == 0x80
    assert from_win32(0x80, is_directory=False) == FileAttributes.NONE
    assert to_win32(from_win32(0x27, is_directory=False)) == 0x27
