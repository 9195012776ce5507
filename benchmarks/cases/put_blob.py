"""Put Blob of 1 KiB, each under a new name."""

import secrets

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.client import BLOB_TYPE, CONTAINER
from benchmarks.sas import target
from benchmarks.servers import Server

BODY = b"v" * 1024


def rate(server: Server, load: Load) -> Reading:
    return wrk.run(server, script(), load).reading


def script() -> str:
    """Ascending names with a random prefix, so runs do not collide."""
    request = wrk.request_text("PUT", target(f"{CONTAINER}/{secrets.token_hex(4)}-NUMBER"), BODY, BLOB_TYPE)
    return wrk.numbered(request, "NUMBER", "count")
