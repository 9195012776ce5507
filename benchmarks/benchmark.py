"""The type of a benchmark: how it prepares a server, what it measures in which unit, and the budget for the result.

The benchmarks are rows of the table in `cases/__init__.py`. `driver` runs them and `report` compares the results with budgets.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from benchmarks.servers import Server


class Invalid(Exception):
    """A round without a valid number: refused requests, broken connections, or a server that stopped."""


class Unsupported(Invalid):
    """A server does not support what is measured. If it is the other side, only Verditer is measured."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """What a number counts. Units of work need a warm server; memory and start times do not."""

    name: str
    more_is_better: bool
    digits: int
    warm: bool = False


PER_SECOND = Unit(name="/s", more_is_better=True, digits=0, warm=True)
MIB_PER_SECOND = Unit(name="MiB/s", more_is_better=True, digits=0, warm=True)
MEGABYTES = Unit(name="MB", more_is_better=False, digits=1)
SECONDS = Unit(name="s", more_is_better=False, digits=2)
CPU_MICROSECONDS = Unit(name="µs", more_is_better=False, digits=0, warm=True)


class Against(Enum):
    OTHER = "the other side"  # a ratio to Azurite, to another revision, or to Verditer with few objects
    BARE = "bare"  # a ratio to the bare loop of bare.py
    NOTHING = "nothing"  # Verditer's own number, in the benchmark's unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A lower limit of a ratio ("how many times better") or an upper limit of Verditer's own number. An `optional` budget is
    ignored if the other side does not support the benchmark."""

    against: Against
    limit: float
    optional: bool = False


def times(limit: float, *, optional: bool = False) -> Budget:
    return Budget(against=Against.OTHER, limit=limit, optional=optional)


def of_bare(limit: float) -> Budget:
    return Budget(against=Against.BARE, limit=limit)


def at_most(limit: float) -> Budget:
    return Budget(against=Against.NOTHING, limit=limit)


@dataclass(frozen=True, kw_only=True, slots=True)
class Load:
    connections: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """The number of one round; `detail` is shown in the progress line only."""

    value: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Benchmark:
    name: str
    connections: int
    unit: Unit
    budget: Budget | None
    prepare: Callable[[Server], None]
    measure: Callable[[Server, Load], Reading]
    service: str = "blob"
    rounds: int | None = None  # fixed if the --rounds of the run would be too few or take too long
    note: str = ""  # a footnote of the report

    @property
    def has_bare(self) -> bool:
        return self.budget is not None and self.budget.against is Against.BARE

    def ratio(self, ours: float, other: float) -> float:
        """How many times better `ours` is. Above 1 is better, also for units of which less is better."""
        over, under = (ours, other) if self.unit.more_is_better else (other, ours)
        return over / under if under else float("inf")
