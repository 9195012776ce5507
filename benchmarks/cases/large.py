"""Upload and download of one large blob over one connection, compared with a minimal loop."""

import secrets

from benchmarks import streaming
from benchmarks.benchmark import Load, Reading
from benchmarks.client import CONTAINER, create_container
from benchmarks.servers import Server

MIB = 1 << 20
SIZE_MIB = 256
GETS = 4  # per reading: a single one is too short to measure
STORED = f"{CONTAINER}/large"


def put_rate(server: Server, load: Load) -> Reading:
    seconds = streaming.put_seconds(server, f"{CONTAINER}/{secrets.token_hex(4)}", SIZE_MIB * MIB)
    return Reading(value=SIZE_MIB / seconds)


def store(server: Server) -> None:
    """Writing leaves the blob in the page cache, with every server."""
    create_container(server)
    streaming.put_seconds(server, STORED, SIZE_MIB * MIB)


def get_rate(server: Server, load: Load) -> Reading:
    seconds = [streaming.get_seconds(server, STORED, SIZE_MIB * MIB) for _ in range(GETS)]
    return Reading(value=SIZE_MIB * GETS / sum(seconds))
