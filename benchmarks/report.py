"""The report: ratios, budgets and verdicts as a Markdown table, with the setup that the numbers belong to."""

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from benchmarks.driver import Answer, Plan
from benchmarks.question import Against, Budget, Question
from benchmarks.sides import RIVAL


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Answers that share their two sides."""

    title: str
    theirs: str
    ours: str
    answers: Sequence[Answer]


def ratio(question: Question, ours: float, other: float) -> float:
    """How many times better `ours` is: above 1 is good, whether more or less of the unit is."""
    over, under = (ours, other) if question.unit.more_is_better else (other, ours)
    return over / under if under else float("inf")


def is_short(answer: Answer) -> bool:
    """The budget is missed, or there is no number to say otherwise."""
    budget = answer.question.budget
    if answer.invalid:
        return True
    if budget is None:
        return False
    if budget.against is Against.NOTHING:
        return answer.ours > budget.limit
    other = answer.theirs if budget.against is Against.OTHER else answer.bare
    assert other is not None
    return ratio(answer.question, answer.ours, other) < budget.limit


def document(tables: Sequence[Table], plan: Plan, load_average: float) -> str:
    how = f"Sides by turns, median of {plan.rounds} rounds of {plan.seconds:g} s unless the question fixes its own rounds."
    key = "A ratio above 1 means the right side is better. Servers have default settings, each on its own folder on a disk."
    parts = [
        f"# Benchmarks, {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        setup_text(load_average),
        f"{how} {key}",
        *map(table_text, tables),
    ]
    return "\n\n".join(parts) + "\n"


def table_text(table: Table) -> str:
    header = f"| question | connections | {table.theirs} | {table.ours} | ratio | budget | verdict |"
    lines = [f"## {table.title}", "", header, "|---|--:|--:|--:|--:|---|---|"]
    return "\n".join([*lines, *map(row, table.answers)])


def row(answer: Answer) -> str:
    question = answer.question
    connections = str(question.connections or "")
    if answer.invalid:
        return f"| {question.name} | {connections} | | | | {budget_text(answer)} | invalid: {answer.invalid} |"
    theirs, ours = (f"{value:.{question.unit.digits}f} {question.unit.name}" for value in (answer.theirs, answer.ours))
    times = f"{ratio(question, answer.ours, answer.theirs):.2f}"
    verdict = "" if question.budget is None else "short" if is_short(answer) else "ok"
    return f"| {question.name} | {connections} | {theirs} | {ours} | {times} | {budget_text(answer)} | {verdict} |"


def budget_text(answer: Answer) -> str:
    question, budget = answer.question, answer.question.budget
    match budget:
        case None:
            return ""
        case Budget(against=Against.NOTHING):
            return f"≤ {budget.limit:g} {question.unit.name}"
        case Budget(against=Against.OTHER):
            return f"≥ {budget.limit:.3g}×"
        case _ if answer.bare is None:
            return f"≥ {budget.limit:g} of bare"
        case _:
            reached = ratio(question, answer.ours, answer.bare)
            return f"≥ {budget.limit:g} of bare {answer.bare:.0f} {question.unit.name} (is {reached:.2f})"


def setup_text(load_average: float) -> str:
    """The machine and the programs. Others' work on the machine shows in the load average, taken before the run."""
    node = RIVAL / "node_modules" / ".bin" / "node"
    node_version = (
        subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip() if node.exists() else "-"
    )
    machine = f"{os.cpu_count()} cores ({processor()}), {platform.system()} {platform.release()}"
    programs = f"Python {platform.python_version()}, Node {node_version}, wrk with one thread"
    return f"{machine}; {programs}; load average before the run {load_average:.2f}."


def processor() -> str:
    with open("/proc/cpuinfo") as lines:
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
