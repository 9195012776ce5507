"""Put Page with 512 bytes and with 4 KiB, at random positions of one page blob of 8 MiB."""

import json

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.client import CONTAINER, Client
from benchmarks.sas import target
from benchmarks.servers import Server

BLOB = f"{CONTAINER}/pages"
BLOB_BYTES = 8 << 20
PUT_PAGE = {"x-ms-page-write": "update"}

SCRIPT = """
local size, pages, head, tail = %d, %d, %s, %s
function request()
    local first = (math.random(pages) - 1) * size
    return head .. first .. "-" .. first + size - 1 .. tail
end
"""


def prepare(server: Server) -> None:
    with Client(server) as client:
        client.create_container()
        client.ask("PUT", BLOB, headers={"x-ms-blob-type": "PageBlob", "x-ms-blob-content-length": str(BLOB_BYTES)})
        client.ask("PUT", BLOB, "comp=page", b"v" * 512, {**PUT_PAGE, "x-ms-range": "bytes=0-511"})


def rate_of_512(server: Server, load: Load) -> Reading:
    return wrk.run(server, script(512), load).reading


def rate_of_4k(server: Server, load: Load) -> Reading:
    return wrk.run(server, script(4096), load).reading


def script(size: int) -> str:
    request = wrk.request_text("PUT", target(BLOB, "comp=page"), b"v" * size, {**PUT_PAGE, "x-ms-range": "bytes=RANGE"})
    head, _, tail = request.partition("RANGE")
    return SCRIPT % (size, BLOB_BYTES // size, json.dumps(head), json.dumps(tail))
