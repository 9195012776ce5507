"""Prints CHANGELOG.md: `python -m tests.changelog` replaces the section "Unreleased" by the lines of the files in changes/."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
KINDS = ("Added", "Changed", "Fixed", "Removed")
HEADING = "## Unreleased\n"


def changelog() -> str:
    """CHANGELOG.md with its released sections as they are."""
    title, _, rest = (ROOT / "CHANGELOG.md").read_text().partition(HEADING)
    released = rest[rest.find("\n## ") :] if "\n## " in rest else ""
    return f"{title}{HEADING}{unreleased()}{released}"


def unreleased() -> str:
    lines = [path.read_text() for path in sorted((ROOT / "changes").glob("*.md"))]
    sections = ""
    for kind in KINDS:
        entries = [text.partition(": ")[2] for text in lines if text.startswith(f"{kind}: ")]
        if entries:
            sections += f"\n### {kind}\n\n" + "".join(f"- {entry[0].upper()}{entry[1:]}" for entry in entries)
    return sections


if __name__ == "__main__":
    sys.stdout.write(changelog())
