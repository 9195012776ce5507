"""How much memory is resident: idle, after a load, and while a gibibyte streams in and out?"""

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks import streaming, wrk
from benchmarks.client import CONTAINER
from benchmarks.question import Load, Reading
from benchmarks.questions import put_blob
from benchmarks.servers import Server

MEGABYTE = 1e6
SETTLE_SECONDS = 1.0
SAMPLE_SECONDS = 0.02
STREAMED_BYTES = 1 << 30


def idle(server: Server, load: Load) -> Reading:
    server.restart()
    time.sleep(SETTLE_SECONDS)
    return Reading(value=server.resident_bytes() / MEGABYTE)


def after_load(server: Server, load: Load) -> Reading:
    run = wrk.run(server, put_blob.script(), load)
    return Reading(value=server.resident_bytes() / MEGABYTE, detail=f"after {run.requests} more blobs")


def while_streaming(server: Server, load: Load) -> Reading:
    """The highest reading during a Put Blob and a Get Blob of 1 GiB, above idle."""
    idle_megabytes = idle(server, load).value
    blob = f"{CONTAINER}/{secrets.token_hex(4)}"
    with sampled(server) as samples:
        streaming.put_seconds(server, blob, STREAMED_BYTES)
        streaming.get_seconds(server, blob, STREAMED_BYTES)
    return Reading(value=max(0.0, max(samples) / MEGABYTE - idle_megabytes), detail=f"over {idle_megabytes:.0f} MB idle")


@contextmanager
def sampled(server: Server) -> Iterator[list[int]]:
    """Resident bytes, read again and again while the block runs."""
    samples = [server.resident_bytes()]
    done = threading.Event()

    def sample() -> None:
        while not done.wait(SAMPLE_SECONDS):
            samples.append(server.resident_bytes())

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        done.set()
        thread.join()
