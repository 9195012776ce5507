"""The question type: what is prepared, what is measured, in which unit, and which budget the answer has to meet.

The questions themselves are rows of the table in `questions/__init__.py`; `driver` asks them and `report` judges the answers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from benchmarks.servers import Server


class Invalid(Exception):
    """A round that proves nothing: refused requests, broken connections, a server that went away."""


class Refused(Invalid):
    """A server that does not do what is asked. Where it is the other side, the question is put to ours alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """What a number counts. A unit of work asks for a server that is warm; memory and starts are taken as they come."""

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
    OTHER = "the other side"  # a ratio to Azurite, to another revision, or to ourselves with few objects
    BARE = "bare"  # a ratio to the bare loop of bare.py
    NOTHING = "nothing"  # our own number, in the question's unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Budget:
    """A limit on a ratio ("how many times better", at least) or on our own number (at most). `optional`: it does not count
    where the other side cannot do what is asked."""

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
    """One round's number; `detail` goes to the progress line only."""

    value: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    name: str
    connections: int
    unit: Unit
    budget: Budget | None
    prepare: Callable[[Server], None]
    measure: Callable[[Server, Load], Reading]
    service: str = "blob"
    rounds: int | None = None  # fixed where the run's --rounds would be too few or too long
    note: str = ""  # a footnote: what a reader of the number has to know

    @property
    def has_bare(self) -> bool:
        return self.budget is not None and self.budget.against is Against.BARE

    def ratio(self, ours: float, other: float) -> float:
        """How many times better `ours` is: above 1 is good, whether more or less of the unit is."""
        over, under = (ours, other) if self.unit.more_is_better else (other, ours)
        return over / under if under else float("inf")
