"""How long after it was started does the server give its first answer?"""

from benchmarks.question import Load, Reading
from benchmarks.servers import Server


def nothing(server: Server) -> None:
    """A question that needs no preparation."""


def on_empty_folder(server: Server, load: Load) -> Reading:
    return Reading(value=server.restart(fresh=True))


def on_same_folder(server: Server, load: Load) -> Reading:
    return Reading(value=server.restart())
