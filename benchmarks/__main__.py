"""The command line: `python -m benchmarks [questions…]`. Ends with 0 when every budget is met, 1 when one is missed, 2 when it
could not measure."""

import argparse
import dataclasses
import pstats
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import driver, report, sides, wrk
from benchmarks.driver import Plan
from benchmarks.question import Load, Question, times
from benchmarks.questions import GROWTH, QUESTIONS, growth
from benchmarks.report import Table
from benchmarks.servers import ROOT, CannotMeasure, Side, require_disk

NO_SLOWER = times(0.95)  # what a change has to keep of its base, question by question


def main() -> int:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that started servers are ended too
    wrk.require_wrk()
    require_disk(arguments.folder)
    plan = Plan(seconds=arguments.seconds, rounds=arguments.rounds, folder=arguments.folder)
    if arguments.profile:
        return profile(arguments.profile, plan)
    setup = report.setup_text()
    tables = [measure_growth(arguments, plan)] if arguments.million else [measure_sides(arguments, plan)]
    publish(report.document(tables, plan, setup), save=arguments.save)
    return int(any(report.is_short(answer) for table in tables for answer in table.answers))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure Verditer next to Azurite, by turns, in one run.")
    parser.add_argument("questions", nargs="*", help="names to ask, all when none is given; see benchmarks/questions")
    parser.add_argument("--seconds", type=float, default=5, help="length of a round")
    parser.add_argument("--rounds", type=int, default=3, help="odd, so that a median is a reading; more against noise")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="a folder on the disk to measure")
    parser.add_argument(
        "--sides", default="azurite,verditer", help="any two of azurite and verditer; twice the same shows the noise"
    )
    parser.add_argument("--base", metavar="REV", help="compare with Verditer at this git revision instead of Azurite")
    parser.add_argument("--million", action="store_true", help="compare Verditer holding a thousand blobs and a million")
    parser.add_argument("--objects", type=int, default=1_000_000, help="how many blobs a million is, for a short trial")
    parser.add_argument("--profile", metavar="QUESTION", help="where Verditer's main thread spends its time under this load")
    parser.add_argument("--save", action="store_true", help="also write docs/benchmarks.md")
    return parser.parse_args()


def chosen(questions: Sequence[Question], names: Sequence[str]) -> list[Question]:
    """The rows of these names, or all."""
    known = {question.name for question in questions}
    if unknown := set(names) - known:
        raise CannotMeasure(f"no such question: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")
    return [question for question in questions if not names or question.name in names]


def measure_sides(arguments: argparse.Namespace, plan: Plan) -> Table:
    questions = chosen(QUESTIONS, arguments.questions)
    with ExitStack() as cleanup:
        if arguments.base:
            theirs, ours = cleanup.enter_context(sides.revision(arguments.base, plan.folder)), sides.verditer()
            questions = [
                dataclasses.replace(question, budget=NO_SLOWER) if question.unit.warm else question for question in questions
            ]
        else:
            theirs, ours = map(side, arguments.sides.split(","))
        answers = [driver.ask_fresh(question, theirs, ours, plan) for question in questions]
    return Table(title=f"{ours.label} and {theirs.label}", theirs=theirs.label, ours=ours.label, answers=answers)


def side(name: str) -> Side:
    makers = {"azurite": sides.azurite, "verditer": sides.verditer}
    if name not in makers:
        raise CannotMeasure(f"no such side: {name}; there are {', '.join(makers)}")
    return makers[name]()


def measure_growth(arguments: argparse.Namespace, plan: Plan) -> Table:
    ours = side(arguments.sides.split(",")[-1])
    answers = list(driver.ask_grown(chosen(GROWTH, arguments.questions), ours, arguments.objects, plan))
    few, many = f"{growth.FEW:,} blobs", f"{arguments.objects:,} blobs"
    return Table(title=f"{ours.label} as it grows", theirs=few, ours=many, answers=answers)


def profile(name: str, plan: Plan) -> int:
    """The question's load against our server alone, under cProfile."""
    question = chosen(QUESTIONS, [name])[0]
    output = ROOT / "benchmarks" / "results" / f"{name}.prof"
    output.parent.mkdir(exist_ok=True)
    profiled = sides.verditer(wrapper=("-m", "cProfile", "-o", str(output)))
    with driver.running([profiled], plan.folder, question.service) as (server,):
        question.prepare(server)
        question.measure(server, Load(connections=question.connections, seconds=plan.seconds))
        server.stop()
    pstats.Stats(str(output)).sort_stats("tottime").print_stats(40)
    return 0


def publish(text: str, *, save: bool) -> None:
    print(f"\n{text}")
    results = ROOT / "benchmarks" / "results"
    results.mkdir(exist_ok=True)
    (results / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.md").write_text(text)
    if save:
        (ROOT / "docs" / "benchmarks.md").write_text(text)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CannotMeasure as problem:
        print(problem)
        sys.exit(2)
