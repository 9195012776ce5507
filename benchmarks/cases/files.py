"""Files beside blobs of the same server version: Create File and Put Range of 1 KiB as one operation beside Put Blob, Get File
of 1 KiB beside Get Blob, and List Directories and Files beside List Blobs, each with a hundred entries.

A row compares two servers that run the same program. The service that a server is addressed at selects the requests.
"""

import json
import secrets

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.cases import get_blob, list_blobs, put_blob
from benchmarks.cases.get_blob import NAMES
from benchmarks.cases.put_blob import BODY
from benchmarks.client import Client
from benchmarks.sas import target
from benchmarks.servers import Server

SHARE = "bench"
LIST = "restype=directory&comp=list"
UPDATE = {"x-ms-write": "update", "x-ms-range": f"bytes=0-{len(BODY) - 1}"}
REQUEST_ID = "x-ms-client-request-id"

# Requests of different connections may overtake each other. So Put Range is sent only after the response to the Create File of
# the same name, which returns the name as the client's request id.
WRITE = """
local create_head, create_middle, create_tail, put_head, put_tail = %s
local created, count = {}, 0
function request()
    local name = table.remove(created)
    if name then return put_head .. name .. put_tail end
    count = count + 1
    return create_head .. count .. create_middle .. count .. create_tail
end
function response(status, headers, body)
    local name = headers["x-ms-client-request-id"]
    if name then created[#created + 1] = name end
end
"""


def prepare(server: Server) -> None:
    with Client(server) as client:
        if server.service == "blob":
            client.create_container()
        else:
            client.ask("PUT", SHARE, "restype=share")


def store(server: Server) -> None:
    if server.service == "blob":
        list_blobs.store(server)
        return
    prepare(server)
    with Client(server) as client:
        store_files(client, SHARE)


def store_files(client: Client, folder: str) -> None:
    """Files with the names and contents of `get_blob`."""
    for name in NAMES:
        client.ask("PUT", f"{folder}/{name}", headers=create_headers(len(BODY)))
        client.ask("PUT", f"{folder}/{name}", "comp=range", BODY, UPDATE)
    assert client.ask("GET", f"{folder}/{NAMES[-1]}") == BODY
    assert client.ask("GET", folder, LIST).count(b"</File>") == len(NAMES)


def create_headers(size_bytes: int) -> dict[str, str]:
    return {"x-ms-type": "file", "x-ms-content-length": str(size_bytes)}


def write_rate(server: Server, load: Load) -> Reading:
    """Files per second: each takes two requests."""
    if server.service == "blob":
        return put_blob.rate(server, load)
    run = wrk.run(server, write_script(SHARE), load)
    return Reading(value=run.per_second / 2, detail=run.detail)


def get_rate(server: Server, load: Load) -> Reading:
    return get_blob.rate(server, load) if server.service == "blob" else get_rate_below(server, load, SHARE)


def list_rate(server: Server, load: Load) -> Reading:
    return list_blobs.rate(server, load) if server.service == "blob" else list_rate_below(server, load, SHARE)


def get_rate_below(server: Server, load: Load, folder: str) -> Reading:
    requests = [wrk.request_text("GET", target(f"{folder}/{name}")) for name in NAMES]
    return wrk.run(server, wrk.cycling(requests), load).reading


def list_rate_below(server: Server, load: Load, folder: str, query: str = LIST) -> Reading:
    return wrk.run(server, wrk.cycling([wrk.request_text("GET", target(folder, query))]), load).reading


def write_script(folder: str) -> str:
    """Ascending names with a random prefix, so runs do not collide."""
    path = f"{folder}/{secrets.token_hex(4)}-NUMBER"
    headers = create_headers(len(BODY)) | {REQUEST_ID: "NUMBER"}
    create = wrk.request_text("PUT", target(path), b"", headers)
    put = wrk.request_text("PUT", target(path, "comp=range"), BODY, UPDATE)
    return WRITE % ", ".join(json.dumps(part) for part in (*create.split("NUMBER"), *put.split("NUMBER")))
