"""The contract, clause by clause, and the tests that cite it: `python -m tests.clauses` prints docs/contract.md.

A test cites a clause in a comment, `# contract L3`, and a defect seen elsewhere in another, `# race L6`. `test_tidy` checks that
the printed document is up to date and that every clause of a service that is built has a test.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from verditer.rest.services import SERVICES

TESTS = Path(__file__).parent
CITATION = re.compile(r"\b(contract|race) ([A-Z]\d+(?:\s*,\s*[A-Z]\d+)*)")
ASIDE = re.compile(r"\([^)]*\)")

CHAPTERS = {
    "G": ("Everywhere", None),
    "B": ("Blobs and containers: optimistic", "blob"),
    "L": ("Leases: pessimistic", "blob"),
    "T": ("Tables", "table"),
    "Q": ("Queues", "queue"),
    "F": ("Files", "file"),
}
"""Letter → title, and the service whose port has to be built for the clauses to bind; None binds always."""

CLAUSES = {
    "G1": "Three strategies: optimistic (ETag), pessimistic (lease), last writer wins. Without condition or lease, blobs and "
    "queues are last writer wins; tables ask the caller to decide.",
    "G2": "What was acknowledged is seen by every later read, list or query, through any process of the store. No lag, no cache "
    "that is behind, access lists included.",
    "G3": "A read waits for no write and delays none. It sees one committed state, whole, even if the object is replaced or "
    "deleted while it is downloaded. A page of a listing is one committed state.",
    "G4": "Every write gives the object an ETag that was never used before. Last-Modified never goes back.",
    "G5": "Check and write are one step. Of many writers with the same precondition one wins; the others are told and change "
    "nothing.",
    "G6": "Acknowledged means on disk. A kill at any moment loses nothing acknowledged and shows nothing half done.",
    "G7": "A refused request changes nothing and says why, with Azure's status, error code and message.",
    "B1": "A read gives the ETag. `If-Match` with it updates and gives a new one; with another it is 412 `ConditionNotMet`.",
    "B2": "`If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since`, `*` and their mixtures are honoured: 304 for reads, "
    "412 for writes, 409 where Azure says so.",
    "B3": "Each operation returns an ETag and takes conditions exactly where Azure's table says.",
    "L1": "A lease lasts 15 to 60 seconds or for ever. Renew restarts it, release frees, change swaps its id, break ends it "
    "after a period, and a finite one ends by itself.",
    "L2": "To acquire what another id holds is 409 `LeaseAlreadyPresent`; every cell of state, action and id has its outcome.",
    "L3": "A write to a leased blob without its id is 412 `LeaseIdMissing`, with another id 412 "
    "`LeaseIdMismatchWithBlobOperation`, with the id of a lease that ended 412 `LeaseLost`. Nothing is written.",
    "L4": "A read without lease id always works; with one that does not hold it is 412.",
    "L5": "Which blob operations take, need or ignore a lease id follows Azure's list.",
    "L6": "A leased container asks for its id only when it is deleted. Elsewhere an id is checked when it is sent.",
    "L7": "A lease survives overwrites, restarts and a change of process; one clock decides when it ends.",
    "T1": "Update, merge and delete of an entity take `If-Match`: its ETag, or `*` to force. Another ETag is 412 "
    "`UpdateConditionNotSatisfied`. Without the header, put and merge are upserts and delete is refused.",
    "T2": "Insert-or-replace and insert-or-merge look at no ETag.",
    "T3": "Query, insert, update, merge and both upserts return the ETag; delete returns none.",
    "T4": "An entity group transaction happens whole or not at all, honours the `If-Match` of each part, and stays "
    "in one partition.",
    "T5": "The lease of a blob can guard a table: a lock across services.",
    "Q1": "A message that was got is hidden until its visibility time-out has passed, then comes back with its dequeue count one "
    "higher.",
    "Q2": "Each retrieval gives a new pop receipt; delete and update need the current one. No two consumers hold "
    "a message at once.",
    "Q3": "Queues have no ETags and no leases: properties, metadata, access lists and message updates are last writer wins.",
    "F1": "REST is last writer wins, apart from leases; SMB brings access modes, share modes and byte-range locks.",
    "F2": "A REST request against the share mode of an SMB open is 409 `SharingViolation`.",
    "F3": "A file marked for deletion through SMB is 409 `SMBDeletePending` through REST until its last handle is closed, and no "
    "listing shows it.",
    "F4": "REST deletes at once and never leaves a file pending.",
    "F5": "A byte written through one protocol is read at once through the other.",
}

RACES = {
    "L1": "an expired lease is renewed although the blob has changed since",
    "L2": "the answer to the id of an expired lease",
    "L3": "`If-None-Match: *` over a leased blob: the lease is looked at first",
    "L4": "an expired lease is released once, not twice",
    "L5": "breaks without their period, changes to the same id, leases lost by an overwrite",
    "L6": "a lease is taken between the check of a write and the write",
    "L7": "a worker goes on although its lease was taken",
    "E1": "`If-Match: *` lets a missing blob be created",
    "E2": "`If-None-Match: *` overwrites",
    "E3": "`If-Match` creates",
    "E4": "304 and 412 mixed up",
    "E5": "tags change the ETag",
    "E6": "metadata or properties do not change the ETag",
    "E7": "two writes in one instant share an ETag",
    "E8": "an unknown weak ETag is called malformed",
    "E9": "the ETag of one version with the body of another",
    "E10": "conditions are honoured by Put Blob alone",
    "E11": "conditions are lost when blocks are committed",
    "E12": "Last-Modified goes back after a slow request",
    "A1": "two appends are told the same offset",
    "A2": "an append overwrites another",
    "A3": "a repeated append lands twice in spite of its position",
    "A4": "an append is refused because somebody reads",
    "B1": "staging a block again harms the committed one",
    "B2": "committed and uncommitted blocks mixed up",
    "B3": "two commits make a mixed blob",
    "B4": "a commit is answered before its bytes are on disk",
    "T1": "a failed batch leaves its beginning",
    "T2": "a failed batch leaves updates or duplicates",
    "T3": "a batch ignores the ETag of a part",
    "T4": "a batch reaches several partitions",
    "T5": "batches side by side disturb each other",
    "T6": "merges side by side lose properties",
    "T7": "a continuation begins again",
    "Q1": "a hidden message does not come back, or too early",
    "Q2": "a receipt ends with the time-out although nobody took the message",
    "Q3": "a receipt outlives the update that replaced it",
    "Q4": "an expired message can still be had",
    "Q5": "a message goes to two consumers",
    "G1": "the collector removes bytes in use",
    "G2": "a client that goes away in mid-upload harms others",
    "G3": "a read changes the store",
    "G4": "a container created again shows what the deleted one held",
    "G5": "starting and stopping at once",
    "D1": "a kill loses what was acknowledged",
    "D2": "a store of an earlier release cannot be opened",
}
"""Concurrency defects reported of servers of this kind, by the number tests cite."""

Citations = dict[tuple[str, str], dict[str, list[str]]]
"""("contract" or "race", number) → file → names of tests."""


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
            assert test is not None, f"{path}:{line_number} cites {numbers} behind the last test"
            yield from ((kind, number.strip(), test) for number in numbers.split(","))


def _tests(module: ast.Module) -> list[tuple[int, str]]:
    """(last line, name) of every test, in order."""
    functions = (node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return sorted((node.end_lineno or 0, node.name) for node in functions if node.name.startswith("test_"))


def binding_clauses() -> list[str]:
    """The clauses that hold today: those of services with at least one operation built."""
    built = {service.name for service in SERVICES if any(op.is_built for op in service.operations)}
    return [number for number in CLAUSES if CHAPTERS[number[0]][1] in (None, *built)]


def contract_document() -> str:
    """docs/contract.md."""
    cited, binding = citations(), binding_clauses()
    lines = [
        "# The concurrency contract",
        "",
        "Each clause is a promise, with the tests that hold us to it. Printed from the comments of the tests by `make docs`.",
    ]
    for letter, (title, _) in CHAPTERS.items():
        lines += ["", f"## {letter}. {title}"]
        for number, promise in CLAUSES.items():
            if number.startswith(letter):
                lines += ["", f"**{number}.** {promise}", ""]
                lines += _listed(cited.get(("contract", number), {}), "no test" if number in binding else "not built yet")
    lines += [
        "",
        "## Defects seen elsewhere",
        "",
        "Reported of servers of this kind; each test shows that we do not have it.",
        "",
    ]
    lines += ["| number | defect | tests |", "|---|---|---|"]
    for number, defect in RACES.items():
        tests = cited.get(("race", number), {})
        names = ", ".join(f"`{name}`" for names in tests.values() for name in names)
        lines.append(f"| {number} | {defect} | {names or 'none yet'} |")
    return "\n".join(lines) + "\n"


def _listed(tests: dict[str, list[str]], otherwise: str) -> list[str]:
    if not tests:
        return [f"- {otherwise}"]
    return [f"- `{path}`: {', '.join(f'`{name}`' for name in names)}" for path, names in tests.items()]


if __name__ == "__main__":
    sys.stdout.write(contract_document())
