"""Names and paths of files: what is refused, what is trimmed, and which names are equal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verditer.core.errors import Code, StorageError
from verditer.core.files.names import EntryName, entry_name, fold, split_path

names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='"\\/:|<>*?.'), min_size=1, max_size=60)


def refused(text: str, **options: bool) -> Code:
    with pytest.raises(StorageError) as raised:
        entry_name(text, **options)
    return raised.value.code


@given(names)
def test_a_name_is_equal_to_itself_in_upper_case_of_ntfs(name: str) -> None:
    folded = fold(name)
    assert fold(folded) == folded
    assert len(folded.encode("utf-16-le")) == len(name.encode("utf-16-le"))


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("readme.TXT", "README.TXT"),
        ("Ärger", "ÄRGER"),
        ("straße", "STRAßE"),
        ("ıſµ", "ıſµ"),
        ("όσος", "ΌΣΟΣ"),
        ("ᾀ", "ᾈ"),
        ("привет", "ПРИВЕТ"),
        ("ǆǅǄ", "ǄǅǄ"),
        ("ﬁ", "ﬁ"),
        ("ÿ", "Ÿ"),
        ("ａ", "Ａ"),
        ("ა", "ა"),  # Georgian capitals are younger than the tables
        ("𐐨", "𐐨"),  # a pair of surrogates has no case
        ("e\u0301", "E\u0301"),  # names are not normalised
    ],
)
def test_case_is_folded_by_code_unit(name: str, folded: str) -> None:
    assert entry_name(name) == EntryName(name, folded)


@pytest.mark.parametrize("character", list('"\\/:|<>*?\x00\x01\x1f\ud800\udfff'))
def test_forbidden_characters_are_refused(character: str) -> None:
    assert refused(f"a{character}b") is Code.InvalidResourceName


@pytest.mark.parametrize("character", ["\x7f", " ", "\uf022", "\ufdd0", "\u0085", "😀", "'", "%", "#", "+"])
def test_other_characters_are_allowed(character: str) -> None:
    assert entry_name(f"a{character}b").name == f"a{character}b"


@pytest.mark.parametrize("name", ["con", "CON", "Prn", "aux.", "nul...", "clock$", "com1", "LPT9", ".", "..", "...", ""])
def test_reserved_names_are_refused(name: str) -> None:
    assert refused(name) is Code.InvalidResourceName


@pytest.mark.parametrize("name", ["con.txt", "com0", "com10", "lpt", ".con", "..a", "a..b"])
def test_names_like_reserved_ones_are_allowed(name: str) -> None:
    assert entry_name(name).name == name


def test_trailing_dots_are_trimmed_unless_they_are_allowed() -> None:
    assert entry_name("File...") == EntryName("File", "FILE")
    assert entry_name("file.", allow_trailing_dot=True) == EntryName("file.", "FILE.")
    assert entry_name("...", allow_trailing_dot=True).name == "..."
    assert refused("..", allow_trailing_dot=True) is Code.InvalidResourceName
    assert entry_name("a" * 255 + "...").name == "a" * 255


def test_noncharacters_are_allowed_when_the_version_knows_them() -> None:
    assert entry_name("a\uffff\ufffe").name == "a\uffff\ufffe"
    assert refused("a\uffff", allow_noncharacters=False) is Code.InvalidResourceName


def test_a_component_has_255_code_units() -> None:
    assert entry_name("a" * 255).name == "a" * 255
    assert refused("a" * 256) is Code.InvalidFileOrDirectoryPathName
    assert entry_name("😀" * 127).name == "😀" * 127
    assert refused("😀" * 128) is Code.InvalidFileOrDirectoryPathName


def test_a_path_is_split_into_its_components() -> None:
    assert split_path("Dir./sub/File.txt", is_directory=False) == (
        EntryName("Dir", "DIR"),
        EntryName("sub", "SUB"),
        EntryName("File.txt", "FILE.TXT"),
    )
    assert split_path("dir./", is_directory=True, allow_trailing_dot=True) == (EntryName("dir.", "DIR."),)
    assert split_path("", is_directory=True) == split_path("/", is_directory=True) == ()


@pytest.mark.parametrize(
    ("path", "is_directory"),
    [("dir/", False), ("", False), ("a//b", False), ("/a", True), ("a//", True), ("a/../b", True), ("./a", False)],
)
def test_empty_and_relative_components_are_refused(path: str, is_directory: bool) -> None:
    with pytest.raises(StorageError) as raised:
        split_path(path, is_directory=is_directory)
    assert raised.value.code is Code.InvalidResourceName


def test_paths_are_bounded_in_length_and_depth() -> None:
    longest = "/".join(["a" * 255] * 8)  # 2047
    assert len(split_path(longest, is_directory=False)) == 8
    deepest = "/".join(["d"] * 250)
    assert len(split_path(deepest, is_directory=True)) == 250
    assert len(split_path(f"{deepest}/file", is_directory=False)) == 251
    for path, is_directory, message in [
        (f"{longest}/b", False, "File or directory path is too long."),
        (f"{deepest}/d", True, "File or directory path has too many subdirectories."),
        (f"{deepest}/d/file", False, "File or directory path has too many subdirectories."),
    ]:
        with pytest.raises(StorageError) as raised:
            split_path(path, is_directory=is_directory)
        assert (raised.value.code, raised.value.message) == (Code.InvalidFileOrDirectoryPathName, message)
