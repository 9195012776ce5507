"""Prints docs/operations.md from the tables: `python -m verditer.rest.operations`. With a file, renews the support table in it.

`make docs` does both; `tests/unit/test_tidy.py` checks that neither was forgotten.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from verditer.rest.operation import Level, Op, Route
from verditer.rest.operations import datalake
from verditer.rest.services import SERVICES

TABLES: dict[str, Sequence[Op]] = {service.name.capitalize(): service.operations for service in SERVICES} | {
    "Data Lake": datalake.OPERATIONS
}
NOTES = {  # of services that are not complete
    "Data Lake": "There is no dfs port yet. A filesystem is a container and a path is a blob.",
}
SUPPORT = re.compile(r"(?<=<!-- support -->\n).*?(?=<!-- /support -->)", re.DOTALL)

# What the README calls a group of operations: the first line whose pattern is found in the name. The last takes the rest.
# fmt: off
FEATURES: dict[str, tuple[tuple[str, str], ...]] = {
    "Blob": (
        ("user delegation keys",         "UserDelegation"),
        ("batch",                        "Batch"),
        ("query",                        "Query"),
        ("tags",                         "Tags"),
        ("copy and upload from a URL",   "Copy|FromUrl"),
        ("append blobs",                 "Append"),
        ("page blobs",                   "Page|SequenceNumber"),
        ("soft delete and versions",     "Undelete|Restore|Version|Permanent"),
        ("immutability and legal holds", "Immutability|LegalHold"),
        ("tiers",                        "Tier"),
        ("expiry",                       "Expiry"),
        ("leases",                       "Lease"),
        ("snapshots",                    "Snapshot"),
        ("listings",                     "^List"),
        ("containers",                   "Container"),
        ("service properties",           "Service|Account"),
        ("block blobs",                  ""),
    ),
    "Queue": (
        ("user delegation keys",         "UserDelegation"),
        ("messages",                     "Message"),
        ("service properties",           "Service"),
        ("queues",                       ""),
    ),
    "Table": (
        ("service properties",           "Service"),
        ("entity group transactions",    "Batch|Transaction|Group"),
        ("entities and queries",         "Entit"),
        ("tables",                       ""),
    ),
    "File": (
        ("user delegation keys",         "UserDelegation"),
        ("copy and upload from a URL",   "Copy|FromUrl"),
        ("links",                        "Link"),
        ("renames",                      "^Rename"),
        ("handles",                      "Handle"),
        ("permissions",                  "Permission"),
        ("ranges",                       "Range"),
        ("leases",                       "Lease"),
        ("soft delete of shares",        "Restore|Undelete"),
        ("share snapshots",              "Snapshot"),
        ("listings",                     "^List"),
        ("service properties",           "Service"),
        ("shares",                       "Share"),
        ("directories",                  "Directory"),
        ("files",                        ""),
    ),
    "Data Lake": (
        ("filesystems and paths",        ""),
    ),
}

PATHS = {
    Level.SERVICE:   "/",
    Level.CONTAINER: "/container",
    Level.BLOB:      "/container/blob",
    Level.QUEUE:     "/queue",
    Level.MESSAGES:  "/queue/messages",
    Level.MESSAGE:   "/queue/messages/id",
    Level.TABLES:    "/Tables",
    Level.TABLE:     "/Tables('table')",
    Level.ENTITIES:  "/table",
    Level.ENTITY:    "/table(keys)",
    Level.BELOW_TABLE: "/table/path",
    Level.BATCH:     "/$batch",
    Level.SHARE:     "/share",
    Level.PATH:      "/share/path",
    Level.ANY:       "any",
}
# fmt: on


def operations_document() -> str:
    """docs/operations.md."""
    lines = [
        "# Operations",
        "",
        "`make docs` generates this page from the tables in `verditer/rest/operations`. An operation that is not implemented answers",
        "501 `NotImplemented` with its name. Every port answers preflight requests (`OPTIONS`), which have no row.",
    ]
    for name, operations in TABLES.items():
        lines += ["", f"## {name}: {_count(operations)}", ""]
        if name in NOTES:
            lines += [NOTES[name], ""]
        lines += ["| operation | request | implemented |", "|---|---|---|"]
        lines += [f"| {op.name} | {_request(op.route)} | {'yes' if op.is_built else 'not yet'} |" for op in operations]
    return "\n".join(lines) + "\n"


def support_table() -> str:
    """The README's: what works and what is missing, service by service, in the words of FEATURES."""
    lines = ["| service | operations | works | not yet |", "|---|---|---|---|"]
    for name, operations in TABLES.items():
        works, missing = (", ".join(_features(name, operations, built)) or "–" for built in (True, False))
        lines.append(f"| {name} | {_count(operations)} | {works} | {missing} |")
    return "\n".join(lines) + "\n"


def feature_of(service: str, operation: str) -> str:
    return next(feature for feature, pattern in FEATURES[service] if re.search(pattern, operation))


def _features(service: str, operations: Sequence[Op], built: bool) -> Iterator[str]:
    """A feature works once any of its operations does; those still missing are then named."""
    for feature, _ in reversed(FEATURES[service]):
        group = [op for op in operations if feature_of(service, op.name) == feature]
        wanted = [op.name for op in group if op.is_built is built]
        if wanted:
            yield feature if built or len(wanted) == len(group) else f"{feature}: {', '.join(wanted)}"


def _count(operations: Sequence[Op]) -> str:
    return f"{sum(op.is_built for op in operations)} of {len(operations)}"


def _request(route: Route) -> str:
    """As it looks on the wire: `PUT /container/blob?comp=block` and the headers that decide."""
    sent = [(name, value) for name, value in (("restype", route.restype), ("comp", route.comp)) if value]
    sent += [(name, value or "…") for name, value in route.when if "-" not in name]  # what has a hyphen is a header
    query = "&".join(f"{name}={value}" for name, value in sent)
    headers = [f"`{name}: {value or '…'}`" for name, value in route.when if "-" in name]
    line = f"{', '.join(route.methods)} {PATHS[route.level]}" + (f"?{query}" if query else "")
    return f"`{line}`" + (f" with {' and '.join(headers)}" if headers else "")


def main(arguments: list[str]) -> None:
    if not arguments:
        sys.stdout.write(operations_document())
    for path in map(Path, arguments):
        path.write_text(SUPPORT.sub(lambda _: support_table(), path.read_text()))


if __name__ == "__main__":
    main(sys.argv[1:])
