"""The command line: `python -m benchmarks [names…]`. The exit status is 0 if every budget is met, 1 if one is missed, and 2 if
nothing could be measured."""

import argparse
import dataclasses
import pstats
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import driver, machine, report, shared_store, sides, wrk
from benchmarks.benchmark import Benchmark, Load, times
from benchmarks.cases import (
    BENCHMARKS,
    FILE_DEPTH,
    FILE_GROWTH,
    FILES,
    GROWTH,
    ON_POSTGRES,
    ON_S3,
    SMB,
    TABLE_GROWTH,
    entities,
    file_growth,
    growth,
)
from benchmarks.driver import Plan
from benchmarks.report import Table
from benchmarks.servers import ROOT, CannotMeasure, Side, ending, require_disk

NO_SLOWER = times(0.95, optional=True)  # what a change has to keep of the speed of its base


def main() -> int:
    arguments = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))  # so that started servers are stopped
    wrk.require_wrk()
    if arguments.shared or arguments.save:
        shared_store.require_s3()  # now rather than after all other benchmarks
    require_disk(arguments.folder)
    plan = Plan(seconds=arguments.seconds, rounds=arguments.rounds, folder=arguments.folder)
    if arguments.profile:
        return profile(arguments.profile, plan)
    facts = machine.facts(plan.folder)  # before the run: the load average shows other work on the machine
    tables = measure(arguments, plan)
    publish(report.document(tables, plan, facts), save=arguments.save)
    return int(any(report.is_short(result) for table in tables for result in table.results))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench", description="Measure Verditer and Azurite alternately in one run.")
    parser.add_argument("benchmarks", nargs="*", help="names of benchmarks, all by default; see benchmarks/cases")
    parser.add_argument("--seconds", type=float, default=5, help="length of a round")
    parser.add_argument("--rounds", type=int, default=3, help="odd, so that the median is a measured value")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), help="a folder on the disk to measure")
    parser.add_argument("--sides", default="azurite,verditer", help="any two of azurite, verditer, or a git revision of Verditer")
    parser.add_argument("--base", metavar="REV", help="compare with Verditer at this git revision instead of Azurite")
    parser.add_argument("--million", action="store_true", help="only compare Verditer with a thousand blobs and with a million")
    parser.add_argument("--objects", type=int, default=1_000_000, help="number of blobs to use for --million, for a short trial")
    parser.add_argument(
        "--entities",
        type=int,
        nargs="?",
        const=10_000_000,
        metavar="COUNT",
        help="only compare Verditer with ten thousand entities and with COUNT (default: ten million;"
        " storing them takes some minutes and 6 GB)",
    )
    parser.add_argument("--shared", action="store_true", help="only compare PostgreSQL and S3 with the embedded store")
    parser.add_argument("--profile", metavar="BENCHMARK", help="profile Verditer's main thread under this load")
    parser.add_argument("--save", action="store_true", help="run everything including growth, and write docs/benchmarks.md")
    arguments = parser.parse_args()
    if arguments.save and arguments.base:
        parser.error("--save writes the comparison with Azurite and cannot be combined with --base")
    return arguments


def measure(arguments: argparse.Namespace, plan: Plan) -> list[Table]:
    alone = (arguments.million or arguments.entities or arguments.shared) and not arguments.save
    comparisons = () if alone else BENCHMARKS
    file_benchmarks, smb_benchmarks = ((), ()) if alone or arguments.base else (FILES, SMB)
    growth_benchmarks, file_growth_benchmarks, file_depth_benchmarks = (
        (GROWTH, FILE_GROWTH, FILE_DEPTH) if arguments.million or arguments.save else ((), (), ())
    )
    table_benchmarks = TABLE_GROWTH if arguments.entities else ()
    shared = (*ON_POSTGRES, *ON_S3) if arguments.shared or arguments.save else ()
    grown = [*shared, *growth_benchmarks, *file_growth_benchmarks, *file_depth_benchmarks, *table_benchmarks]
    check_names(arguments.benchmarks, [*comparisons, *file_benchmarks, *smb_benchmarks, *grown])
    tables = []
    if benchmarks := chosen(comparisons, arguments.benchmarks):
        tables.append(measure_sides(benchmarks, arguments, plan))
    if benchmarks := chosen(file_benchmarks, arguments.benchmarks):
        tables.append(measure_files(benchmarks, arguments, plan))
    if benchmarks := chosen(smb_benchmarks, arguments.benchmarks):
        tables.append(measure_smb(benchmarks, arguments, plan))
    if benchmarks := chosen(growth_benchmarks, arguments.benchmarks):
        tables.append(measure_growth(benchmarks, arguments, plan, growth.fill, (growth.FEW, arguments.objects), "as it grows"))
    if benchmarks := chosen(file_growth_benchmarks, arguments.benchmarks):
        counts = (growth.FEW, arguments.objects)
        title = "as a directory of files grows"
        tables.append(measure_growth(benchmarks, arguments, plan, file_growth.fill, counts, title, "file"))
    if benchmarks := chosen(file_depth_benchmarks, arguments.benchmarks):
        title = "as directories are nested"
        tables.append(measure_growth(benchmarks, arguments, plan, file_growth.nest, file_growth.DEPTHS, title, "file"))
    if benchmarks := chosen(table_benchmarks, arguments.benchmarks):
        counts = (entities.FEWEST, arguments.entities)
        tables.append(measure_growth(benchmarks, arguments, plan, entities.fill, counts, "as its tables grow"))
    if arguments.shared or arguments.save:
        for found, with_s3 in ((chosen(ON_POSTGRES, arguments.benchmarks), False), (chosen(ON_S3, arguments.benchmarks), True)):
            if found:
                tables.append(measure_shared(found, plan, with_s3=with_s3))
    return tables


