"""The driver: starts the servers of a benchmark, measures them alternately with the same load, and collects the readings."""

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from benchmarks import sides
from benchmarks.benchmark import Benchmark, Invalid, Load, Unsupported
from benchmarks.servers import CannotMeasure, Server, Side

WARM_UP_SECONDS = 4.0  # one discarded round, not longer than the others


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How long to measure, how often, and on which disk."""

    seconds: float
    rounds: int
    folder: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """Medians over the rounds. The ratios are medians of the ratios of the rounds: within a round the sides are measured shortly
    after each other, so a slowdown of the whole machine does not change the ratio."""

    benchmark: Benchmark
    theirs: float | None = None
    ours: float = 0.0
    bare: float | None = None
    ratio: float | None = None
    bare_ratio: float | None = None
    alone: str = ""  # why the other side has no number
    invalid: str = ""  # why there are no numbers at all


def run_fresh(benchmark: Benchmark, theirs: Side, ours: Side, plan: Plan) -> Result:
    """Run a benchmark on servers started for it alone."""
    chosen = [theirs, ours, *([sides.bare()] if benchmark.has_bare else [])]
    try:
        with running(chosen, plan.folder, benchmark.service) as servers:
            return run_benchmark(benchmark, servers, plan)
    except CannotMeasure as problem:
        return without_numbers(benchmark, problem)


def run_services(benchmark: Benchmark, ours: Side, services: tuple[str, str], plan: Plan) -> Result:
    """Run a benchmark on two servers of one side, each addressed at one of its services, and on the loop where it is wanted."""
    chosen = [(ours, service) for service in services] + ([(sides.bare(), services[-1])] if benchmark.has_bare else [])
    try:
        with ExitStack() as cleanup:
            servers = [cleanup.enter_context(running([side], plan.folder, service))[0] for side, service in chosen]
            return run_benchmark(benchmark, servers, plan)
    except CannotMeasure as problem:
        return without_numbers(benchmark, problem)


Fill = Callable[[Server, int], None]


def run_grown(
    benchmarks: Sequence[Benchmark], ours: Side, fill: Fill, counts: tuple[int, int], plan: Plan, service: str = "blob"
) -> Iterator[Result]:
    """Run benchmarks on Verditer with few and with many objects; each server is filled once for all benchmarks."""
    with running([ours, ours], plan.folder, service) as servers:
        try:
            for server, count in zip(servers, counts, strict=True):
                fill(server, count)
        except (CannotMeasure, Invalid) as problem:
            yield from (without_numbers(benchmark, problem) for benchmark in benchmarks)
            return
        for benchmark in benchmarks:
            yield run_benchmark(benchmark, servers, plan)


@contextmanager
def running(chosen: Sequence[Side], folder: Path, service: str = "blob") -> Iterator[list[Server]]:
    with ExitStack() as cleanup:
        servers = []
        for side in chosen:
            server = Server(side, folder, service)
            cleanup.callback(server.discard)
            server.start()
            servers.append(server)
        yield servers


def run_benchmark(benchmark: Benchmark, servers: Sequence[Server], plan: Plan) -> Result:
    """`servers` are theirs, ours and possibly the bare loop. A failure makes this result invalid and does not end the run."""
    print(f"{benchmark.name}, {benchmark.connections} connections", flush=True)
    theirs, *others = servers
    try:
        refusal = prepare(benchmark, theirs, others, plan)
        measured = others if refusal else servers
        readings = run_rounds(benchmark, measured, plan)
    except (Invalid, CannotMeasure, AssertionError, OSError, HTTPException) as problem:
        return without_numbers(benchmark, problem)
    finally:
        for server in servers:
            server.resume()
    return summary(benchmark, [[], *readings] if refusal else readings, refusal)


def prepare(benchmark: Benchmark, theirs: Server, others: Sequence[Server], plan: Plan) -> str:
    """Prepare, warm up and pause every server. Returns why the other side cannot be measured, or an empty string."""
    refusal = ""
    try:
        make_ready(benchmark, theirs, plan)
    except (Unsupported, AssertionError) as problem:
        refusal = str(problem).partition("\n")[0]
        print(f"  {theirs.side.label} is skipped: {problem}", flush=True)
        theirs.pause()
    for server in others:
        make_ready(benchmark, server, plan)
    return refusal


def make_ready(benchmark: Benchmark, server: Server, plan: Plan) -> None:
    benchmark.prepare(server)
    if benchmark.unit.warm:
        seconds = min(WARM_UP_SECONDS, plan.seconds)
        benchmark.measure(server, Load(connections=benchmark.connections, seconds=seconds))
    server.pause()


def run_rounds(benchmark: Benchmark, servers: Sequence[Server], plan: Plan) -> list[list[float]]:
    """Only the measured server runs; the others are paused, so that their background work does not affect it."""
    load = Load(connections=benchmark.connections, seconds=plan.seconds)
    readings: list[list[float]] = [[] for _ in servers]
    order = list(zip(servers, readings, strict=True))
    for _ in range(benchmark.rounds or plan.rounds):
        for server, values in order:
            os.sync()
            server.resume()
            reading = benchmark.measure(server, load)
            server.pause()
            values.append(reading.value)
            unit = benchmark.unit
            print(f"  {server.side.label:16} {reading.value:10.{unit.digits}f} {unit.name}  {reading.detail}", flush=True)
        order.reverse()  # no side always follows the same one
    return readings


def summary(benchmark: Benchmark, readings: Sequence[list[float]], refusal: str) -> Result:
    theirs, ours, *more = readings
    bare = more[0] if more else []
    return Result(
        benchmark=benchmark,
        theirs=statistics.median(theirs) if theirs else None,
        ours=statistics.median(ours),
        bare=statistics.median(bare) if bare else None,
        ratio=median_ratio(benchmark, ours, theirs),
        bare_ratio=median_ratio(benchmark, ours, bare),
        alone=refusal,
    )


def median_ratio(benchmark: Benchmark, ours: list[float], other: list[float]) -> float | None:
    return statistics.median(map(benchmark.ratio, ours, other)) if other else None


def without_numbers(benchmark: Benchmark, problem: Exception) -> Result:
    """The table shows the first line of the problem, the progress output all of it."""
    print(f"  invalid: {problem}", flush=True)
    return Result(benchmark=benchmark, invalid=str(problem).partition("\n")[0])
