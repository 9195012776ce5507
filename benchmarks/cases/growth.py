"""Operations with a million stored blobs. Puts replace random blobs, so the number of blobs does not change; gets are spread
over the whole container; the listed page of a hundred blobs is in its middle. The page with a delimiter shows a hundred blobs
around one folder that contains all others; the searched tag value occurs on a hundred blobs.

The two servers run Verditer, one with few blobs and one with many: `filling.py` stores them.
"""

import random
import subprocess
import sys
import time

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.client import BLOB_TYPE, CONTAINER, Client
from benchmarks.sas import target
from benchmarks.servers import ROOT, CannotMeasure, Server

BODY = b"v" * 128
FEW = 1_000
KNOWN_NAMES = 1_000
PAGE = 100
TREE = "tree"


def fill(server: Server, objects: int) -> None:
    """Write directly into the folder while the server is stopped: with requests it would take an hour."""
    server.stop()
    started = time.monotonic()
    words = [sys.executable, str(ROOT / "benchmarks" / "filling.py"), str(server.data), str(objects)]
    done = subprocess.run(words, env=server.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotMeasure(f"{server.side.label} could not be filled:\n{done.stderr[-2000:]}")
    server.objects = objects
    print(f"  {server.side.label} holds twice {objects} blobs after {time.monotonic() - started:.0f} s", flush=True)
    server.start()


def put_rate(server: Server, load: Load) -> Reading:
    request = wrk.request_text("PUT", target(f"{CONTAINER}/NUMBER"), BODY, BLOB_TYPE)
    numbers = f'string.format("%07d", math.random({server.objects}) - 1)'
    return wrk.run(server, wrk.numbered(request, "NUMBER", numbers), load).reading


def get_rate(server: Server, load: Load) -> Reading:
    picks = random.Random(1).sample(range(server.objects), min(KNOWN_NAMES, server.objects))
    requests = [wrk.request_text("GET", target(f"{CONTAINER}/{number:07d}")) for number in picks]
    return wrk.run(server, wrk.cycling(requests), load).reading


def list_rate(server: Server, load: Load) -> Reading:
    """A prefix of five digits selects a hundred blobs."""
    digits = f"{server.objects // 2:07d}"[:-2]
    query = f"restype=container&comp=list&maxresults={PAGE}&prefix={digits}"
    return page_rate(server, load, CONTAINER, query)


def folder_rate(server: Server, load: Load) -> Reading:
    """One page over all blobs: the folder in the middle is one entry."""
    query = f"restype=container&comp=list&delimiter=/&maxresults={PAGE + 1}"
    return page_rate(server, load, TREE, query)


def find_rate(server: Server, load: Load) -> Reading:
    group = f"{server.objects // PAGE // 2:05d}"
    query = f"restype=container&comp=blobs&where=%22group%22%3D%27{group}%27"
    return page_rate(server, load, TREE, query)


def page_rate(server: Server, load: Load, container: str, query: str) -> Reading:
    with Client(server) as client:
        found = client.ask("GET", container, query).count(b"</Blob>")
    assert found == PAGE, f"the page has {found} blobs"
    return wrk.run(server, wrk.cycling([wrk.request_text("GET", target(container, query))]), load).reading
