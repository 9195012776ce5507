"""Put Message, and the cycle of Put, Get and Delete Message; the `grown_` benchmarks with a million stored messages.

The cycle puts one message for each one it deletes, so the number of stored messages does not change: 3000, or the number that
the server was filled with.
"""

import json

from benchmarks import wrk
from benchmarks.benchmark import Load, Reading
from benchmarks.client import Client
from benchmarks.sas import target
from benchmarks.servers import Server

QUEUE = "bench"
WAITING = 3_000
TEXT = b"v" * 200
BODY = b"<QueueMessage><MessageText>" + TEXT + b"</MessageText></QueueMessage>"
FILL_CONNECTIONS = 64
FILL_STEP_SECONDS = 10.0

CYCLE = """
local put, get, head, tail = %s
local receipts, puts_next = {}, 0
function request()
    local path = table.remove(receipts)
    if path then return head .. path .. tail end
    puts_next = 1 - puts_next
    return puts_next == 1 and put or get
end
function escape(text)
    return (text:gsub("[^%%w]", function(character) return string.format("%%%%%%02X", character:byte()) end))
end
function response(status, headers, body)
    local id, receipt = body:match("<MessageId>(.-)</MessageId>.*<PopReceipt>(.-)</PopReceipt>.*<DequeueCount>")
    if id then receipts[#receipts + 1] = id .. "?popreceipt=" .. escape(receipt) .. "&" end
end
"""


def create(server: Server) -> None:
    with Client(server) as client:
        client.ask("PUT", QUEUE)


def store(server: Server) -> None:
    create(server)
    fill(server, WAITING)


def put_rate(server: Server, load: Load) -> Reading:
    run = wrk.run(server, put_script(), load)
    return Reading(value=run.per_second, detail=run.detail)


def cycles(server: Server, load: Load) -> Reading:
    """Number of complete cycles: a third of the requests."""
    run = wrk.run(server, cycle_script(), load)
    return Reading(value=run.per_second / 3, detail=run.detail)


def put_script() -> str:
    return wrk.cycling([put_text()])


def put_text() -> str:
    return wrk.request_text("POST", target(f"{QUEUE}/messages"), BODY)


def cycle_script() -> str:
    get = wrk.request_text("GET", target(f"{QUEUE}/messages"))
    head, _, tail = wrk.request_text("DELETE", target(f"{QUEUE}/messages/ID")).partition("ID?")
    return CYCLE % ", ".join(json.dumps(text) for text in (put_text(), get, head, tail))


def fill(server: Server, messages: int) -> None:
    """With many connections. wrk stops by time, so the remaining messages are put individually."""
    stored, seconds = 0, 1.0
    while messages - stored > 2 * WAITING:
        run = wrk.run(server, put_script(), Load(connections=FILL_CONNECTIONS, seconds=seconds))
        stored += run.requests
        seconds = min(FILL_STEP_SECONDS, (messages - stored) / run.per_second)
    with Client(server) as client:
        for _ in range(messages - stored):
            client.ask("POST", f"{QUEUE}/messages", body=BODY)


def grow(server: Server) -> None:
    """Put as many messages as the server stores blobs."""
    queue = server.at("queue")
    create(queue)
    fill(queue, server.objects)


def grown_put_rate(server: Server, load: Load) -> Reading:
    return put_rate(server.at("queue"), load)


def grown_cycles(server: Server, load: Load) -> Reading:
    return cycles(server.at("queue"), load)
