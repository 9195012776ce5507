"""Get Blob of 1 KiB, cycling over a hundred blobs."""

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases.put_blob import BODY
from benchmarks.client import CONTAINER, Client
from benchmarks.sas import target
from benchmarks.servers import Server

NAMES = [f"blob-{number:03d}" for number in range(100)]


def store(server: Server) -> None:
    with Client(server) as client:
        client.create_container()
        for name in NAMES:
            client.put_blob(name, BODY)
        assert client.ask("GET", f"{CONTAINER}/{NAMES[-1]}") == BODY


def rate(server: Server, load: Load) -> Reading:
    return wrk.run(server, script(), load).reading


def script() -> str:
    return wrk.cycling([wrk.request_text("GET", target(f"{CONTAINER}/{name}")) for name in NAMES])
