"""Every implemented operation on blobs and containers × conditional headers × lease states, compared with the reference.

`matrix_rows.py` lists the operations, `expectations.py` computes the expected results, `matrix_trial.py` sends the requests.

The complete grid runs on a store in memory. PostgreSQL takes twice the time, so its grid is reduced: each operation is tried
with every lease state and every kind of id, with a pending copy, and with each condition alone, met and unmet. It omits
combinations of conditions, which do not reach an engine, and most conditions on leased or missing objects. `pytest -m soak` runs
the complete grid on PostgreSQL too.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from tests.conftest import watched
from tests.rest import expectations
from tests.rest.client import Box, Client
from tests.rest.copies import File, elsewhere, signed
from tests.rest.expectations import Asked, Refusal, Sent, State
from tests.rest.history import settled
from tests.rest.matrix_rows import EXEMPT, HOLDER, OTHER, PAGE, ROWS, Row, Stage, Start, archived
from tests.rest.matrix_trial import REDUCED, WHOLE, Grid, Trial, headers_of
from tests.rest.running import Running, running
from verditer.rest.operation import Level, Op
from verditer.rest.operations.blob import OPERATIONS

OPERATION = pytest.mark.parametrize("operation", ROWS)
# No copy to an archived blob can start.
UNDER_COPY = pytest.mark.parametrize(
    "operation", [name for name, row in ROWS.items() if row.noun == "Blob" and row.prepare is not archived]
)
COPY = pytest.mark.parametrize("operation", [name for name, row in ROWS.items() if row.source])
LEASE_ID: dict[Sent, dict[str, str]] = {"holder": {"x-ms-lease-id": HOLDER}, "other": {"x-ms-lease-id": OTHER}, "nothing": {}}
LEVELS = {"Container": Level.CONTAINER, "Blob": Level.BLOB}
BUILT = [op for op in OPERATIONS if op.is_built and op.route.level in LEVELS.values()]


@dataclass(frozen=True)
class Matrix:
    server: Running
    grid: Grid


@pytest.fixture(scope="module", params=["memory", "postgres", pytest.param("postgres, whole", marks=pytest.mark.soak)])
def matrix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """About ten thousand requests, none of which concerns the disk."""
    in_memory = request.param == "memory"
    database = None if in_memory else request.getfixturevalue("databases").make_database()
    with running(tmp_path_factory.mktemp("matrix"), in_memory=in_memory, database=database) as server:
        yield Matrix(server, REDUCED if request.param == "postgres" else WHOLE)


@pytest.fixture
def grid(matrix: Matrix) -> Grid:
    return matrix.grid


@pytest.fixture
def server(matrix: Matrix) -> Iterator[Running]:
    yield from watched(matrix.server)


@pytest.fixture(scope="module")
def slow() -> Iterator[dict[str, str]]:
    with elsewhere() as source:
        yield {
            kind: source.add(kind, File(PAGE, {"x-ms-blob-type": kind}, gate=threading.Event()))
            for kind in ("BlockBlob", "AppendBlob", "PageBlob")
        }


@pytest.fixture
def stage(client: Client, slow: dict[str, str]) -> Stage:
    return Stage(client, slow)


def settled_as(stage: Stage, row: Row) -> ExitStack:
    """The account settings that a row needs."""
    stack = ExitStack()
    if row.settings:
        stack.enter_context(settled(stage.server, **row.settings))
    return stack


# --- which operations there are -----------------------------------------------------------------------------------------------


def found_by(row: Row) -> Op:
    """The operation that a request of this row of the matrix is routed to."""
    given = row.query | row.headers
    restype = given.get("restype", "container" if row.noun == "Container" else "")
    for op in OPERATIONS:
        shape = (op.route.level, op.route.restype, op.route.comp)
        wanted = all(name in given and value in (None, given[name]) for name, value in op.route.when)
        if row.method in op.route.methods and shape == (LEVELS[row.noun], restype, row.comp) and wanted:
            return op
    raise AssertionError(row)


def label(op: Op) -> str:
    return " ".join((op.name, *(name for name, _ in op.route.when)))


def test_every_built_operation_has_a_row_here() -> None:
    found = {name: found_by(row) for name, row in ROWS.items()}
    assert [name for name, op in found.items() if op.name != name.partition(",")[0] or op not in BUILT] == []
    without = {label(op) for op in BUILT if op not in found.values()}
    assert without - set(EXEMPT) == set(), "give the operation a row in matrix_rows.py"
    assert set(EXEMPT) - without == set(), "these need no exemption"


def test_every_operation_with_a_source_says_what_its_conditions_are() -> None:
    assert [name for name, row in ROWS.items() if (row.source is None) != (found_by(row).source_guard is None)] == []


# --- conditions and leases ----------------------------------------------------------------------------------------------------


@OPERATION
def test_conditions_decide_as_the_reference_says(stage: Stage, grid: Grid, operation: str) -> None:
    # contract B1, B2, B3, G4, G7; race E10
    row = ROWS[operation]
    trial = Trial(stage, row, "leased" if row.headers.get("x-ms-lease-action") == "break" else "available")
    with settled_as(stage, row):
        for asked in grid.asked_of(row.family):
            trial.send(asked, expectations.illegal(row.family, asked) or expectations.unmet(row.family, asked))
    assert trial.wrong == []


@OPERATION
def test_conditions_on_what_does_not_exist_decide_as_the_reference_says(stage: Stage, grid: Grid, operation: str) -> None:
    # contract B2, G7, race E1
    row = ROWS[operation]
    cases: list[tuple[Asked, dict[str, str]]] = [(asked, {}) for asked in grid.absent]
    if row.lease != "-":
        cases.append((Asked(), {"x-ms-lease-id": OTHER}))
    wrong: list[tuple[Asked, object]] = []
    with settled_as(stage, row):
        for number, (asked, lease) in enumerate(cases):
            expected = expectations.illegal(row.family, asked) or expectations.missing(
                row.absent, row.noun, row.family, asked, lease_id=bool(lease)
            )
            start = Start(stage, f"absent{number}", "") if row.noun == "Blob" else Start(Box(stage.client), None, "")
            reply = row.send(stage, start, headers_of(stage, asked, '"0x8D11111111"', row.prefix) | lease)
            if reply.answer != (expected or (row.success, None)):
                wrong.append((asked, (lease, reply.answer, expected)))
            if expected and stage.names({"include": "uncommittedblobs", "prefix": f"absent{number}"}):
                wrong.append((asked, "something was left behind"))
    assert wrong == []


@pytest.mark.parametrize(("operation", "state"), [(operation, state) for operation, row in ROWS.items() for state in row.states])
def test_the_lease_decides_before_the_conditions(stage: Stage, grid: Grid, operation: str, state: State) -> None:
    # contract L2, L3, L4, L5, L6, G4, G7
    row = ROWS[operation]
    trial = Trial(stage, row, state)
    with settled_as(stage, row):
        for sent, asked in grid.leased_by(row):
            trial.send(asked, decided(row, state, sent, asked), LEASE_ID[sent])
    assert trial.wrong == []


@UNDER_COPY
@pytest.mark.parametrize("state", ["available", "leased"])  # a copy starts with no other lease, and does not change it
def test_a_pending_copy_decides_before_the_lease(stage: Stage, grid: Grid, operation: str, state: State) -> None:
    # contract L5, G4, G7
    row = ROWS[operation].under_copy()
    trial = Trial(stage, row, state)
    with settled_as(stage, row):
        for sent, asked in grid.leased_by(row):
            trial.send(asked, decided(row, state, sent, asked, copied=True), LEASE_ID[sent])
    assert trial.wrong == []


def decided(row: Row, state: State, sent: Sent, asked: Asked, *, copied: bool = False) -> Refusal | None:
    """Reference 2.5. `copied`: a copy is pending to the blob."""
    return (
        expectations.illegal(row.family, asked)
        or (expectations.PENDING if copied and row.waits else None)
        or expectations.leased(row.lease, state if row.leasable else "available", sent, row.noun)
        or expectations.unmet(row.family, asked, holder=sent == "holder" and row.lease == "W")
        or lease_outcome(row, state)
        or (expectations.OVERWRITTEN if copied and "prevsnapshot" in row.query else None)
    )


def lease_outcome(row: Row, state: State) -> Refusal | None:
    """The result of a lease operation in each state when the conditions are met (reference 3.3)."""
    action = row.headers.get("x-ms-lease-action")
    if action == "acquire" and state == "breaking":
        return 409, "LeaseIsBreakingAndCannotBeAcquired"
    if action == "break" and state == "available":
        return 409, "LeaseNotPresentWithLeaseOperation"
    return None


# --- what a copy reads from ---------------------------------------------------------------------------------------------------


@COPY
def test_conditions_of_a_source_decide_as_the_reference_says(stage: Stage, grid: Grid, operation: str) -> None:
    # contract B2, B3, G7, L5
    row = ROWS[operation]
    assert row.source is not None
    etag = stage.head("source")["ETag"]
    stage.acquire(-1, "source", HOLDER)  # the lease of a source is ignored: reference 1.3
    trial = Trial(stage, row)
    for asked in grid.asked_of(row.source):
        expected = expectations.illegal(row.source, asked) or expectations.unmet(row.source, asked)
        trial.send(Asked(), expected, headers_of(stage, asked, etag, "x-ms-source-"))
    assert trial.wrong == []


@COPY
def test_a_source_that_does_not_exist_is_told_whatever_is_asked_of_it(stage: Stage, grid: Grid, operation: str) -> None:
    # contract G7
    trial = Trial(stage, ROWS[operation])
    # Measured on Azure for Copy Blob within one account (reference 1.3).
    expected = (404, "BlobNotFound" if operation == "CopyBlob" else "CannotVerifyCopySource")
    absent = {"x-ms-copy-source": signed(stage, "absent")}
    for asked in grid.absent:
        trial.send(Asked(), expected, headers_of(stage, asked, '"0x8D11111111"', "x-ms-source-") | absent)
    assert trial.wrong == []
