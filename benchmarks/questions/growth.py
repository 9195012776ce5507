"""Does a put, a get or a list page cost more when a million blobs are stored? Two servers of ours, one with few, one with many.

Blobs are named by number in seven digits, all in one container. Puts replace blobs picked at random, so that the number of blobs
stays what it is; gets are spread over the whole container; the listed page is in its middle.
"""

import random
import time

from benchmarks import wrk
from benchmarks.client import BLOB_TYPE, CONTAINER, Client, create_container
from benchmarks.question import Load, Reading
from benchmarks.sas import target
from benchmarks.servers import Server

BODY = b"v" * 128
FEW = 1_000
FILL_CONNECTIONS = 64
FILL_STEP_SECONDS = 10
KNOWN_NAMES = 1_000


def fill(server: Server, objects: int) -> None:
    """Through REST with many connections. wrk stops by time, so a small fill and the last part go one by one."""
    create_container(server)
    started = time.monotonic()
    stored, seconds = 0, 1.0
    while objects - stored > 10 * FEW:
        script = wrk.numbered(put_text(), "NUMBER", f'string.format("%07d", count + {stored})')
        run = wrk.run(server, script, Load(connections=FILL_CONNECTIONS, seconds=seconds))
        stored += run.requests
        seconds = min(FILL_STEP_SECONDS, (objects - stored) / run.per_second)
        print(f"  filled {stored} blobs, {run.per_second:.0f}/s", flush=True)
    with Client(server) as client:
        for number in range(stored, objects):
            client.put_blob(f"{number:07d}", BODY)
    server.objects = max(stored, objects)
    print(f"  {server.side.label} holds {server.objects} blobs after {time.monotonic() - started:.0f} s", flush=True)


def put_text() -> str:
    return wrk.request_text("PUT", target(f"{CONTAINER}/NUMBER"), BODY, BLOB_TYPE)


def put_rate(server: Server, load: Load) -> Reading:
    numbers = f'string.format("%07d", math.random({server.objects}) - 1)'
    run = wrk.run(server, wrk.numbered(put_text(), "NUMBER", numbers), load)
    return Reading(value=run.per_second, detail=run.detail)


def know_names(server: Server) -> None:
    """Pick names from all over the container. A fill may have left out a few that were on their way when wrk stopped."""
    picks = random.Random(1).sample(range(server.objects), min(KNOWN_NAMES, server.objects))
    with Client(server) as client:
        names = [f"{number:07d}" for number in picks]
        server.known_names = [name for name in names if client.try_ask("HEAD", f"{CONTAINER}/{name}")[0] == 200]
    assert len(server.known_names) > len(picks) * 0.9


def get_rate(server: Server, load: Load) -> Reading:
    requests = [wrk.request_text("GET", target(f"{CONTAINER}/{name}")) for name in server.known_names]
    run = wrk.run(server, wrk.cycling(requests), load)
    return Reading(value=run.per_second, detail=run.detail)


def list_rate(server: Server, load: Load) -> Reading:
    """Five digits of a name leave a hundred blobs."""
    query = f"restype=container&comp=list&maxresults=100&prefix={server.objects // 2:07d}"[:-2]
    with Client(server) as client:
        found = client.ask("GET", CONTAINER, query).count(b"</Blob>")
    assert found > 90, f"the page has {found} blobs"
    run = wrk.run(server, wrk.cycling([wrk.request_text("GET", target(CONTAINER, query))]), load)
    return Reading(value=run.per_second, detail=run.detail)
