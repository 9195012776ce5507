"""Append Block with 1 KiB: each connection to its own blob, and all connections to the same blob."""

import secrets

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.client import CONTAINER, Client
from benchmarks.sas import target
from benchmarks.servers import Server

BODY = b"v" * 1024
APPEND_BLOB = {"x-ms-blob-type": "AppendBlob"}
BLOCKS = 40_000  # per blob: an append blob is limited to 50,000
MOST_PER_SECOND = 20_000


def prepare(server: Server) -> None:
    """Append one block, to check that the server supports append blobs."""
    with Client(server) as client:
        client.create_container()
        client.ask("PUT", f"{CONTAINER}/first", headers=APPEND_BLOB)
        client.ask("PUT", f"{CONTAINER}/first", "comp=appendblock", BODY)


def rate_to_own(server: Server, load: Load) -> Reading:
    """One thread per connection, because a wrk script can distinguish threads only."""
    request = append_text(create_blobs(server, load.connections, load))
    script = THREADS + wrk.numbered(request, "NUMBER", f'thread .. "-" .. math.floor(count / {BLOCKS})')
    return wrk.run(server, script, load, threads=load.connections).reading


def rate_to_shared(server: Server, load: Load) -> Reading:
    request = append_text(create_blobs(server, 1, load))
    return wrk.run(server, wrk.numbered(request, "NUMBER", f'"0-" .. math.floor(count / {BLOCKS})'), load).reading


def create_blobs(server: Server, writers: int, load: Load) -> str:
    """Create as many empty blobs per writer as the load can fill, and return the prefix of their names."""
    prefix = secrets.token_hex(4)
    row = 1 + int(load.seconds * MOST_PER_SECOND / writers / BLOCKS)
    with Client(server) as client:
        for writer in range(writers):
            for number in range(row):
                client.ask("PUT", f"{CONTAINER}/{prefix}-{writer}-{number}", headers=APPEND_BLOB)
    return prefix


def append_text(prefix: str) -> str:
    return wrk.request_text("PUT", target(f"{CONTAINER}/{prefix}-NUMBER", "comp=appendblock"), BODY)


THREADS = """
local threads = 0
function setup(thread)
    thread:set("thread", threads)
    threads = threads + 1
end
"""
