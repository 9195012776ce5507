"""The report: ratios, budgets and verdicts as Markdown tables, with a description of the setup."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.benchmark import Against, Benchmark, Budget, Unit
from benchmarks.driver import Plan, Result


@dataclass(frozen=True, kw_only=True, slots=True)
class Table:
    """Results that compare the same two sides."""

    title: str
    theirs: str
    ours: str
    results: Sequence[Result]


def is_short(result: Result) -> bool:
    """The budget is missed, or there is no number that shows that it is met."""
    budget = result.benchmark.budget
    if result.invalid:
        return True
    if budget is None:
        return False
    if budget.against is Against.NOTHING:
        return result.ours > budget.limit
    reached = result.ratio if budget.against is Against.OTHER else result.bare_ratio
    return reached < budget.limit if reached is not None else not budget.optional


def document(tables: Sequence[Table], plan: Plan, facts: Sequence[str]) -> str:
    benchmarks = [result.benchmark for table in tables for result in table.results]
    parts = [
        f"# Benchmarks\n\n{INTRODUCTION}",
        *map(table_text, tables),
        f"## What the rows measure\n\n{meanings(benchmarks)}",
        f"## How it was measured\n\n{METHOD.format(rounds=plan.rounds, seconds=plan.seconds)}",
        "## Where and when it was measured\n\n" + "\n".join(f"- {fact}" for fact in facts),
    ]
    return "\n\n".join(parts) + "\n"


INTRODUCTION = """\
`make bench` prints this page. The ratio says how many times better the right column is than the left one. Ratios are comparable
between runs; absolute numbers depend on the machine and its load. A budget is Verditer's target: a ratio to the left column, a
fraction of the speed of a minimal loop ("bare"), or a limit for its own number. A missed budget has the verdict "short"."""

METHOD = """\
- All servers run on the same machine with their default settings, each with its own folder on the same disk. Verditer syncs
  every write before it answers.
- Each benchmark starts new servers, fills them and warms them up. Then the servers are measured alternately, in reversed order
  every second round; a server is suspended while another one is measured. Rounds: {rounds}, {seconds:g} s each, unless a
  benchmark sets its own (5 for large blobs and starts, 1 for streaming memory and upserts). For growth, two servers are filled
  once for all benchmarks: one container with that many blobs, and another one with as many tagged blobs below one folder; for
  table growth, one table with that many entities; for files, one directory with that many files, or that many directories
  inside each other.
- A number is the median of its rounds; the ratio is the median of the ratios of the rounds. A single refused request makes a
  row invalid.
- wrk generates the load over loopback with a SAS made beforehand, so that clients sign nothing during the measurement. Large
  bodies come from a plain socket in a separate process. Over SMB, small requests come from a Go program with one session per
  connection, and large files from smbclient.
- Samba runs with `strict sync = yes`, `sync always = yes`, mandatory signing and without oplocks, leases, streams and extended
  attributes, so that both servers promise the same.
- The minimal loop is a few lines of Python around a socket: reading, MD5, writing and one sync for a put; reading a file and
  sending it for a get."""


def table_text(table: Table) -> str:
    header = f"| benchmark | connections | {table.theirs} | {table.ours} | ratio | budget | verdict |"
    notes = list(dict.fromkeys(result.benchmark.note for result in table.results if result.benchmark.note))
    rows = [row(result, notes) for result in table.results]
    footnotes = [f"\n[{number}] {note}" for number, note in enumerate(notes, 1)]
    return "\n".join([f"## {table.title}", "", header, "|---|--:|--:|--:|--:|---|---|", *rows, *footnotes])


def row(result: Result, notes: Sequence[str]) -> str:
    benchmark = result.benchmark
    footnote = f" [{notes.index(benchmark.note) + 1}]" if benchmark.note else ""
    first = f"| {benchmark.name}{footnote} | {benchmark.connections or ''} |"
    if result.invalid:
        return f"{first} | | | {budget_text(result)} | invalid: {result.invalid} |"
    times = f"{result.ratio:.2f}" if result.ratio is not None else "-"
    numbers = f"{show(result.theirs, benchmark.unit)} | {show(result.ours, benchmark.unit)} | {times}"
    return f"{first} {numbers} | {budget_text(result)} | {verdict(result)} |"


def show(value: float | None, unit: Unit) -> str:
    return "-" if value is None else f"{value:.{unit.digits}f} {unit.name}"


def verdict(result: Result) -> str:
    if is_short(result):
        return "short"
    if result.alone:
        return f"not compared: {result.alone}"
    return "ok" if result.benchmark.budget is not None else ""


def budget_text(result: Result) -> str:
    benchmark, budget = result.benchmark, result.benchmark.budget
    match budget:
        case None:
            return ""
        case Budget(against=Against.NOTHING):
            return f"≤ {budget.limit:g} {benchmark.unit.name}"
        case Budget(against=Against.OTHER):
            return f"≥ {budget.limit:.3g}×"
        case _ if result.bare is None:
            return f"≥ {budget.limit:g} of bare"
        case _:
            return f"≥ {budget.limit:g} of bare {show(result.bare, benchmark.unit)} (is {result.bare_ratio:.2f})"


def meanings(benchmarks: Sequence[Benchmark]) -> str:
    """The first paragraph of the docstring of each module of `cases`, and the rows that it belongs to."""
    rows: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        text = (sys.modules[benchmark.measure.__module__].__doc__ or "").partition("\n\n")[0]
        rows.setdefault(" ".join(text.split()), []).append(f"`{benchmark.name}`")
    return "\n".join(f"- {', '.join(dict.fromkeys(names))}: {text}" for text, names in rows.items())
