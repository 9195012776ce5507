"""The code blocks of the documents, by language.

Every block has a language. Tests run those in `python`, `sh`, `toml` and `yaml`. Those in `console` and `text` are not run as
they stand: `NOT_RUN` says why, and which test shows what they say.
"""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
GENERATED = ("docs/MAP.md", "docs/operations.md")
PAGES = ("README.md", *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))
RUN = ("python", "sh", "toml", "yaml")

# fmt: off
NOT_RUN = {
    "README.md:1":           "make: the targets exist (test_documents.py)",
    "README.md:3":           "needs PostgreSQL and S3; the flags exist (test_documents.py), tests/cluster starts such nodes",
    "docs/HACKING.md:1":     "make: the targets exist (test_documents.py)",
    "docs/HACKING.md:2":     "is the order of imports (tests/unit/test_tidy.py)",
    "docs/connection-strings.md:1": "is compared with the start message (test_documents.py)",
    "docs/containers.md:1":  "needs a container engine; tests/containers builds and starts the image with buildah",
    "docs/containers.md:2":  "needs a container engine; the files are read by test_documents.py",
    "docs/containers.md:4":  "needs systemd and root; systemd-analyze checks the unit (test_documents.py)",
    "docs/containers.md:5":  "needs a package index; the image installs the package the same way",
    "docs/explorer.md:1":    "is a line of the start message",
    "docs/production.md:1":  "is a picture",
    "docs/production.md:2":  "needs PostgreSQL and S3; the flags exist (test_documents.py), `make cluster` starts such nodes",
    "docs/running.md:1":     "is the form of a variable (tests/unit/test_cli.py)",
    "docs/running.md:2":     "needs PostgreSQL; the flags exist (test_documents.py)",
    "docs/running.md:3":     "is a line of the request log (tests/rest/test_request_log.py)",
    "docs/smb.md:1":         "needs root and a kernel; `make smb` mounts in a guest (tests/smb_judges/test_linux_kernel.py)",
    "docs/smb.md:2":         "needs macOS",
    "docs/smb.md:3":         "needs Windows",
}
# fmt: on


class Snippet(NamedTuple):
    page: str
    number: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.number}"


def snippets(*languages: str) -> list[Snippet]:
    """Of some languages, or all."""
    found = []
    for page in PAGES:
        if page in GENERATED:
            continue
        blocks = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
        found += [Snippet(page, number, language, text) for number, (language, text) in enumerate(blocks, 1)]
    return [snippet for snippet in found if not languages or snippet.language in languages]
