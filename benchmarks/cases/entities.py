"""Inserting and reading entities: individually, with a filter, in pages of a thousand, in transactions of a hundred.

The `grown_` benchmarks store as many entities as there are blobs, but at least ten thousand, in partitions of a hundred. A
transaction replaces one partition, so the number of entities does not change.
"""

import json
import secrets

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.client import Client
from benchmarks.sas import ACCOUNT, target
from benchmarks.servers import HOST, Server

TABLE = "bench"
STORED = 1_000  # entities of the partition that is read; a hundred of them match the filter
OTHERS = 9  # number of further partitions of the same size, where there are any
IN_BATCH = 100
FEWEST = 10_000
FILL_CONNECTIONS = 8
JSON = {"Accept": "application/json;odata=minimalmetadata", "Content-Type": "application/json", "DataServiceVersion": "3.0"}
BATCH = {"Accept": "application/json;odata=minimalmetadata", "Content-Type": "multipart/mixed; boundary=batch_1"}
FILTER = "$filter=PartitionKey%20eq%20'known'%20and%20Group%20eq%207"


def entity(partition: str, row: str, number: int = 7) -> bytes:
    """Eight properties of the common types, about 300 bytes."""
    return json.dumps(
        {
            "PartitionKey": partition,
            "RowKey": row,
            "Name": f"entity number {number}",
            "Text": "v" * 64,
            "Group": number % 10,
            "Size@odata.type": "Edm.Int64",
            "Size": str(number * 1_000_003),
            "Score": number / 7,
            "Made@odata.type": "Edm.DateTime",
            "Made": "2026-01-02T03:04:05.678Z",
            "Id@odata.type": "Edm.Guid",
            "Id": f"00000000-0000-0000-0000-{number:012d}",
            "Active": number % 2 == 0,
        },
        separators=(",", ":"),
    ).encode()


# --- preparation ------------------------------------------------------------------------------------------------------------


def create(server: Server) -> None:
    with Client(server) as client:
        client.ask("POST", "Tables", body=json.dumps({"TableName": TABLE}).encode(), headers=JSON)


def store(server: Server) -> None:
    """Store the entities that are read later, and check that the response has them."""
    create(server)
    with Client(server) as client:
        store_partition(client, "known")
        assert len(json.loads(client.ask("GET", f"{TABLE}()", headers=JSON))["value"]) == STORED
        assert len(json.loads(client.ask("GET", f"{TABLE}()", FILTER, headers=JSON))["value"]) == STORED // 10


def store_more(server: Server) -> None:
    store(server)
    with Client(server) as client:
        for number in range(OTHERS):
            store_partition(client, f"other{number}")


def store_partition(client: Client, name: str) -> None:
    for first in range(0, STORED, IN_BATCH):
        body = batch([entity(name, f"{number:07d}", number) for number in range(first, first + IN_BATCH)])
        assert client.ask("POST", "$batch", body=body, headers=BATCH).count(b" 204 ") == IN_BATCH


def batch(entities: list[bytes], verb: str = "POST") -> bytes:
    """An entity group transaction that inserts or replaces each entity."""
    url = f"http://{HOST}/{ACCOUNT}/{TABLE}"
    parts = b"".join(part(url, body, verb) for body in entities)
    head = b"--batch_1\r\nContent-Type: multipart/mixed; boundary=changeset_1\r\n\r\n"
    return head + parts + b"--changeset_1--\r\n--batch_1--\r\n"


def part(url: str, body: bytes, verb: str) -> bytes:
    if verb != "POST":
        keys = json.loads(body)
        url += f"(PartitionKey='{keys['PartitionKey']}',RowKey='{keys['RowKey']}')"
    headers = "Content-Type: application/json\r\nAccept: application/json;odata=minimalmetadata\r\nPrefer: return-no-content\r\n"
    opening = "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
    return f"{opening}{verb} {url} HTTP/1.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body + b"\r\n"


# --- measures ---------------------------------------------------------------------------------------------------------------


def insert_rate(server: Server, load: Load) -> Reading:
    return rate(server, insert_script(), load)


def insert_script() -> str:
    """Ascending row keys in a partition with a random name, so runs do not collide."""
    body = entity(secrets.token_hex(4), "NUMBER!")
    text = wrk.request_text("POST", target(TABLE), body, {**JSON, "Prefer": "return-no-content"})
    return wrk.numbered(text, "NUMBER!", 'string.format("%07d", count)')


def get_rate(server: Server, load: Load) -> Reading:
    return rate(server, get_script(), load)


