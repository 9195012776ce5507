"""How many small blobs can be put in a second, each under a name of its own?"""

import secrets

from benchmarks import wrk
from benchmarks.client import BLOB_TYPE, CONTAINER
from benchmarks.question import Load, Reading
from benchmarks.sas import target
from benchmarks.servers import Server

BODY = b"v" * 1024


def rate(server: Server, load: Load) -> Reading:
    return wrk.run(server, script(), load).reading


def script() -> str:
    """Names count upward under a random first part, so no run meets another's."""
    request = wrk.request_text("PUT", target(f"{CONTAINER}/{secrets.token_hex(4)}-NUMBER"), BODY, BLOB_TYPE)
    return wrk.numbered(request, "NUMBER", "count")
