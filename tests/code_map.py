"""The list of packages and files in docs/MAP.md: the first sentence of each docstring. `python -m tests.code_map` renews it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAP = ROOT / "docs" / "MAP.md"
FILES = re.compile(r"(?<=<!-- files -->\n).*?(?=<!-- /files -->)", re.DOTALL)


def file_list() -> str:
    """Every package of `verditer` with its files, parents first."""
    return "\n".join("".join(_section(folder)) for folder in _packages(ROOT / "verditer"))


def _packages(folder: Path) -> Iterator[Path]:
    yield folder
    for child in sorted(path.parent for path in folder.glob("*/__init__.py")):
        yield from _packages(child)


def _section(folder: Path) -> Iterator[str]:
    yield f"### `{folder.relative_to(ROOT).as_posix()}`\n\n{summary_of(folder / '__init__.py')}\n\n"
    files = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    if files:
        yield "| file | contents |\n|---|---|\n"
    for path in files:
        yield f"| `{path.name}` | {summary_of(path)} |\n"


def summary_of(path: Path) -> str:
    """The first sentence of the docstring, on one line."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    sentence = re.match(r".+?[.?](?=\s|$)", text)
    return (sentence.group() if sentence is not None else text).replace("|", "\\|")


if __name__ == "__main__":
    MAP.write_text(FILES.sub(lambda _: file_list(), MAP.read_text()))