def get_script() -> str:
    rows = [f"{TABLE}(PartitionKey='known',RowKey='{number:07d}')" for number in range(0, STORED, 10)]
    return wrk.cycling([wrk.request_text("GET", target(row), headers=JSON) for row in rows])


def filtered_rate(server: Server, load: Load) -> Reading:
    """Pages of a hundred, selected by a property among the thousand entities of one partition."""
    return rate(server, wrk.cycling([wrk.request_text("GET", target(f"{TABLE}()", FILTER), headers=JSON)]), load)


def page_rate(server: Server, load: Load) -> Reading:
    """Pages of a thousand."""
    query = "$filter=PartitionKey%20eq%20'known'"
    return rate(server, wrk.cycling([wrk.request_text("GET", target(f"{TABLE}()", query), headers=JSON)]), load)


def batch_rate(server: Server, load: Load) -> Reading:
    """Transactions of a hundred inserts, each into a new partition."""
    return rate(server, batches("POST", f"{secrets.token_hex(4)}-%07d", "count"), load)


def rate(server: Server, script: str, load: Load) -> Reading:
    run = wrk.run(server, script, load)
    return Reading(value=run.per_second, detail=run.detail)


def batches(verb: str, partition: str, number: str) -> str:
    """A script that sends batches to partitions named by the Lua expression `number`, in which `count` grows from 1."""
    placeholder = "MARK" + "-" * (len(partition % 0) - 4)
    body = batch([entity(placeholder, f"{row:03d}", row) for row in range(IN_BATCH)], verb)
    pieces = wrk.request_text("POST", target("$batch"), body, BATCH).split(placeholder)
    return f"""
local pieces = {{{",".join(json.dumps(piece) for piece in pieces)}}}
local count = 0
function request()
    count = count + 1
    return table.concat(pieces, string.format({json.dumps(partition)}, {number}))
end
"""


# --- growth -----------------------------------------------------------------------------------------------------------------


def fill(server: Server, objects: int) -> None:
    server.objects = objects
    grow(server)


def grow(server: Server) -> None:
    """Store transactions with wrk, then send those again that were in flight when wrk stopped."""
    table = server.at("table")
    create(table)
    stored, seconds, partitions = 0, 1.0, partitions_of(server)
    while stored < partitions:
        script = batches("PUT", "%07d", f"(count + {stored} - 1) % {partitions}")
        run = wrk.run(table, script, Load(connections=FILL_CONNECTIONS, seconds=seconds))
        stored += run.requests - FILL_CONNECTIONS
        seconds = min(10.0, (partitions - stored) / run.per_second)
    print(f"  {server.side.label} holds {partitions * IN_BATCH} entities", flush=True)


def partitions_of(server: Server) -> int:
    return max(server.objects, FEWEST) // IN_BATCH


def grown_get_rate(server: Server, load: Load) -> Reading:
    keys = f"""string.format("PartitionKey='%07d',RowKey='042'", math.random({partitions_of(server)}) - 1)"""
    text = wrk.request_text("GET", target(f"{TABLE}(KEYS)"), headers=JSON)
    return rate(server.at("table"), wrk.numbered(text, "KEYS", keys), load)


def grown_insert_rate(server: Server, load: Load) -> Reading:
    """New rows in random partitions; they are few compared with the stored ones."""
    keys = '"PartitionKey":"0000000","RowKey":"%s-0000000"' % (name := secrets.token_hex(4))
    placeholder = "KEYS" + "-" * (len(keys) - 4)
    body = entity("P", "R").replace(b'"PartitionKey":"P","RowKey":"R"', placeholder.encode())
    text = wrk.request_text("POST", target(TABLE), body, {**JSON, "Prefer": "return-no-content"})
    partition = f"math.random({partitions_of(server)}) - 1"
    numbers = f"""string.format('"PartitionKey":"%07d","RowKey":"{name}-%07d"', {partition}, count)"""
    return rate(server.at("table"), wrk.numbered(text, placeholder, numbers), load)


def grown_page_rate(server: Server, load: Load) -> Reading:
    """Pages of a thousand, from the middle."""
    query = f"$filter=PartitionKey%20ge%20'{partitions_of(server) // 2:07d}'"
    with Client(server.at("table")) as client:
        assert len(json.loads(client.ask("GET", f"{TABLE}()", query, headers=JSON))["value"]) == 1000
    return rate(server.at("table"), wrk.cycling([wrk.request_text("GET", target(f"{TABLE}()", query), headers=JSON)]), load)


def grown_batch_rate(server: Server, load: Load) -> Reading:
    return rate(server.at("table"), batches("PUT", "%07d", f"math.random({partitions_of(server)}) - 1"), load)
