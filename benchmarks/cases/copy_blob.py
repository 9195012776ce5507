"""Copy Blob within one account, for a blob of 1 KiB and for one of 64 MiB."""

import secrets

from benchmarks import streaming, wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases.put_blob import BODY
from benchmarks.client import CONTAINER, Client
from benchmarks.sas import target
from benchmarks.servers import HOST, Server

SOURCE = f"{CONTAINER}/source"
LARGE_BYTES = 64 << 20


def store_small(server: Server) -> None:
    with Client(server) as client:
        client.create_container()
        client.ask("PUT", SOURCE, body=BODY, headers={"x-ms-blob-type": "BlockBlob"})
        copy_once(server, client, len(BODY))


def store_large(server: Server) -> None:
    with Client(server) as client:
        client.create_container()
        streaming.put_seconds(server, SOURCE, LARGE_BYTES)
        copy_once(server, client, LARGE_BYTES)


def copy_once(server: Server, client: Client, size_bytes: int) -> None:
    """Check that the copy is complete when the server answers; otherwise the rate would count unfinished copies."""
    client.ask("PUT", f"{CONTAINER}/first", headers=copy_source(server))
    listed = client.ask("GET", CONTAINER, "restype=container&comp=list&include=copy&prefix=first")
    assert b"<CopyStatus>success</CopyStatus>" in listed, "the copy is not done when it is answered"
    assert len(client.ask("GET", f"{CONTAINER}/first")) == size_bytes


def rate(server: Server, load: Load) -> Reading:
    """Each copy gets a new name. The server recognizes a source of its own by host and port."""
    name = f"{CONTAINER}/{secrets.token_hex(4)}-NUMBER"
    request = wrk.request_text("PUT", target(name), b"", {**copy_source(server), "Host": f"{HOST}:{server.port}"})
    return wrk.run(server, wrk.numbered(request, "NUMBER", "count"), load).reading


def copy_source(server: Server) -> dict[str, str]:
    return {"x-ms-copy-source": f"http://{HOST}:{server.port}{target(SOURCE)}"}
