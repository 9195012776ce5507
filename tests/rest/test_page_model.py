"""Random page writes, clears, resizes, snapshots and collections agree with a model of plain bytes, on every engine.

The model stores for each page its bytes and the number of the change that wrote them, or of the change that
cleared it. `VERDITER_SEED=n` replays a run.
"""

import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tests.conftest import watched
from tests.rest.client import Box
from tests.rest.pages import PAGE, clear, create, ranges, resize, snapshot, write
from tests.rest.running import Running
from verditer.core.records.content import (
    ClosedContentView,
    ContentView,
    ExtentReferences,
    FormerInterval,
    InlineInterval,
    Interval,
)
from verditer.core.records.record import Record, Span
from verditer.partition.engine import Transaction

ENGINES = ("sqlite", "postgres")
STEPS = 120
PAGES = 1000
EVERYTHING = Span(b"", b"\xff" * 64)
KINDS: tuple[type[Record], ...] = (Interval, FormerInterval, InlineInterval, ContentView, ClosedContentView, ExtentReferences)


@pytest.fixture(params=ENGINES)
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    yield from watched(request.getfixturevalue(request.param))


@dataclass
class State:
    """Page number → (which change, its bytes), and page number → which change cleared it after the first snapshot."""

    pages: dict[int, tuple[int, bytes]]
    cleared: dict[int, int]
    size: int  # in pages
    changes: int  # number of writes and clears

    def copy(self) -> "State":
        return State(dict(self.pages), dict(self.cleared), self.size, self.changes)

    def bytes(self) -> bytes:
        return b"".join(self.pages[page][1] if page in self.pages else bytes(PAGE) for page in range(self.size))

    def ranges(self) -> list[tuple[int, int]]:
        return _ranges(set(self.pages), set())

    def difference(self, previous: "State") -> list[tuple[int, int]]:
        written = {page for page, (number, _) in self.pages.items() if number > previous.changes}
        cleared = {page for page, number in self.cleared.items() if number > previous.changes}
        return _ranges(written, cleared | {page for page in previous.pages if page not in self.pages and page < self.size})


def _ranges(written: set[int], cleared: set[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int, bool]] = []
    for page in sorted(written | cleared):
        start, end, gone = page * PAGE, (page + 1) * PAGE, page in cleared
        if found and found[-1][1:] == (start, gone):
            found[-1] = (found[-1][0], end, gone)
        else:
            found.append((start, end, gone))
    return [(-start, -end) if gone else (start, end) for start, end, gone in found]


