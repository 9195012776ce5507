"""Memory in use: idle, after a load, and the maximum above idle while 1 GiB is uploaded and downloaded."""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import put_blob
from benchmarks.client import CONTAINER
from benchmarks.servers import Server
from benchmarks.streaming import get_seconds, put_seconds

MEGABYTE = 1e6
SETTLE_SECONDS = 1.0
SAMPLE_SECONDS = 0.02
STREAMED_BYTES = 1 << 30


def idle(server: Server, load: Load) -> Reading:
    server.restart()
    time.sleep(SETTLE_SECONDS)
    return Reading(value=server.proportional_bytes() / MEGABYTE)


def idle_resident(server: Server, load: Load) -> Reading:
    """The same state, measured as the sum of RSS."""
    idle(server, load)
    return Reading(value=server.resident_bytes() / MEGABYTE)


def after_load(server: Server, load: Load) -> Reading:
    run = wrk.run(server, put_blob.script(), load)
    return Reading(value=server.proportional_bytes() / MEGABYTE, detail=f"after {run.requests} more blobs")


def peak(server: Server, load: Load) -> Reading:
    """The highest reading during a Put Blob and a Get Blob of 1 GiB, above idle."""
    idle_megabytes = idle(server, load).value
    blob = f"{CONTAINER}/{secrets.token_hex(4)}"
    with sampled(server) as samples:
        put_seconds(server, blob, STREAMED_BYTES)
        get_seconds(server, blob, STREAMED_BYTES)
    return Reading(value=max(0.0, max(samples) / MEGABYTE - idle_megabytes), detail=f"over {idle_megabytes:.0f} MB idle")


@contextmanager
def sampled(server: Server) -> Iterator[list[int]]:
    """Sample the memory in use while the block runs."""
    samples = [server.proportional_bytes()]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_SECONDS):
            samples.append(server.proportional_bytes())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()
