"""The clauses of the concurrency contract and the tests that cite them. `python -m tests.clauses` prints docs/contract.md.

A test cites a clause in a comment, `# contract L3`, and a defect of another server in `# race L6`. `test_tidy` checks that the
printed document is up to date, that every clause of an implemented service has a test, and that every defect has one.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from verditer.rest.services import SERVICES

TESTS = Path(__file__).parent
CITATION = re.compile(r"\b(contract|race)s? ([A-Z]\d+(?:\s*,\s*[A-Z]\d+)*)")
ASIDE = re.compile(r"\([^)]*\)")

CHAPTERS = {
    "G": ("Everywhere", None),
    "B": ("Blobs and containers: optimistic", "blob"),
    "L": ("Leases: pessimistic", "blob"),
    "T": ("Tables", "table"),
    "Q": ("Queues", "queue"),
    "F": ("Files", "file"),
}
"""Letter → title, and the service that has to be implemented for the clauses to apply; None means that they always apply."""

BETWEEN_PROTOCOLS = frozenset({"F5"})  # applies once there is a second protocol

CLAUSES = {
    "G1": "Three strategies: optimistic (ETag), pessimistic (lease), last writer wins. Without condition or lease, blobs and "
    "queues are last writer wins; table operations state the strategy with `If-Match`.",
    "G2": "Every read, list or query sees all writes that were acknowledged before it began, through any process of the store. "
    "Nothing is eventually consistent, access lists included.",
    "G3": "A read waits for no write and delays none. It returns one committed state completely, even if the object is replaced "
    "or deleted during the download. A page of a listing is one committed state.",
    "G4": "Every write gives the object an ETag that was never used before. Last-Modified never goes back.",
    "G5": "Check and write are atomic. Of many writers with the same precondition one succeeds; the others get an error and "
    "change nothing.",
    "G6": "An acknowledged write is on disk. A kill at any moment loses no acknowledged write and leaves no partial one.",
    "G7": "A refused request changes nothing and says why, with Azure's status, error code and message.",
    "B1": "A read gives the ETag. `If-Match` with it updates and gives a new one; with another it is 412 `ConditionNotMet`.",
    "B2": "`If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since`, `*` and their combinations are honoured: 304 for reads, "
    "412 for writes, 409 where Azure documents it.",
    "B3": "Each operation returns an ETag and accepts conditions exactly where Azure's table says so.",
    "L1": "A lease lasts 15 to 60 seconds or is infinite. Renew restarts it, release ends it, change replaces its id, break ends "
    "it after a period, and a finite lease expires.",
    "L2": "Acquiring a lease that another id holds is 409 `LeaseAlreadyPresent`; every combination of state, action and id has "
    "its documented outcome.",
    "L3": "A write to a leased blob without its id is 412 `LeaseIdMissing`, with another id 412 "
    "`LeaseIdMismatchWithBlobOperation`, with the id of a lease that ended 412 `LeaseLost`. Nothing is written.",
    "L4": "A read without a lease id always succeeds; with a lease id that is not the current one it is 412.",
    "L5": "Which blob operations accept, require or ignore a lease id follows Azure's list.",
    "L6": "A leased container requires the lease id only when it is deleted. Other operations check a lease id if one is sent.",
    "L7": "A lease survives overwrites, restarts and a change of process; one clock determines when it ends.",
    "T1": "Update, merge and delete of an entity take `If-Match`: its ETag, or `*` to force. Another ETag is 412 "
    "`UpdateConditionNotSatisfied`. Without the header, put and merge are upserts and delete is refused.",
    "T2": "Insert-or-replace and insert-or-merge check no ETag.",
    "T3": "Query, insert, update, merge and both upserts return the ETag; delete returns none.",
    "T4": "An entity group transaction is applied completely or not at all, honours the `If-Match` of each part, and stays "
    "in one partition.",
    "T5": "The lease of a blob can serve as a lock for a table.",
    "Q1": "A message that Get Messages returned is hidden until its visibility timeout has passed. It is then visible again, "
    "with its dequeue count increased by one.",
    "Q2": "Each retrieval gives a new pop receipt; delete and update need the current one. No two consumers hold "
    "a message at the same time.",
    "Q3": "Queues have no ETags and no leases: properties, metadata, access lists and message updates are last writer wins.",
    "F1": "REST is last writer wins, apart from leases; SMB adds access modes, share modes and byte-range locks.",
    "F2": "A REST request that conflicts with the share mode of an SMB open is 409 `SharingViolation`.",
    "F3": "A file marked for deletion through SMB is 409 `SMBDeletePending` through REST until its last handle is closed, and no "
    "listing shows it.",
    "F4": "REST deletes at once and never leaves a file pending.",
    "F5": "A byte written through one protocol is immediately visible through the other.",
}

RACES = {
    "L1": "an expired lease is renewed although the blob has changed since",
    "L2": "a wrong error for the id of an expired lease",
    "L3": "`If-None-Match: *` on a leased blob is evaluated before the lease",
    "L4": "an expired lease can be released twice",
    "L5": "a break ignores its period, a change to the same id fails, an overwrite removes the lease",
    "L6": "a lease is acquired between the check of a write and the write",
    "L7": "a worker continues to write after another client has taken its lease",
    "E1": "`If-Match: *` lets a missing blob be created",
    "E2": "`If-None-Match: *` overwrites",
    "E3": "`If-Match` creates",
    "E4": "304 where 412 is correct, or the reverse",
    "E5": "tags change the ETag",
    "E6": "metadata or properties do not change the ETag",
    "E7": "two writes in one instant share an ETag",
    "E8": "an unknown weak ETag is rejected as malformed",
    "E9": "the ETag of one version with the body of another",
    "E10": "only Put Blob honours conditions",
    "E11": "conditions are lost when blocks are committed",
    "E12": "Last-Modified goes back after a slow request",
    "A1": "two appends get the same offset",
    "A2": "an append overwrites another",
    "A3": "a repeated append is stored twice although it states its position",
    "A4": "an append is refused because of a concurrent read",
    "B1": "staging a block again harms the committed one",
    "B2": "committed blocks are used where uncommitted ones are meant, or the reverse",
    "B3": "two concurrent commits produce a mixture of both blobs",
    "B4": "a commit is answered before its bytes are on disk",
    "T1": "a failed batch leaves its first changes",
    "T2": "a failed batch leaves updates or duplicates",
    "T3": "a batch ignores the ETag of a part",
    "T4": "a batch changes several partitions",
    "T5": "concurrent batches interfere with each other",
    "T6": "concurrent merges lose properties",
    "T7": "a continuation token restarts the query",
    "Q1": "a hidden message never becomes visible again, or too early",
    "Q2": "a receipt becomes invalid with the timeout although nobody got the message",
    "Q3": "a receipt stays valid after the update that replaced it",
    "Q4": "an expired message is still delivered",
    "Q5": "a message goes to two consumers",
    "G1": "the collector removes bytes in use",
    "G2": "a client that disconnects during an upload affects others",
    "G3": "a read changes the store",
    "G4": "a container created again shows the blobs of the deleted one",
    "G5": "a start and a stop at the same time leave the server in a bad state",
    "D1": "a kill loses acknowledged writes",
    "D2": "a store of an earlier release cannot be opened",
}
"""Concurrency defects reported in other servers of this kind, by the number that tests cite."""

Citations = dict[tuple[str, str], dict[str, list[str]]]
"""("contract" or "race", number) → file → names of tests."""


@cache
def citations() -> Citations:
    found: Citations = defaultdict(lambda: defaultdict(list))
    for path in sorted(TESTS.rglob("test_*.py")):
        for kind, number, test in _cited(path):
            tests = found[kind, number][path.relative_to(TESTS.parent).as_posix()]
            if test not in tests:
                tests.append(test)
    return found


def _cited(path: Path) -> Iterator[tuple[str, str, str]]:
    text = path.read_text()
    tests = _tests(ast.parse(text))
    for line_number, line in enumerate(text.splitlines(), 1):
        comment = ASIDE.sub("", line.partition("#")[2])
        for kind, numbers in CITATION.findall(comment):
            # Inside a test, or above the one that follows.
            test = next((name for last, name in tests if line_number <= last), None)
            assert test is not None, f"{path}:{line_number} cites {numbers} after the last test"
            yield from ((kind, number.strip(), test) for number in numbers.split(","))


def _tests(module: ast.Module) -> list[tuple[int, str]]:
    """(last line, name) of every test, in order."""
    functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return sorted((node.end_lineno or 0, node.name) for node in functions if node.name.startswith("test_"))


def binding_clauses() -> list[str]:
    """The clauses that apply: those of services with at least one implemented operation."""
    built = {service.name for service in SERVICES if any(op.is_built for op in service.operations)}
    applies = [number for number in CLAUSES if CHAPTERS[number[0]][1] in (None, *built)]
    return [number for number in applies if number not in BETWEEN_PROTOCOLS]


def contract_document() -> str:
    """docs/contract.md."""
    cited, binding = citations(), binding_clauses()
    lines = [
        "# The concurrency contract",
        "",
        "Each clause is a guarantee, followed by the tests that check it. `make docs` generates the page from comments in tests.",
    ]
    for letter, (title, _) in CHAPTERS.items():
        lines += ["", f"## {letter}. {title}"]
        for number, promise in CLAUSES.items():
            if number.startswith(letter):
                lines += ["", f"**{number}.** {promise}", ""]
                lines += _listed(cited.get(("contract", number), {}), "no test" if number in binding else "not implemented yet")
    lines += [
        "",
        "## Defects of other servers",
        "",
        "Defects reported in other servers of this kind, and the tests that show that Verditer does not have them.",
        "",
    ]
    lines += ["| number | defect | tests |", "|---|---|---|"]
    for number, defect in RACES.items():
        tests = cited.get(("race", number), {})
        names = ", ".join(f"`{name}`" for names in tests.values() for name in names)
        lines.append(f"| {number} | {defect} | {names or 'no test'} |")
    return "\n".join(lines) + "\n"


def _listed(tests: dict[str, list[str]], otherwise: str) -> list[str]:
    if not tests:
        return [f"- {otherwise}"]
    return [f"- `{path}`: {', '.join(f'`{name}`' for name in names)}" for path, names in tests.items()]


if __name__ == "__main__":
    sys.stdout.write(contract_document())
