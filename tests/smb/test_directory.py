"""QUERY_DIRECTORY: classes, patterns, order, and scans that go on where they ended."""

from typing import Any

import pytest
from smbprotocol.open import Open

from tests.smb.mounted import DIRECTORY_FILE, READ_ATTRIBUTES, READ_DATA, Mounted, refused
from tests.smb.requests import start
from verditer.smb.status import Status

CLASSES = [1, 2, 3, 12, 37, 38]
RESTART, SINGLE, REOPEN = 0x1, 0x2, 0x10


@pytest.fixture
def directory(mounted: Mounted) -> Open:
    mounted.make_directory("dir")
    for name in ("b.txt", "A.txt", "c", "D.tar.gz"):
        mounted.put(f"dir\\{name}", name.encode())
    return mounted.open("dir", READ_DATA | READ_ATTRIBUTES, options=DIRECTORY_FILE)


def names(found: Any) -> list[str]:
    return [entry["file_name"].get_value().decode("utf-16-le") for entry in found]


@pytest.mark.parametrize("number", CLASSES)
def test_every_class_lists_all_entries_in_order(directory: Open, number: int) -> None:
    found = directory.query_directory("*", number)
    assert names(found) == [".", "..", "A.txt", "b.txt", "c", "D.tar.gz"]
    with refused(Status.NO_MORE_FILES):
        directory.query_directory("*", number)
    directory.close()


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.txt", ["A.txt", "b.txt"]),
        ("?.TXT", ["A.txt", "b.txt"]),
        ("a.txt", ["A.txt"]),
        ("D*", ["D.tar.gz"]),
        ('<"*', [".", "..", "A.txt", "b.txt", "c", "D.tar.gz"]),
        ("<.gz", ["D.tar.gz"]),
    ],
)
def test_patterns_choose_entries(directory: Open, pattern: str, expected: list[str]) -> None:
    assert names(directory.query_directory(pattern, 37)) == expected
    directory.close()


def test_a_first_query_without_a_match_says_so(directory: Open) -> None:
    with refused(Status.NO_SUCH_FILE):
        directory.query_directory("absent", 37)
    directory.close()


def test_a_scan_goes_on_where_it_ended_and_can_be_restarted(directory: Open, mounted: Mounted) -> None:
    seen = []
    for _ in range(3):
        seen += names(directory.query_directory("*", 37, flags=SINGLE))
    assert seen == [".", "..", "A.txt"]
    mounted.put("dir\\bb", b"")
    assert names(directory.query_directory("*", 37)) == ["b.txt", "bb", "c", "D.tar.gz"]
    assert names(directory.query_directory("*.txt", 37, flags=RESTART)) == ["A.txt", "b.txt"]
    assert names(directory.query_directory("", 37, flags=RESTART)) == ["A.txt", "b.txt"]
    assert names(directory.query_directory("", 37, flags=REOPEN)) == [".", "..", "A.txt", "b.txt", "bb", "c", "D.tar.gz"]
    directory.close()


def test_a_small_buffer_gets_a_few_entries_at_a_time(mounted: Mounted) -> None:
    mounted.make_directory("many")
    expected = [f"file-{number:03}" for number in range(50)]
    for name in expected:
        mounted.put(f"many\\{name}")
    directory = mounted.open("many", READ_DATA, options=DIRECTORY_FILE)
    seen: list[str] = []
    while len(seen) < len(expected) + 2:
        page = names(directory.query_directory("*", 38, max_output=700))
        assert 0 < len(page) <= 8
        seen += page
    with refused(Status.NO_MORE_FILES):
        directory.query_directory("*", 38, max_output=700)
    assert seen == [".", "..", *expected]
    directory.close()


def test_what_cannot_be_listed_is_refused(mounted: Mounted, directory: Open) -> None:
    with refused(Status.INVALID_INFO_CLASS):
        directory.query_directory("*", 4)
    with refused(Status.INFO_LENGTH_MISMATCH):
        directory.query_directory("*", 37, max_output=50)
    with refused(Status.BUFFER_OVERFLOW):
        directory.query_directory("d.tar.gz", 37, max_output=106)
    file = mounted.open("dir\\c")
    with refused(Status.INVALID_PARAMETER):
        file.query_directory("*", 37)
    file.close()
    unlisted = mounted.open("dir", READ_ATTRIBUTES)
    with refused(Status.ACCESS_DENIED):
        unlisted.query_directory("*", 37)
    unlisted.close()
    directory.close()


def test_entries_have_the_sizes_and_ids_of_their_files(directory: Open, mounted: Mounted) -> None:
    [entry] = directory.query_directory("b.txt", 38)
    file = mounted.open("dir\\b.txt")
    assert entry["end_of_file"].get_value() == 5
    assert entry["creation_time"].get_value() == file.creation_time
    file.close()
    directory.close()


def test_more_room_than_was_negotiated_is_no_mistake(directory: Open) -> None:
    assert names(directory.query_directory("*.txt", 37, max_output=4 << 20)) == ["A.txt", "b.txt"]
    directory.close()


def test_a_query_is_answered_though_a_close_follows_it_closely(mounted: Mounted) -> None:
    """More entries than one page of the server has, so that the query is still running when the CLOSE arrives."""
    mounted.make_directory("many")
    for number in range(300):
        mounted.put(f"many\\{number}")
    directory = mounted.open("many", READ_DATA, options=DIRECTORY_FILE)
    query, unpack = directory.query_directory("*", 37, max_output=1 << 20, send=False)
    request = start(directory, query)
    directory.close()
    assert len(unpack(request)) == 302
