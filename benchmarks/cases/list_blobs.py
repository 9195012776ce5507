"""List Blobs of a container with a hundred blobs."""

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import get_blob
from benchmarks.client import CONTAINER, Client
from benchmarks.sas import target
from benchmarks.servers import Server

LIST = "restype=container&comp=list"


def store(server: Server) -> None:
    get_blob.store(server)
    with Client(server) as client:
        assert client.ask("GET", CONTAINER, LIST).count(b"</Blob>") == len(get_blob.NAMES)


def rate(server: Server, load: Load) -> Reading:
    return wrk.run(server, wrk.cycling([wrk.request_text("GET", target(CONTAINER, LIST))]), load).reading
