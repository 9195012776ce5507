"""How fast does one large blob travel over one connection, in and out? Held against a bare loop that does only the necessary."""

import secrets

from benchmarks import streaming
from benchmarks.client import CONTAINER, create_container
from benchmarks.question import Load, Reading
from benchmarks.servers import Server

MIB = 1 << 20
SIZE_MIB = 256
GETS = 4  # in one reading: a single one is over in a blink
STORED = f"{CONTAINER}/large"


def put_rate(server: Server, load: Load) -> Reading:
    seconds = streaming.put_seconds(server, f"{CONTAINER}/{secrets.token_hex(4)}", SIZE_MIB * MIB)
    return Reading(value=SIZE_MIB / seconds)


def store(server: Server) -> None:
    """Writing it leaves it in the page cache, for every side alike."""
    create_container(server)
    streaming.put_seconds(server, STORED, SIZE_MIB * MIB)


def get_rate(server: Server, load: Load) -> Reading:
    seconds = [streaming.get_seconds(server, STORED, SIZE_MIB * MIB) for _ in range(GETS)]
    return Reading(value=SIZE_MIB * GETS / sum(seconds))