def check_names(names: Sequence[str], benchmarks: Sequence[Benchmark]) -> None:
    known = {benchmark.name for benchmark in benchmarks}
    if unknown := set(names) - known:
        raise CannotMeasure(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(sorted(known))}")


def chosen(benchmarks: Sequence[Benchmark], names: Sequence[str]) -> list[Benchmark]:
    """The rows with these names, or all rows."""
    return [benchmark for benchmark in benchmarks if not names or benchmark.name in names]


def measure_sides(benchmarks: list[Benchmark], arguments: argparse.Namespace, plan: Plan) -> Table:
    if arguments.base:
        benchmarks = [
            dataclasses.replace(benchmark, budget=NO_SLOWER) if benchmark.unit.warm else benchmark for benchmark in benchmarks
        ]
    with ExitStack() as cleanup:
        theirs, ours = (cleanup.enter_context(side(name, plan)) for name in side_names(arguments))
        results = [driver.run_fresh(benchmark, theirs, ours, plan) for benchmark in benchmarks]
    return Table(title=f"{ours.label} and {theirs.label}", theirs=theirs.label, ours=ours.label, results=results)


def measure_shared(benchmarks: list[Benchmark], plan: Plan, *, with_s3: bool) -> Table:
    """A node on shared stores beside the embedded store; each benchmark has a database of its own."""
    results = []
    for benchmark in benchmarks:
        with shared_store.on_postgres(with_s3=with_s3) as ours:
            results.append(driver.run_fresh(benchmark, shared_store.embedded(), ours, plan))
    title = "Verditer on PostgreSQL and S3" if with_s3 else "Verditer on PostgreSQL"
    return Table(
        title=title, theirs="embedded, one worker", ours="PostgreSQL and S3" if with_s3 else "PostgreSQL", results=results
    )


def measure_files(benchmarks: list[Benchmark], arguments: argparse.Namespace, plan: Plan) -> Table:
    with side(side_names(arguments)[1], plan) as ours:
        results = [driver.run_services(benchmark, ours, ("blob", "file"), plan) for benchmark in benchmarks]
    return Table(title=f"Files of {ours.label} and its blobs", theirs="blobs", ours="files", results=results)


def measure_smb(benchmarks: list[Benchmark], arguments: argparse.Namespace, plan: Plan) -> Table:
    theirs = sides.samba()
    with side(side_names(arguments)[1], plan) as ours:
        results = [driver.run_fresh(benchmark, theirs, ours, plan) for benchmark in benchmarks]
    return Table(title=f"{ours.label} and {theirs.label} over SMB", theirs=theirs.label, ours=ours.label, results=results)


def measure_growth(
    benchmarks: list[Benchmark],
    arguments: argparse.Namespace,
    plan: Plan,
    fill: driver.Fill,
    counts: tuple[int, int],
    title: str,
    service: str = "blob",
) -> Table:
    with side(side_names(arguments)[1], plan) as ours:
        results = list(driver.run_grown(benchmarks, ours, fill, counts, plan, service))
    few, many = (f"with {count:,}" for count in counts)
    return Table(title=f"{ours.label} {title}", theirs=few, ours=many, results=results)


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
    """Run one benchmark against Verditer under cProfile, with one worker because the profiler does not follow a fork."""
    candidates = [*BENCHMARKS, *FILES, *SMB]
    check_names([name], candidates)
    benchmark = chosen(candidates, [name])[0]
    output = ROOT / "benchmarks" / "results" / f"{name}.prof"
    output.parent.mkdir(exist_ok=True)
    profiled = sides.verditer(wrapper=("-m", "cProfile", "-o", str(output)), options=("--workers", "1"))
    service = "file" if benchmark in FILES else benchmark.service
    with driver.running([profiled], plan.folder, service) as (server,):
        benchmark.prepare(server)
        benchmark.measure(server, Load(connections=benchmark.connections, seconds=plan.seconds))
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
