"""Upload and download of one large file over one connection, compared with a minimal loop. A file is uploaded in ranges of 4 MiB,
each of which is digested and synced before it is answered, by the loop too; a blob is one request."""

import secrets

from benchmarks import streaming
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import files, large
from benchmarks.cases.large import GETS, MIB, SIZE_MIB
from benchmarks.servers import Server

STORED = f"{files.SHARE}/large"


def put_rate(server: Server, load: Load) -> Reading:
    if server.service == "blob":
        return large.put_rate(server, load)
    seconds = streaming.put_ranges_seconds(server, f"{files.SHARE}/{secrets.token_hex(4)}", SIZE_MIB * MIB)
    return Reading(value=SIZE_MIB / seconds)


def store(server: Server) -> None:
    if server.service == "blob":
        large.store(server)
        return
    files.prepare(server)
    streaming.put_ranges_seconds(server, STORED, SIZE_MIB * MIB)


def get_rate(server: Server, load: Load) -> Reading:
    if server.service == "blob":
        return large.get_rate(server, load)
    seconds = [streaming.get_seconds(server, STORED, SIZE_MIB * MIB) for _ in range(GETS)]
    return Reading(value=SIZE_MIB * GETS / sum(seconds))
