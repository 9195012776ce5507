"""A tree of files with unusual names, and a tree read back for a byte-by-byte comparison."""

import random
from collections.abc import Iterable
from pathlib import Path

NAME_LIMIT = 1024  # maximum length of a blob name

ODD_NAMES = (
    "plain.txt",
    "two  spaces and one at the end ",
    " one at the front/file",
    "ünïcødé/日本語/Привет.txt",
    "one character or two: é e\u0301",
    "emoji 🎨.txt",
    "percent%2Fslash%20space%.txt",
    "100%/%41%zz",
    "what?.txt",
    "question?comp=list&restype=container",
    "hash#tag.txt",
    "#/?/%",
    "trailing dot.",
    "folder.../trailing dots...",
    "...three dots first",
    "plus+and&equals=semi;comma,at@colon:",
    "quotes'single`back\"double",
    "brackets[0]{1}(2)<3>",
    "star*pipe|caret^tilde~dollar$bang!",
    ".hidden/.file",
    "UPPER/Case",
    "upper/case",
    "a/b/c/d/e/f/g/h/i/j/deep",
    "a-",
    "a.b",
    "a0",
)
NOT_IN_SHARES = frozenset('"\\:|<>*?')  # characters that a share refuses in names
SIZES = {"empty": 0, "one byte": 1, "a block and a bit": 1024 * 1024 + 1, "several blocks": 5 * 1024 * 1024 + 7}


def make_tree(folder: Path, *, prefix: int = 0) -> dict[str, bytes]:
    """Files below `folder` and their contents. `prefix` characters of the maximum length are reserved for a prefix."""
    return write_tree(folder, (*ODD_NAMES, longest_name(NAME_LIMIT - prefix)))


def make_share_tree(folder: Path) -> dict[str, bytes]:
    """The same with the names that a share allows. A share does not distinguish `UPPER/Case` from `upper/case`."""
    names = [name for name in ODD_NAMES if name != "upper/case" and not NOT_IN_SHARES & set(name)]
    return write_tree(folder, (*names, longest_name(NAME_LIMIT)))


def write_tree(folder: Path, names: Iterable[str]) -> dict[str, bytes]:
    chance = random.Random("tree")
    content = {name: f"content of {name}\n".encode() for name in names}
    content |= {f"sizes/{name}": chance.randbytes(size) for name, size in SIZES.items()}
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return content


def longest_name(length: int) -> str:
    """A name of the maximum length. Its segments are short, because AzCopy creates temporary files with longer names."""
    return "/".join(["long", *("n" * 100 for _ in range(11))])[:length].rstrip("/").ljust(length, "x")


def read_tree(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
