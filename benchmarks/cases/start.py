"""Time from the start of the process to the first response."""

from benchmarks.benchmark import Load, Reading
from benchmarks.servers import Server


def nothing(server: Server) -> None:
    """For a benchmark that needs no preparation."""


def on_empty_folder(server: Server, load: Load) -> Reading:
    return Reading(value=server.restart(fresh=True))


def on_same_folder(server: Server, load: Load) -> Reading:
    return Reading(value=server.restart())
