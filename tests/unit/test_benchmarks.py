"""Budgets of benchmarks: which result misses its budget, and how the report shows it."""

from dataclasses import replace

import pytest

from benchmarks.benchmark import PER_SECOND, SECONDS, Benchmark, Budget, Load, Reading, at_most, of_bare, times
from benchmarks.cases import BENCHMARKS, FILE_DEPTH, FILE_GROWTH, FILES, GROWTH
from benchmarks.driver import Result, summary
from benchmarks.report import Table, is_short, row, table_text
from benchmarks.servers import Server


def nothing(server: Server) -> None:
    """No preparation."""


def measure(server: Server, load: Load) -> Reading:
    return Reading(value=0)


ASKED = Benchmark("asked", 16, PER_SECOND, None, nothing, measure)


def result(budget: Budget | None, theirs: list[float], ours: list[float], bare: list[float] | None = None) -> Result:
    benchmark = replace(ASKED, budget=budget)
    return summary(benchmark, [theirs, ours, *([bare] if bare else [])], "" if theirs else "it refused")


@pytest.mark.parametrize(
    ("budget", "theirs", "ours", "bare", "short"),
    [
        (None, [100], [1], None, False),
        (times(8), [100], [800], None, False),
        (times(8), [100], [799], None, True),
        (times(8), [], [800], None, True),  # no number shows that it is met
        (times(0.95, optional=True), [], [800], None, False),  # the base did not support it yet
        (at_most(80), [1], [80], None, False),
        (at_most(80), [100], [81], None, True),
        (at_most(80), [], [81], None, True),
        (of_bare(0.8), [1], [80], [100], False),
        (of_bare(0.8), [1], [79], [100], True),
    ],
)
def test_an_answer_is_short_when_its_budget_is_missed_or_cannot_be_judged(
    budget: Budget | None, theirs: list[float], ours: list[float], bare: list[float] | None, short: bool
) -> None:
    assert is_short(result(budget, theirs, ours, bare)) is short


def test_an_answer_without_numbers_is_short() -> None:
    assert is_short(Result(benchmark=ASKED, invalid="a server went away"))


def test_a_slow_round_of_all_sides_leaves_the_ratio_as_it_is() -> None:
    """The ratio of the medians of the sides, 100 and 220, would be 2.2."""
    assert result(None, [100, 50, 110], [200, 220, 220]).ratio == 2


def test_less_is_better_where_the_unit_says_so() -> None:
    assert replace(ASKED, unit=SECONDS).ratio(0.5, 2.0) == 4


def test_a_side_that_cannot_do_it_is_shown_by_a_dash_and_the_reason() -> None:
    assert row(result(None, [], [10]), []) == "| asked | 16 | - | 10 /s | - |  | not compared: it refused |"


def test_a_note_is_printed_once_below_the_table() -> None:
    noted = replace(result(None, [1], [2]), benchmark=replace(ASKED, note="Mind this."))
    text = table_text(Table(title="Two", theirs="left", ours="right", results=[noted, noted]))
    assert text.count("asked [1]") == 2
    assert text.count("[1] Mind this.") == 1


def test_no_benchmark_is_listed_twice() -> None:
    asked = [(benchmark.name, benchmark.connections) for benchmark in (*BENCHMARKS, *FILES, *GROWTH, *FILE_GROWTH, *FILE_DEPTH)]
    assert len(asked) == len(set(asked))