class Run:
    """One blob, its model, and its existing snapshots."""

    def __init__(self, box: Box, chance: random.Random) -> None:
        self.box = box
        self.chance = chance
        self.state = State({}, {}, PAGES, 0)
        self.has_snapshots = False
        self.snapshots: dict[str, State] = {}
        assert create(box, PAGES * PAGE).status == 201

    def step(self) -> None:
        steps: list[tuple[Callable[[], None], int]] = [
            (self.write, 50),
            (self.clear, 15),
            (self.resize, 5),
            (self.snapshot, 8),
            (self.drop_snapshot, 4),
            (self.collect, 4),
            (self.check, 10),
        ]
        self.chance.choices([step for step, _ in steps], [weight for _, weight in steps])[0]()

    def write(self) -> None:
        if not self.state.size:
            return
        first, count = self.place(self.chance.choice([1, 2, 8, 128, 129, 300]))  # at most 128 pages are stored inline
        data = self.chance.randbytes(count * PAGE)
        assert write(self.box, first * PAGE, data).status == 201
        self.state.changes += 1
        for number in range(count):
            self.state.cleared.pop(first + number, None)
            self.state.pages[first + number] = (self.state.changes, data[number * PAGE : (number + 1) * PAGE])

    def clear(self) -> None:
        if not self.state.size:
            return
        first, count = self.place(self.chance.choice([1, 3, 50, 400]))
        assert clear(self.box, first * PAGE, (first + count) * PAGE).status == 201
        self.state.changes += 1
        for page in range(first, first + count):
            if self.state.pages.pop(page, None) is not None or page in self.state.cleared:
                self.state.cleared |= {page: self.state.changes} if self.has_snapshots else {}

    def place(self, count: int) -> tuple[int, int]:
        count = min(count, self.state.size)
        return self.chance.randrange(self.state.size - count + 1), count

    def resize(self) -> None:
        size = self.chance.choice([PAGES, PAGES, self.chance.randrange(PAGES)])
        assert resize(self.box, size * PAGE).status == 200
        self.state.size = size
        self.state.pages = {page: kept for page, kept in self.state.pages.items() if page < size}
        self.state.cleared = {page: number for page, number in self.state.cleared.items() if page < size}

    def snapshot(self) -> None:
        self.has_snapshots = True
        self.snapshots[snapshot(self.box)] = self.state.copy()

    def drop_snapshot(self) -> None:
        if self.snapshots:
            name = self.chance.choice(sorted(self.snapshots))
            assert self.box.blob("DELETE", query={"snapshot": name}).status == 202
            del self.snapshots[name]

    def collect(self) -> None:
        self.box.server.move_clock(120)  # beyond the horizon: garbage is really removed
        self.box.server.run(self.box.server.app.collector.collect())

    def check(self) -> None:
        assert self.box.get().body == self.state.bytes()
        assert ranges(self.box) == self.state.ranges()
        for name, kept in self.snapshots.items():
            assert self.box.get(query={"snapshot": name}).body == kept.bytes()
            assert ranges(self.box, snapshot=name) == kept.ranges()
            assert ranges(self.box, prevsnapshot=name) == self.state.difference(kept)
        names = sorted(self.snapshots)
        for older, newer in pairwise(names):
            expected = self.snapshots[newer].difference(self.snapshots[older])
            assert ranges(self.box, prevsnapshot=older, snapshot=newer) == expected
        for name, kept in [("", self.state), *self.snapshots.items()]:
            if kept.size:
                self.check_range(kept, {"snapshot": name} if name else {})

    def check_range(self, state: State, query: dict[str, str]) -> None:
        """A few bytes at a random position, mostly inside an interval."""
        start = self.chance.randrange(state.size * PAGE)
        end = min(state.size * PAGE, start + self.chance.choice([1, 700, 5000]))
        asked = {"x-ms-range": f"bytes={start}-{end - 1}"}
        assert self.box.get(headers=asked, query=query).body == state.bytes()[start:end]
        pages = range(start // PAGE, (end - 1) // PAGE + 1)
        assert ranges(self.box, asked, **query) == _ranges({page for page in pages if page in state.pages}, set())


@pytest.mark.parametrize("number", range(3))
def test_random_changes_agree_with_a_model_and_leave_nothing_behind(
    box: Box, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # contract G2, G3
    seed = int(os.environ.get("VERDITER_SEED") or random.randrange(1 << 32))
    print(f"VERDITER_SEED={seed}")  # shown when the test fails
    monkeypatch.setattr("verditer.services.content.compaction.COMPACT_ABOVE_BYTES", 1 << 16)  # compact often
    before = stored(box.server)
    run = Run(box, random.Random(seed))
    for _ in range(STEPS):
        run.step()
    run.check()
    if number == 0:
        assert create(box, PAGE).status == 201  # snapshots remain after the blob was overwritten
        run.state, run.box = State({}, {}, 1, 0), box
        for name, kept in run.snapshots.items():
            assert box.get(query={"snapshot": name}).body == kept.bytes()
    if number == 1:
        assert box.container("DELETE").status == 202
    else:
        assert box.blob("DELETE", headers={"x-ms-delete-snapshots": "include"}).status == 202
    run.collect()  # releases the extents
    run.collect()  # removes them
    assert stored(box.server) <= before


def stored(server: Running) -> set[str]:
    """Every row of interval maps, and every extent."""

    def look(tx: Transaction) -> set[str]:
        return {f"{kind.TABLE} {row.key().hex()}" for kind in KINDS for row in tx.scan(kind, EVERYTHING)}

    async def extents() -> set[str]:
        return {extent async for extent, _ in server.app.ctx.extents.list()}

    return server.run(server.app.ctx.engine.read((), look, long=True)) | server.run(extents())
