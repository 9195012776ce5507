"""The report: ratios, budgets and verdicts as Markdown tables, with the setup that the numbers belong to."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.driver import Answer, Plan
from benchmarks.question import Against, Budget, Question, Unit


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Answers that share their two sides."""

    title: str
    theirs: str
    ours: str
    answers: Sequence[Answer]


def is_short(answer: Answer) -> bool:
    """The budget is missed, or there is no number to say otherwise."""
    budget = answer.question.budget
    if answer.invalid:
        return True
    if budget is None:
        return False
    if budget.against is Against.NOTHING:
        return answer.ours > budget.limit
    reached = answer.ratio if budget.against is Against.OTHER else answer.bare_ratio
    return reached < budget.limit if reached is not None else not budget.optional


def document(tables: Sequence[Table], plan: Plan, facts: Sequence[str]) -> str:
    questions = [answer.question for table in tables for answer in table.answers]
    parts = [
        f"# Benchmarks\n\n{INTRODUCTION}",
        *map(table_text, tables),
        f"## What the rows ask\n\n{meanings(questions)}",
        f"## How it was measured\n\n{METHOD.format(rounds=plan.rounds, seconds=plan.seconds)}",
        "## Where and when it was measured\n\n" + "\n".join(f"- {fact}" for fact in facts),
    ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """\
Printed by `make bench`. The ratio says how many times better the right column is than the left one; it lasts, while the absolute
numbers belong to the machine and the hour. A budget is what Verditer sets itself: a ratio to the left column, a part of what a
bare loop reaches, or a bound on its own number."""

METHOD = """\
- The sides run on the same machine with their default settings, each on a folder of its own on the same disk. Verditer syncs
  every write before it answers.
- Each question starts its servers anew, fills them and warms them up. Then the sides are asked by turns, the order reversed from
  round to round; a side is held while the other is asked. Rounds: {rounds}, {seconds:g} s each, unless a question fixes its own
  (5 for large blobs and starts, 1 for the memory of streaming and for upserts). For growth, two servers are filled once for all
  questions: one container with that many blobs, and another with as many, tagged, below one folder; where tables grow, one table
  with that many entities.
- A number is the median of its rounds, the ratio the median of the rounds' ratios. A single refused request makes a row invalid.
- The load comes from wrk over loopback with a SAS made beforehand, so that clients sign nothing while they measure. Large bodies
  come from a plain socket in a process of its own.
- The bare loop is a few lines of Python around a socket: reading, MD5, writing and one sync for a put; reading a file and sending
  it for a get."""


def table_text(table: Table) -> str:
    header = f"| question | connections | {table.theirs} | {table.ours} | ratio | budget | verdict |"
    notes = list(dict.fromkeys(answer.question.note for answer in table.answers if answer.question.note))
    rows = [row(answer, notes) for answer in table.answers]
    footnotes = [f"\n[{number}] {note}" for number, note in enumerate(notes, 1)]
    return "\n".join([f"## {table.title}", "", header, "|---|--:|--:|--:|--:|---|---|", *rows, *footnotes])


def row(answer: Answer, notes: Sequence[str]) -> str:
    question = answer.question
    mark = f" [{notes.index(question.note) + 1}]" if question.note else ""
    first = f"| {question.name}{mark} | {question.connections or ''} |"
    if answer.invalid:
        return f"{first} | | | {budget_text(answer)} | invalid: {answer.invalid} |"
    times = f"{answer.ratio:.2f}" if answer.ratio is not None else "-"
    numbers = f"{show(answer.theirs, question.unit)} | {show(answer.ours, question.unit)} | {times}"
    return f"{first} {numbers} | {budget_text(answer)} | {verdict(answer)} |"


def show(value: float | None, unit: Unit) -> str:
    return "-" if value is None else f"{value:.{unit.digits}f} {unit.name}"


def verdict(answer: Answer) -> str:
    if is_short(answer):
        return "short"
    if answer.alone:
        return f"not compared: {answer.alone}"
    return "ok" if answer.question.budget is not None else ""


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
            return f"≥ {budget.limit:g} of bare {show(answer.bare, question.unit)} (is {answer.bare_ratio:.2f})"


def meanings(questions: Sequence[Question]) -> str:
    """What the file of each subject asks in its first lines, and the rows it belongs to."""
    rows: dict[str, list[str]] = {}
    for question in questions:
        asks = (sys.modules[question.measure.__module__].__doc__ or "").partition("\n\n")[0]
        rows.setdefault(" ".join(asks.split()), []).append(f"`{question.name}`")
    return "\n".join(f"- {', '.join(dict.fromkeys(names))}: {asks}" for asks, names in rows.items())
