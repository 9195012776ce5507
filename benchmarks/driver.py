"""The driver: starts the sides of a question, asks them by turns with the same load, and keeps every round's reading."""

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from benchmarks import sides
from benchmarks.question import Invalid, Load, Question, Refused
from benchmarks.servers import CannotMeasure, Server, Side

WARM_UP_SECONDS = 4.0  # one round that is thrown away, no longer than the others


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How long to measure, how often, and on which disk."""

    seconds: float
    rounds: int
    folder: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """Medians over the rounds. The ratios are medians too, of what the rounds gave one by one: in a round the sides follow each
    other closely, so an hour that slows all of them leaves the ratios as they are."""

    question: Question
    theirs: float | None = None
    ours: float = 0.0
    bare: float | None = None
    ratio: float | None = None
    bare_ratio: float | None = None
    alone: str = ""  # why the other side has no number
    invalid: str = ""  # why there are none at all


def ask_fresh(question: Question, theirs: Side, ours: Side, plan: Plan) -> Answer:
    """Ask on servers started for this question alone."""
    chosen = [theirs, ours, *([sides.bare()] if question.has_bare else [])]
    try:
        with running(chosen, plan.folder, question.service) as servers:
            return ask(question, servers, plan)
    except CannotMeasure as problem:
        return without_numbers(question, problem)


Fill = Callable[[Server, int], None]


def ask_grown(questions: Sequence[Question], ours: Side, fill: Fill, counts: tuple[int, int], plan: Plan) -> Iterator[Answer]:
    """Ask ourselves with few and with many objects, each stored once for all the questions."""
    with running([ours, ours], plan.folder) as servers:
        try:
            for server, count in zip(servers, counts, strict=True):
                fill(server, count)
        except (CannotMeasure, Invalid) as problem:
            yield from (without_numbers(question, problem) for question in questions)
            return
        for question in questions:
            yield ask(question, servers, plan)


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


def ask(question: Question, servers: Sequence[Server], plan: Plan) -> Answer:
    """Servers are theirs, ours and perhaps bare. What one of them cannot answer makes this answer invalid, not the run."""
    print(f"{question.name}, {question.connections} connections", flush=True)
    theirs, *others = servers
    try:
        refusal = prepare(question, theirs, others, plan)
        asked = others if refusal else servers
        readings = take_turns(question, asked, plan)
    except (Invalid, CannotMeasure, AssertionError, OSError, HTTPException) as problem:
        return without_numbers(question, problem)
    finally:
        for server in servers:
            server.resume()
    return summary(question, [[], *readings] if refusal else readings, refusal)


def prepare(question: Question, theirs: Server, others: Sequence[Server], plan: Plan) -> str:
    """Make every side ready, warm and held; when theirs cannot be, why."""
    refusal = ""
    try:
        make_ready(question, theirs, plan)
    except (Refused, AssertionError) as problem:
        refusal = str(problem).partition("\n")[0]
        print(f"  {theirs.side.label} is left out: {problem}", flush=True)
        theirs.pause()
    for server in others:
        make_ready(question, server, plan)
    return refusal


def make_ready(question: Question, server: Server, plan: Plan) -> None:
    question.prepare(server)
    if question.unit.warm:
        seconds = min(WARM_UP_SECONDS, plan.seconds)
        question.measure(server, Load(connections=question.connections, seconds=seconds))
    server.pause()


def take_turns(question: Question, servers: Sequence[Server], plan: Plan) -> list[list[float]]:
    """Only the side being measured runs; the others are held, so nobody's background work falls into another's round."""
    load = Load(connections=question.connections, seconds=plan.seconds)
    readings: list[list[float]] = [[] for _ in servers]
    turns = list(zip(servers, readings, strict=True))
    for _ in range(question.rounds or plan.rounds):
        for server, values in turns:
            os.sync()
            server.resume()
            reading = question.measure(server, load)
            server.pause()
            values.append(reading.value)
            unit = question.unit
            print(f"  {server.side.label:16} {reading.value:10.{unit.digits}f} {unit.name}  {reading.detail}", flush=True)
        turns.reverse()  # nobody always follows the same neighbour
    return readings


def summary(question: Question, readings: Sequence[list[float]], refusal: str) -> Answer:
    theirs, ours, *more = readings
    bare = more[0] if more else []
    return Answer(
        question=question,
        theirs=statistics.median(theirs) if theirs else None,
        ours=statistics.median(ours),
        bare=statistics.median(bare) if bare else None,
        ratio=median_ratio(question, ours, theirs),
        bare_ratio=median_ratio(question, ours, bare),
        alone=refusal,
    )


def median_ratio(question: Question, ours: list[float], other: list[float]) -> float | None:
    return statistics.median(map(question.ratio, ours, other)) if other else None


def without_numbers(question: Question, problem: Exception) -> Answer:
    """The table has room for the first line, the progress for all."""
    print(f"  invalid: {problem}", flush=True)
    return Answer(question=question, invalid=str(problem).partition("\n")[0])
