"""Names of files and directories in a share: validation, trailing dots, and the form in which they are compared.

The rules are those of the page "Naming and referencing shares, directories, files, and metadata". Names keep their case and
are found in any case, so a name is a pair of the text as given and its folded form.
"""

import re
from functools import lru_cache
from typing import NamedTuple
from unicodedata import ucd_3_2_0

from verditer.core.edm import utf16_units
from verditer.core.errors import Code, StorageError

MAX_COMPONENT_UNITS = 255  # UTF-16 code units, as are those of the path
MAX_PATH_UNITS = 2048
MAX_SUBDIRECTORIES = 250

_FORBIDDEN = re.compile(r'["\\/:|<>*?\x00-\x1f\ud800-\udfff]')
_NONCHARACTERS = re.compile("[\ufffe\uffff]")
_RESERVED = frozenset(
    {".", "..", "CON", "PRN", "AUX", "NUL", "CLOCK$"} | {f"{port}{number}" for port in ("COM", "LPT") for number in range(1, 10)}
)
_TOO_DEEP = "File or directory path has too many subdirectories."


class EntryName(NamedTuple):
    """The name of a directory entry: `name` is what listings show, `folded` is equal for names that differ in case only."""

    name: str
    folded: str


def split_path(
    path: str, *, is_directory: bool, allow_trailing_dot: bool = False, allow_noncharacters: bool = True
) -> tuple[EntryName, ...]:
    """The components of a path below a share; none for the root directory. `/` separates them.

    One `/` at the end of a directory's path is dropped. U+FFFE and U+FFFF are allowed since version 2021-12-02.
    """
    if is_directory:
        path = path.removesuffix("/")
        if not path:
            return ()
    components = path.split("/")
    if len(components) - (not is_directory) > MAX_SUBDIRECTORIES:
        raise StorageError(Code.InvalidFileOrDirectoryPathName, message=_TOO_DEEP)
    names = tuple([entry_name(part, allow_trailing_dot, allow_noncharacters) for part in components])
    may_be_long = 2 * len(path) > MAX_PATH_UNITS  # a character has one or two units
    if may_be_long and sum(utf16_units(entry.name) + 1 for entry in names) - 1 > MAX_PATH_UNITS:
        raise StorageError(Code.InvalidFileOrDirectoryPathName)
    return names


def entry_name(text: str, allow_trailing_dot: bool = False, allow_noncharacters: bool = True) -> EntryName:
    """One component of a path, without its trailing dots unless the request allows them."""
    name = text if allow_trailing_dot or text in (".", "..") else text.rstrip(".")
    if not name or _FORBIDDEN.search(name) or not (allow_noncharacters or _NONCHARACTERS.search(name) is None):
        raise StorageError(Code.InvalidResourceName)
    if 2 * len(name) > MAX_COMPONENT_UNITS and utf16_units(name) > MAX_COMPONENT_UNITS:
        raise StorageError(Code.InvalidFileOrDirectoryPathName)
    folded = fold(name)
    if folded in _RESERVED:
        raise StorageError(Code.InvalidResourceName)
    return EntryName(name, folded)


def fold(name: str) -> str:
    """Upper case as NTFS has it: one UTF-16 code unit becomes one code unit, whatever the language."""
    return name.upper() if name.isascii() else "".join(map(_fold_character, name))


@lru_cache(maxsize=4096)
def _fold_character(character: str) -> str:
    """The upper case of a letter that is the lower case of that letter.

    So `ß`, `ı` and `ſ` stay, as in the table $UpCase of NTFS; the final sigma is its one exception. Only letters of Unicode 3.2
    take part: their pairs never change (Unicode stability policy), so stored folded names stay valid with every Python.
    """
    if character == "ς":
        return "Σ"
    # The title case of ᾀ is its simple upper case ᾈ; `upper` answers with two letters.
    upper = character.upper() if len(character.upper()) == 1 else character.title()
    is_pair = len(upper) == 1 and upper.lower() == character and max(character, upper) <= "\uffff"
    is_old = ucd_3_2_0.category(character) != "Cn" and all(ucd_3_2_0.category(letter) != "Cn" for letter in upper)
    return upper if is_pair and is_old else character
