"""Set Blob Tags, and Find Blobs by Tags with a thousand results among five thousand blobs."""

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import get_blob
from benchmarks.client import BLOB_TYPE, CONTAINER, Client
from benchmarks.sas import target
from benchmarks.servers import Server

DOCUMENT = '<?xml version="1.0" encoding="utf-8"?><Tags><TagSet><Tag><Key>round</Key><Value>%d</Value></Tag></TagSet></Tags>'
ROUNDS = 10
STORED, MATCHING = 5_000, 1_000
FIND = "restype=container&comp=blobs&where=%22group%22%3D%27g0%27"


def store(server: Server) -> None:
    get_blob.store(server)
    with Client(server) as client:
        client.ask("PUT", f"{CONTAINER}/{get_blob.NAMES[0]}", "comp=tags", document(0))


def set_rate(server: Server, load: Load) -> Reading:
    """A hundred blobs in sequence; each pass sets a different value."""
    requests = [
        wrk.request_text("PUT", target(f"{CONTAINER}/{name}", "comp=tags"), document(number))
        for number in range(ROUNDS)
        for name in get_blob.NAMES
    ]
    return wrk.run(server, wrk.cycling(requests), load).reading


def document(number: int) -> bytes:
    return (DOCUMENT % number).encode()


def store_many(server: Server) -> None:
    with Client(server) as client:
        client.create_container()
        for number in range(STORED):
            tags = {"x-ms-tags": f"group=g{number % (STORED // MATCHING)}"}
            client.ask("PUT", f"{CONTAINER}/blob-{number:05d}", headers={**BLOB_TYPE, **tags})
        found = client.ask("GET", CONTAINER, FIND).count(b"</Blob>")
        assert found == MATCHING, f"{found} blobs were found"


def find_rate(server: Server, load: Load) -> Reading:
    return wrk.run(server, wrk.cycling([wrk.request_text("GET", target(CONTAINER, FIND))]), load).reading
