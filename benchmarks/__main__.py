"""The command line: `python -m benchmarks [questions…]`. Ends with 0 when every budget is met, 1 when one is missed, 2 when it
could not measure."""

import argparse
import dataclasses
import pstats
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import driver, machine, report, sides, wrk
from benchmarks.driver import Plan
from benchmarks.question import Load, Question, times
from benchmarks.questions import GROWTH, QUESTIONS, TABLE_GROWTH, entities, growth
from benchmarks.report import Table
from benchmarks.servers import ROOT, CannotMeasure, Side, ending, require_disk

NO_SLOWER = times(0.95, optional=True)  # what a change has to keep of its base, question by question


def main() -> int:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that started servers are ended too
    wrk.require_wrk()
    require_disk(arguments.folder)
    plan = Plan(seconds=arguments.seconds, rounds=arguments.rounds, folder=arguments.folder)
    if arguments.profile:
        return profile(arguments.profile, plan)
    facts = machine.facts(plan.folder)  # before the run: others' work on the machine shows in the load average
    tables = measure(arguments, plan)
    publish(report.document(tables, plan, facts), save=arguments.save)
    return int(any(report.is_short(answer) for table in tables for answer in table.answers))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure Verditer next to Azurite, by turns, in one run.")
    parser.add_argument("questions", nargs="*", help="names to ask, all when none is given; see benchmarks/questions")
    parser.add_argument("--seconds", type=float, default=5, help="length of a round")
    parser.add_argument("--rounds", type=int, default=3, help="odd, so that a median is a reading; more against noise")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="a folder on the disk to measure")
    parser.add_argument("--sides", default="azurite,verditer", help="any two of azurite, verditer, or a git revision of Verditer")
    parser.add_argument("--base", metavar="REV", help="compare with Verditer at this git revision instead of Azurite")
    parser.add_argument("--million", action="store_true", help="only compare Verditer holding a thousand blobs and a million")
    parser.add_argument("--objects", type=int, default=1_000_000, help="how many blobs a million is, for a short trial")
    parser.add_argument(
        "--entities",
        type=int,
        nargs="?",
        const=10_000_000,
        metavar="COUNT",
        help="only compare Verditer holding ten thousand entities and this many, ten million when no number is given:"
        " stored in batches of a hundred, some minutes and 6 GB for ten million",
    )
    parser.add_argument("--profile", metavar="QUESTION", help="where Verditer's main thread spends its time under this load")
    parser.add_argument("--save", action="store_true", help="ask everything, growth too, and write docs/benchmarks.md")
    arguments = parser.parse_args()
    if arguments.save and arguments.base:
        parser.error("--save writes down the comparison with Azurite, --base is another one")
    return arguments


def measure(arguments: argparse.Namespace, plan: Plan) -> list[Table]:
    alone = (arguments.million or arguments.entities) and not arguments.save
    sides_asked = () if alone else QUESTIONS
    growth_asked = GROWTH if arguments.million or arguments.save else ()
    entities_asked = TABLE_GROWTH if arguments.entities else ()
    check_names(arguments.questions, [*sides_asked, *growth_asked, *entities_asked])
    tables = []
    if questions := chosen(sides_asked, arguments.questions):
        tables.append(measure_sides(questions, arguments, plan))
    if questions := chosen(growth_asked, arguments.questions):
        tables.append(measure_growth(questions, arguments, plan, growth.fill, (growth.FEW, arguments.objects), "as it grows"))
    if questions := chosen(entities_asked, arguments.questions):
        counts = (entities.FEWEST, arguments.entities)
        tables.append(measure_growth(questions, arguments, plan, entities.fill, counts, "as its tables grow"))
    return tables


def check_names(names: Sequence[str], questions: Sequence[Question]) -> None:
    known = {question.name for question in questions}
    if unknown := set(names) - known:
        raise CannotMeasure(f"no such question: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")


def chosen(questions: Sequence[Question], names: Sequence[str]) -> list[Question]:
    """The rows of these names, or all."""
    return [question for question in questions if not names or question.name in names]


def measure_sides(questions: list[Question], arguments: argparse.Namespace, plan: Plan) -> Table:
    if arguments.base:
        questions = [
            dataclasses.replace(question, budget=NO_SLOWER) if question.unit.warm else question for question in questions
        ]
    with ExitStack() as cleanup:
        theirs, ours = (cleanup.enter_context(side(name, plan)) for name in side_names(arguments))
        answers = [driver.ask_fresh(question, theirs, ours, plan) for question in questions]
    return Table(title=f"{ours.label} and {theirs.label}", theirs=theirs.label, ours=ours.label, answers=answers)


def measure_growth(
    questions: list[Question], arguments: argparse.Namespace, plan: Plan, fill: driver.Fill, counts: tuple[int, int], title: str
) -> Table:
    with side(side_names(arguments)[1], plan) as ours:
        answers = list(driver.ask_grown(questions, ours, fill, counts, plan))
    few, many = (f"with {count:,}" for count in counts)
    return Table(title=f"{ours.label} {title}", theirs=few, ours=many, answers=answers)


def side_names(arguments: argparse.Namespace) -> list[str]:
    names = [arguments.base, "verditer"] if arguments.base else arguments.sides.split(",")
    if len(names) != 2:
        raise CannotMeasure(f"--sides takes two names, not {arguments.sides}")
    return names


def side(name: str, plan: Plan) -> AbstractContextManager[Side]:
    match name:
        case "azurite":
            return nullcontext(sides.azurite())
        case "verditer":
            return nullcontext(sides.verditer())
        case _:
            return sides.revision(name, plan.folder)


def profile(name: str, plan: Plan) -> int:
    """The question's load against our server alone, under cProfile: one process, for a profiler does not follow a fork."""
    check_names([name], QUESTIONS)
    question = chosen(QUESTIONS, [name])[0]
    output = ROOT / "benchmarks" / "results" / f"{name}.prof"
    output.parent.mkdir(exist_ok=True)
    profiled = sides.verditer(wrapper=("-m", "cProfile", "-o", str(output)), options=("--workers", "1"))
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
    sys.exit(ending(main))
